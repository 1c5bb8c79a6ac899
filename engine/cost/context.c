#include "engine/cost/context.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/cost/projections.h"
#include "engine/cost/scratch.h"

#define AXIS(id) (1u << ADV_AXIS_##id)

/* How much of a collective that could hide shows, and whether that is assumed: no published step says it. */
struct exposure {
    double frac;
    bool assumed;
};

/* Which constant the flags select for collectives that SparseCores carry (`offload`) or not: then async
 * collective fusion and plain async all-gather need flags. */
static struct exposure exposure_of(bool offload, const struct adv_constants *c, const struct adv_flags *flags)
{
    if (offload) return (struct exposure){c->overlap_offload_exposed_frac, c->overlap_offload_assumed};
    if (flags->cf_all_gather == 1)
        return (struct exposure){c->overlap_fusion_exposed_frac, c->overlap_fusion_assumed};
    if (flags->async_all_gather == 1)
        return (struct exposure){c->overlap_async_exposed_frac, c->overlap_async_assumed};
    return (struct exposure){c->overlap_none_exposed_frac, c->overlap_none_assumed};
}

/* What a flag of SparseCore offload says to the compiler of the request; -1: nothing, also where the compiler
 * takes the flag and changes nothing by it. */
static signed char said(signed char flag, signed char ignored)
{
    return ignored == ADV_FLAG_IGNORED ? -1 : flag;
}

/* Chips that offload by default (tpu7x) do unless a flag turns it off, others where a flag turns it on.
 * Gradients are scattered by reduce-scatters or by all-reduces of which each device keeps its part: either
 * flag will do, if the compiler does not ignore it on the chip. Elsewhere than on tpu7x no published step
 * offloads gathers: that counts as fusion, where the flags that gathers over several torus axes need are set.
 * A chip without SparseCores has nothing to offload to.
 */
static void init_exposure(struct adv_cost *cost)
{
    const struct adv_flags *flags = &cost->plan->flags, *ignored = &cost->chip->ignored_flags;
    const struct adv_constants *c = cost->constants;
    const bool alone = ignored->sc_all_gather == ADV_FLAG_IGNORED_ALONE &&
                       adv_flags_lack_axes(flags, cost->dense_group.links.axes);
    const signed char gather = alone ? -1 : said(flags->sc_all_gather, ignored->sc_all_gather);
    const signed char scatter = said(flags->sc_reduce_scatter, ignored->sc_reduce_scatter);
    const signed char reduce = said(flags->sc_all_reduce, ignored->sc_all_reduce);
    bool by_default = cost->chip->offloads_collectives, can = cost->chip->sparsecores_per_chip > 0;
    bool scatters = can && (scatter == 1 || reduce == 1 || (scatter != 0 && by_default));
    struct exposure gathered = exposure_of(can && by_default && gather != 0, c, flags);
    if (can && !by_default && gather == 1) gathered = (struct exposure){c->overlap_fusion_exposed_frac, true};
    struct exposure scattered = exposure_of(scatters, c, flags);
    /* an asynchronous all-gather alone leaves the reductions where they are: the compiler makes none of them
     * asynchronous then, the device waits for each (tests/compile/schedules.md) */
    if (!scatters && flags->cf_all_gather != 1)
        scattered = (struct exposure){c->overlap_none_exposed_frac, c->overlap_none_assumed};
    cost->gather_exposed_frac = gathered.frac;
    cost->scatter_exposed_frac = scattered.frac;
    cost->offload_assumed =
        can && ((gather >= 0 && gathered.assumed) || ((scatter >= 0 || reduce >= 0) && scattered.assumed));
}

/* Peak of the plan's 8-bit format over bf16; 1 where the chip has no native path and XLA widens the operands.
 */
static double lowp_ratio(const struct adv_chip *chip, enum adv_quantization quantization)
{
    double peak = (double)NAN;
    if (quantization == ADV_QUANT_INT8) peak = chip->peak_int8_ops_per_s_per_chip;
    if (quantization == ADV_QUANT_FP8 || quantization == ADV_QUANT_FP8_FULL)
        peak = chip->peak_fp8_flops_per_s_per_chip;
    return isnan(peak) ? 1.0 : adv_max(1.0, peak / chip->peak_bf16_flops_per_s_per_chip);
}

static void init_degrees(struct adv_cost *cost)
{
    const struct adv_plan *plan = cost->plan;
    const int *ici = plan->family.ici;
    cost->tp = adv_plan_degree(plan, ADV_AXIS_TENSOR) * adv_plan_degree(plan, ADV_AXIS_TENSOR_SEQUENCE);
    bool all_ulysses = plan->family.cp_strategy == ADV_CP_ULYSSES;
    cost->cp_ring = all_ulysses ? 1 : adv_plan_degree(plan, ADV_AXIS_CONTEXT);
    cost->ulysses = ici[ADV_AXIS_ULYSSES] * (all_ulysses ? ici[ADV_AXIS_CONTEXT] : 1);
    if (plan->family.rule == ADV_RULE_EP_AS_CP) cost->cp_ring *= ici[ADV_AXIS_EXPERT];
    cost->ep = adv_plan_degree(plan, ADV_AXIS_EXPERT);
    if (plan->family.rule == ADV_RULE_CP_AS_EP) cost->ep *= ici[ADV_AXIS_CONTEXT];
    const bool all_arrive =
        plan->family.use_2d_fsdp_sharding || (cost->model->mesh_axes && !cost->model->splits_batch);
    cost->ep_kept = all_arrive ? 1 : cost->ep;
    cost->dp = ici[ADV_AXIS_DATA];
    cost->stages = adv_plan_degree(plan, ADV_AXIS_STAGE);
    cost->microbatches =
        cost->stages > 1 ? (int)adv_max_i(plan->family.pipeline_microbatches, cost->stages) : 1;
    cost->weight_shards = adv_plan_weight_shards(plan);
    cost->expert_shards = adv_plan_expert_shards(plan);
    bool meets = ici[ADV_AXIS_FSDP] > 1 && !plan->family.two_stage_gather;
    cost->width_shards = meets ? ici[ADV_AXIS_FSDP_TRANSPOSE] : 1;
    cost->expert_width_shards = plan->family.moe == ADV_MOE_DENSE ? cost->width_shards : 1;
    cost->tokens = adv_plan_tokens(plan) * cost->stages / cost->microbatches;
    cost->passes = (double)cost->microbatches * plan->family.gradient_accumulation_steps;
}

/* The axes that dense weights are sharded over. */
static unsigned sharding_axes(const struct adv_plan *plan)
{
    const unsigned fsdp = AXIS(FSDP) | AXIS(FSDP_TRANSPOSE) | AXIS(CONTEXT) | AXIS(ULYSSES);
    return plan->family.rule == ADV_RULE_EP_AS_DP ? fsdp : fsdp | AXIS(EXPERT);
}

int adv_cost_gather_axes(const struct adv_cluster *cluster, const struct adv_plan *plan)
{
    struct adv_mesh mesh;
    if (adv_mesh_place(cluster, plan, &mesh, NULL) != ADV_OK) return 0;
    const struct adv_group group = adv_group_of(cluster, &mesh, sharding_axes(plan));
    return group.devices > 1 ? group.links.axes : 0;
}

static void init_groups(struct adv_cost *cost)
{
    const struct adv_cluster *cluster = cost->cluster;
    const struct adv_mesh *mesh = cost->mesh;
    unsigned fsdp = AXIS(FSDP) | AXIS(FSDP_TRANSPOSE) | AXIS(CONTEXT) | AXIS(ULYSSES);
    const unsigned dense = sharding_axes(cost->plan);
    unsigned kept = cost->width_shards > 1 ? AXIS(FSDP_TRANSPOSE) : 0u;
    unsigned routed = cost->plan->family.rule == ADV_RULE_CP_AS_EP ? fsdp & ~AXIS(CONTEXT) : fsdp;
    if (cost->ep_kept < cost->ep) routed |= AXIS(EXPERT);
    cost->dense_group = adv_group_of(cluster, mesh, dense);
    cost->feed_forward_group = adv_group_of(cluster, mesh, dense & ~kept);
    cost->expert_group = adv_group_of(cluster, mesh, cost->expert_width_shards > 1 ? routed & ~kept : routed);
    cost->tensor_group = adv_group_of(cluster, mesh, AXIS(TENSOR) | AXIS(TENSOR_SEQUENCE));
    cost->transpose_group = adv_group_of(cluster, mesh, AXIS(FSDP_TRANSPOSE));
    bool all_ulysses = cost->plan->family.cp_strategy == ADV_CP_ULYSSES;
    unsigned ring = all_ulysses ? 0u : AXIS(CONTEXT);
    if (cost->plan->family.rule == ADV_RULE_EP_AS_CP) ring |= AXIS(EXPERT);
    cost->context_group = adv_group_of(cluster, mesh, ring);
    cost->ulysses_group = adv_group_of(cluster, mesh, AXIS(ULYSSES) | (all_ulysses ? AXIS(CONTEXT) : 0u));
    cost->ep_group = adv_group_of(
        cluster, mesh, AXIS(EXPERT) | (cost->plan->family.rule == ADV_RULE_CP_AS_EP ? AXIS(CONTEXT) : 0u));
    cost->data_group = adv_group_of(cluster, mesh, AXIS(DATA));
    cost->stage_group = adv_group_of(cluster, mesh, AXIS(STAGE));
}

void adv_cost_rates_init(struct adv_cost *cost, const struct adv_chip *chip,
                         const struct adv_constants *constants, enum adv_quantization quantization)
{
    cost->chip = chip;
    cost->constants = constants;
    cost->bf16_flops_per_s =
        chip->peak_bf16_flops_per_s_per_chip / chip->devices_per_chip * constants->step_matmul_frac;
    cost->hbm_bytes_per_s =
        chip->hbm_bytes_per_s_per_chip / chip->devices_per_chip * constants->step_elementwise_frac;
    cost->mxu_k = chip->mxu_rows;
    cost->mxu_n = chip->mxu_columns;
    cost->quantizes_dense = quantization != ADV_QUANT_NONE;
    cost->quantizes_experts = quantization == ADV_QUANT_FP8_FULL;
    double ratio = lowp_ratio(chip, quantization);
    cost->lowp_speedup = ratio > 1.0 ? ratio * constants->step_lowp_gain_frac : 1.0;
}

void adv_cost_set_places(struct adv_cost *cost, uint64_t places)
{
    cost->places = places;
    cost->kept = adv_remat_kept(places);
    cost->offloads = adv_remat_offloads(places);
}

void adv_cost_set_plan(struct adv_cost *cost, const struct adv_plan *plan)
{
    cost->plan = plan;
    adv_cost_set_places(cost, adv_remat_places(plan));
}

void adv_cost_init(struct adv_cost *cost, const struct adv_estimate_input *input, const struct adv_mesh *mesh,
                   bool same_mesh)
{
    memset(cost, 0, offsetof(struct adv_cost, layer_params));
    const struct adv_chip *chip = &input->cluster->chip;
    const struct adv_constants *constants = input->constants;
    cost->model = input->model;
    cost->cluster = input->cluster;
    adv_cost_set_plan(cost, input->plan);
    cost->mesh = mesh;
    cost->machine = (struct adv_kernel_machine){
        chip, constants, 1024.0 * input->plan->flags.scoped_vmem_limit_kib, false, NULL};
    init_degrees(cost);
    if (!same_mesh) {
        for (int i = 0; i < cost->model->layer_kinds_count; i++)
            cost->layer_params[i] = adv_model_layer_params(cost->model, &cost->model->layers[i]);
        init_groups(cost);
    }
    adv_cost_rates_init(cost, chip, constants, input->plan->family.quantization);
    cost->pcie_bytes_per_s = constants->pcie_step_bytes_per_s_per_device * adv_chip_host_link_ratio(chip);
    cost->quantize_bytes = adv_plan_scales_are_fixed(input->plan) ? constants->step_quantize_static_bytes
                                                                  : constants->step_quantize_dynamic_bytes;
    init_exposure(cost);
}

static double pad(double size, double granularity)
{
    return ceil(size / granularity) * granularity;
}

double adv_cost_matmul_s(const struct adv_cost *cost, double rows, double k, double n, bool low)
{
    if (rows <= 0.0 || k <= 0.0 || n <= 0.0) return 0.0;
    double rate = cost->bf16_flops_per_s * (low ? cost->lowp_speedup : 1.0);
    double mxu_s = 2.0 * rows * pad(k, cost->mxu_k) * pad(n, cost->mxu_n) / rate;
    double operand_bytes = low ? 1.0 : 2.0;
    double hbm_s = (operand_bytes * (rows * k + k * n) + 2.0 * rows * n) / cost->hbm_bytes_per_s;
    /* a short contraction has few products to a sum: taking the sums out takes longer then */
    double results_s = rows * pad(n, cost->mxu_n) / cost->constants->step_matmul_results_per_s_per_device;
    return adv_max(adv_max(mxu_s, hbm_s), results_s) + cost->constants->step_matmul_launch_s;
}

static double collective_s(const struct adv_cost *cost, const struct adv_group *group,
                           enum adv_collective collective, double bytes_per_device)
{
    struct adv_collective_time time =
        adv_collective_time(cost->cluster, cost->constants, group, collective, bytes_per_device);
    return time.bandwidth_s / cost->constants->link_step_frac + time.latency_s +
           cost->constants->collective_launch_s;
}

double adv_cost_collective_s(const struct adv_cost *cost, const struct adv_group *group,
                             enum adv_collective collective, double bytes_per_device)
{
    if (group->devices <= 1 || bytes_per_device <= 0.0) return 0.0;
    struct adv_cost_scratch *scratch = cost->scratch;
    if (!scratch) return collective_s(cost, group, collective, bytes_per_device);
    /* where the group lies in the context, not in memory: the same rows collide in every run */
    uint64_t member = (uint64_t)((const char *)group - (const char *)cost);
    uint64_t hash =
        (adv_scratch_bits(bytes_per_device) ^ member << 8 ^ (uint64_t)collective) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15u; /* round numbers of bytes have only high bits */
    struct adv_cost_sent *sent =
        &scratch->sent[(hash >> 48) % ADV_SCRATCH_COLLECTIVES]; /* high bits: all others go into them */
    if (sent->group == group && sent->collective == collective && sent->mesh == scratch->mesh_number &&
        sent->bytes == bytes_per_device)
        return sent->seconds;
    *sent = (struct adv_cost_sent){group, collective, scratch->mesh_number, bytes_per_device,
                                   collective_s(cost, group, collective, bytes_per_device)};
    return sent->seconds;
}

#include "engine/cost/schedule.h"

#include <string.h>

#include "engine/base/units.h"
#include "engine/cost/projections.h"
#include "engine/cost/scratch.h"
#include "engine/cost/step.h"

/* Weight tensors gathered one by one in a layer and pass (query, key, value, out, two or three of the
 * feed-forward). */
static const double gathers_per_layer = 7.0;

double adv_schedule_exposed_s(const struct adv_cost *cost, double gather_s, double scatter_s,
                              double compute_s)
{
    double exposed_s = cost->gather_exposed_frac * gather_s + cost->scatter_exposed_frac * scatter_s;
    return exposed_s + adv_max(0.0, gather_s + scatter_s - exposed_s - compute_s);
}

/* Seconds of a collective on the torus and on the network between slices. */
struct spanning {
    double inside_s, between_s;
};

/* A collective over an axis that also spans `slices`: each device's share with its peers over the network,
 * then inside the slice. Neighbours of a permutation wait for the slower of the two, which then counts alone.
 */
static struct spanning spanning_of(const struct adv_cost *cost, const struct adv_group *group, int slices,
                                   enum adv_collective collective, double bytes)
{
    struct spanning time = {adv_cost_collective_s(cost, group, collective, bytes), 0.0};
    if (slices <= 1) return time;
    bool whole = collective == ADV_COLLECTIVE_ALL_GATHER || collective == ADV_COLLECTIVE_REDUCE_SCATTER;
    struct adv_collective_time between = adv_collective_dcn_time(
        cost->cluster, cost->constants, slices, collective, whole ? bytes / group->devices : bytes);
    time.between_s = between.bandwidth_s + between.latency_s;
    if (collective != ADV_COLLECTIVE_PERMUTE) return time;
    if (time.between_s > time.inside_s) return (struct spanning){0.0, time.between_s};
    return (struct spanning){time.inside_s, 0.0};
}

static double total_of(struct spanning time)
{
    return time.inside_s + time.between_s;
}

static struct spanning plus(struct spanning a, double times, struct spanning b)
{
    return (struct spanning){a.inside_s + times * b.inside_s, a.between_s + times * b.between_s};
}

/* The part on the torus to `id`, the part between slices to its own term; what shows is shared like the time.
 */
static void add_spanning(struct adv_account *account, enum adv_term_id id, struct spanning time,
                         double exposed_s, double times, double bytes)
{
    double total_s = total_of(time);
    if (time.between_s <= 0.0) {
        adv_account_hidden(account, id, total_s, exposed_s, times, bytes);
        return;
    }
    double between_frac = time.between_s / total_s;
    adv_account_hidden(account, id, time.inside_s, (1.0 - between_frac) * exposed_s, times, bytes);
    adv_account_hidden(account, ADV_TERM_DCN_ACTIVATIONS, time.between_s, between_frac * exposed_s, times,
                       bytes);
}

/* Weight bytes of one layer that a device gathers. */
struct layer_bytes {
    double dense, feed_forward, experts;
};

static double weight_collective_s(const struct adv_cost *cost, enum adv_collective collective,
                                  const struct layer_bytes *bytes)
{
    double seconds = adv_cost_collective_s(cost, &cost->expert_group, collective, bytes->experts);
    if (cost->width_shards > 1)
        seconds += adv_cost_collective_s(cost, &cost->dense_group, collective, bytes->dense) +
                   adv_cost_collective_s(cost, &cost->feed_forward_group, collective, bytes->feed_forward);
    else /* one group: the bytes go together */
        seconds +=
            adv_cost_collective_s(cost, &cost->dense_group, collective, bytes->dense + bytes->feed_forward);
    if (cost->dense_group.devices > 1)
        seconds += (gathers_per_layer - 1.0) * cost->constants->collective_launch_s;
    return seconds;
}

/* The part of a pass that hides weights: a ring of context shards has the links first. */
static double free_s(double pass_s, double links_s)
{
    return adv_max(0.0, pass_s - links_s);
}

/* A layer's passes with what shows of ring and weights in them. */
static double passes_s(const struct adv_cost *cost, double gather_s, double scatter_s,
                       const double pass_s[ADV_PASS_COUNT], const double links_s[ADV_PASS_COUNT])
{
    double behind_s[ADV_PASS_COUNT], seconds = 0.0;
    for (int p = 0; p < ADV_PASS_COUNT; p++) {
        behind_s[p] = free_s(pass_s[p], links_s[p]);
        seconds += adv_max(pass_s[p], links_s[p]);
    }
    return seconds + adv_schedule_exposed_s(cost, gather_s, 0.0, behind_s[ADV_PASS_FWD]) +
           adv_schedule_exposed_s(cost, gather_s, scatter_s,
                                  behind_s[ADV_PASS_RECOMPUTE] + behind_s[ADV_PASS_BWD]);
}

/* Where the backward pass waits for its weights, computing attention again costs nothing there, and the
 * forward pass that leaves the softmax residuals unwritten would come out faster than one that keeps the
 * context. Nobody has seen that; the residuals are HBM traffic as what the transfers bring is. A step without
 * the context is therefore never taken to be faster than with it, which the search relies on. */
static double residuals_wait_s(const struct adv_cost *cost, double gather_s, double scatter_s,
                               const struct adv_layer_time *time)
{
    if (time->residuals_s <= 0.0) return 0.0;
    double kept_s[ADV_PASS_COUNT], links_s[ADV_PASS_COUNT];
    memcpy(kept_s, time->pass_s, sizeof kept_s);
    memcpy(links_s, time->links_s, sizeof links_s);
    kept_s[ADV_PASS_FWD] += time->residuals_s;
    kept_s[ADV_PASS_RECOMPUTE] -= time->attention_again_s;
    links_s[ADV_PASS_RECOMPUTE] = 0.0;
    return adv_max(0.0, passes_s(cost, gather_s, scatter_s, kept_s, links_s) -
                            passes_s(cost, gather_s, scatter_s, time->pass_s, time->links_s));
}

/* The traffic of one layer's weights, forward or backward: seconds and bytes of a gather and of the scatter.
 */
static struct adv_cost_weights sent_weights(const struct adv_cost *cost, const struct adv_layer *layer)
{
    struct adv_layer_params p = cost->layer_params[adv_cost_kind(cost, layer)];
    double format_bytes = adv_format_bytes(cost->plan->family.dtype);
    bool whole_experts =
        cost->plan->family.shard_exp_on_fsdp || cost->plan->family.rule == ADV_RULE_SHARD_EXP_ON_FSDP;
    bool gathers_fp8 = adv_plan_scales_are_fixed(cost->plan) && whole_experts;
    double wide = (double)cost->tp * cost->width_shards;
    double experts_wide = (double)cost->ep_kept * cost->tp * cost->expert_width_shards;
    struct layer_bytes gathered = {
        .dense = format_bytes * (p.attention + p.router + p.norms + p.other) / cost->tp,
        .feed_forward = format_bytes * (p.dense_ffn + p.shared_experts) / wide,
        .experts = (gathers_fp8 ? 1.0 : format_bytes) * p.routed_experts / experts_wide,
    };
    double gradient_bytes = adv_cost_gradient_bytes(cost->plan);
    struct layer_bytes scattered = {
        .dense = gathered.dense * gradient_bytes / format_bytes,
        .feed_forward = gathered.feed_forward * gradient_bytes / format_bytes,
        .experts = gradient_bytes * p.routed_experts / experts_wide,
    };
    return (struct adv_cost_weights){
        .known = true,
        .gather_s = weight_collective_s(cost, ADV_COLLECTIVE_ALL_GATHER, &gathered),
        .scatter_s = weight_collective_s(cost, ADV_COLLECTIVE_REDUCE_SCATTER, &scattered),
        .gathered_bytes = gathered.dense + gathered.feed_forward + gathered.experts,
        .scattered_bytes = scattered.dense + scattered.feed_forward + scattered.experts,
    };
}

/* The same, remembered in the scratch. */
static struct adv_cost_weights weights_of(const struct adv_cost *cost, const struct adv_layer *layer)
{
    if (!cost->scratch) return sent_weights(cost, layer);
    struct adv_cost_weights *known = &cost->scratch->weights[adv_cost_kind(cost, layer)];
    if (!known->known) *known = sent_weights(cost, layer);
    return *known;
}

void adv_schedule_weights(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                          struct adv_layer_time *time, struct adv_account *account)
{
    const struct adv_cost_weights sent = weights_of(cost, layer);
    const double gather_s = sent.gather_s, scatter_s = sent.scatter_s;
    const double *pass_s = time->pass_s, *links_s = time->links_s;
    double backward_free_s = free_s(pass_s[ADV_PASS_RECOMPUTE], links_s[ADV_PASS_RECOMPUTE]) +
                             free_s(pass_s[ADV_PASS_BWD], links_s[ADV_PASS_BWD]);
    double forward_exposed_s =
        adv_schedule_exposed_s(cost, gather_s, 0.0, free_s(pass_s[ADV_PASS_FWD], links_s[ADV_PASS_FWD]));
    double backward_exposed_s = adv_schedule_exposed_s(cost, gather_s, scatter_s, backward_free_s) +
                                residuals_wait_s(cost, gather_s, scatter_s, time);
    double total_s = gather_s + scatter_s;
    for (int pass = 0; pass < ADV_PASS_COUNT; pass++)
        time->pass_s[pass] = adv_max(pass_s[pass], links_s[pass]);
    if (total_s <= 0.0) return;
    time->pass_s[ADV_PASS_FWD] += forward_exposed_s;
    time->pass_s[ADV_PASS_BWD] += backward_exposed_s;
    time->weights_forward_exposed_s = forward_exposed_s;
    time->weights_backward_exposed_s = backward_exposed_s;
    adv_account_hidden(account, ADV_TERM_FSDP_GATHER, 2.0 * gather_s,
                       forward_exposed_s + backward_exposed_s * gather_s / total_s, times,
                       2.0 * sent.gathered_bytes);
    adv_account_hidden(account, ADV_TERM_FSDP_SCATTER, scatter_s, backward_exposed_s * scatter_s / total_s,
                       times, sent.scattered_bytes);
}

/* Tensor parallelism in a layer: gather before queries and before the feed-forward, scatter behind each;
 * mirrored backward; the inputs of both are gathered once more for the weight gradients, which a recompute of
 * the projections shares; it scatters again only where the output projection itself is recomputed. */
static const double tensor_gathers = 2.0 + 2.0 + 2.0, tensor_scatters = 2.0 + 2.0;

void adv_schedule_tensor(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                         struct adv_account *account)
{
    if (cost->tp <= 1) return;
    int slices = cost->plan->family.dcn[ADV_AXIS_TENSOR] * cost->plan->family.dcn[ADV_AXIS_TENSOR_SEQUENCE];
    double bytes = 2.0 * (double)cost->model->emb_dim * cost->tokens * cost->tp;
    struct spanning gather = spanning_of(cost, &cost->tensor_group, slices, ADV_COLLECTIVE_ALL_GATHER, bytes);
    struct spanning scatter =
        spanning_of(cost, &cost->tensor_group, slices, ADV_COLLECTIVE_REDUCE_SCATTER, bytes);
    double again = adv_cost_keeps(cost, ADV_TENSOR_OUT_PROJ) ? 0.0 : adv_cost_again_frac(cost, layer);
    struct spanning time =
        plus(plus((struct spanning){0.0, 0.0}, tensor_gathers, gather), tensor_scatters + again, scatter);
    double sent_bytes = (tensor_gathers + tensor_scatters) * bytes;
    if (adv_cost_meets_width(cost) && layer->mlp_dim > 0) {
        /* the product forward and again, and the gradient of each input */
        const double width_bytes = 2.0 * (double)layer->mlp_dim * cost->tokens * cost->tp;
        const double width_gathers = 2.0 + layer->mlp_inputs;
        time = plus(time, width_gathers,
                    spanning_of(cost, &cost->tensor_group, slices, ADV_COLLECTIVE_ALL_GATHER, width_bytes));
        sent_bytes += width_gathers * width_bytes;
    }
    if (layer->experts > 0) {
        /* the partial expert outputs, experts_per_token copies of each token, are reduced before they are
         * combined */
        double rows_bytes =
            2.0 * (double)layer->moe_input_dim * cost->tokens * cost->tp * layer->experts_per_token;
        time =
            plus(time, 2.0,
                 spanning_of(cost, &cost->tensor_group, slices, ADV_COLLECTIVE_REDUCE_SCATTER, rows_bytes));
    }
    add_spanning(account, ADV_TERM_TENSOR, time, cost->constants->tensor_exposed_frac * total_of(time), times,
                 sent_bytes);
}

void adv_schedule_transpose(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                            struct adv_account *account)
{
    if (cost->width_shards <= 1) return;
    const bool keeps_width = layer->mlp_dim > 0 || layer->shared_experts > 0 ||
                             (layer->experts > 0 && cost->expert_width_shards > 1);
    if (!keeps_width) return;
    double bytes = 2.0 * (double)cost->model->emb_dim * cost->tokens * cost->width_shards;
    double gather_s = adv_cost_collective_s(cost, &cost->transpose_group, ADV_COLLECTIVE_ALL_GATHER, bytes);
    double scatter_s =
        adv_cost_collective_s(cost, &cost->transpose_group, ADV_COLLECTIVE_REDUCE_SCATTER, bytes);
    /* forward: inputs gathered, outputs scattered; backward the same for gradients, and inputs once more for
     * the weight gradients, which a recompute shares */
    double seconds = 3.0 * gather_s + 2.0 * scatter_s;
    adv_account_hidden(account, ADV_TERM_TRANSPOSE, seconds,
                       cost->constants->transpose_exposed_frac * seconds, times, 5.0 * bytes);
}

/* The backward pass of a ring sends gradients round beside keys and values: in f32, twice as many bytes. */
static const double ring_gradients = 2.0;

/* Shards that gather keys and values do so again in the backward pass: no remat policy keeps what came from
 * others. */
static const double context_gathers = 2.0;

/* The time of a ring beside its kernels, which merge partial outputs themselves. */
static void context_ring(const struct adv_cost *cost, double times, double kv_bytes,
                         struct adv_layer_time *time, struct adv_account *account)
{
    double steps = cost->cp_ring - 1.0;
    struct spanning permute =
        plus((struct spanning){0.0, 0.0}, steps,
             spanning_of(cost, &cost->context_group, cost->plan->family.dcn[ADV_AXIS_CONTEXT],
                         ADV_COLLECTIVE_PERMUTE, kv_bytes / cost->cp_ring));
    bool kept = adv_cost_keeps(cost, ADV_TENSOR_CONTEXT);
    double passes = kept ? 2.0 : 3.0;
    adv_account_busy(account, ADV_TERM_RING_MERGE, steps * cost->constants->ring_step_s, times * passes, 0.0,
                     0.0);
    /* each pass hides its own */
    double once_s = total_of(permute), exposed_s = 0.0;
    time->links_s[ADV_PASS_FWD] = once_s;
    time->links_s[ADV_PASS_RECOMPUTE] = kept ? 0.0 : once_s;
    time->links_s[ADV_PASS_BWD] = (1.0 + ring_gradients) * once_s;
    for (int p = 0; p < ADV_PASS_COUNT; p++) exposed_s += adv_max(0.0, time->links_s[p] - time->pass_s[p]);
    add_spanning(account, ADV_TERM_CONTEXT,
                 plus((struct spanning){0.0, 0.0}, passes + ring_gradients, permute), exposed_s, times,
                 (passes + ring_gradients) * steps * kv_bytes / cost->cp_ring);
}

void adv_schedule_context(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                          struct adv_layer_time *time, struct adv_account *account)
{
    if (layer->attention == ADV_ATTENTION_LINEAR) return;
    if (cost->cp_ring > 1) {
        int slices = cost->plan->family.dcn[ADV_AXIS_CONTEXT];
        double kv_bytes = adv_cost_keys_values_bytes(cost, layer);
        if (adv_plan_circulates_keys(cost->plan)) {
            context_ring(cost, times, kv_bytes, time, account);
        } else {
            struct spanning gather =
                spanning_of(cost, &cost->context_group, slices, ADV_COLLECTIVE_ALL_GATHER, kv_bytes);
            struct spanning scatter =
                spanning_of(cost, &cost->context_group, slices, ADV_COLLECTIVE_REDUCE_SCATTER, kv_bytes);
            struct spanning sum = plus(scatter, context_gathers, gather);
            add_spanning(account, ADV_TERM_CONTEXT, sum, total_of(sum), times,
                         (context_gathers + 1.0) * kv_bytes);
        }
    }
    if (cost->ulysses_group.devices > 1) {
        double q_width = (double)layer->q_heads * (layer->head_dim_qk + layer->head_dim_v);
        double bytes = 2.0 * q_width * cost->tokens + adv_cost_keys_values_bytes(cost, layer) / cost->cp_ring;
        double seconds = adv_cost_collective_s(cost, &cost->ulysses_group, ADV_COLLECTIVE_ALL_TO_ALL, bytes);
        adv_account_hidden(account, ADV_TERM_CONTEXT, seconds, seconds, 3.0 * times, bytes);
    }
}

/* The capacity path trades padded slots. Compiled from einsums, its all-to-alls are the scheduler's to hide:
 * dispatch and combine, both backward, and in a recompute the dispatch but not the combine, whose result
 * nobody needs. */
static const double slot_exchanges = 2.0 + 2.0 + 1.0;

static void exchange_slots(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                           struct adv_account *account)
{
    double bytes = 2.0 * (double)layer->moe_input_dim * cost->tokens * layer->experts_per_token *
                   cost->plan->family.capacity_factor;
    struct spanning sum = plus((struct spanning){0.0, 0.0}, slot_exchanges,
                               spanning_of(cost, &cost->ep_group, cost->plan->family.dcn[ADV_AXIS_EXPERT],
                                           ADV_COLLECTIVE_ALL_TO_ALL, bytes));
    add_spanning(account, ADV_TERM_EXPERT, sum, cost->constants->slots_exposed_frac * total_of(sum), times,
                 slot_exchanges * bytes);
}

void adv_schedule_experts(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                          struct adv_account *account)
{
    if (layer->experts == 0 || cost->ep <= 1) return;
    bool dense = cost->plan->family.moe == ADV_MOE_DENSE;
    if (dense && cost->plan->family.capacity_factor > 0.0) {
        exchange_slots(cost, layer, times, account);
        return;
    }
    int slices = cost->plan->family.dcn[ADV_AXIS_EXPERT];
    double token_bytes = 2.0 * (double)layer->moe_input_dim * cost->tokens;
    struct spanning once = {0.0, 0.0};
    if (cost->plan->family.use_ring_of_experts || dense) {
        /* every peer's tokens gathered, outputs reduce-scattered: no top-k copies */
        double all_bytes = token_bytes * cost->ep;
        once = plus(spanning_of(cost, &cost->ep_group, slices, ADV_COLLECTIVE_ALL_GATHER, all_bytes), 1.0,
                    spanning_of(cost, &cost->ep_group, slices, ADV_COLLECTIVE_REDUCE_SCATTER, all_bytes));
    } else {
        once = plus(once, 2.0,
                    spanning_of(cost, &cost->ep_group, slices, ADV_COLLECTIVE_ALL_TO_ALL,
                                token_bytes * layer->experts_per_token));
    }
    bool kept = adv_remat_keeps_rows(cost->kept);
    struct spanning sum = plus((struct spanning){0.0, 0.0}, kept ? 2.0 : 3.0, once);
    add_spanning(account, ADV_TERM_EXPERT, sum, total_of(sum), times,
                 2.0 * token_bytes * layer->experts_per_token);
}

/* Of a layer's pass, what its own transfers run beside when they may not cross into another layer: a tensor
 * is made in the middle of a pass and read in the middle of another. By the compiled steps on v4, v5e, v5p
 * and v6e; no step was measured so. */
static const double unpipelined_overlap_frac = 0.2;

/* What shows of a layer's transfers that take `seconds` each way. */
static double offload_exposed_s(const struct adv_cost *cost, const struct adv_layer_time *time,
                                double seconds)
{
    double overlap_frac = cost->plan->flags.host_transfer_pipelining == 0 ? unpipelined_overlap_frac : 1.0;
    double backward_s = time->pass_s[ADV_PASS_RECOMPUTE] + time->pass_s[ADV_PASS_BWD];
    return adv_max(0.0, seconds - overlap_frac * time->pass_s[ADV_PASS_FWD]) +
           adv_max(0.0, seconds - overlap_frac * backward_s);
}

void adv_schedule_offload(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                          const struct adv_layer_time *time, struct adv_account *account)
{
    double bytes = adv_memory_layer_saved(cost, layer).bytes[ADV_PLACE_OFFLOAD];
    if (bytes <= 0.0) return;
    double seconds = bytes / cost->pcie_bytes_per_s;
    adv_account_hidden(account, ADV_TERM_HOST_OFFLOAD, 2.0 * seconds, offload_exposed_s(cost, time, seconds),
                       times, 2.0 * bytes);
}

double adv_schedule_offload_s(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                              const struct adv_layer_time *time)
{
    double bytes = adv_memory_layer_saved(cost, layer).bytes[ADV_PLACE_OFFLOAD];
    return bytes > 0.0 ? offload_exposed_s(cost, time, bytes / cost->pcie_bytes_per_s) * times : 0.0;
}

void adv_schedule_pipeline(const struct adv_cost *cost, struct adv_account *account)
{
    if (cost->stages <= 1) return;
    const struct adv_plan *plan = cost->plan;
    double repeats = adv_plan_pipeline_rounds(plan, cost->model);
    double delay = plan->family.pipeline_delay_activation_forwarding ? 2.0 : 1.0;
    double work_s = adv_account_total_s(account);
    double bubble_s = work_s * delay * (cost->stages - 1.0) / (repeats * cost->microbatches);
    adv_account_busy(account, ADV_TERM_PIPELINE_BUBBLE, bubble_s, 1.0, 0.0, 0.0);
    double bytes = 2.0 * (double)cost->model->emb_dim * cost->tokens;
    struct spanning permute = plus((struct spanning){0.0, 0.0}, 2.0,
                                   spanning_of(cost, &cost->stage_group, plan->family.dcn[ADV_AXIS_STAGE],
                                               ADV_COLLECTIVE_PERMUTE, bytes));
    double iterations = repeats * cost->microbatches + cost->stages - 1.0;
    double times = 2.0 * iterations * plan->family.gradient_accumulation_steps;
    add_spanning(account, ADV_TERM_PIPELINE_PERMUTE, permute, total_of(permute), times, 2.0 * bytes);
    account->exposed.hand_overs_s = times * total_of(permute);
}

void adv_schedule_step(const struct adv_cost *cost, const struct adv_model_params *params,
                       struct adv_account *account)
{
    double experts = params->routed_experts / cost->expert_shards;
    double whole = adv_params_whole(params, cost->tp) / cost->stages;
    double dense =
        (params->total - params->routed_experts - adv_params_whole(params, 1.0)) / cost->weight_shards +
        whole;
    double shard_params = dense + experts;
    if (whole > 0.0 && cost->dense_group.devices > 1) {
        double bytes = adv_cost_gradient_bytes(cost->plan) * whole;
        double seconds = adv_cost_collective_s(cost, &cost->dense_group, ADV_COLLECTIVE_ALL_REDUCE, bytes);
        adv_account_hidden(account, ADV_TERM_DATA_REDUCE, seconds, seconds, 1.0, bytes);
    }
    if (cost->data_group.devices > 1) {
        double bytes = adv_cost_gradient_bytes(cost->plan) * shard_params;
        double seconds = adv_cost_collective_s(cost, &cost->data_group, ADV_COLLECTIVE_ALL_REDUCE, bytes);
        adv_account_hidden(account, ADV_TERM_DATA_REDUCE, seconds, seconds, 1.0, bytes);
    }
    adv_cost_update(cost, shard_params, account);
    adv_account_busy(account, ADV_TERM_STEP_OVERHEAD, cost->constants->step_overhead_s, 1.0, 0.0, 0.0);
    adv_cost_software_age(cost, account);
    adv_cost_slices(cost, dense, experts, account);
}

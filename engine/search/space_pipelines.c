#include "engine/search/space_pipelines.h"

#include <math.h>

#include "engine/base/units.h"
#include "engine/hardware/collective.h"
#include "engine/search/space_choices.h"

double adv_pipeline_least_work_s(const struct adv_advise_request *request, const struct adv_plan *plan)
{
    const struct adv_model *model = &request->model;
    const struct adv_chip *chip = &request->cluster.chip;
    double matrices = 0;
    for (int i = 0; i < model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &model->layers[i];
        struct adv_layer_params params = adv_model_layer_params(model, layer);
        double active = params.dense_ffn + params.shared_experts;
        if (layer->experts > 0 && plan->family.moe != ADV_MOE_DENSE)
            active += params.routed_experts * layer->experts_per_token / layer->experts;
        matrices += layer->count * active;
    }
    double peak = chip->peak_bf16_flops_per_s_per_chip;
    if (!isnan(chip->peak_fp8_flops_per_s_per_chip))
        peak = adv_max(peak, chip->peak_fp8_flops_per_s_per_chip);
    if (!isnan(chip->peak_int8_ops_per_s_per_chip)) peak = adv_max(peak, chip->peak_int8_ops_per_s_per_chip);
    return 6.0 * matrices * adv_plan_tokens(plan) * plan->family.gradient_accumulation_steps /
           (peak / chip->devices_per_chip);
}

/* One microbatch to the next stage: inside the slice or over the network, whichever is slower. */
static double hand_over_s(const struct adv_advise_request *request, const struct adv_constants *constants,
                          const struct adv_group *group, const struct adv_plan *plan)
{
    double tokens =
        adv_plan_tokens(plan) * adv_plan_degree(plan, ADV_AXIS_STAGE) / plan->family.pipeline_microbatches;
    double bytes = 2.0 * (double)request->model.emb_dim * tokens;
    struct adv_collective_time inside =
        adv_collective_time(&request->cluster, constants, group, ADV_COLLECTIVE_PERMUTE, bytes);
    struct adv_collective_time between = adv_collective_dcn_time(
        &request->cluster, constants, plan->family.dcn[ADV_AXIS_STAGE], ADV_COLLECTIVE_PERMUTE, bytes);
    return adv_max(inside.bandwidth_s + inside.latency_s, between.bandwidth_s + between.latency_s);
}

/* Microbatches that pass a stage, and as often a hand-over. */
static double iterations(const struct adv_pipeline *pipeline, int depth)
{
    double repeats = adv_max(1.0, pipeline->layers / (pipeline->stages * depth));
    return repeats * pipeline->microbatches + pipeline->stages - 1.0;
}

double adv_pipeline_deeper_s(const struct adv_pipeline *pipeline, int less_deep, int deeper, double bubble_s,
                             double hand_overs_s)
{
    static const double lengthening = 1.5;
    double longer_s = bubble_s * ((double)deeper / less_deep - 1.0);
    double fewer = 1.0 - iterations(pipeline, deeper) / iterations(pipeline, less_deep);
    return longer_s - lengthening * fewer * hand_overs_s;
}

/* With r repeats (layers of a stage over layers run at once) bubble and hand-overs of a accumulation steps of
 * m microbatches over s stages take work · delay · (s - 1) / (r · m) + 4 · hand-over · (r · m + s - 1) · a.
 * So r2 > r1 repeats are no slower when work · delay · (s - 1) >= 4 · hand-over · m² · a · r1 · r2, and what
 * holds for the least work holds for all. */
int adv_pipeline_depths(const struct adv_advise_request *request, const struct adv_constants *constants,
                        const struct adv_group *stage_group, const struct adv_plan *plan, double least_work_s,
                        int depths[ADV_PIPELINE_DEPTHS])
{
    int stages = adv_plan_degree(plan, ADV_AXIS_STAGE);
    int layers = adv_plan_pipelined_layers(plan, &request->model) / stages;
    if (adv_model_has_experts(&request->model) && plan->family.moe != ADV_MOE_DENSE) {
        depths[0] = layers; /* the others break the rule pipeline-experts */
        return 1;
    }
    double micro = plan->family.pipeline_microbatches;
    double delay = plan->family.pipeline_delay_activation_forwarding ? 2.0 : 1.0;
    double bubble_s = least_work_s * delay * (stages - 1.0);
    double steps = plan->family.gradient_accumulation_steps;
    double passing_s = 4.0 * hand_over_s(request, constants, stage_group, plan) * micro * micro * steps;
    int count = 0;
    for (int depth = 1; depth <= layers && count < ADV_PIPELINE_DEPTHS; depth++) {
        if (layers % depth != 0) continue;
        double repeats = (double)layers / depth;
        double next = count > 0 ? (double)layers / depths[count - 1] : 0;
        bool slower = count > 0 && bubble_s >= passing_s * repeats * next;
        if (!slower) depths[count++] = depth;
    }
    return count;
}

static bool same_but_for_its_pipeline(const struct adv_family *a, const struct adv_family *b)
{
    return a->quantization == b->quantization && a->ring_of_experts == b->ring_of_experts;
}

/* The family that makes as many passes in one accumulation step, -1 when that is not in the space. Fewer
 * steps of more microbatches leave a smaller bubble, fewer hand-overs, and add up gradients less often, on
 * microbatches of the same tokens; they only save more tensors at once. */
static int without_accumulation(const struct adv_family *families, int count, int from,
                                const struct adv_family *family)
{
    int passes = family->pipeline_microbatches * family->gradient_accumulation_steps;
    if (family->gradient_accumulation_steps == 1) return -1;
    for (int i = from; i < count; i++) {
        const struct adv_family *other = &families[i];
        if (other->gradient_accumulation_steps > 1) return -1;
        if (other->pipeline_microbatches == passes && other->layers_per_stage == family->layers_per_stage &&
            same_but_for_its_pipeline(other, family))
            return i;
    }
    return -1;
}

/* The family that differs only in running fewer layers of a stage at once, and is not bounded itself; -1 when
 * there is none. */
static int less_deep(const struct adv_family *families, int count, int from, const struct adv_family *family)
{
    for (int i = from; i < count; i++) {
        const struct adv_family *other = &families[i];
        if (other->layers_per_stage < family->layers_per_stage && other->bounded_by < 0 &&
            same_but_for_its_pipeline(other, family))
            return i;
    }
    return -1;
}

void adv_pipeline_bound(const struct adv_family *families, int count, int pipeline_start, int depths_start,
                        struct adv_family *family)
{
    family->bounded_by = without_accumulation(families, count, pipeline_start, family);
    family->deeper = false;
    if (family->bounded_by >= 0) return;
    family->bounded_by = less_deep(families, count, depths_start, family);
    family->deeper = family->bounded_by >= 0;
}

#include "engine/search/space_walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/hardware/collective.h"
#include "engine/maxtext/keys.h"
#include "engine/maxtext/names.h"
#include "engine/search/space_batch.h"
#include "engine/search/space_choices.h"
#include "engine/search/space_meshes.h"
#include "engine/search/space_pipelines.h"
#include "engine/spec/plan_rules.h"

enum { FORMATS = 3, FIRST_FAMILIES = 256 };

/* What the walks over all meshes share. */
struct adv_walk_shared {
    const struct adv_space *space;
    struct adv_batch_split splits[ADV_BATCH_SPLITS];
    int splits_count;
    int64_t sequences; /* of one optimizer step */
    enum adv_quantization formats[FORMATS];
    int formats_count;
    bool varies_expert_ring, pins_layers_per_stage, pins_microbatches, pins_split_axes, pins_two_stage;
    bool dcn_pinned[ADV_AXIS_COUNT];
    double least_work_s; /* of a step's layers */
};

/* The enumeration's state on one ICI mesh. */
struct walk {
    const struct adv_walk_shared *shared;
    const struct adv_space *space;
    const struct adv_advise_request *request;
    struct adv_walked *found;
    struct adv_family family;
    struct adv_plan plan; /* the family written out, for the legality rules */
    bool placed;          /* family.split_axes, mesh and stage_group are known */
    struct adv_mesh mesh;
    struct adv_group stage_group;
    int pipeline_start; /* the first family of the pipeline that is gone through */
    int depths_start;   /* the first family of its batch and number of microbatches */
};

void adv_walked_count(struct adv_walked *found, const char *rule, long combinations)
{
    found->considered += combinations;
    found->illegal += combinations;
    for (int i = 0; i < ADV_WALKED_RULES; i++) {
        if (!found->rules[i]) found->rules[i] = rule;
        if (found->rules[i] == rule || strcmp(found->rules[i], rule) == 0) {
            found->rule_counts[i] += combinations;
            return;
        }
    }
}

static void keep(struct adv_walked *found, const struct adv_family *family)
{
    if (found->count == found->most) return;
    if (found->count == found->capacity) {
        const int capacity = found->capacity > 0 ? 2 * found->capacity : FIRST_FAMILIES;
        struct adv_family *larger = realloc(found->families, (size_t)capacity * sizeof *larger);
        if (!larger) return;
        found->families = larger;
        found->capacity = capacity;
    }
    found->families[found->count++] = *family;
}

/* The ICI mesh is laid onto the torus once, and only when a combination on it is legal so far: most have
 * none. Splitting physical axes is asked for only where it is needed. */
static bool place(struct walk *walk)
{
    if (walk->placed) return true;
    walk->placed = adv_mesh_place(&walk->request->cluster, &walk->plan, &walk->mesh, NULL) == ADV_OK;
    walk->family.split_axes = walk->placed && walk->mesh.needs_split;
    if (walk->placed)
        walk->stage_group = adv_group_of(&walk->request->cluster, &walk->mesh, 1u << ADV_AXIS_STAGE);
    return walk->placed;
}

/* The innermost level: one combination whose mesh is legal. */
static void offer(struct walk *walk)
{
    struct adv_plan *plan = &walk->plan;
    adv_space_write_batch(walk->space, &walk->family, plan);
    const char *rule = adv_plan_broken_rule_of(&walk->space->batch_rules, plan, &walk->request->model,
                                               &walk->request->cluster);
    if (!rule && !place(walk)) rule = "mesh-placement";
    if (rule) {
        adv_walked_count(walk->found, rule, 1);
        return;
    }
    walk->found->considered++;
    walk->family.bounded_by = -1;
    walk->family.deeper = false;
    if (adv_plan_degree(plan, ADV_AXIS_STAGE) > 1)
        adv_pipeline_bound(walk->found->families, walk->found->count, walk->pipeline_start,
                           walk->depths_start, &walk->family);
    keep(walk->found, &walk->family);
}

static bool exchanges_vary(const struct walk *walk)
{
    return walk->family.ici[ADV_AXIS_EXPERT] > 1 && walk->shared->varies_expert_ring;
}

/* Combinations of one batch on one mesh. */
static long formats_and_exchanges(const struct walk *walk)
{
    return (long)walk->shared->formats_count * (exchanges_vary(walk) ? 2 : 1);
}

/* Writes the mesh into walk->plan. An illegal mesh is illegal with every batch. */
static bool mesh_is_legal(struct walk *walk)
{
    walk->plan = walk->space->base;
    adv_space_write_mesh(walk->space, &walk->family, &walk->plan);
    const char *rule = adv_plan_broken_rule_of(&walk->space->mesh_rules, &walk->plan, &walk->request->model,
                                               &walk->request->cluster);
    if (rule) adv_walked_count(walk->found, rule, walk->shared->splits_count * formats_and_exchanges(walk));
    return !rule;
}

static void take_split(struct walk *walk, int i)
{
    struct adv_plan *plan = &walk->plan;
    plan->family.per_device_batch_size = walk->family.per_device_batch_size =
        walk->shared->splits[i].per_device_batch_size;
    plan->family.gradient_accumulation_steps = walk->family.gradient_accumulation_steps =
        walk->shared->splits[i].gradient_accumulation_steps;
}

static void over_formats(struct walk *walk)
{
    for (int f = 0; f < walk->shared->formats_count; f++) {
        walk->family.quantization = (unsigned char)walk->shared->formats[f];
        walk->family.ring_of_experts = walk->space->base.family.use_ring_of_experts;
        offer(walk);
        if (!exchanges_vary(walk)) continue;
        walk->family.ring_of_experts = !walk->family.ring_of_experts;
        offer(walk);
    }
}

/* Batches, formats and expert exchanges on one mesh without a pipeline. */
static void over_batches(struct walk *walk)
{
    for (int i = 0; i < walk->shared->splits_count; i++) {
        take_split(walk, i);
        const char *rule = adv_plan_batch_too_small(&walk->plan, &walk->request->cluster);
        if (rule) { /* microsteps shrink from here */
            adv_walked_count(walk->found, rule,
                             (walk->shared->splits_count - i) * formats_and_exchanges(walk));
            return;
        }
        over_formats(walk);
    }
}

/* Depths, formats and expert exchanges of one batch in one number of microbatches. */
static void over_depths(struct walk *walk, int *depths, int depths_count)
{
    struct adv_plan *plan = &walk->plan;
    plan->family.pipeline_microbatches = walk->family.pipeline_microbatches;
    if (!walk->shared->pins_layers_per_stage)
        depths_count = adv_pipeline_depths(walk->request, walk->space->constants, &walk->stage_group, plan,
                                           walk->shared->least_work_s, depths);
    walk->depths_start = walk->found->count;
    for (int d = 0; d < depths_count; d++) {
        walk->family.layers_per_stage = plan->family.layers_per_stage = depths[d];
        over_formats(walk);
    }
}

/* Whether `each` microbatches of a stage are looked at: one or two, and the most that its part of the batch
 * splits into. Accumulation splits the batch, too: beside it only one. */
static bool microbatches_offered(const struct walk *walk, int64_t each, int64_t of_stage)
{
    if (of_stage % each != 0) return false;
    if (walk->plan.family.gradient_accumulation_steps > 1) return each == 1;
    return each <= 2 || each == of_stage;
}

/* The number of microbatches after `each` that may be looked at. */
static int64_t next_offered(int64_t each, int64_t of_stage)
{
    return each < 2 || each >= of_stage ? each + 1 : of_stage;
}

/* Pipelines: some numbers of microbatches, and of layers that a stage runs at once those that may be the
 * fastest. */
static void over_microbatches(struct walk *walk, int stages)
{
    struct adv_plan *plan = &walk->plan;
    int depths[ADV_PIPELINE_DEPTHS] = {walk->space->base.family.layers_per_stage};
    int shards = adv_plan_batch_shards(plan) * stages;
    walk->pipeline_start = walk->found->count;
    for (int i = 0; i < walk->shared->splits_count; i++) {
        take_split(walk, i);
        int64_t of_stage =
            walk->shared->sequences / walk->shared->splits[i].gradient_accumulation_steps / shards;
        int64_t step = (int64_t)walk->shared->splits[i].gradient_accumulation_steps * shards;
        if (of_stage < 1 || walk->shared->sequences % step != 0) {
            adv_walked_count(walk->found, "pipeline", 1);
            continue;
        }
        for (int64_t each = 1; each <= of_stage; each = next_offered(each, of_stage)) {
            if (!walk->shared->pins_microbatches && !microbatches_offered(walk, each, of_stage)) continue;
            if (!walk->shared->pins_microbatches) walk->family.pipeline_microbatches = (int)(each * stages);
            over_depths(walk, depths, 1);
            if (walk->shared->pins_microbatches) break;
        }
    }
}

static void over_pipelines(struct walk *walk)
{
    const struct adv_plan *base = &walk->space->base;
    int stages = walk->family.ici[ADV_AXIS_STAGE] * walk->family.dcn[ADV_AXIS_STAGE];
    walk->family.pipeline_microbatches = base->family.pipeline_microbatches;
    walk->family.layers_per_stage = base->family.layers_per_stage;
    if (stages == 1) {
        if (mesh_is_legal(walk)) over_batches(walk);
        return;
    }
    if (!walk->shared->pins_microbatches) walk->family.pipeline_microbatches = stages;
    if (!walk->shared->pins_layers_per_stage) walk->family.layers_per_stage = 1;
    if (!mesh_is_legal(walk)) return;
    if (place(walk))
        over_microbatches(walk, stages);
    else
        adv_walked_count(walk->found, "mesh-placement",
                         walk->shared->splits_count * formats_and_exchanges(walk));
}

static void over_strategies(struct walk *walk)
{
    const struct adv_plan *base = &walk->space->base;
    int context = walk->family.ici[ADV_AXIS_CONTEXT] * walk->family.dcn[ADV_AXIS_CONTEXT];
    walk->family.cp_strategy = (unsigned char)base->family.cp_strategy;
    bool both =
        walk->family.ici[ADV_AXIS_ULYSSES] > 1; /* a second context axis only has a meaning under usp */
    if (both && !walk->request->cp_strategy_pinned) walk->family.cp_strategy = ADV_CP_USP;
    if (both || context == 1 || walk->request->cp_strategy_pinned) {
        over_pipelines(walk);
        return;
    }
    static const enum adv_cp_strategy strategies[] = {ADV_CP_ALL_GATHER, ADV_CP_RING, ADV_CP_ULYSSES};
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        if (!adv_space_offers_strategy(&walk->request->model, base, strategies[i])) continue;
        walk->family.cp_strategy = (unsigned char)strategies[i];
        over_pipelines(walk);
    }
}

/* The degrees between slices that `axis` may take of the `left` ones: its pin, or every divisor. */
static bool takes_slices(const struct walk *walk, enum adv_axis axis, int degree, int left)
{
    if (left % degree != 0) return false;
    if (walk->shared->dcn_pinned[axis]) return degree == walk->request->workload.base.family.dcn[axis];
    return degree == 1 || axis == ADV_AXIS_DATA || walk->request->axis_allowed[axis];
}

/* Between slices: gradients only (data), weights too (fsdp, for models that do not fit a slice), pipelines,
 * and their products; other axes only where they are pinned. */
static void over_dcn(struct walk *walk)
{
    const struct adv_advise_request *request = walk->request;
    short *dcn = walk->family.dcn;
    int left = request->cluster.slices;
    bool built = false;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        dcn[i] = (short)(walk->shared->dcn_pinned[i] ? request->workload.base.family.dcn[i] : 1);
        bool open = i == ADV_AXIS_DATA || i == ADV_AXIS_FSDP || i == ADV_AXIS_STAGE;
        if (!open) left = left % dcn[i] == 0 ? left / dcn[i] : 0;
    }
    for (int stages = 1; stages <= left; stages++) {
        if (!takes_slices(walk, ADV_AXIS_STAGE, stages, left)) continue;
        for (int fsdp = 1; fsdp <= left / stages; fsdp++) {
            int data = left / stages / fsdp;
            if (!takes_slices(walk, ADV_AXIS_FSDP, fsdp, left / stages) ||
                !takes_slices(walk, ADV_AXIS_DATA, data, data))
                continue;
            dcn[ADV_AXIS_STAGE] = (short)stages;
            dcn[ADV_AXIS_FSDP] = (short)fsdp;
            dcn[ADV_AXIS_DATA] = (short)data;
            over_strategies(walk);
            built = true;
        }
    }
    if (!built) over_strategies(walk); /* the rule that pins break is known */
}

/* Gathered in two stages, weights come together over fsdp and fsdp_transpose instead of tokens over the
 * latter. Without either axis there is nothing to choose. With nothing else outside of the expert, context
 * and tensor axes, fsdp times fsdp_transpose as one axis is no worse: it gathers the same bytes from the same
 * devices over the same links (the inner axes are placed first, and both take all that is left of the torus),
 * needs as much memory and breaks no rule that the two do not break, unless the number of experts has to be
 * divided by fsdp; and it is simpler. So two stages are offered beside data and pipeline axes, where experts
 * may be sharded by their number, or where a pin keeps the one axis from being built. */
static bool two_stages_matter(const struct walk *walk)
{
    const struct adv_advise_request *request = walk->request;
    const short *ici = walk->family.ici;
    if (walk->shared->pins_two_stage || walk->space->base.family.two_stage_gather) return false;
    if (ici[ADV_AXIS_FSDP] == 1 || ici[ADV_AXIS_FSDP_TRANSPOSE] == 1) return false;
    if (request->axis_pinned[ADV_AXIS_FSDP] || request->axis_pinned[ADV_AXIS_FSDP_TRANSPOSE]) return true;
    if (adv_space_divides_experts(&walk->space->base)) return true;
    return ici[ADV_AXIS_FSDP_TRANSPOSE] == 2 && (ici[ADV_AXIS_DATA] > 1 || ici[ADV_AXIS_STAGE] > 1);
}

void adv_walk_mesh(const struct adv_walk_shared *shared, const short ici[ADV_AXIS_COUNT],
                   struct adv_walked *found)
{
    const struct adv_space *space = shared->space;
    struct walk walk = {.shared = shared, .space = space, .request = space->request, .found = found};
    bool unsplit = shared->pins_split_axes && !space->base.family.allow_split_physical_axes;
    walk.plan = space->base;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        walk.plan.family.ici[i] = walk.family.ici[i] = ici[i];
        walk.family.dcn[i] = 1;
    }
    if (unsplit && (!place(&walk) || walk.family.split_axes)) {
        adv_walked_count(found, "mesh-placement", 1);
        return;
    }
    bool both = two_stages_matter(&walk);
    walk.family.two_stage_gather = space->base.family.two_stage_gather;
    over_dcn(&walk);
    walk.family.two_stage_gather = true;
    if (both) over_dcn(&walk);
}

static void list_dcn_pins(struct adv_walk_shared *shared, const struct adv_advise_request *request)
{
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        const char *key = adv_key_of_axis(true, (enum adv_axis)i);
        shared->dcn_pinned[i] = request->workload.base.family.dcn[i] > 0 && adv_request_pins(request, key);
    }
}

/* "any": no quantisation, and the 8-bit formats that the chip's matrix units run faster. */
static void list_formats(struct adv_walk_shared *shared, const struct adv_advise_request *request)
{
    shared->formats[shared->formats_count++] = request->workload.base.family.quantization;
    if (!request->workload.any_quantization) return;
    shared->formats[0] = ADV_QUANT_NONE;
    static const enum adv_quantization eight_bit[] = {ADV_QUANT_FP8_FULL, ADV_QUANT_INT8};
    for (int i = 0; i < 2; i++)
        if (adv_quantization_pays(eight_bit[i], &request->cluster.chip))
            shared->formats[shared->formats_count++] = eight_bit[i];
}

adv_code adv_walk_prepare(const struct adv_space *space, struct adv_arena *arena,
                          const struct adv_walk_shared **shared_out, adv_err *err)
{
    const struct adv_advise_request *request = space->request;
    struct adv_walk_shared *shared = adv_arena_alloc(arena, sizeof *shared);
    *shared_out = shared;
    if (!shared) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    shared->space = space;
    shared->varies_expert_ring =
        adv_model_has_experts(&request->model) && !adv_request_pins(request, ADV_NAME_USE_RING_OF_EXPERTS);
    shared->pins_layers_per_stage = adv_request_pins(request, ADV_NAME_NUM_LAYERS_PER_PIPELINE_STAGE);
    shared->pins_split_axes = adv_request_pins(request, ADV_NAME_ALLOW_SPLIT_PHYSICAL_AXES);
    shared->pins_two_stage = adv_request_pins(request, ADV_NAME_MOE_FSDP_USE_TWO_STAGE_ALL_GATHER) ||
                             adv_request_pins(request, ADV_NAME_DENSE_FSDP_USE_TWO_STAGE_ALL_GATHER);
    shared->pins_microbatches = adv_request_pins(request, ADV_NAME_NUM_PIPELINE_MICROBATCHES);
    shared->splits_count = adv_batch_splits(request, shared->splits, err);
    if (shared->splits_count == 0) return ADV_E_INVALID;
    const struct adv_batch_split *first = &shared->splits[0];
    shared->sequences =
        llround(first->per_device_batch_size * request->cluster.devices * first->gradient_accumulation_steps);
    struct adv_plan plan = space->base;
    plan.family.per_device_batch_size = first->per_device_batch_size;
    plan.family.gradient_accumulation_steps = first->gradient_accumulation_steps;
    shared->least_work_s = adv_pipeline_least_work_s(request, &plan);
    list_formats(shared, request);
    list_dcn_pins(shared, request);
    return ADV_OK;
}

#include "engine/search/space.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/hardware/mesh.h"
#include "engine/maxtext/changes.h"
#include "engine/maxtext/names.h"
#include "engine/search/space_batch.h"
#include "engine/search/space_choices.h"
#include "engine/search/space_pipelines.h"
#include "engine/spec/plan_rules.h"

/* Axes whose ICI degree is enumerated, in this order; fsdp takes what is left of the slice. */
static const enum adv_axis searched[] = {
    ADV_AXIS_FSDP_TRANSPOSE,  ADV_AXIS_STAGE,   ADV_AXIS_EXPERT,  ADV_AXIS_TENSOR,
    ADV_AXIS_TENSOR_SEQUENCE, ADV_AXIS_CONTEXT, ADV_AXIS_ULYSSES, ADV_AXIS_DATA,
};
enum { SEARCHED = sizeof searched / sizeof *searched, RULES = 48, FORMATS = 3 };
enum { DIVISORS = 128 }; /* no slice of fewer than 83,160 devices has more */

/* Two context axes are published for sequences far beyond this; below, one is never short of shards. */
static const int64_t usp_least_seq_len = 32768;

/* fsdp_transpose keeps the feed-forward's width sharded: of experts, whose gathers are the largest, and up to
 * what published steps have. */
static const int most_width_shards = 8;

/* The enumeration's state. */
struct walk {
    const struct adv_advise_request *request;
    struct adv_arena *arena;
    struct adv_space *space;
    struct adv_family family;
    struct adv_plan plan; /* the family written out, for the legality rules */
    struct adv_batch_split splits[ADV_BATCH_SPLITS];
    int splits_count;
    int64_t sequences; /* of one optimizer step */
    enum adv_quantization formats[FORMATS];
    int formats_count;
    int divisors[DIVISORS], divisors_count; /* of the devices that axes share, smallest first */
    int capacity;
    bool varies_expert_ring, pins_layers_per_stage, pins_microbatches, pins_split_axes;
    bool dcn_pinned[ADV_AXIS_COUNT], pins_two_stage;
    bool over;   /* nobody waits for the answer any more */
    bool placed; /* family.split_axes and mesh are known */
    struct adv_mesh mesh;
    double least_work_s; /* of a step's layers */
    int pipeline_start;  /* the first family of the pipeline that is gone through */
    int depths_start;    /* the first family of its batch and number of microbatches */
    const char *rules[RULES];
    long rule_counts[RULES];
};

/* `combinations` that were looked at break `rule`. */
static void count_illegal(struct walk *walk, const char *rule, long combinations)
{
    walk->space->considered += combinations;
    walk->space->illegal += combinations;
    for (int i = 0; i < RULES; i++) {
        if (!walk->rules[i]) walk->rules[i] = rule;
        if (*walk->rules[i] == *rule && !strcmp(walk->rules[i], rule)) {
            walk->rule_counts[i] += combinations;
            return;
        }
    }
}

static void keep(struct walk *walk)
{
    struct adv_space *space = walk->space;
    if (space->families_count == walk->capacity) {
        int capacity = walk->capacity ? walk->capacity + walk->capacity / 2 : 512;
        struct adv_family *larger = adv_arena_grow(walk->arena, space->families, (size_t)walk->capacity,
                                                   (size_t)capacity, sizeof *larger);
        if (!larger) {
            space->complete = false;
            return;
        }
        space->families = larger;
        walk->capacity = capacity;
    }
    space->families[space->families_count++] = walk->family;
}

/* MaxText's default blocks of 512 must divide a context shard's queries; short shards get the largest that
 * does. Tuned tiles replace them, but only for families that get that far. */
static void fit_blocks(struct adv_plan *plan)
{
    int64_t shards = plan->family.cp_strategy == ADV_CP_ULYSSES ? 1 : adv_plan_degree(plan, ADV_AXIS_CONTEXT);
    int64_t queries = plan->family.seq_len / shards;
    int block = 512;
    while (block > 128 && queries % block != 0) block /= 2;
    if (block == 512 || queries < 1) return;
    if (queries % block != 0) block = (int)(queries < 512 ? queries : 512);
    const struct adv_splash_blocks blocks = {block, block, block, block, block, block, block, block};
    plan->family.blocks[0] = plan->family.blocks[1] = blocks;
}

/* The state that batches on one mesh share. */
static void write_mesh(const struct adv_space *space, const struct adv_family *family, struct adv_plan *plan)
{
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        plan->family.ici[i] = family->ici[i];
        plan->family.dcn[i] = family->dcn[i];
    }
    plan->family.pipeline_microbatches = family->pipeline_microbatches;
    plan->family.layers_per_stage = family->layers_per_stage;
    plan->family.cp_strategy = (enum adv_cp_strategy)family->cp_strategy;
    adv_choices_attend(space->request, &space->base, plan);
    if (adv_plan_keeps_order(plan, &space->request->model)) plan->family.cp_load_balance = false;
    plan->family.allow_split_physical_axes = plan->family.allow_split_physical_axes || family->split_axes;
    plan->family.two_stage_gather = family->two_stage_gather;
    if (!space->request->tiles_pinned) fit_blocks(plan);
}

/* Experts that are sharded over fsdp by their number are quantised before they are gathered when the
 * calibration is fixed, at half the bytes (cost/schedule.c). Nothing else of a prediction reads
 * shard_exp_on_fsdp, use_2d_fsdp_sharding or the rule shard-exp-on-fsdp, and their legality only takes plans
 * away; so the first two are never worth their key without fixed fp8, and with it this is never slower. With
 * an expert axis only the rule shards over both. */
static void shard_experts(const struct adv_space *space, struct adv_plan *plan)
{
    const struct adv_advise_request *request = space->request;
    if (!space->may_shard_experts || !adv_plan_scales_are_fixed(plan)) return;
    struct adv_plan sharded = *plan;
    if (adv_plan_degree(plan, ADV_AXIS_EXPERT) > 1)
        sharded.family.rule = ADV_RULE_SHARD_EXP_ON_FSDP;
    else
        sharded.family.shard_exp_on_fsdp = true;
    if (!adv_plan_broken_rule_of(&space->mesh_rules, &sharded, &request->model, &request->cluster))
        *plan = sharded;
}

static void write_batch(const struct adv_space *space, const struct adv_family *family, struct adv_plan *plan)
{
    plan->family.per_device_batch_size = family->per_device_batch_size;
    plan->family.gradient_accumulation_steps = family->gradient_accumulation_steps;
    plan->family.quantization = (enum adv_quantization)family->quantization;
    /* fp8_full needs it; int8 lands on more matmuls */
    plan->family.use_qwix = space->base.family.use_qwix || plan->family.quantization != ADV_QUANT_NONE;
    plan->family.use_ring_of_experts = family->ring_of_experts;
    /* Quantised megablox asserts that tiles divide the dimensions, and no published fp8 step runs it. */
    bool tokamax = space->fp8_through_tokamax && plan->family.quantization == ADV_QUANT_FP8_FULL;
    plan->family.moe = tokamax ? ADV_MOE_TOKAMAX : space->base.family.moe;
    plan->family.shard_exp_on_fsdp = space->base.family.shard_exp_on_fsdp; /* of another batch on this mesh */
    plan->family.rule = space->base.family.rule;
    shard_experts(space, plan);
}

/* The ICI mesh is laid onto the torus once, and only when a combination on it is legal so far: most have
 * none. Splitting physical axes is asked for only where it is needed. */
static bool place(struct walk *walk)
{
    if (walk->placed) return true;
    walk->placed = adv_mesh_place(&walk->request->cluster, &walk->plan, &walk->mesh, NULL) == ADV_OK;
    walk->family.split_axes = walk->placed && walk->mesh.split_axes_count > 0;
    return walk->placed;
}

/* The innermost level: one combination whose mesh is legal. */
static void offer(struct walk *walk)
{
    struct adv_plan *plan = &walk->plan;
    write_batch(walk->space, &walk->family, plan);
    const char *rule = adv_plan_broken_rule_of(&walk->space->batch_rules, plan, &walk->request->model,
                                               &walk->request->cluster);
    if (!rule && !place(walk)) rule = "mesh-placement";
    if (rule) {
        count_illegal(walk, rule, 1);
        return;
    }
    walk->space->considered++;
    walk->family.bounded_by = -1;
    walk->family.deeper = false;
    if (adv_plan_degree(plan, ADV_AXIS_STAGE) > 1)
        adv_pipeline_bound(walk->space, walk->pipeline_start, walk->depths_start, &walk->family);
    keep(walk);
}

static bool exchanges_vary(const struct walk *walk)
{
    return walk->family.ici[ADV_AXIS_EXPERT] > 1 && walk->varies_expert_ring;
}

/* Combinations of one batch on one mesh. */
static long formats_and_exchanges(const struct walk *walk)
{
    return (long)walk->formats_count * (exchanges_vary(walk) ? 2 : 1);
}

/* Writes the mesh into walk->plan. An illegal mesh is illegal with every batch. */
static bool mesh_is_legal(struct walk *walk)
{
    walk->plan = walk->space->base;
    write_mesh(walk->space, &walk->family, &walk->plan);
    const char *rule = adv_plan_broken_rule_of(&walk->space->mesh_rules, &walk->plan, &walk->request->model,
                                               &walk->request->cluster);
    if (rule) count_illegal(walk, rule, walk->splits_count * formats_and_exchanges(walk));
    return !rule;
}

static void take_split(struct walk *walk, int i)
{
    struct adv_plan *plan = &walk->plan;
    plan->family.per_device_batch_size = walk->family.per_device_batch_size =
        walk->splits[i].per_device_batch_size;
    plan->family.gradient_accumulation_steps = walk->family.gradient_accumulation_steps =
        walk->splits[i].gradient_accumulation_steps;
}

static void over_formats(struct walk *walk)
{
    for (int f = 0; f < walk->formats_count; f++) {
        walk->family.quantization = (unsigned char)walk->formats[f];
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
    for (int i = 0; i < walk->splits_count; i++) {
        take_split(walk, i);
        const char *rule = adv_plan_batch_too_small(&walk->plan, &walk->request->cluster);
        if (rule) { /* microsteps shrink from here */
            count_illegal(walk, rule, (walk->splits_count - i) * formats_and_exchanges(walk));
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
    if (!walk->pins_layers_per_stage)
        depths_count = adv_pipeline_depths(walk->request, walk->space->constants, &walk->mesh, plan,
                                           walk->least_work_s, depths);
    walk->depths_start = walk->space->families_count;
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
    walk->pipeline_start = walk->space->families_count;
    for (int i = 0; i < walk->splits_count; i++) {
        take_split(walk, i);
        int64_t of_stage = walk->sequences / walk->splits[i].gradient_accumulation_steps / shards;
        int64_t step = (int64_t)walk->splits[i].gradient_accumulation_steps * shards;
        if (of_stage < 1 || walk->sequences % step != 0) {
            count_illegal(walk, "pipeline", 1);
            continue;
        }
        for (int64_t each = 1; each <= of_stage; each = next_offered(each, of_stage)) {
            if (!walk->pins_microbatches && !microbatches_offered(walk, each, of_stage)) continue;
            if (!walk->pins_microbatches) walk->family.pipeline_microbatches = (int)(each * stages);
            over_depths(walk, depths, 1);
            if (walk->pins_microbatches) break;
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
    if (!walk->pins_microbatches) walk->family.pipeline_microbatches = stages;
    if (!walk->pins_layers_per_stage) walk->family.layers_per_stage = 1;
    if (!mesh_is_legal(walk)) return;
    if (place(walk))
        over_microbatches(walk, stages);
    else
        count_illegal(walk, "mesh-placement", walk->splits_count * formats_and_exchanges(walk));
}

/* Ring attention has no kernel for windows and chunks, and for MLA only without packing, which only a
 * pin turns off. */
static bool strategy_offered(const struct adv_model *model, const struct adv_plan *base,
                             enum adv_cp_strategy strategy)
{
    for (int i = 0; i < model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &model->layers[i];
        bool plain = layer->attention == ADV_ATTENTION_FULL &&
                     (layer->kv_lora_rank == 0 || (strategy == ADV_CP_RING && !base->family.packing));
        if (strategy != ADV_CP_ALL_GATHER && !plain) return false;
    }
    return true;
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
        if (!strategy_offered(&walk->request->model, base, strategies[i])) continue;
        walk->family.cp_strategy = (unsigned char)strategies[i];
        over_pipelines(walk);
    }
}

static void list_dcn_pins(struct walk *walk)
{
    const struct adv_advise_request *request = walk->request;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        const char *key = adv_key_of_axis(true, (enum adv_axis)i);
        walk->dcn_pinned[i] = request->workload.base.family.dcn[i] > 0 && adv_request_pins(request, key);
    }
}

/* The degrees between slices that `axis` may take of the `left` ones: its pin, or every divisor. */
static bool takes_slices(const struct walk *walk, enum adv_axis axis, int degree, int left)
{
    if (left % degree != 0) return false;
    if (walk->dcn_pinned[axis]) return degree == walk->request->workload.base.family.dcn[axis];
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
        dcn[i] = (short)(walk->dcn_pinned[i] ? request->workload.base.family.dcn[i] : 1);
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
    if (walk->pins_two_stage || walk->space->base.family.two_stage_gather) return false;
    if (ici[ADV_AXIS_FSDP] == 1 || ici[ADV_AXIS_FSDP_TRANSPOSE] == 1) return false;
    if (request->axis_pinned[ADV_AXIS_FSDP] || request->axis_pinned[ADV_AXIS_FSDP_TRANSPOSE]) return true;
    const struct adv_plan *base = &walk->space->base;
    bool divides_experts = base->family.shard_exp_on_fsdp || base->family.use_2d_fsdp_sharding ||
                           base->family.rule != ADV_RULE_DEFAULT || base->family.quantization_static;
    if (divides_experts) return true;
    return ici[ADV_AXIS_FSDP_TRANSPOSE] == 2 && (ici[ADV_AXIS_DATA] > 1 || ici[ADV_AXIS_STAGE] > 1);
}

/* A complete ICI mesh. */
static void with_mesh(struct walk *walk)
{
    if (adv_budget_over(walk->request->budget)) walk->over = true;
    if (walk->over) return;
    bool unsplit = walk->pins_split_axes && !walk->space->base.family.allow_split_physical_axes;
    walk->placed = false;
    walk->plan = walk->space->base;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) walk->plan.family.ici[i] = walk->family.ici[i];
    if (unsplit && (!place(walk) || walk->family.split_axes)) {
        count_illegal(walk, "mesh-placement", 1);
        return;
    }
    bool both = two_stages_matter(walk);
    walk->family.two_stage_gather = walk->space->base.family.two_stage_gather;
    over_dcn(walk);
    walk->family.two_stage_gather = true;
    if (both) over_dcn(walk);
}

/* Whether a degree of an axis is worth offering at all: divisibility that no other choice can repair. */
static bool degree_possible(const struct adv_advise_request *request, enum adv_axis axis, int degree)
{
    const struct adv_model *model = &request->model;
    if (degree == 1) return true;
    if (axis == ADV_AXIS_FSDP_TRANSPOSE) return degree <= most_width_shards && adv_model_has_experts(model);
    if (axis == ADV_AXIS_EXPERT) return adv_model_has_experts(model);
    /* of several slices pipelines go between them: stages need the links least */
    if (axis == ADV_AXIS_STAGE) return degree <= model->layers_count && request->cluster.slices == 1;
    if (axis == ADV_AXIS_CONTEXT) return request->workload.seq_len % degree == 0;
    if (axis == ADV_AXIS_ULYSSES)
        return request->workload.seq_len >= usp_least_seq_len &&
               strategy_offered(model, &request->workload.base, ADV_CP_USP);
    /* tensor_sequence moves the same bytes and shards the same matmuls as tensor: offered where tensor is not
     */
    if (axis == ADV_AXIS_TENSOR_SEQUENCE && request->axis_allowed[ADV_AXIS_TENSOR]) return false;
    if (axis == ADV_AXIS_TENSOR || axis == ADV_AXIS_TENSOR_SEQUENCE) {
        for (int i = 0; i < model->layer_kinds_count; i++)
            if (model->layers[i].kv_heads > 0 && model->layers[i].kv_heads % degree != 0) return false;
    }
    return true;
}

/* Shards of the width by fsdp_transpose are for plans that do not shard it (tensor) or the layers (stage)
 * already, unless it is pinned: so are all published ones. */
static bool shards_width_twice(const struct walk *walk)
{
    const short *ici = walk->family.ici;
    return ici[ADV_AXIS_FSDP_TRANSPOSE] > 1 && !walk->request->axis_pinned[ADV_AXIS_FSDP_TRANSPOSE] &&
           ici[ADV_AXIS_TENSOR] * ici[ADV_AXIS_TENSOR_SEQUENCE] * ici[ADV_AXIS_STAGE] > 1;
}

static void over_axes(struct walk *walk, int at, int left)
{
    const struct adv_advise_request *request = walk->request;
    if (at == SEARCHED) {
        bool pinned = request->axis_pinned[ADV_AXIS_FSDP];
        if (pinned && request->workload.base.family.ici[ADV_AXIS_FSDP] != left) return;
        if (!pinned && !request->axis_allowed[ADV_AXIS_FSDP] && left > 1) return;
        bool stands_for_fsdp = left == 1 && !pinned && !request->axis_pinned[ADV_AXIS_FSDP_TRANSPOSE] &&
                               request->axis_allowed[ADV_AXIS_FSDP];
        if (stands_for_fsdp && walk->family.ici[ADV_AXIS_FSDP_TRANSPOSE] > 1) return; /* fsdp says the same */
        if (shards_width_twice(walk)) return;
        walk->family.ici[ADV_AXIS_FSDP] = (short)left;
        with_mesh(walk);
        return;
    }
    enum adv_axis axis = searched[at];
    for (int i = 0; i < walk->divisors_count && walk->divisors[i] <= left && !walk->over; i++) {
        const int degree = walk->divisors[i];
        if (left % degree != 0) continue;
        bool wanted = request->axis_pinned[axis] ? degree == request->workload.base.family.ici[axis]
                                                 : degree == 1 || (request->axis_allowed[axis] &&
                                                                   degree_possible(request, axis, degree));
        if (!wanted) continue;
        walk->family.ici[axis] = (short)degree;
        over_axes(walk, at + 1, left / degree);
    }
    walk->family.ici[axis] = 1;
}

/* "any": no quantisation, and the 8-bit formats that the chip's matrix units run faster. */
static void list_formats(struct walk *walk)
{
    const struct adv_chip *chip = &walk->request->cluster.chip;
    walk->formats[walk->formats_count++] = walk->request->workload.base.family.quantization;
    if (!walk->request->workload.any_quantization) return;
    walk->formats[0] = ADV_QUANT_NONE;
    static const enum adv_quantization eight_bit[] = {ADV_QUANT_FP8_FULL, ADV_QUANT_INT8};
    for (int i = 0; i < 2; i++)
        if (adv_quantization_pays(eight_bit[i], chip)) walk->formats[walk->formats_count++] = eight_bit[i];
}

adv_code adv_space_build(const struct adv_advise_request *request, const struct adv_constants *constants,
                         struct adv_arena *arena, struct adv_space *space, adv_err *err)
{
    *space = (struct adv_space){
        .request = request, .constants = constants, .base = request->workload.base, .complete = true};
    space->base.family.seq_len = request->workload.seq_len;
    adv_choices_apply(request, &space->base);
    space->fp8_through_tokamax =
        adv_model_has_experts(&request->model) && space->base.family.moe == ADV_MOE_MEGABLOX &&
        !adv_request_pins(request, ADV_NAME_USE_TOKAMAX_GMM) && !adv_request_pins(request, ADV_NAME_MEGABLOX);
    space->may_shard_experts = adv_model_has_experts(&request->model) &&
                               !adv_request_pins(request, ADV_NAME_SHARD_EXP_ON_FSDP) &&
                               !adv_request_pins(request, ADV_NAME_CUSTOM_MESH_AND_RULE);
    adv_plan_list_rules(ADV_RULES_OF_MESH, &space->mesh_rules);
    adv_plan_list_rules(ADV_RULES_OF_BATCH, &space->batch_rules);
    space->tiles = adv_tile_memo_create(&request->model, &request->cluster, constants, arena);
    struct walk *walk = adv_arena_alloc(arena, sizeof *walk);
    if (!space->tiles || !walk)
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    walk->request = request;
    walk->arena = arena;
    walk->space = space;
    walk->varies_expert_ring =
        adv_model_has_experts(&request->model) && !adv_request_pins(request, ADV_NAME_USE_RING_OF_EXPERTS);
    walk->pins_layers_per_stage = adv_request_pins(request, ADV_NAME_NUM_LAYERS_PER_PIPELINE_STAGE);
    walk->pins_split_axes = adv_request_pins(request, ADV_NAME_ALLOW_SPLIT_PHYSICAL_AXES);
    walk->pins_two_stage = adv_request_pins(request, ADV_NAME_MOE_FSDP_USE_TWO_STAGE_ALL_GATHER) ||
                           adv_request_pins(request, ADV_NAME_DENSE_FSDP_USE_TWO_STAGE_ALL_GATHER);
    walk->pins_microbatches = adv_request_pins(request, ADV_NAME_NUM_PIPELINE_MICROBATCHES);
    walk->splits_count = adv_batch_splits(request, walk->splits, err);
    if (walk->splits_count == 0) return ADV_E_INVALID;
    walk->sequences = llround(walk->splits[0].per_device_batch_size * request->cluster.devices *
                              walk->splits[0].gradient_accumulation_steps);
    take_split(walk, 0);
    walk->plan.family.seq_len = space->base.family.seq_len;
    walk->plan.family.moe = space->base.family.moe;
    walk->least_work_s = adv_pipeline_least_work_s(request, &walk->plan);
    list_formats(walk);
    list_dcn_pins(walk);
    int left = request->cluster.devices_per_slice;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        walk->family.ici[i] = walk->family.dcn[i] = 1;
        bool enumerated = i == ADV_AXIS_FSDP;
        for (int s = 0; s < SEARCHED; s++) enumerated = enumerated || searched[s] == (enum adv_axis)i;
        if (enumerated || !request->axis_pinned[i]) continue;
        int degree = request->workload.base.family.ici[i];
        if (degree < 1 || left % degree != 0) return ADV_OK; /* no mesh holds this pin: an empty space */
        walk->family.ici[i] = (short)degree;
        left /= degree;
    }
    walk->divisors_count = adv_divisors(left, DIVISORS, walk->divisors);
    over_axes(walk, 0, left);
    if (walk->over) return adv_budget_refuse(err);
    long most = 0;
    for (int i = 0; i < RULES && walk->rules[i]; i++) {
        if (walk->rule_counts[i] <= most) continue;
        most = walk->rule_counts[i];
        space->most_broken_rule = walk->rules[i];
    }
    return ADV_OK;
}

/* Tuned tiles, with the pinned ones put back and inner blocks cut to what then divides. Where that is not
 * legal, the tiles stay as MaxText has them. */
static void tune_around_pins(const struct adv_space *space, struct adv_plan *plan)
{
    const struct adv_advise_request *request = space->request;
    struct adv_plan tuned = *plan;
    adv_tile_memo_apply(space->tiles, &tuned);
    for (int i = 0; i < request->pins_count; i++)
        if (strstr(request->pins[i].key, "sa_") || strstr(request->pins[i].key, "_tile_"))
            (void)adv_key_copy(request->pins[i].key, &space->base, &tuned);
    for (int local = 0; local < 2; local++) {
        struct adv_splash_blocks *blocks = &tuned.family.blocks[local];
        if (blocks->block_kv % blocks->block_kv_compute != 0) blocks->block_kv_compute = blocks->block_kv;
        if (blocks->block_kv_dkv % blocks->block_kv_dkv_compute != 0)
            blocks->block_kv_dkv_compute = blocks->block_kv_dkv;
    }
    if (!adv_plan_broken_rule(&tuned, &request->model, &request->cluster)) *plan = tuned;
}

void adv_space_plan(const struct adv_space *space, const struct adv_family *family, struct adv_plan *plan)
{
    *plan = space->base;
    write_mesh(space, family, plan);
    write_batch(space, family, plan);
    if (space->request->tiles_pinned)
        tune_around_pins(space, plan);
    else
        adv_tile_memo_apply(space->tiles, plan);
}

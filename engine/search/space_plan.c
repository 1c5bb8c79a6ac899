#include "engine/search/space.h"

#include "engine/maxtext/names.h"
#include "engine/search/space_batch.h"
#include "engine/search/space_choices.h"
#include "engine/spec/plan_rules.h"

/* MaxText's default blocks of 512 must divide a context shard's queries; short shards get the largest that
 * does. Tuned tiles replace them, but only for families that get that far. */
static void fit_blocks(const struct adv_tile_pins *pins, struct adv_plan *plan)
{
    int64_t shards = plan->family.cp_strategy == ADV_CP_ULYSSES ? 1 : adv_plan_sequence_shards(plan);
    int64_t queries = plan->family.seq_len / shards;
    int block = 512;
    while (block > 128 && queries % block != 0) block /= 2;
    if (queries % block != 0) block = (int)(queries < 512 ? queries : 512);
    const struct adv_splash_blocks blocks = {block, block, block, block, block, block, block, block};
    for (int local = 0; local < 2; local++) {
        if ((block != 512 || pins->any) && queries >= 1) plan->family.blocks[local] = blocks;
        if (pins->any) adv_tile_pins_set_blocks(&pins->blocks[local], &plan->family.blocks[local]);
    }
}

void adv_space_write_mesh(const struct adv_space *space, const struct adv_family *family,
                          struct adv_plan *plan)
{
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        plan->family.ici[i] = family->ici[i];
        plan->family.dcn[i] = family->dcn[i];
    }
    plan->family.pipeline_microbatches = family->pipeline_microbatches;
    plan->family.layers_per_stage = family->layers_per_stage;
    plan->family.cp_strategy = (enum adv_cp_strategy)family->cp_strategy;
    adv_choices_attend(space->request, &space->base, plan);
    if (adv_plan_keeps_order(plan, &space->request->model) &&
        !adv_request_pins(space->request, ADV_NAME_CONTEXT_PARALLEL_LOAD_BALANCE))
        plan->family.cp_load_balance = false;
    plan->family.allow_split_physical_axes = plan->family.allow_split_physical_axes || family->split_axes;
    plan->family.two_stage_gather = family->two_stage_gather;
    fit_blocks(&space->tile_pins, plan);
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

void adv_space_write_batch(const struct adv_space *space, const struct adv_family *family,
                           struct adv_plan *plan)
{
    plan->family.per_device_batch_size = family->per_device_batch_size;
    plan->family.gradient_accumulation_steps = family->gradient_accumulation_steps;
    plan->family.quantization = (enum adv_quantization)family->quantization;
    adv_choices_embed(space->request, &space->base, plan);
    /* fp8_full needs it; int8 lands on more matmuls */
    plan->family.use_qwix = space->base.family.use_qwix;
    if (!adv_request_pins(space->request, ADV_NAME_USE_QWIX_QUANTIZATION))
        plan->family.use_qwix |= plan->family.quantization != ADV_QUANT_NONE;
    plan->family.use_ring_of_experts = family->ring_of_experts;
    /* Quantised megablox asserts that tiles divide the dimensions, and no published fp8 step runs it. */
    bool tokamax = space->fp8_through_tokamax && plan->family.quantization == ADV_QUANT_FP8_FULL;
    plan->family.moe = tokamax ? ADV_MOE_TOKAMAX : space->base.family.moe;
    plan->family.shard_exp_on_fsdp = space->base.family.shard_exp_on_fsdp; /* of another batch on this mesh */
    plan->family.rule = space->base.family.rule;
    shard_experts(space, plan);
}

/* Tuned tiles. Where pins make them illegal, they stay as MaxText has them. */
static bool tune_around_pins(const struct adv_space *space, struct adv_plan *plan)
{
    struct adv_plan tuned = *plan;
    const bool all = adv_tile_memo_apply(space->tiles, &tuned);
    if (adv_plan_broken_rule(&tuned, &space->request->model, &space->request->cluster)) return false;
    *plan = tuned;
    return all;
}

bool adv_space_plan(const struct adv_space *space, const struct adv_family *family, struct adv_plan *plan)
{
    *plan = space->base;
    adv_space_write_mesh(space, family, plan);
    adv_space_write_batch(space, family, plan);
    return space->tile_pins.any ? tune_around_pins(space, plan) : adv_tile_memo_apply(space->tiles, plan);
}

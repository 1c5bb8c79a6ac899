#include "engine/search/space_choices.h"

#include "engine/cost/projections.h"
#include "engine/maxtext/keys.h"
#include "engine/maxtext/names.h"
#include "engine/search/space_batch.h"
#include "engine/spec/plan_rules.h"

/* Where tokamax's kernels are tuned for the chip, unless a backward pass is asked for that is not fused, as
 * theirs is; sparse attention (DeepSeek 3.2 and 4) has no other flash kernel. */
static bool has_tokamax(const struct adv_advise_request *request)
{
    for (int i = 0; i < request->model.layer_kinds_count; i++) {
        const struct adv_layer *layer = &request->model.layers[i];
        if (layer->indexer_topk > 0 || layer->attention == ADV_ATTENTION_COMPRESSED) return true;
    }
    const bool splits = adv_request_pins(request, ADV_NAME_SA_USE_FUSED_BWD_KERNEL) &&
                        !request->workload.base.family.use_fused_bwd;
    return request->cluster.chip.recipe.tokamax_splash && !splits;
}

/* From 32768 tokens on there are more than four partial query gradients of the widest key blocks. */
static bool is_long(const struct adv_advise_request *request)
{
    return request->workload.base.family.seq_len >= 32768;
}

/* Whether a key is to have its recipe's value. Grouped matmuls in bf16 stay with megablox, MaxText's default,
 * whose tiles are searched: published steps through tokamax take longer (step_tokamax_factor), and without
 * quantisation it ignores the tiles. */
static bool suits(enum adv_key_suits when, const struct adv_advise_request *request,
                  const struct adv_plan *plan)
{
    switch (when) {
    case ADV_SUITS_ALWAYS:
        return true;
    case ADV_SUITS_TOKAMAX:
        return has_tokamax(request);
    case ADV_SUITS_LONG:
        return is_long(request) && plan->family.use_tokamax_splash;
    case ADV_SUITS_FIXED_SCALES:
        return request->cluster.chip.recipe.fixed_fp8_scales;
    case ADV_SUITS_NEVER:
        break;
    }
    return false;
}

/* Layers that share keys or embeddings, or take a picture in, are not scanned; all others are, also where the
 * model's own file is made for pictures. */
static bool can_scan(const struct adv_model *model, const struct adv_plan *plan)
{
    return !model->cannot_scan && !(model->has_deepstack && plan->family.use_multimodal);
}

void adv_choices_apply(const struct adv_advise_request *request, struct adv_plan *plan)
{
    for (int i = 0; i < adv_keys_count; i++) {
        const struct adv_key *key = &adv_keys[i];
        if (suits(key->suits, request, plan) && !adv_request_pins(request, key->name))
            adv_key_put(key, (char *)plan + key->plan_at, key->plan_bytes, key->recipe);
    }
    if (!adv_request_pins(request, ADV_NAME_SCAN_LAYERS))
        plan->family.scan_layers = can_scan(&request->model, plan);
    const struct adv_chip_recipe *recipe = &request->cluster.chip.recipe;
    const bool experts = adv_model_has_experts(&request->model);
    adv_flags_overlay(&plan->flags, experts ? &recipe->flags_with_experts : &recipe->flags);
    plan->flags.data_parallel_overlap = request->cluster.slices > 1 && recipe->overlap_gradients ? 1 : -1;
}

/* Keys on which recipes agree, but whose other value may be priced faster. */
enum { FLIP_IOTA, FLIP_FUSED, FLIP_PARTIALS };

bool adv_choices_flip(const struct adv_advise_request *request, int which, struct adv_plan *plan)
{
    static const char *const keys[ADV_CHOICES_FLIPS] = {
        ADV_NAME_USE_IOTA_EMBED, ADV_NAME_SA_USE_FUSED_BWD_KERNEL, ADV_NAME_DQ_REDUCTION_STEPS};
    if (adv_request_pins(request, keys[which])) return false;
    if (which == FLIP_IOTA) {
        /* the model's own file asks for it, or no published step of the chip looks its tokens up */
        if (request->workload.base.family.use_iota_embed || !request->cluster.chip.recipe.embedding_lookups)
            return false;
        plan->family.use_iota_embed = !plan->family.use_iota_embed;
    } else if (which == FLIP_FUSED) {
        if (plan->family.use_tokamax_splash) return false; /* its backward is always fused */
        plan->family.use_fused_bwd = !plan->family.use_fused_bwd;
    } else {
        if (!is_long(request)) return false; /* no recipe of shorter steps sets it */
        plan->family.dq_reduction_steps = plan->family.dq_reduction_steps ? 0 : 3;
    }
    return true;
}

void adv_choices_attend(const struct adv_advise_request *request, const struct adv_plan *base,
                        struct adv_plan *plan)
{
    const struct adv_plan *given = &request->workload.base;
    plan->family.use_tokamax_splash = base->family.use_tokamax_splash;
    plan->family.dq_reduction_steps = base->family.dq_reduction_steps;
    plan->family.use_fused_bwd = base->family.use_fused_bwd;
    if (!base->family.use_tokamax_splash || adv_plan_masks_divide(plan, &request->model) ||
        adv_request_pins(request, ADV_NAME_USE_TOKAMAX_SPLASH))
        return;
    plan->family.use_tokamax_splash = false;
    plan->family.dq_reduction_steps = given->family.dq_reduction_steps;
    if (!adv_request_pins(request, ADV_NAME_SA_USE_FUSED_BWD_KERNEL))
        plan->family.use_fused_bwd = given->family.use_fused_bwd;
}

void adv_choices_embed(const struct adv_advise_request *request, const struct adv_plan *base,
                       struct adv_plan *plan)
{
    plan->family.use_iota_embed = base->family.use_iota_embed;
    if (adv_plan_one_hot_is_whole(plan) && !adv_request_pins(request, ADV_NAME_USE_IOTA_EMBED))
        plan->family.use_iota_embed = false;
}

signed char adv_choices_scheduling(const struct adv_plan *plan, uint64_t places)
{
    const bool offloads =
        plan->optimizer_host_offload || plan->parameter_host_offload || adv_remat_offloads(places);
    return offloads ? 1 : -1;
}

static signed char scheduling_of(const struct adv_plan *plan)
{
    return adv_choices_scheduling(plan, adv_remat_places(plan));
}

bool adv_choices_are_finished(const struct adv_plan *plan)
{
    return plan->flags.host_offload_scheduling == scheduling_of(plan);
}

void adv_choices_finish(struct adv_plan *plan)
{
    plan->flags.host_offload_scheduling = scheduling_of(plan);
}

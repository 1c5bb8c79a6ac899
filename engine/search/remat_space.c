#include "engine/search/remat_amounts.h"

#include <math.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/cost/layer_memory.h"
#include "engine/cost/regime.h"

/* The tensors that layers of a model name, all kinds together. */
struct named {
    bool attention, names_input, kernel, compressed, latent, direct, query_latent, key_value, equal_key_value,
        gated, plain, post_norm, experts;
};

static struct named named_by(const struct adv_model *model, const struct adv_plan *base)
{
    struct named named = {.equal_key_value = true,
                          .kernel = base->family.attention == ADV_ATTENTION_IMPL_FLASH};
    for (int i = 0; i < model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &model->layers[i];
        bool dense = layer->mlp_dim > 0 || layer->shared_experts > 0;
        if (layer->attention != ADV_ATTENTION_LINEAR) {
            bool compressed = layer->attention == ADV_ATTENTION_COMPRESSED, latent = layer->kv_lora_rank > 0;
            bool has_key_value = latent || (!compressed && !layer->reuses_kv);
            named.compressed = named.compressed || compressed;
            named.attention = true;
            named.names_input = named.names_input || layer->input_names != ADV_INPUTS_UNNAMED;
            named.latent = named.latent || latent;
            named.direct = named.direct || (has_key_value && !latent);
            named.query_latent = named.query_latent || (!compressed && layer->q_lora_rank > 0);
            named.key_value = named.key_value || has_key_value;
            const double columns = layer->head_dim_v;
            const bool equal = layer->head_dim_qk == layer->head_dim_v && !layer->has_qk_norm &&
                               columns == adv_memory_lanes(columns);
            named.equal_key_value = named.equal_key_value && (!has_key_value || equal);
        }
        named.gated = named.gated || (dense && layer->mlp_inputs > 1);
        named.plain = named.plain || (dense && layer->mlp_inputs == 1);
        named.post_norm = named.post_norm || (dense && layer->has_post_ffw_norm);
        named.experts = named.experts || layer->experts > 0;
    }
    return named;
}

static void add(struct adv_remat_space *space, enum adv_tensor tensor)
{
    if (space->fixed[tensor]) return;
    space->units[space->units_count++] = (struct adv_remat_unit){tensor, false, tensor};
}

/* Behind a leader whose place a pin decides nothing is left out. */
static void add_led(struct adv_remat_space *space, enum adv_tensor tensor, enum adv_tensor leader)
{
    if (space->fixed[tensor]) return;
    space->units[space->units_count++] =
        (struct adv_remat_unit){tensor, !space->fixed[leader], space->fixed[leader] ? tensor : leader};
}

/* Of the 21 names, qkv_proj and indexer_cutoff_threshold name nothing whose time is counted, and
 * mla_q, mla_kv and attention_out only copies that no matmul has to make again: keeping them takes memory (or
 * none) and no time off, so recomputing them is never worse. The layer input is always there, on the device
 * or on the host. The other sixteen are open one by one. */
static void list_attention(const struct named *named, struct adv_remat_space *space)
{
    if (named->kernel) add(space, ADV_TENSOR_CONTEXT);
    add(space, ADV_TENSOR_QUERY_PROJ);
    if (named->compressed) add(space, ADV_TENSOR_KV_PROJ);
    if (named->key_value) {
        add(space, ADV_TENSOR_KEY_PROJ);
        /* The value follows the key. MLA makes both in one matmul: the value without the key takes no time
         * off. Elsewhere, where their heads are as wide, both take the same bytes and the same matmul, and
         * only the key can spare gathering them again over context shards: swapping a lone value for the key
         * is never slower. Not with norms, behind which the key's matmul runs again in any case,
         * nor with heads that leave lanes over, whose bytes depend on the layout of each. */
        bool follows = named->latent ? !named->direct : named->equal_key_value;
        if (follows)
            add_led(space, ADV_TENSOR_VALUE_PROJ, ADV_TENSOR_KEY_PROJ);
        else
            add(space, ADV_TENSOR_VALUE_PROJ);
    }
    add(space, ADV_TENSOR_OUT_PROJ);
    if (named->query_latent) add(space, ADV_TENSOR_QUERY_WA_PROJ);
    if (named->latent) add(space, ADV_TENSOR_KV_WA_PROJ);
}

static void list_feed_forward(const struct named *named, bool einsum_experts, struct adv_remat_space *space)
{
    if (named->experts) {
        add(space, ADV_TENSOR_MOE_MLPWI_0);
        /* as many bytes and as long a matmul; only the first can spare sending tokens again */
        add_led(space, ADV_TENSOR_MOE_MLPWI_1, ADV_TENSOR_MOE_MLPWI_0);
        add(space, ADV_TENSOR_MOE_MLPWO);
        /* mlpwi_0 also names the gate's output of routed experts: where it is kept, that tensor is, and
         * calling it by its other name too changes nothing */
        add_led(space, ADV_TENSOR_MLPWI_0, ADV_TENSOR_MOE_MLPWI_0);
    } else if (named->gated) {
        add(space, ADV_TENSOR_MLPWI_0);
        /* as many bytes and as long a matmul; only the first can spare gathering the layer's input again */
        add_led(space, ADV_TENSOR_MLPWI_1, ADV_TENSOR_MLPWI_0);
    }
    if (named->experts) { /* so do mlpwo and, in the einsums, mlpwi_1 */
        if (einsum_experts)
            add_led(space, ADV_TENSOR_MLPWI_1, ADV_TENSOR_MOE_MLPWI_1);
        else if (named->gated)
            add(space, ADV_TENSOR_MLPWI_1);
        add_led(space, ADV_TENSOR_MLPWO, ADV_TENSOR_MOE_MLPWO);
    } else if (named->post_norm) {
        add(space, ADV_TENSOR_MLPWO);
    }
    if (named->plain) add(space, ADV_TENSOR_MLPWI);
}

/* Tensor keys pinned alone. */
static void fix_pinned(const struct adv_advise_request *request, struct adv_remat_space *space)
{
    for (int i = 0; i < request->pins_count; i++) {
        for (int tensor = 0; tensor < ADV_TENSOR_COUNT; tensor++) {
            if (strcmp(request->pins[i].key, adv_tensor_name((enum adv_tensor)tensor)) != 0) continue;
            space->fixed[tensor] = space->any_fixed = true;
            space->placements[tensor] = request->workload.base.placements[tensor];
        }
    }
}

/* Tensors of routed experts bear a second name. Where that is pinned to a place the tensor is there. */
static void fix_second_names(bool einsum_experts, struct adv_remat_space *space)
{
    static const struct {
        enum adv_tensor name, second;
        bool einsum_only;
    } pairs[] = {{ADV_TENSOR_MOE_MLPWI_0, ADV_TENSOR_MLPWI_0, false},
                 {ADV_TENSOR_MOE_MLPWI_1, ADV_TENSOR_MLPWI_1, true},
                 {ADV_TENSOR_MOE_MLPWO, ADV_TENSOR_MLPWO, false}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const enum adv_placement there = space->placements[pairs[i].second];
        if (space->fixed[pairs[i].name] || !space->fixed[pairs[i].second] || there == ADV_PLACE_REMAT ||
            (pairs[i].einsum_only && !einsum_experts))
            continue;
        space->fixed[pairs[i].name] = true;
        space->placements[pairs[i].name] = there;
    }
}

/* In a scan step of many layers the inputs inside it are sums that the recomputation passes on its way: to
 * keep them takes memory at the loss and no time off. */
enum adv_placement adv_remat_input_stays(const struct adv_model *model)
{
    for (int i = 0; i < model->layer_kinds_count; i++)
        if (model->layers[i].remat_block > 1 && model->layers[i].input_names == ADV_INPUTS_NAMED_EACH)
            return ADV_PLACE_REMAT;
    return ADV_PLACE_DEVICE;
}

void adv_remat_space_build(const struct adv_advise_request *request, const struct adv_constants *constants,
                           struct adv_remat_space *space)
{
    *space = (struct adv_remat_space){
        .constants = constants, .pinned = request->remat_pinned, .is_custom = request->custom_pinned};
    struct named named = named_by(&request->model, &request->workload.base);
    const bool einsum_experts = request->workload.base.family.moe == ADV_MOE_DENSE;
    if (!space->pinned) fix_pinned(request, space);
    if (named.experts) fix_second_names(einsum_experts, space);
    if (named.attention) list_attention(&named, space);
    list_feed_forward(&named, einsum_experts, space);
    space->input_may_offload = named.names_input && !space->fixed[ADV_TENSOR_DECODER_LAYER_INPUT];
    space->input_stays =
        request->saves_layer_inputs ? ADV_PLACE_DEVICE : adv_remat_input_stays(&request->model);
    for (int i = 0; i < request->model.layer_kinds_count; i++)
        space->has_blocks = space->has_blocks || request->model.layers[i].remat_block > 1;
    if (request->vocab_tiling_pinned) {
        space->tilings[space->tilings_count++] = request->workload.base.num_vocab_tiling;
        return;
    }
    const int most = adv_plan_may_tile_vocab(&request->model) ? 16 : 1;
    for (int tiling = 1; tiling <= most; tiling *= 2) space->tilings[space->tilings_count++] = tiling;
}

void adv_remat_set_all(const struct adv_remat_space *space, struct adv_plan *plan,
                       enum adv_placement placement)
{
    if (space->pinned) return;
    plan->policy = ADV_POLICY_CUSTOM;
    for (int i = 0; i < ADV_TENSOR_COUNT; i++)
        plan->placements[i] = space->fixed[i] ? space->placements[i] : ADV_PLACE_REMAT;
    for (int i = 0; i < space->units_count; i++) plan->placements[space->units[i].tensor] = placement;
    adv_remat_set_input(space, plan, space->input_stays);
}

void adv_remat_set_input(const struct adv_remat_space *space, struct adv_plan *plan,
                         enum adv_placement placement)
{
    if (space->pinned || space->fixed[ADV_TENSOR_DECODER_LAYER_INPUT]) return;
    plan->placements[ADV_TENSOR_DECODER_LAYER_INPUT] = placement;
}

int adv_remat_inputs(const struct adv_remat_space *space, const struct adv_plan *plan,
                     enum adv_placement inputs[ADV_REMAT_INPUTS])
{
    const enum adv_tensor input = ADV_TENSOR_DECODER_LAYER_INPUT;
    int count = 0;
    inputs[count++] = space->fixed[input] ? space->placements[input] : space->input_stays;
    if (space->pinned || space->fixed[input]) return count;
    if (space->input_stays == ADV_PLACE_REMAT && plan->family.scan_layers) inputs[count++] = ADV_PLACE_DEVICE;
    if (space->input_may_offload) inputs[count++] = ADV_PLACE_OFFLOAD;
    return count;
}

void adv_remat_relax(const struct adv_remat_space *space, struct adv_plan *plan)
{
    adv_remat_set_all(space, plan, ADV_PLACE_DEVICE);
    plan->num_vocab_tiling = space->tilings[0];
}

bool adv_remat_may_tile(const struct adv_remat_space *space, const struct adv_plan *plan, int tiling)
{
    if (tiling == 1) return true;
    return fmod(adv_plan_tokens(plan), tiling) == 0.0 &&
           (space->tilings_count == 1 || !adv_memory_tiles_gather(space->constants, plan, tiling));
}

static void swap_units(struct adv_remat_space *space, double *worth, int a, int b)
{
    struct adv_remat_unit unit = space->units[a];
    double value = worth[a];
    space->units[a] = space->units[b];
    worth[a] = worth[b];
    space->units[b] = unit;
    worth[b] = value;
}

void adv_remat_space_order(struct adv_remat_space *space, struct adv_pricer *pricer,
                           const struct adv_plan *plan)
{
    if (space->pinned) return;
    struct adv_plan trial = *plan;
    struct adv_estimate full, without;
    adv_remat_relax(space, &trial);
    if (!adv_price(pricer, &trial, &full)) return;
    double worth[ADV_REMAT_UNITS];
    for (int i = 0; i < space->units_count; i++) {
        const struct adv_remat_unit *unit = &space->units[i];
        trial.placements[unit->tensor] = ADV_PLACE_REMAT;
        if (!adv_price(pricer, &trial, &without)) return;
        trial.placements[unit->tensor] = ADV_PLACE_DEVICE;
        double bytes = full.loss_peak_bytes - without.loss_peak_bytes;
        worth[i] = (without.step_time_s - full.step_time_s) / adv_max(bytes, 1);
        for (int k = 0; unit->has_leader && k < i; k++) /* stays behind its leader: the sort is stable */
            if (space->units[k].tensor == unit->leader) worth[i] = adv_min(worth[i], worth[k]);
    }
    for (int i = 1; i < space->units_count; i++)
        for (int at = i; at > 0 && worth[at - 1] < worth[at]; at--) swap_units(space, worth, at - 1, at);
}

void adv_remat_name_policy(const struct adv_remat_space *space, struct adv_plan *plan)
{
    if (space->pinned || space->any_fixed || space->is_custom)
        return; /* a preset would take pinned keys away */
    for (int policy = 0; policy < ADV_POLICY_CUSTOM; policy++) {
        enum adv_placement preset[ADV_TENSOR_COUNT];
        if (policy == ADV_POLICY_NONE)
            continue; /* the same as full in most blocks, and no remat at all in others */
        adv_policy_placements((enum adv_policy)policy, preset);
        bool same = plan->placements[ADV_TENSOR_DECODER_LAYER_INPUT] == space->input_stays;
        for (int i = 0; i < space->units_count; i++)
            same = same && preset[space->units[i].tensor] == plan->placements[space->units[i].tensor];
        if (!same) continue;
        plan->policy = (enum adv_policy)policy;
        memcpy(plan->placements, preset, sizeof preset);
        return;
    }
}

/* What is smaller takes the place of what was found; at the same size what is faster. */
static bool is_smaller(const struct adv_estimate *a, const struct adv_estimate *b)
{
    if (a->hbm_bytes_per_device != b->hbm_bytes_per_device)
        return a->hbm_bytes_per_device < b->hbm_bytes_per_device;
    return a->step_time_s < b->step_time_s;
}

/* The smallest plan with tensors where they are in `trial`, if it is smaller than what was found before. */
static bool try_smallest(const struct adv_remat_space *space, struct adv_pricer *pricer,
                         struct adv_plan trial, bool found, struct adv_plan *plan,
                         struct adv_estimate *estimate)
{
    for (int t = 0; t < space->tilings_count; t++) {
        struct adv_estimate priced;
        trial.num_vocab_tiling = space->tilings[t];
        if (!adv_remat_may_tile(space, &trial, trial.num_vocab_tiling) ||
            !adv_price(pricer, &trial, &priced) || (found && !is_smaller(&priced, estimate)))
            continue;
        found = true;
        *plan = trial;
        *estimate = priced;
    }
    return found;
}

/* Of a family whose plan was priced last: its open tensors as in the leanest set. */
static void set_leanest(const struct adv_remat_space *space, struct adv_pricer *pricer, struct adv_plan *plan)
{
    const struct adv_plan family = *plan;
    const uint64_t nowhere = adv_remat_places(plan);
    uint64_t on_device = nowhere;
    for (int i = 0; i < space->units_count; i++)
        on_device = adv_remat_put(on_device, space->units[i].tensor, ADV_PLACE_DEVICE);
    const struct adv_remat_measured measured = {space,   pricer,    &family,
                                                nowhere, on_device, space->tilings[0]};
    const struct adv_places lean = {adv_remat_leanest(&measured), plan->num_vocab_tiling};
    adv_places_write(&lean, plan);
}

bool adv_remat_smallest(const struct adv_remat_space *space, struct adv_pricer *pricer, struct adv_plan *plan,
                        struct adv_estimate *estimate)
{
    bool found = false;
    struct adv_plan trial = *plan;
    enum adv_placement inputs[ADV_REMAT_INPUTS];
    const int count = adv_remat_inputs(space, plan, inputs);
    for (int i = 0; i < count; i++) {
        adv_remat_set_all(space, &trial, ADV_PLACE_REMAT);
        adv_remat_set_input(space, &trial, inputs[i]);
        found = try_smallest(space, pricer, trial, found, plan, estimate);
        if (!found || space->pinned || trial.family.scan_layers) continue;
        set_leanest(space, pricer, &trial);
        found = try_smallest(space, pricer, trial, found, plan, estimate);
        /* tensors that are small one by one can be smaller together kept than computed ahead of their turn */
        adv_remat_set_all(space, &trial, ADV_PLACE_DEVICE);
        adv_remat_set_input(space, &trial, inputs[i]);
        found = try_smallest(space, pricer, trial, found, plan, estimate);
    }
    if (found) adv_remat_name_policy(space, plan);
    return found;
}

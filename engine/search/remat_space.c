#include "engine/search/remat_space.h"

#include <math.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/rank/rank.h"
#include "engine/search/batch.h"
#include "engine/search/choices.h"

static const enum adv_placement best_first[] = {ADV_PLACE_DEVICE, ADV_PLACE_OFFLOAD, ADV_PLACE_REMAT};
enum { PLACEMENTS = 3 };

static int preference(enum adv_placement placement)
{
    return placement == ADV_PLACE_DEVICE ? 0 : placement == ADV_PLACE_OFFLOAD ? 1 : 2;
}

static void add(struct adv_remat_space *space, enum adv_tensor tensor, bool follows)
{
    space->follows[space->tensors_count] = follows;
    space->tensors[space->tensors_count++] = tensor;
}

/* What the layers of a model name, all kinds together. */
struct named {
    bool attention, latent, query_latent, key_value, equal_key_value, gated, plain, post_norm, experts;
};

static struct named named_by(const struct adv_model *model)
{
    struct named named = {.equal_key_value = true};
    for (int i = 0; i < model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &model->layers[i];
        bool dense = layer->mlp_dim > 0 || layer->shared_experts > 0;
        if (layer->attention != ADV_ATTENTION_LINEAR) {
            named.attention = true;
            named.latent = named.latent || layer->kv_lora_rank > 0;
            named.query_latent = named.query_latent || layer->q_lora_rank > 0;
            named.key_value = named.key_value || !layer->reuses_kv;
            if (layer->head_dim_qk != layer->head_dim_v || layer->kv_lora_rank > 0 || layer->shares_kv) named.equal_key_value = false;
        }
        named.gated = named.gated || (dense && layer->mlp_inputs > 1);
        named.plain = named.plain || (dense && layer->mlp_inputs == 1);
        named.post_norm = named.post_norm || (dense && layer->has_post_ffw_norm);
        named.experts = named.experts || layer->experts > 0;
    }
    return named;
}

void adv_remat_space_build(const struct adv_advise_request *request, struct adv_remat_space *space)
{
    *space = (struct adv_remat_space){.pinned = request->remat_pinned};
    struct named named = named_by(&request->model);
    if (named.attention) {
        add(space, ADV_TENSOR_CONTEXT, false);
        add(space, ADV_TENSOR_QUERY_PROJ, false);
        if (named.key_value) add(space, ADV_TENSOR_KEY_PROJ, false);
        if (named.key_value) add(space, ADV_TENSOR_VALUE_PROJ, named.equal_key_value);
        add(space, ADV_TENSOR_OUT_PROJ, false);
    }
    if (named.query_latent) add(space, ADV_TENSOR_QUERY_WA_PROJ, false);
    if (named.latent) add(space, ADV_TENSOR_KV_WA_PROJ, false);
    /* the gate's output of routed experts carries mlpwi_0 too: decided before it, so that P2 holds */
    if (named.experts) {
        add(space, ADV_TENSOR_MOE_MLPWI_0, false);
        add(space, ADV_TENSOR_MOE_MLPWI_1, false);
        add(space, ADV_TENSOR_MOE_MLPWO, false);
    }
    if (named.gated) add(space, ADV_TENSOR_MLPWI_0, false);
    if (named.gated) add(space, ADV_TENSOR_MLPWI_1, !named.experts);
    if (named.plain) add(space, ADV_TENSOR_MLPWI, false);
    if (named.post_norm) add(space, ADV_TENSOR_MLPWO, false);
    space->input_may_offload = named.attention;
    space->experts = named.experts;
    if (request->vocab_tiling_pinned) {
        space->tilings[space->tilings_count++] = request->workload.base.num_vocab_tiling;
        return;
    }
    for (int tiling = 1; tiling <= 16; tiling *= 2) space->tilings[space->tilings_count++] = tiling;
}

static void set_all(const struct adv_remat_space *space, struct adv_plan *plan, enum adv_placement placement)
{
    if (space->pinned) return;
    plan->policy = ADV_POLICY_CUSTOM;
    for (int i = 0; i < ADV_TENSOR_COUNT; i++) plan->placements[i] = ADV_PLACE_REMAT;
    plan->placements[ADV_TENSOR_DECODER_LAYER_INPUT] = ADV_PLACE_DEVICE;
    for (int i = 0; i < space->tensors_count; i++) plan->placements[space->tensors[i]] = placement;
}

void adv_remat_relax(const struct adv_remat_space *space, struct adv_plan *plan)
{
    set_all(space, plan, ADV_PLACE_DEVICE);
    plan->num_vocab_tiling = space->tilings[0];
}

/* Tiles must split the device's tokens evenly. */
static bool tiling_divides(const struct adv_plan *plan, int tiling)
{
    double tokens = adv_plan_tokens(plan);
    return tiling == 1 || fmod(tokens, tiling) == 0.0;
}

/* Time (per token) and bytes of one tensor's own contribution, on an otherwise full device. */
void adv_remat_space_order(struct adv_remat_space *space, struct adv_pricer *pricer, const struct adv_plan *plan)
{
    if (space->pinned) return;
    struct adv_plan trial = *plan;
    struct adv_estimate full, without;
    adv_remat_relax(space, &trial);
    if (!adv_price(pricer, &trial, &full)) return;
    double worth[ADV_REMAT_TENSORS];
    for (int i = 0; i < space->tensors_count; i++) {
        trial.placements[space->tensors[i]] = ADV_PLACE_REMAT;
        if (!adv_price(pricer, &trial, &without)) return;
        trial.placements[space->tensors[i]] = ADV_PLACE_DEVICE;
        double bytes = full.hbm_bytes_per_device - without.hbm_bytes_per_device;
        worth[i] = (without.step_time_s - full.step_time_s) / adv_max(bytes, 1);
        if (space->follows[i]) worth[i] = worth[i - 1]; /* stays beside its leader */
        if (space->tensors[i] == ADV_TENSOR_MLPWI_0) /* never before the experts' gate, see adv_remat_space_build */
            for (int k = 0; k < i; k++)
                if (space->tensors[k] == ADV_TENSOR_MOE_MLPWI_0) worth[i] = adv_min(worth[i], worth[k]);
    }
    for (int i = 1; i < space->tensors_count; i++) {
        double key = worth[i];
        enum adv_tensor tensor = space->tensors[i];
        bool follows = space->follows[i];
        int at = i;
        while (at > 0 && worth[at - 1] < key) {
            worth[at] = worth[at - 1];
            space->tensors[at] = space->tensors[at - 1];
            space->follows[at] = space->follows[at - 1];
            at--;
        }
        worth[at] = key;
        space->tensors[at] = tensor;
        space->follows[at] = follows;
    }
}

/* The state of one family's branch and bound. `plan` holds the decided tensors. */
struct solve {
    const struct adv_remat_space *space;
    struct adv_pricer *pricer;
    struct adv_plan plan;
    double best;              /* metric to beat */
    bool found, bounded;      /* a plan was kept; a branch was closed because it cannot win */
    struct adv_plan *best_plan;
    struct adv_estimate *best_estimate;
};

static double metric(const struct adv_estimate *estimate)
{
    return adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, estimate);
}

/* Prices `plan`; keeps it when it fits and wins. */
static bool try_plan(struct solve *solve, const struct adv_plan *plan, struct adv_estimate *estimate)
{
    if (!adv_price(solve->pricer, plan, estimate)) return false;
    if (adv_rank_fits(estimate) && metric(estimate) < solve->best) {
        solve->best = metric(estimate);
        solve->found = true;
        *solve->best_plan = *plan;
        *solve->best_estimate = *estimate;
    }
    return true;
}

static struct adv_plan completed(const struct solve *solve, int decided, enum adv_placement placement)
{
    struct adv_plan plan = solve->plan;
    for (int i = decided; i < solve->space->tensors_count; i++) plan.placements[solve->space->tensors[i]] = placement;
    return plan;
}

/* Tensors before `decided` are fixed in solve->plan. `fast` is the metric with the rest on device, below 0 when the
 * parent has not priced it; `small_known`: the parent priced this completion with the rest rematerialised, and it fits. */
static void branch(struct solve *solve, int decided, double fast, bool small_known)
{
    struct adv_estimate estimate;
    if (fast < 0) {
        struct adv_plan on_device = completed(solve, decided, ADV_PLACE_DEVICE);
        if (!try_plan(solve, &on_device, &estimate)) return;
        fast = metric(&estimate);
    }
    if (fast >= solve->best) { /* P1: nothing below is faster; or this very plan was kept */
        solve->bounded = true;
        return;
    }
    if (decided == solve->space->tensors_count) return;
    if (!small_known) {
        struct adv_plan small = completed(solve, decided, ADV_PLACE_REMAT);
        if (!try_plan(solve, &small, &estimate)) return;
        if (!adv_rank_fits(&estimate)) return; /* P2: nothing below is smaller */
    }
    enum adv_tensor tensor = solve->space->tensors[decided];
    int least = solve->space->follows[decided] ? preference(solve->plan.placements[solve->space->tensors[decided - 1]]) : 0;
    for (int i = 0; i < PLACEMENTS; i++) {
        if (i < least) continue;
        solve->plan.placements[tensor] = best_first[i];
        branch(solve, decided + 1, best_first[i] == ADV_PLACE_DEVICE ? fast : -1, best_first[i] == ADV_PLACE_REMAT);
    }
    solve->plan.placements[tensor] = ADV_PLACE_REMAT;
}

/* A preset that says the same about the tensors this model has, where one does. */
static void name_policy(const struct adv_remat_space *space, struct adv_plan *plan)
{
    for (int policy = 0; policy < ADV_POLICY_CUSTOM; policy++) {
        enum adv_placement preset[ADV_TENSOR_COUNT];
        if (policy == ADV_POLICY_NONE) continue; /* the same as full in most blocks, and no remat at all in others */
        adv_policy_placements((enum adv_policy)policy, preset);
        bool same = preset[ADV_TENSOR_DECODER_LAYER_INPUT] == plan->placements[ADV_TENSOR_DECODER_LAYER_INPUT];
        /* mlpwi_0 also names the gate's output of routed experts, so there it counts even without a dense feed-forward */
        same = same && (!space->experts || preset[ADV_TENSOR_MLPWI_0] == plan->placements[ADV_TENSOR_MLPWI_0]);
        for (int i = 0; i < space->tensors_count && same; i++) same = preset[space->tensors[i]] == plan->placements[space->tensors[i]];
        if (!same) continue;
        plan->policy = (enum adv_policy)policy;
        memcpy(plan->placements, preset, sizeof preset);
        return;
    }
}

/* Gives up placements, offloads and tiling that gain next to nothing: fewer keys and more memory to spare. */
static void simplify(struct solve *solve)
{
    double limit = metric(solve->best_estimate) * (1 + ADV_RANK_KEY_FRAC);
    struct adv_plan simpler = *solve->best_plan;
    struct adv_estimate estimate;
    for (int i = solve->space->tensors_count - 1; i >= 0; i--) {
        enum adv_placement *placement = &simpler.placements[solve->space->tensors[i]];
        enum adv_placement before = *placement;
        if (before == ADV_PLACE_REMAT) continue;
        *placement = ADV_PLACE_REMAT;
        if (!adv_price(solve->pricer, &simpler, &estimate)) return;
        if (adv_rank_fits(&estimate) && metric(&estimate) <= limit) {
            *solve->best_plan = simpler;
            *solve->best_estimate = estimate;
        } else {
            *placement = before;
        }
    }
}

static void solve_pinned(struct solve *solve)
{
    struct adv_estimate estimate;
    for (int t = 0; t < solve->space->tilings_count; t++) {
        solve->plan.num_vocab_tiling = solve->space->tilings[t];
        if (!tiling_divides(&solve->plan, solve->space->tilings[t])) continue;
        if (try_plan(solve, &solve->plan, &estimate) && adv_rank_fits(&estimate)) solve->bounded = true;
    }
}

enum adv_remat_outcome adv_remat_solve(const struct adv_remat_space *space, struct adv_pricer *pricer, double cutoff,
                                       struct adv_plan *plan, struct adv_estimate *estimate)
{
    struct solve solve = {space, pricer, *plan, cutoff, false, false, plan, estimate};
    if (space->pinned) {
        solve_pinned(&solve);
        return solve.found ? ADV_REMAT_SOLVED : solve.bounded ? ADV_REMAT_SLOWER : ADV_REMAT_TOO_BIG;
    }
    for (int input = 0; input <= (space->input_may_offload ? 1 : 0); input++) {
        for (int t = 0; t < space->tilings_count; t++) {
            if (!tiling_divides(plan, space->tilings[t])) continue;
            set_all(space, &solve.plan, ADV_PLACE_REMAT);
            solve.plan.placements[ADV_TENSOR_DECODER_LAYER_INPUT] = input ? ADV_PLACE_OFFLOAD : ADV_PLACE_DEVICE;
            solve.plan.num_vocab_tiling = space->tilings[t];
            branch(&solve, 0, -1, false);
        }
    }
    if (!solve.found) return solve.bounded ? ADV_REMAT_SLOWER : ADV_REMAT_TOO_BIG;
    simplify(&solve);
    name_policy(space, plan);
    return ADV_REMAT_SOLVED;
}

bool adv_remat_smallest(const struct adv_remat_space *space, struct adv_pricer *pricer, struct adv_plan *plan, struct adv_estimate *estimate)
{
    bool found = false;
    struct adv_plan trial = *plan;
    for (int input = 0; input <= (space->input_may_offload && !space->pinned ? 1 : 0); input++) {
        for (int t = 0; t < space->tilings_count; t++) {
            struct adv_estimate priced;
            set_all(space, &trial, ADV_PLACE_REMAT);
            if (!space->pinned) trial.placements[ADV_TENSOR_DECODER_LAYER_INPUT] = input ? ADV_PLACE_OFFLOAD : ADV_PLACE_DEVICE;
            trial.num_vocab_tiling = space->tilings[t];
            if (!tiling_divides(&trial, trial.num_vocab_tiling) || !adv_price(pricer, &trial, &priced)) continue;
            bool smaller = !found || priced.hbm_bytes_per_device < estimate->hbm_bytes_per_device ||
                           (priced.hbm_bytes_per_device == estimate->hbm_bytes_per_device && priced.step_time_s < estimate->step_time_s);
            if (!smaller) continue;
            found = true;
            *plan = trial;
            *estimate = priced;
        }
    }
    if (found && !space->pinned) name_policy(space, plan);
    return found;
}

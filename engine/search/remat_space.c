#include "engine/search/remat_space.h"

#include <math.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/rank/rank.h"

static void add(struct adv_remat_space *space, enum adv_tensor tensor)
{
    space->units[space->units_count++] = (struct adv_remat_unit){1, {tensor, tensor}, false, tensor};
}

static void add_led(struct adv_remat_space *space, enum adv_tensor tensor, enum adv_tensor leader)
{
    space->units[space->units_count++] = (struct adv_remat_unit){1, {tensor, tensor}, true, leader};
}

static void add_pair(struct adv_remat_space *space, enum adv_tensor a, enum adv_tensor b)
{
    space->units[space->units_count++] = (struct adv_remat_unit){2, {a, b}, false, a};
}

/* What the layers of a model name, all kinds together. */
struct named {
    bool attention, latent, query_latent, key_value, shared_key, gated, plain, post_norm, experts;
};

static struct named named_by(const struct adv_model *model)
{
    struct named named = {0};
    for (int i = 0; i < model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &model->layers[i];
        bool dense = layer->mlp_dim > 0 || layer->shared_experts > 0;
        if (layer->attention != ADV_ATTENTION_LINEAR) {
            named.attention = true;
            named.latent = named.latent || layer->kv_lora_rank > 0;
            named.query_latent = named.query_latent || layer->q_lora_rank > 0;
            named.key_value = named.key_value || !layer->reuses_kv;
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
        add(space, ADV_TENSOR_CONTEXT);
        add(space, ADV_TENSOR_QUERY_PROJ);
        /* MLA makes both from one latent in one matmul: one alone gains nothing. Elsewhere they are equal and
         * small. */
        if (named.key_value) add_pair(space, ADV_TENSOR_KEY_PROJ, ADV_TENSOR_VALUE_PROJ);
        add(space, ADV_TENSOR_OUT_PROJ);
    }
    if (named.query_latent) add(space, ADV_TENSOR_QUERY_WA_PROJ);
    if (named.latent) add(space, ADV_TENSOR_KV_WA_PROJ);
    if (named.experts) {
        add(space, ADV_TENSOR_MOE_MLPWI_0);
        add_led(space, ADV_TENSOR_MOE_MLPWI_1, ADV_TENSOR_MOE_MLPWI_0);
        add(space, ADV_TENSOR_MOE_MLPWO);
    }
    if (named.gated && named.experts) { /* few dense layers or shared experts beside the routed ones */
        add_pair(space, ADV_TENSOR_MLPWI_0, ADV_TENSOR_MLPWI_1);
        space->units[space->units_count - 1].has_leader = true;
        space->units[space->units_count - 1].leader = ADV_TENSOR_MOE_MLPWI_0;
    } else if (named.gated) {
        add(space, ADV_TENSOR_MLPWI_0);
        add_led(space, ADV_TENSOR_MLPWI_1, ADV_TENSOR_MLPWI_0);
    }
    if (named.plain) add(space, ADV_TENSOR_MLPWI);
    if (named.post_norm) add(space, ADV_TENSOR_MLPWO);
    space->input_may_offload = named.attention;
    space->experts = named.experts;
    if (request->vocab_tiling_pinned) {
        space->tilings[space->tilings_count++] = request->workload.base.num_vocab_tiling;
        return;
    }
    for (int tiling = 1; tiling <= 16; tiling *= 2) space->tilings[space->tilings_count++] = tiling;
}

static void put(const struct adv_remat_unit *unit, struct adv_plan *plan, enum adv_placement placement)
{
    for (int i = 0; i < unit->count; i++) plan->placements[unit->tensors[i]] = placement;
}

static void set_all(const struct adv_remat_space *space, struct adv_plan *plan, enum adv_placement placement)
{
    if (space->pinned) return;
    plan->policy = ADV_POLICY_CUSTOM;
    for (int i = 0; i < ADV_TENSOR_COUNT; i++) plan->placements[i] = ADV_PLACE_REMAT;
    plan->placements[ADV_TENSOR_DECODER_LAYER_INPUT] = ADV_PLACE_DEVICE;
    for (int i = 0; i < space->units_count; i++) put(&space->units[i], plan, placement);
}

static void set_input(struct adv_plan *plan, bool offload)
{
    plan->placements[ADV_TENSOR_DECODER_LAYER_INPUT] = offload ? ADV_PLACE_OFFLOAD : ADV_PLACE_DEVICE;
}

void adv_remat_relax(const struct adv_remat_space *space, struct adv_plan *plan)
{
    set_all(space, plan, ADV_PLACE_DEVICE);
    plan->num_vocab_tiling = space->tilings[0];
}

/* Tiles must split the device's tokens evenly. */
static bool tiling_divides(const struct adv_plan *plan, int tiling)
{
    return tiling == 1 || fmod(adv_plan_tokens(plan), tiling) == 0.0;
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
        put(&space->units[i], &trial, ADV_PLACE_REMAT);
        if (!adv_price(pricer, &trial, &without)) return;
        put(&space->units[i], &trial, ADV_PLACE_DEVICE);
        double bytes = full.loss_peak_bytes - without.loss_peak_bytes;
        worth[i] = (without.step_time_s - full.step_time_s) / adv_max(bytes, 1);
        for (int k = 0; space->units[i].has_leader && k < i;
             k++) /* stays behind its leader: the sort is stable */
            if (space->units[k].tensors[0] == space->units[i].leader) worth[i] = adv_min(worth[i], worth[k]);
    }
    for (int i = 1; i < space->units_count; i++)
        for (int at = i; at > 0 && worth[at - 1] < worth[at]; at--) swap_units(space, worth, at - 1, at);
}

/* The solution of one family in the making. */
struct solve {
    const struct adv_remat_space *space;
    struct adv_pricer *pricer;
    struct adv_plan plan; /* decided units as decided, the others on device */
    double best;          /* metric to beat */
    bool found, bounded;  /* a plan was kept; a branch was closed because it cannot win */
    struct adv_plan *best_plan;
    struct adv_estimate *best_estimate;
    double device_bytes[ADV_REMAT_UNITS], host_bytes[ADV_REMAT_UNITS]; /* P2: per device, and per host */
    double device_room, host_room; /* left by the plan with nothing kept */
};

static double metric(const struct adv_estimate *estimate)
{
    return adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, estimate);
}

/* Prices `plan`; keeps it when it fits and wins. */
static bool try_plan(struct solve *solve, const struct adv_plan *plan, struct adv_estimate *estimate)
{
    if (!adv_price(solve->pricer, plan, estimate)) return false;
    if (adv_rank_fits(estimate, solve->pricer->memory_frac) && metric(estimate) < solve->best) {
        solve->best = metric(estimate);
        solve->found = true;
        *solve->best_plan = *plan;
        *solve->best_estimate = *estimate;
    }
    return true;
}

static bool kept(const struct solve *solve, int unit)
{
    return solve->plan.placements[solve->space->units[unit].tensors[0]] == ADV_PLACE_DEVICE;
}

/* All smallest host sets: units from `from` on are offered to the host in turn until the rest fits the
 * device. `over` is what is still too much, `host` what the chosen ones take there. A set found this way with
 * a member to spare would only repeat a smaller set's plan more slowly, so members are checked for need. */
static void choose_host(struct solve *solve, struct adv_plan *plan, int from, double over, double host,
                        unsigned chosen)
{
    if (over <= 0) {
        for (int i = 0; i < solve->space->units_count;
             i++) /* over is how much too much: a slack above a member's size frees it */
            if (chosen & 1u << i && -over >= solve->device_bytes[i]) return;
        struct adv_estimate estimate;
        (void)try_plan(solve, plan, &estimate);
        return;
    }
    double rest = 0; /* what all that are left could take away */
    for (int i = from; i < solve->space->units_count; i++)
        rest += kept(solve, i) ? solve->device_bytes[i] : 0;
    if (rest < over) return;
    for (int i = from; i < solve->space->units_count; i++) {
        if (!kept(solve, i) || host + solve->host_bytes[i] > solve->host_room) continue;
        put(&solve->space->units[i], plan, ADV_PLACE_OFFLOAD);
        choose_host(solve, plan, i + 1, over - solve->device_bytes[i], host + solve->host_bytes[i],
                    chosen | 1u << i);
        put(&solve->space->units[i], plan, ADV_PLACE_DEVICE);
    }
}

/* solve->plan keeps everything but what was decided otherwise; `fast` is its metric, below 0 when not yet
 * priced. */
static void branch(struct solve *solve, int decided, double fast)
{
    struct adv_estimate estimate;
    if (fast < 0) {
        if (!try_plan(solve, &solve->plan, &estimate)) return;
        fast = metric(&estimate);
    }
    if (fast >= solve->best) { /* P1: nothing below is faster; or this very plan was kept */
        solve->bounded = true;
        return;
    }
    const struct adv_remat_space *space = solve->space;
    if (decided == space->units_count) {
        double over = -solve->device_room;
        for (int i = 0; i < space->units_count; i++) over += kept(solve, i) ? solve->device_bytes[i] : 0;
        struct adv_plan plan = solve->plan;
        if (over > 0) choose_host(solve, &plan, 0, over, 0, 0); /* without excess it was tried as `fast` */
        return;
    }
    const struct adv_remat_unit *unit = &space->units[decided];
    if (!unit->has_leader || solve->plan.placements[unit->leader] == ADV_PLACE_DEVICE) {
        branch(solve, decided + 1, fast);
        put(unit, &solve->plan, ADV_PLACE_REMAT);
        branch(solve, decided + 1, -1);
    } else {
        put(unit, &solve->plan, ADV_PLACE_REMAT);
        branch(solve, decided + 1, -1);
    }
    put(unit, &solve->plan, ADV_PLACE_DEVICE);
}

/* A preset that says the same about the tensors this model has, where one does. */
static void name_policy(const struct adv_remat_space *space, struct adv_plan *plan)
{
    for (int policy = 0; policy < ADV_POLICY_CUSTOM; policy++) {
        enum adv_placement preset[ADV_TENSOR_COUNT];
        if (policy == ADV_POLICY_NONE)
            continue; /* the same as full in most blocks, and no remat at all in others */
        adv_policy_placements((enum adv_policy)policy, preset);
        bool same =
            preset[ADV_TENSOR_DECODER_LAYER_INPUT] == plan->placements[ADV_TENSOR_DECODER_LAYER_INPUT];
        /* mlpwi_0 also names the gate's output of routed experts, so there it counts even without a dense
         * feed-forward */
        same =
            same && (!space->experts || preset[ADV_TENSOR_MLPWI_0] == plan->placements[ADV_TENSOR_MLPWI_0]);
        for (int i = 0; i < space->units_count; i++)
            for (int k = 0; k < space->units[i].count; k++)
                same = same &&
                       preset[space->units[i].tensors[k]] == plan->placements[space->units[i].tensors[k]];
        if (!same) continue;
        plan->policy = (enum adv_policy)policy;
        memcpy(plan->placements, preset, sizeof preset);
        return;
    }
}

/* Brings back from the host what the device has room for now (P1: that is not slower). */
static void bring_back(struct solve *solve, struct adv_plan *plan, double limit)
{
    struct adv_estimate estimate;
    for (int i = -1; i < solve->space->units_count; i++) { /* -1: the layer input */
        const struct adv_remat_unit input = {1,
                                             {ADV_TENSOR_DECODER_LAYER_INPUT, ADV_TENSOR_DECODER_LAYER_INPUT},
                                             false,
                                             ADV_TENSOR_DECODER_LAYER_INPUT};
        const struct adv_remat_unit *unit = i < 0 ? &input : &solve->space->units[i];
        if (plan->placements[unit->tensors[0]] != ADV_PLACE_OFFLOAD) continue;
        put(unit, plan, ADV_PLACE_DEVICE);
        if (!adv_price(solve->pricer, plan, &estimate)) return;
        if (adv_rank_fits(&estimate, solve->pricer->memory_frac) && metric(&estimate) <= limit) {
            *solve->best_plan = *plan;
            *solve->best_estimate = estimate;
        } else {
            put(unit, plan, ADV_PLACE_OFFLOAD);
        }
    }
}

/* Gives up placements that gain next to nothing: fewer keys and more memory to spare. */
static void simplify(struct solve *solve)
{
    double limit = metric(solve->best_estimate) * (1 + ADV_RANK_KEY_FRAC);
    struct adv_plan simpler = *solve->best_plan;
    struct adv_estimate estimate;
    for (int i = solve->space->units_count - 1; i >= 0; i--) {
        const struct adv_remat_unit *unit = &solve->space->units[i];
        enum adv_placement before = simpler.placements[unit->tensors[0]];
        if (before == ADV_PLACE_REMAT) continue;
        put(unit, &simpler, ADV_PLACE_REMAT);
        if (!adv_price(solve->pricer, &simpler, &estimate)) return;
        if (adv_rank_fits(&estimate, solve->pricer->memory_frac) && metric(&estimate) <= limit) {
            *solve->best_plan = simpler;
            *solve->best_estimate = estimate;
        } else {
            put(unit, &simpler, before);
        }
    }
    bring_back(solve, &simpler, limit);
}

static enum adv_remat_outcome solve_pinned(struct solve *solve)
{
    struct adv_estimate estimate;
    for (int t = 0; t < solve->space->tilings_count; t++) {
        solve->plan.num_vocab_tiling = solve->space->tilings[t];
        if (!tiling_divides(&solve->plan, solve->space->tilings[t])) continue;
        if (try_plan(solve, &solve->plan, &estimate) && adv_rank_fits(&estimate, solve->pricer->memory_frac))
            solve->bounded = true;
    }
    return solve->found ? ADV_REMAT_SOLVED : solve->bounded ? ADV_REMAT_SLOWER : ADV_REMAT_TOO_BIG;
}

/* Room that `nothing_kept` leaves for kept tensors: on the device under the larger of the two peaks they are
 * part of. */
static bool measure_room(struct solve *solve, const struct adv_estimate *nothing_kept)
{
    double limit = nothing_kept->hbm_limit_bytes_per_device * solve->pricer->memory_frac;
    double host_limit = nothing_kept->host_limit_bytes_per_host * solve->pricer->memory_frac;
    solve->device_room = limit - adv_max(nothing_kept->loss_peak_bytes, nothing_kept->backward_peak_bytes);
    solve->host_room = isnan(host_limit) ? (double)INFINITY : host_limit - nothing_kept->host_bytes_per_host;
    return adv_rank_fits(nothing_kept, solve->pricer->memory_frac);
}

/* P2: what each unit takes on the device and, instead, on a host. */
static bool measure_units(struct solve *solve)
{
    struct adv_plan trial = solve->plan;
    struct adv_estimate none, one;
    set_all(solve->space, &trial, ADV_PLACE_REMAT);
    for (int i = 0; i < solve->space->units_count; i++) {
        const struct adv_remat_unit *unit = &solve->space->units[i];
        if (unit->has_leader) trial.placements[unit->leader] = ADV_PLACE_DEVICE;
        if ((i == 0 || unit->has_leader || solve->space->units[i - 1].has_leader) &&
            !adv_price(solve->pricer, &trial, &none))
            return false;
        put(&solve->space->units[i], &trial, ADV_PLACE_DEVICE);
        if (!adv_price(solve->pricer, &trial, &one)) return false;
        solve->device_bytes[i] = one.loss_peak_bytes - none.loss_peak_bytes;
        put(&solve->space->units[i], &trial, ADV_PLACE_OFFLOAD);
        if (!adv_price(solve->pricer, &trial, &one)) return false;
        solve->host_bytes[i] = one.host_bytes_per_host - none.host_bytes_per_host;
        put(&solve->space->units[i], &trial, ADV_PLACE_REMAT);
        if (unit->has_leader) trial.placements[unit->leader] = ADV_PLACE_REMAT;
    }
    return true;
}

/* The least HBM of the family: nothing kept, the layer input on the host, the finest tiling (logits only
 * shrink with it). When even that is too much, so is everything else (P2). */
static bool can_fit(struct solve *solve)
{
    const struct adv_remat_space *space = solve->space;
    struct adv_plan smallest = solve->plan;
    struct adv_estimate estimate;
    set_all(space, &smallest, ADV_PLACE_REMAT);
    set_input(&smallest, space->input_may_offload);
    for (int t = 0; t < space->tilings_count; t++)
        if (tiling_divides(&smallest, space->tilings[t])) smallest.num_vocab_tiling = space->tilings[t];
    if (!try_plan(solve, &smallest, &estimate)) return false;
    return estimate.hbm_bytes_per_device <= solve->pricer->memory_frac * estimate.hbm_limit_bytes_per_device;
}

enum adv_remat_outcome adv_remat_solve(const struct adv_remat_space *space, struct adv_pricer *pricer,
                                       double cutoff, struct adv_plan *plan, struct adv_estimate *estimate)
{
    struct solve solve = {.space = space,
                          .pricer = pricer,
                          .plan = *plan,
                          .best = cutoff,
                          .best_plan = plan,
                          .best_estimate = estimate};
    if (space->pinned) return solve_pinned(&solve);
    struct adv_estimate priced;
    adv_remat_relax(space, &solve.plan);
    if (!try_plan(&solve, &solve.plan, &priced)) return ADV_REMAT_SLOWER;
    if (!can_fit(&solve)) return ADV_REMAT_TOO_BIG;
    bool measured = false;
    for (int input = 0; input <= (space->input_may_offload ? 1 : 0) && metric(&priced) < solve.best;
         input++) {
        double widest = -1; /* room of the tilings tried: one that gives no more room cannot help (P3) */
        for (int t = 0; t < space->tilings_count; t++) {
            if (!tiling_divides(&solve.plan, space->tilings[t])) continue;
            struct adv_estimate none;
            set_all(space, &solve.plan, ADV_PLACE_REMAT);
            set_input(&solve.plan, input != 0);
            solve.plan.num_vocab_tiling = space->tilings[t];
            if (!try_plan(&solve, &solve.plan, &none) || !measure_room(&solve, &none) ||
                solve.device_room <= widest)
                continue;
            widest = solve.device_room;
            if (!measured && !measure_units(&solve)) return ADV_REMAT_SLOWER;
            measured = true;
            set_all(space, &solve.plan, ADV_PLACE_DEVICE);
            set_input(&solve.plan, input != 0);
            branch(&solve, 0, -1);
        }
    }
    if (metric(&priced) >= solve.best) solve.bounded = true;
    if (!solve.found) return solve.bounded ? ADV_REMAT_SLOWER : ADV_REMAT_TOO_BIG;
    simplify(&solve);
    name_policy(space, plan);
    return ADV_REMAT_SOLVED;
}

bool adv_remat_smallest(const struct adv_remat_space *space, struct adv_pricer *pricer, struct adv_plan *plan,
                        struct adv_estimate *estimate)
{
    bool found = false;
    struct adv_plan trial = *plan;
    for (int input = 0; input <= (space->input_may_offload && !space->pinned ? 1 : 0); input++) {
        for (int t = 0; t < space->tilings_count; t++) {
            struct adv_estimate priced;
            set_all(space, &trial, ADV_PLACE_REMAT);
            if (!space->pinned) set_input(&trial, input != 0);
            trial.num_vocab_tiling = space->tilings[t];
            if (!tiling_divides(&trial, trial.num_vocab_tiling) || !adv_price(pricer, &trial, &priced))
                continue;
            bool smaller = !found || priced.hbm_bytes_per_device < estimate->hbm_bytes_per_device ||
                           (priced.hbm_bytes_per_device == estimate->hbm_bytes_per_device &&
                            priced.step_time_s < estimate->step_time_s);
            if (!smaller) continue;
            found = true;
            *plan = trial;
            *estimate = priced;
        }
    }
    if (found && !space->pinned) name_policy(space, plan);
    return found;
}

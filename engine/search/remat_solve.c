#include "engine/search/remat_amounts.h"

#include <math.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/cost/memory.h"
#include "engine/rank/rank.h"

/* Bytes are summed and subtracted in another order than the estimate does: what is short by rounding alone is
 * still offered, and try_plan judges. */
static const double rounding_frac = 1e-9;

static const struct adv_remat_room nothing = {0, 0};

/* The solution of one family in the making. */
struct solve {
    const struct adv_remat_space *space;
    struct adv_pricer *pricer;
    struct adv_plan family;      /* any of its plans: what all have in common */
    uint64_t on_device, nowhere; /* all open tensors on the device; none kept */
    struct adv_places at;        /* decided units as decided, the others on device */
    double best;                 /* metric to beat */
    double needs;                /* the highest metric that had to be below it for what is being priced */
    struct adv_remat_reach reach;
    bool stays[ADV_TENSOR_COUNT]; /* the family's tensor may not go to the host: adv_plan_host_refuses */
    bool found, bounded;          /* a plan was kept; a branch was closed because it cannot win */
    struct adv_places best_at;
    struct adv_estimate *best_estimate;
    struct adv_remat_amounts usual, other;   /* the second with the layer input in another place */
    const struct adv_remat_amounts *amounts; /* those that hold */
    struct adv_remat_rooms rooms;
    /* of tensors that are kept at all: on the device; on it and on the host */
    struct adv_remat_room alone_limit, shared_limit;
};

static double metric(const struct adv_estimate *estimate)
{
    return adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, estimate);
}

static void put_tensor(struct adv_places *at, enum adv_tensor tensor, enum adv_placement placement)
{
    at->tensors = adv_remat_put(at->tensors, tensor, placement);
}

static void put(const struct solve *solve, int unit, struct adv_places *at, enum adv_placement placement)
{
    put_tensor(at, solve->space->units[unit].tensor, placement);
}

static bool fits(const struct solve *solve, const struct adv_estimate *estimate)
{
    return adv_price_fits(solve->pricer, estimate);
}

/* Whether a plan of this metric would win. */
static bool wins(struct solve *solve, double metric)
{
    const bool below = metric < solve->best;
    if (below && !solve->found) solve->reach.same_above = adv_max(solve->reach.same_above, metric);
    return below;
}

/* From here on a plan is priced only where one of this metric wins, and what had to win before. Returns what
 * that was, to go back to. */
static double need(struct solve *solve, double metric)
{
    const double before = solve->needs;
    solve->needs = adv_max(before, metric);
    if (solve->pricer->tape) solve->pricer->tape->above = solve->needs;
    return before;
}

static void need_no_more(struct solve *solve, double before)
{
    solve->needs = before;
    if (solve->pricer->tape) solve->pricer->tape->above = before;
}

/* Keeps what was priced when it fits and wins. */
static void keep_best(struct solve *solve, const struct adv_places *at, const struct adv_estimate *estimate)
{
    const double time = metric(estimate);
    if (!(time < solve->best) || !fits(solve, estimate) || !wins(solve, time)) return;
    if (time < solve->needs) /* against P1: a lower cutoff may not come here and yet be above it */
        solve->reach.known_above = adv_max(solve->reach.known_above, solve->needs);
    solve->best = time;
    solve->found = true;
    solve->best_at = *at;
    *solve->best_estimate = *estimate;
}

/* Prices the plan with its tensors in these places; keeps it when it fits and wins. */
static bool try_places(struct solve *solve, const struct adv_places *at, struct adv_estimate *estimate)
{
    if (!adv_price_placed(solve->pricer, &solve->family, at, estimate)) return false;
    keep_best(solve, at, estimate);
    return true;
}

/* What the plan leaves of the device at the peak where that is least. */
static double spare(const struct solve *solve, const struct adv_estimate *estimate)
{
    return adv_remat_least(adv_remat_room_left(solve->pricer, estimate));
}

static bool kept(const struct solve *solve, int unit)
{
    return adv_remat_place(solve->at.tensors, solve->space->units[unit].tensor) == ADV_PLACE_DEVICE;
}

static bool may_go(const struct solve *solve, int unit)
{
    return !solve->stays[solve->space->units[unit].tensor];
}

/* The kept units that may go to the host, largest first. */
struct guests {
    int count;
    int units[ADV_REMAT_UNITS];
    struct adv_remat_room rest[ADV_REMAT_UNITS + 1]; /* what this one and all behind it take of the device */
};

/* Tensors that wait on their way to the host, and copies made for them, may still be too much: the next ones
 * go there too. */
static void add_until_it_fits(struct solve *solve, struct adv_places at, const struct guests *guests,
                              int from, double host)
{
    struct adv_estimate estimate;
    for (int i = from; i < guests->count; i++) {
        host += solve->amounts->host_bytes[guests->units[i]];
        if (host > solve->rooms.host) return;
        put(solve, guests->units[i], &at, ADV_PLACE_OFFLOAD);
        if (!try_places(solve, &at, &estimate) || spare(solve, &estimate) >= 0) return;
    }
}

/* All smallest host sets: guests from `from` on are offered to the host in turn until the rest fits the
 * device. `left` is what the chosen ones leave of it, `host` what they take there. A set that is enough is
 * not extended: sending more is never faster (P1). */
static void choose_host(struct solve *solve, struct adv_places *at, const struct guests *guests, int from,
                        struct adv_remat_room left, double host)
{
    for (int i = from; i < guests->count && left.at_loss + guests->rest[i].at_loss >= 0 &&
                       left.at_backward + guests->rest[i].at_backward >= 0;
         i++) {
        int unit = guests->units[i];
        double taken = host + solve->amounts->host_bytes[unit];
        const struct adv_remat_room now = adv_remat_sum(left, solve->amounts->shared[unit]);
        if (taken > solve->rooms.host) continue;
        put(solve, unit, at, ADV_PLACE_OFFLOAD);
        struct adv_estimate estimate;
        if (adv_remat_least(now) < 0)
            choose_host(solve, at, guests, i + 1, now, taken);
        else if (try_places(solve, at, &estimate) && spare(solve, &estimate) < 0)
            add_until_it_fits(solve, *at, guests, i + 1, taken);
        put(solve, unit, at, ADV_PLACE_DEVICE);
    }
}

/* All units are decided and the plan in hand does not fit the device: what of it goes to the host? */
static void relieve(struct solve *solve)
{
    const struct adv_remat_amounts *amounts = solve->amounts;
    struct guests guests = {0};
    struct adv_remat_room all = {0}, staying = {0};
    for (int i = 0; i < solve->space->units_count; i++) {
        const int unit = amounts->largest_first[i];
        if (!kept(solve, unit)) continue;
        if (may_go(solve, unit))
            guests.units[guests.count++] = unit;
        else
            staying = adv_remat_sum(staying, amounts->shared[unit]);
    }
    for (int i = guests.count - 1; i >= 0; i--) {
        all = adv_remat_sum(all, amounts->shared[guests.units[i]]);
        guests.rest[i] = adv_remat_times(all, 1 + rounding_frac);
    }
    all = adv_remat_sum(all, staying);
    struct adv_places at = solve->at;
    /* else it was tried as `fast` */
    if (!adv_remat_is_within(all, solve->rooms.alone) && !solve->space->device_only)
        choose_host(solve, &at, &guests, 0, adv_remat_difference(solve->rooms.shared, all), 0);
}

/* P2: all that is kept, on the device and on the host, is no more than the device has room for, and what the
 * host takes off it. */
static void limit_kept(struct solve *solve)
{
    const struct adv_remat_amounts *amounts = solve->amounts;
    struct adv_remat_room worth = {0}; /* bytes of the device that one of the host stands for */
    for (int i = 0; i < solve->space->units_count; i++)
        if (amounts->host_bytes[i] > 0)
            worth = adv_remat_widest(worth, adv_remat_times(amounts->alone[i], 1 / amounts->host_bytes[i]));
    struct adv_remat_room off_device = {0};
    if (worth.at_loss > 0 && !solve->space->device_only)
        off_device.at_loss = solve->rooms.host * worth.at_loss;
    if (worth.at_backward > 0 && !solve->space->device_only)
        off_device.at_backward = solve->rooms.host * worth.at_backward;
    solve->alone_limit = adv_remat_times(solve->rooms.alone, 1 + rounding_frac);
    solve->shared_limit = adv_remat_times(adv_remat_sum(solve->rooms.shared, off_device), 1 + rounding_frac);
}

/* Whether a plan that keeps the unit beside what takes `kept` may fit. */
static bool may_keep(const struct solve *solve, int unit, struct adv_remat_room kept)
{
    const struct adv_remat_room all = adv_remat_sum(kept, solve->amounts->alone[unit]);
    return adv_remat_is_within(all, solve->alone_limit) || adv_remat_is_within(all, solve->shared_limit);
}

/* Gives up the undecided units that nothing below can keep: what decided ones take leaves no room for them,
 * or their leader is not kept. False: there are none. */
static bool give_up(struct solve *solve, int decided, struct adv_remat_room taken)
{
    bool given_up = false;
    for (int i = decided; i < solve->space->units_count; i++) {
        const struct adv_remat_unit *unit = &solve->space->units[i];
        const bool led =
            !unit->has_leader || adv_remat_place(solve->at.tensors, unit->leader) == ADV_PLACE_DEVICE;
        if (!kept(solve, i) || (led && may_keep(solve, i, taken))) continue;
        put(solve, i, &solve->at, ADV_PLACE_REMAT);
        given_up = true;
    }
    return given_up;
}

static void branch(struct solve *solve, int decided, struct adv_remat_room taken, double fast);

/* All below a plan of metric `fast`, which wins. */
static void branch_below(struct solve *solve, int decided, struct adv_remat_room taken, double fast)
{
    const double before = need(solve, fast);
    solve->reach.closed_below = adv_max(solve->reach.closed_below, fast);
    if (decided == solve->space->units_count)
        relieve(solve);
    else if (!kept(solve, decided))
        branch(solve, decided + 1, taken, fast);
    else {
        const struct adv_remat_room more = adv_remat_widest(solve->amounts->alone[decided], nothing);
        branch(solve, decided + 1, adv_remat_sum(taken, more), fast);
        if (more.at_loss > 0 || more.at_backward > 0) { /* what takes no memory stays: P1 */
            put(solve, decided, &solve->at, ADV_PLACE_REMAT);
            branch(solve, decided + 1, taken, -1);
        }
    }
    need_no_more(solve, before);
}

/* solve->at keeps everything but what was decided or given up; decided units that it keeps take
 * `taken`. `fast` is its metric, below 0 when not yet priced. */
static void branch(struct solve *solve, int decided, struct adv_remat_room taken, double fast)
{
    const uint64_t before = solve->at.tensors;
    const bool given_up = give_up(solve, decided, taken);
    struct adv_estimate estimate;
    if (fast < 0 || given_up)
        fast = try_places(solve, &solve->at, &estimate) ? metric(&estimate) : (double)INFINITY;
    if (!wins(solve, fast)) /* P1: nothing below is faster; or this very plan was kept */
        solve->bounded |= fast < (double)INFINITY;
    else
        branch_below(solve, decided, taken, fast);
    solve->at.tensors = before;
}

/* Takes `changed` for the solution when it fits and is not slower than `limit`. */
static bool accept(struct solve *solve, const struct adv_places *changed, double limit)
{
    struct adv_estimate estimate;
    if (!adv_price_placed(solve->pricer, &solve->family, changed, &estimate)) return false;
    if (!fits(solve, &estimate) || metric(&estimate) > limit) return false;
    solve->best_at = *changed;
    *solve->best_estimate = estimate;
    return true;
}

/* Brings back from the host what the device has room for now (P1: that is not slower). */
static void bring_back(struct solve *solve, struct adv_places *at, double limit)
{
    const struct adv_remat_space *space = solve->space;
    enum adv_placement inputs[ADV_REMAT_INPUTS];
    const int count = adv_remat_inputs(space, &solve->family, inputs);
    for (int i = 0;
         i < count - 1 && adv_remat_place(at->tensors, ADV_TENSOR_DECODER_LAYER_INPUT) == ADV_PLACE_OFFLOAD;
         i++) {
        put_tensor(at, ADV_TENSOR_DECODER_LAYER_INPUT, inputs[i]);
        if (!accept(solve, at, limit)) put_tensor(at, ADV_TENSOR_DECODER_LAYER_INPUT, ADV_PLACE_OFFLOAD);
    }
    for (int i = 0; i < space->units_count; i++) {
        if (adv_remat_place(at->tensors, space->units[i].tensor) != ADV_PLACE_OFFLOAD) continue;
        put(solve, i, at, ADV_PLACE_DEVICE);
        if (!accept(solve, at, limit)) put(solve, i, at, ADV_PLACE_OFFLOAD);
    }
}

/* Gives up placements that gain next to nothing: fewer keys and more memory to spare. */
static void simplify(struct solve *solve)
{
    double limit = metric(solve->best_estimate) * (1 + ADV_RANK_KEY_FRAC);
    struct adv_places simpler = solve->best_at;
    for (int i = solve->space->units_count - 1; i >= 0; i--) {
        enum adv_placement before = adv_remat_place(simpler.tensors, solve->space->units[i].tensor);
        if (before == ADV_PLACE_REMAT) continue;
        put(solve, i, &simpler, ADV_PLACE_REMAT);
        if (!accept(solve, &simpler, limit)) put(solve, i, &simpler, before);
    }
    bring_back(solve, &simpler, limit);
}

static enum adv_remat_outcome solve_pinned(struct solve *solve)
{
    struct adv_plan *plan = &solve->family;
    struct adv_estimate estimate;
    for (int t = 0; t < solve->space->tilings_count; t++) {
        plan->num_vocab_tiling = solve->space->tilings[t];
        if (!adv_remat_may_tile(solve->space, plan, solve->space->tilings[t])) continue;
        if (!adv_price(solve->pricer, plan, &estimate)) continue;
        const struct adv_places at = adv_places_of(plan);
        keep_best(solve, &at, &estimate);
        solve->bounded |= fits(solve, &estimate);
    }
    return solve->found ? ADV_REMAT_SOLVED : solve->bounded ? ADV_REMAT_SLOWER : ADV_REMAT_TOO_BIG;
}

/* Sends the tensor that is last in order of worth to the host. False: there is none. */
static bool share_last(const struct solve *solve, struct adv_places *at)
{
    int last = solve->space->units_count - 1;
    while (last >= 0 && !may_go(solve, last)) last--;
    if (last < 0) return false;
    const struct adv_remat_unit *unit = &solve->space->units[last];
    if (unit->has_leader) put_tensor(at, unit->leader, ADV_PLACE_OFFLOAD);
    put(solve, last, at, ADV_PLACE_OFFLOAD);
    return true;
}

static uint64_t with_input(uint64_t tensors, enum adv_placement input)
{
    return adv_remat_put(tensors, ADV_TENSOR_DECODER_LAYER_INPUT, input);
}

static int finest_tiling(const struct solve *solve)
{
    const struct adv_remat_space *space = solve->space;
    int finest = 1;
    for (int t = 0; t < space->tilings_count; t++)
        if (adv_remat_may_tile(solve->space, &solve->family, space->tilings[t])) finest = space->tilings[t];
    return finest;
}

static struct adv_remat_measured measured_with(const struct solve *solve, enum adv_placement input,
                                               int tiling)
{
    return (struct adv_remat_measured){solve->space,
                                       solve->pricer,
                                       &solve->family,
                                       with_input(solve->nowhere, input),
                                       with_input(solve->on_device, input),
                                       tiling};
}

/* A plan that is the smallest of the family in one of these ways. */
struct way {
    enum adv_placement input;
    bool lean, shares; /* what makes the backward peak smaller is kept; a tensor is on the host */
};

/* Whether the plan with the finest tiling fits (logits only shrink with it). False too where it was not
 * priced: then `priced` is. */
static bool fits_so(struct solve *solve, struct way way, bool *priced)
{
    const struct adv_remat_measured finest = measured_with(solve, way.input, finest_tiling(solve));
    struct adv_places smallest = {way.lean ? adv_remat_leanest(&finest) : finest.nowhere,
                                  finest.num_vocab_tiling};
    struct adv_estimate estimate;
    if (way.shares && !share_last(solve, &smallest)) return false;
    *priced = try_places(solve, &smallest, &estimate);
    return *priced && fits(solve, &estimate);
}

/* The least HBM of the family: nothing kept, or the leanest set where layers are not scanned and recomputed
 * early; and what waits for or goes with tensors on the host makes one of these the smallest: the layer input
 * in each place, another tensor there or not. When even those are too much, so is everything else (P2). */
static bool can_fit(struct solve *solve)
{
    enum adv_placement inputs[ADV_REMAT_INPUTS];
    const int count = adv_remat_inputs(solve->space, &solve->family, inputs);
    const int ways = solve->family.family.scan_layers ? 2 : 3;
    bool priced = true;
    for (int i = count - 1; i >= 0; i--) {
        for (int way = 0; way < ways; way++) {
            if (way == 1 && solve->space->device_only) continue;
            if (fits_so(solve, (struct way){inputs[i], way == 2, way == 1}, &priced)) return true;
            if (!priced) return false;
        }
    }
    return false;
}

/* The best set so far. */
static enum adv_remat_outcome out_of_budget(struct solve *solve)
{
    return solve->found ? ADV_REMAT_SOLVED : ADV_REMAT_SLOWER;
}

/* Makes the family's plan the one that is priced; below it only tensors move. False: it could not be
 * priced. */
static bool enter(struct solve *solve, struct adv_estimate *priced)
{
    const struct adv_advise_request *request = solve->pricer->request;
    for (int i = 0; i < ADV_TENSOR_COUNT; i++)
        solve->stays[i] =
            adv_plan_host_refuses(&solve->family, &request->model, &request->cluster, (enum adv_tensor)i);
    adv_remat_set_all(solve->space, &solve->family, ADV_PLACE_REMAT);
    solve->nowhere = adv_remat_places(&solve->family);
    adv_remat_relax(solve->space, &solve->family);
    solve->at = adv_places_of(&solve->family);
    solve->on_device = solve->at.tensors;
    if (!adv_price(solve->pricer, &solve->family, priced)) return false;
    keep_best(solve, &solve->at, priced);
    return true;
}

/* What of a room units can fill: where the backward peak has none left, more at the loss is no use. */
static struct adv_remat_room useful(const struct solve *solve, struct adv_remat_room room)
{
    const double most = solve->amounts->loss_per_backward;
    if (!isinf(most)) room.at_loss = adv_min(room.at_loss, most * room.at_backward);
    return room;
}

/* The rooms of the tilings tried: one that gives no more of any cannot help (P3). */
struct tried {
    struct adv_remat_room alone, shared;
    double beside_all_bytes;
};

static bool gives_no_more(const struct solve *solve, const struct adv_remat_measured *measured,
                          const struct tried *tried)
{
    return adv_remat_is_within(useful(solve, solve->rooms.alone), tried->alone) &&
           adv_remat_is_within(useful(solve, solve->rooms.shared), tried->shared) &&
           adv_remat_room_beside_all(measured) <= tried->beside_all_bytes;
}

/* Whether units are measured once more with the layer input there. What they take goes by where it stays, not
 * by its way to the host; but where layers are not scanned it is not to be seen in plans that are far too
 * large. */
static bool is_other(const struct solve *solve, enum adv_placement input)
{
    if (!solve->family.family.scan_layers) return input == ADV_PLACE_OFFLOAD;
    return input == ADV_PLACE_DEVICE && solve->space->input_stays == ADV_PLACE_REMAT;
}

/* False: the budget is spent. */
static bool measure_units(struct solve *solve, enum adv_placement input, struct adv_remat_measured measured)
{
    struct adv_remat_amounts *amounts = is_other(solve, input) ? &solve->other : &solve->usual;
    if (amounts->known) return true;
    if (input == ADV_PLACE_OFFLOAD && solve->family.family.scan_layers) {
        measured.nowhere = solve->nowhere;
        measured.on_device = solve->on_device;
    }
    if (!solve->family.family.scan_layers) measured.num_vocab_tiling = finest_tiling(solve);
    return adv_remat_measure_units(&measured, amounts);
}

/* All sets of kept tensors with the layer input in this place and the vocabulary tiled so. False: the budget
 * is spent. */
static bool solve_tiling(struct solve *solve, enum adv_placement input, int tiling, struct tried *tried)
{
    const struct adv_remat_measured measured = measured_with(solve, input, tiling);
    struct adv_remat_rooms *rooms = &solve->rooms;
    struct adv_estimate none;
    solve->at = (struct adv_places){measured.nowhere, tiling};
    if (!try_places(solve, &solve->at, &none)) return true;
    if (!solve->family.family.scan_layers && !measure_units(solve, input, measured)) return false;
    *rooms = adv_remat_measure_rooms(&measured, solve->amounts, &none);
    if (adv_max(adv_remat_least(rooms->alone), adv_remat_least(rooms->shared)) < 0 ||
        gives_no_more(solve, &measured, tried))
        return true;
    if (!measure_units(solve, input, measured)) return false;
    tried->alone = adv_remat_widest(tried->alone, useful(solve, rooms->alone));
    tried->shared = adv_remat_widest(tried->shared, useful(solve, rooms->shared));
    tried->beside_all_bytes = adv_max(tried->beside_all_bytes, adv_remat_room_beside_all(&measured));
    solve->at.tensors = measured.on_device;
    limit_kept(solve);
    branch(solve, 0, nothing, -1);
    return true;
}

static bool solve_input(struct solve *solve, enum adv_placement input)
{
    const struct adv_remat_space *space = solve->space;
    struct tried tried = {{-1, -1}, {-1, -1}, -(double)INFINITY};
    solve->amounts = is_other(solve, input) ? &solve->other : &solve->usual;
    for (int t = 0; t < space->tilings_count; t++)
        if (adv_remat_may_tile(solve->space, &solve->family, space->tilings[t]) &&
            !solve_tiling(solve, input, space->tilings[t], &tried))
            return false;
    return true;
}

static enum adv_remat_outcome solve_family(struct solve *solve)
{
    const struct adv_remat_space *space = solve->space;
    if (space->pinned) return solve_pinned(solve);
    struct adv_estimate priced;
    enum adv_placement inputs[ADV_REMAT_INPUTS];
    const int count = adv_remat_inputs(space, &solve->family, inputs);
    if (!enter(solve, &priced)) return ADV_REMAT_SLOWER;
    if (!can_fit(solve) && !fits(solve, &priced)) return ADV_REMAT_TOO_BIG;
    solve->reach.closed_below = metric(&priced);
    (void)need(solve, metric(&priced));
    for (int i = 0; i < count && wins(solve, metric(&priced)); i++)
        if (!solve_input(solve, inputs[i])) return out_of_budget(solve);
    if (metric(&priced) >= solve->best) solve->bounded = true;
    if (!solve->found) return solve->bounded ? ADV_REMAT_SLOWER : ADV_REMAT_TOO_BIG;
    (void)need(solve, solve->best);
    simplify(solve);
    return ADV_REMAT_SOLVED;
}

enum adv_remat_outcome adv_remat_solve_within(const struct adv_remat_space *space, struct adv_pricer *pricer,
                                              double cutoff, struct adv_plan *plan,
                                              struct adv_estimate *estimate, struct adv_remat_reach *reach)
{
    const double none = -(double)INFINITY;
    struct solve solve = {.space = space,
                          .pricer = pricer,
                          .usual = {.loss_per_backward = 1.0},
                          .other = {.loss_per_backward = 1.0},
                          .family = *plan,
                          .best = cutoff,
                          .needs = none,
                          .reach = {none, none, none, (double)INFINITY},
                          .best_estimate = estimate};
    const enum adv_remat_outcome outcome = solve_family(&solve);
    if (solve.found) {
        *plan = solve.family;
        adv_places_write(&solve.best_at, plan);
        adv_remat_name_policy(space, plan);
        solve.reach.metric = solve.best;
    }
    *reach = solve.reach;
    return outcome;
}

bool adv_remat_outcome_below(const struct adv_remat_reach *reach, double cutoff,
                             enum adv_remat_outcome *outcome)
{
    if (cutoff > reach->same_above) return true;
    if (cutoff <= reach->known_above) return false;
    if (*outcome == ADV_REMAT_SOLVED && reach->metric < cutoff) return true;
    *outcome = ADV_REMAT_SLOWER;
    return cutoff <= reach->closed_below;
}

enum adv_remat_outcome adv_remat_solve(const struct adv_remat_space *space, struct adv_pricer *pricer,
                                       double cutoff, struct adv_plan *plan, struct adv_estimate *estimate)
{
    struct adv_remat_reach reach;
    return adv_remat_solve_within(space, pricer, cutoff, plan, estimate, &reach);
}

#include "engine/search/remat_space.h"

#include <math.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/cost/memory.h"
#include "engine/rank/rank.h"

/* Bytes are summed and subtracted in another order than the estimate does: what is short by rounding alone is
 * still offered, and try_plan judges. */
static const double rounding_frac = 1e-9;

/* The bytes that the device has left at the two peaks that kept tensors are part of. Copies of stacks belong
 * to the second only. */
struct room {
    double at_loss, at_backward;
};

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
    bool context_stays;  /* the family's context may not go to the host: adv_plan_context_is_strided */
    bool found, bounded; /* a plan was kept; a branch was closed because it cannot win */
    struct adv_places best_at;
    struct adv_estimate *best_estimate;
    /* P2: what each unit takes of the device where something is on the host; no more than it takes at any
     * peak; what it takes of a host instead */
    struct room shared[ADV_REMAT_UNITS];
    double device_bytes[ADV_REMAT_UNITS], host_bytes[ADV_REMAT_UNITS];
    int largest_first[ADV_REMAT_UNITS];  /* units by device_bytes */
    struct room alone_room, shared_room; /* of the device, left by the plan with nothing kept */
    double host_room;
    double loss_per_backward; /* most that a unit takes at the loss, for each byte at the backward peak */
    double kept_limit_bytes;  /* of tensors that are kept at all, on the device or on the host */
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

static struct room room_of(const struct solve *solve, const struct adv_estimate *estimate)
{
    double room = adv_price_room_bytes(solve->pricer, estimate);
    return (struct room){room - estimate->loss_peak_bytes, room - estimate->backward_peak_bytes};
}

static double least(struct room room)
{
    return adv_min(room.at_loss, room.at_backward);
}

static void add_room(struct room *sum, struct room room)
{
    sum->at_loss += room.at_loss;
    sum->at_backward += room.at_backward;
}

static struct room taken_between(struct room before, struct room after)
{
    return (struct room){before.at_loss - after.at_loss, before.at_backward - after.at_backward};
}

static bool kept(const struct solve *solve, int unit)
{
    return adv_remat_place(solve->at.tensors, solve->space->units[unit].tensor) == ADV_PLACE_DEVICE;
}

static bool may_go(const struct solve *solve, int unit)
{
    return !solve->context_stays || solve->space->units[unit].tensor != ADV_TENSOR_CONTEXT;
}

/* The kept units that may go to the host, largest first. */
struct guests {
    int count;
    int units[ADV_REMAT_UNITS];
    struct room rest[ADV_REMAT_UNITS + 1]; /* what this one and all behind it take of the device */
};

/* Tensors that wait on their way to the host, and copies made for them, may still be too much: the next ones
 * go there too. */
static void add_until_it_fits(struct solve *solve, struct adv_places at, const struct guests *guests,
                              int from, double host)
{
    struct adv_estimate estimate;
    for (int i = from; i < guests->count; i++) {
        host += solve->host_bytes[guests->units[i]];
        if (host > solve->host_room) return;
        put(solve, guests->units[i], &at, ADV_PLACE_OFFLOAD);
        if (!try_places(solve, &at, &estimate) || least(room_of(solve, &estimate)) >= 0) return;
    }
}

/* All smallest host sets: guests from `from` on are offered to the host in turn until the rest fits the
 * device. `left` is what the chosen ones leave of it, `host` what they take there. A set that is enough is
 * not extended: sending more is never faster (P1). */
static void choose_host(struct solve *solve, struct adv_places *at, const struct guests *guests, int from,
                        struct room left, double host)
{
    for (int i = from; i < guests->count && left.at_loss + guests->rest[i].at_loss >= 0 &&
                       left.at_backward + guests->rest[i].at_backward >= 0;
         i++) {
        int unit = guests->units[i];
        double taken = host + solve->host_bytes[unit];
        struct room now = {left.at_loss + solve->shared[unit].at_loss,
                           left.at_backward + solve->shared[unit].at_backward};
        if (taken > solve->host_room) continue;
        put(solve, unit, at, ADV_PLACE_OFFLOAD);
        struct adv_estimate estimate;
        if (least(now) < 0)
            choose_host(solve, at, guests, i + 1, now, taken);
        else if (try_places(solve, at, &estimate) && least(room_of(solve, &estimate)) < 0)
            add_until_it_fits(solve, *at, guests, i + 1, taken);
        put(solve, unit, at, ADV_PLACE_DEVICE);
    }
}

/* All units are decided and the plan in hand does not fit the device: what of it goes to the host? */
static void relieve(struct solve *solve)
{
    struct guests guests = {0};
    struct room all = {0}, staying = {0};
    for (int i = 0; i < solve->space->units_count; i++) {
        const int unit = solve->largest_first[i];
        if (!kept(solve, unit)) continue;
        if (may_go(solve, unit))
            guests.units[guests.count++] = unit;
        else
            add_room(&staying, solve->shared[unit]);
    }
    for (int i = guests.count - 1; i >= 0; i--) {
        add_room(&all, solve->shared[guests.units[i]]);
        guests.rest[i] =
            (struct room){all.at_loss * (1 + rounding_frac), all.at_backward * (1 + rounding_frac)};
    }
    add_room(&all, staying);
    struct adv_places at = solve->at;
    struct room left = {solve->shared_room.at_loss - all.at_loss,
                        solve->shared_room.at_backward - all.at_backward};
    /* else it was tried as `fast` */
    if (all.at_loss > least(solve->alone_room) && !solve->space->device_only)
        choose_host(solve, &at, &guests, 0, left, 0);
}

/* P2: all that is kept, on the device and on the host, is no more than the device has room for and what the
 * host takes off it. */
static double kept_limit(const struct solve *solve)
{
    double worth = 0; /* bytes of the device that one of the host stands for */
    for (int i = 0; i < solve->space->units_count; i++)
        if (solve->host_bytes[i] > 0) worth = adv_max(worth, solve->device_bytes[i] / solve->host_bytes[i]);
    const double off_device = worth > 0 && !solve->space->device_only ? solve->host_room * worth : 0;
    return adv_max(least(solve->alone_room), least(solve->shared_room) + off_device) * (1 + rounding_frac);
}

/* Gives up the undecided units that nothing below can keep: `kept_bytes` of decided ones leave no room for
 * them, or their leader is not kept. False: there are none. */
static bool give_up(struct solve *solve, int decided, double kept_bytes)
{
    bool given_up = false;
    for (int i = decided; i < solve->space->units_count; i++) {
        const struct adv_remat_unit *unit = &solve->space->units[i];
        const bool led =
            !unit->has_leader || adv_remat_place(solve->at.tensors, unit->leader) == ADV_PLACE_DEVICE;
        if (!kept(solve, i) || (led && kept_bytes + solve->device_bytes[i] <= solve->kept_limit_bytes))
            continue;
        put(solve, i, &solve->at, ADV_PLACE_REMAT);
        given_up = true;
    }
    return given_up;
}

static void branch(struct solve *solve, int decided, double kept_bytes, double fast);

/* All below a plan of metric `fast`, which wins. */
static void branch_below(struct solve *solve, int decided, double kept_bytes, double fast)
{
    const double before = need(solve, fast);
    solve->reach.closed_below = adv_max(solve->reach.closed_below, fast);
    if (decided == solve->space->units_count)
        relieve(solve);
    else if (!kept(solve, decided))
        branch(solve, decided + 1, kept_bytes, fast);
    else {
        branch(solve, decided + 1, kept_bytes + adv_max(solve->device_bytes[decided], 0), fast);
        if (solve->device_bytes[decided] > 0) { /* what takes no memory stays: P1 */
            put(solve, decided, &solve->at, ADV_PLACE_REMAT);
            branch(solve, decided + 1, kept_bytes, -1);
        }
    }
    need_no_more(solve, before);
}

/* solve->at keeps everything but what was decided or given up; decided units that it keeps take
 * `kept_bytes`. `fast` is its metric, below 0 when not yet priced. */
static void branch(struct solve *solve, int decided, double kept_bytes, double fast)
{
    const uint64_t before = solve->at.tensors;
    const bool given_up = give_up(solve, decided, kept_bytes);
    struct adv_estimate estimate;
    if (fast < 0 || given_up)
        fast = try_places(solve, &solve->at, &estimate) ? metric(&estimate) : (double)INFINITY;
    if (!wins(solve, fast)) /* P1: nothing below is faster; or this very plan was kept */
        solve->bounded |= fast < (double)INFINITY;
    else
        branch_below(solve, decided, kept_bytes, fast);
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
    for (int i = -1; i < space->units_count; i++) { /* -1: the layer input */
        if (i < 0 && !space->input_may_offload) continue;
        enum adv_tensor tensor = i < 0 ? ADV_TENSOR_DECODER_LAYER_INPUT : space->units[i].tensor;
        if (adv_remat_place(at->tensors, tensor) != ADV_PLACE_OFFLOAD) continue;
        put_tensor(at, tensor, i < 0 ? space->input_stays : ADV_PLACE_DEVICE);
        if (!accept(solve, at, limit)) put_tensor(at, tensor, ADV_PLACE_OFFLOAD);
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
        if (!adv_remat_tiling_divides(plan, solve->space->tilings[t])) continue;
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
    if (last >= 0 && !may_go(solve, last)) last--;
    if (last < 0) return false;
    const struct adv_remat_unit *unit = &solve->space->units[last];
    if (unit->has_leader) put_tensor(at, unit->leader, ADV_PLACE_OFFLOAD);
    put(solve, last, at, ADV_PLACE_OFFLOAD);
    return true;
}

/* Room that `nothing_kept` leaves for kept tensors. Another schedule goes with tensors on the host: its room
 * is that of the same plan with a name on the host that no tensor bears. */
static bool measure_room(struct solve *solve, const struct adv_estimate *nothing_kept)
{
    const struct adv_pricer *pricer = solve->pricer;
    double host_limit = nothing_kept->host_limit_bytes_per_host * pricer->memory_frac;
    struct adv_estimate sharing;
    struct adv_places trial = solve->at;
    put_tensor(&trial, ADV_TENSOR_QKV_PROJ, ADV_PLACE_OFFLOAD);
    solve->alone_room = room_of(solve, nothing_kept);
    solve->host_room = isnan(host_limit) ? (double)INFINITY : host_limit - nothing_kept->host_bytes_per_host;
    adv_price_memory(pricer, &solve->family, &trial, &sharing);
    solve->shared_room = room_of(solve, &sharing);
    return adv_max(least(solve->shared_room), least(solve->alone_room)) >= 0;
}

/* The room beside something on the host: a name there that no tensor bears. */
static struct room room_beside_host(const struct solve *solve, const struct adv_places *at)
{
    struct adv_estimate sharing;
    struct adv_places trial = *at;
    put_tensor(&trial, ADV_TENSOR_QKV_PROJ, ADV_PLACE_OFFLOAD);
    adv_price_memory(solve->pricer, &solve->family, &trial, &sharing);
    return room_of(solve, &sharing);
}

/* P2: what each unit takes on the device and, instead, on a host. */
static bool measure_units(struct solve *solve)
{
    const struct adv_remat_unit *units = solve->space->units;
    int count = solve->space->units_count;
    struct adv_places trial = {solve->nowhere, solve->at.num_vocab_tiling};
    struct adv_estimate none, one;
    struct room shared = {0};
    for (int i = 0; i < count; i++) {
        if (units[i].has_leader) put_tensor(&trial, units[i].leader, ADV_PLACE_DEVICE);
        if ((i == 0 || units[i].has_leader || units[i - 1].has_leader) &&
            !adv_price_placed(solve->pricer, &solve->family, &trial, &none))
            return false;
        if (i == 0 || units[i].has_leader || units[i - 1].has_leader)
            shared = room_beside_host(solve, &trial);
        put(solve, i, &trial, ADV_PLACE_DEVICE);
        if (!adv_price_placed(solve->pricer, &solve->family, &trial, &one)) return false;
        struct room alone = taken_between(room_of(solve, &none), room_of(solve, &one));
        if (!solve->space->has_blocks)
            alone.at_backward = alone.at_loss; /* less is but what waits at the limit */
        solve->shared[i] = taken_between(shared, room_beside_host(solve, &trial));
        solve->shared[i].at_backward = adv_max(solve->shared[i].at_backward, alone.at_backward);
        if (alone.at_backward > 0)
            solve->loss_per_backward = adv_max(solve->loss_per_backward, alone.at_loss / alone.at_backward);
        solve->device_bytes[i] = least(alone);
        put(solve, i, &trial, ADV_PLACE_OFFLOAD);
        if (!adv_price_placed(solve->pricer, &solve->family, &trial, &one)) return false;
        solve->host_bytes[i] = one.host_bytes_per_host - none.host_bytes_per_host;
        put(solve, i, &trial, ADV_PLACE_REMAT);
        if (units[i].has_leader) put_tensor(&trial, units[i].leader, ADV_PLACE_REMAT);
        int at = i;
        while (at > 0 && solve->device_bytes[solve->largest_first[at - 1]] < solve->device_bytes[i]) {
            solve->largest_first[at] = solve->largest_first[at - 1];
            at--;
        }
        solve->largest_first[at] = i;
    }
    return true;
}

/* The same with the layer input on the host, which it may be where `offload` is set. */
static uint64_t with_input(const struct solve *solve, uint64_t tensors, bool offload)
{
    return offload && solve->space->input_may_offload
               ? adv_remat_put(tensors, ADV_TENSOR_DECODER_LAYER_INPUT, ADV_PLACE_OFFLOAD)
               : tensors;
}

/* The least HBM of the family: nothing kept, the finest tiling (logits only shrink with it), and what waits
 * for or goes with tensors on the host makes one of four the smallest: the layer input there or not, another
 * tensor there or not. When even those are too much, so is everything else (P2). */
static bool can_fit(struct solve *solve)
{
    const struct adv_remat_space *space = solve->space;
    for (int way = 0; way < 4; way++) {
        bool input = way < 2, shares = way % 2 == 1;
        struct adv_places smallest = {with_input(solve, solve->nowhere, input), solve->at.num_vocab_tiling};
        struct adv_estimate estimate;
        if ((input && !space->input_may_offload) || (shares && space->device_only)) continue;
        for (int t = 0; t < space->tilings_count; t++)
            if (adv_remat_tiling_divides(&solve->family, space->tilings[t]))
                smallest.num_vocab_tiling = space->tilings[t];
        if (shares && !share_last(solve, &smallest)) continue;
        if (!try_places(solve, &smallest, &estimate)) return false;
        if (fits(solve, &estimate)) return true;
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
    solve->context_stays = adv_plan_context_is_strided(&solve->family, &request->model, &request->cluster);
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
static struct room useful(const struct solve *solve, struct room room)
{
    return (struct room){adv_min(room.at_loss, solve->loss_per_backward * room.at_backward),
                         room.at_backward};
}

static bool is_within(struct room room, struct room other)
{
    return room.at_loss <= other.at_loss && room.at_backward <= other.at_backward;
}

static struct room widest(struct room a, struct room b)
{
    return (struct room){adv_max(a.at_loss, b.at_loss), adv_max(a.at_backward, b.at_backward)};
}

static enum adv_remat_outcome solve_family(struct solve *solve)
{
    const struct adv_remat_space *space = solve->space;
    if (space->pinned) return solve_pinned(solve);
    struct adv_estimate priced;
    if (!enter(solve, &priced)) return ADV_REMAT_SLOWER;
    if (!can_fit(solve)) return ADV_REMAT_TOO_BIG;
    bool measured = false;
    solve->reach.closed_below = metric(&priced);
    (void)need(solve, metric(&priced));
    for (int input = 0; input <= (space->input_may_offload ? 1 : 0) && wins(solve, metric(&priced));
         input++) {
        /* rooms of the tilings tried: one that gives no more of any cannot help (P3) */
        struct room alone = {-1, -1}, shared = {-1, -1};
        for (int t = 0; t < space->tilings_count; t++) {
            if (!adv_remat_tiling_divides(&solve->family, space->tilings[t])) continue;
            struct adv_estimate none;
            solve->at = (struct adv_places){with_input(solve, solve->nowhere, input != 0), space->tilings[t]};
            if (!try_places(solve, &solve->at, &none) || !measure_room(solve, &none) ||
                (is_within(useful(solve, solve->alone_room), alone) &&
                 is_within(useful(solve, solve->shared_room), shared)))
                continue;
            if (!measured && !measure_units(solve)) return out_of_budget(solve);
            measured = true;
            alone = widest(alone, useful(solve, solve->alone_room));
            shared = widest(shared, useful(solve, solve->shared_room));
            solve->at.tensors = with_input(solve, solve->on_device, input != 0);
            solve->kept_limit_bytes = kept_limit(solve);
            branch(solve, 0, 0, -1);
        }
    }
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
                          .loss_per_backward = 1.0,
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

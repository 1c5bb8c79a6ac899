#include "engine/search/why.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/list.h"
#include "engine/base/near.h"
#include "engine/base/units.h"
#include "engine/maxtext/changes.h"
#include "engine/maxtext/names.h"
#include "engine/search/space_batch.h"

/* The axis that takes what pins leave of the slice: fsdp, or the first that the search may use. */
static enum adv_axis filling_axis(const struct adv_advise_request *request)
{
    static const enum adv_axis others[] = {ADV_AXIS_CONTEXT, ADV_AXIS_TENSOR, ADV_AXIS_EXPERT, ADV_AXIS_DATA,
                                           ADV_AXIS_STAGE};
    if (request->axis_allowed[ADV_AXIS_FSDP] || request->axis_pinned[ADV_AXIS_FSDP]) return ADV_AXIS_FSDP;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (request->axis_allowed[others[i]] && !request->axis_pinned[others[i]]) return others[i];
    return ADV_AXIS_FSDP;
}

/* The pinned axes, one axis for what is left of the slice, data between slices. False: none may take it. */
static bool simplest_mesh(const struct adv_space *space, enum adv_axis fill, struct adv_plan *plan)
{
    const struct adv_advise_request *request = space->request;
    int left = request->cluster.devices_per_slice, slices = request->cluster.slices;
    *plan = space->base;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        plan->family.ici[i] = request->axis_pinned[i] ? request->workload.base.family.ici[i] : 1;
        const char *key = adv_key_of_axis(true, (enum adv_axis)i);
        bool pinned = request->workload.base.family.dcn[i] > 0 && adv_request_pins(request, key);
        plan->family.dcn[i] = pinned ? request->workload.base.family.dcn[i] : 1;
        slices /= plan->family.dcn[i] <= slices ? plan->family.dcn[i] : 1;
        if (plan->family.ici[i] > 0 && left % plan->family.ici[i] == 0) left /= plan->family.ici[i];
    }
    if (!request->axis_pinned[fill]) plan->family.ici[fill] = left;
    plan->family.dcn[ADV_AXIS_DATA] *= slices;
    return left == 1 || request->axis_pinned[fill] || request->axis_allowed[fill];
}

enum { EVERY_PIN = -1, MORE_AXES = 4, BATCHES = 24, LENGTHS = 3 };

/* A requirement less. False: the request does not have it. */
struct relief {
    bool (*apply)(struct adv_advise_request *request, int which, char *what, size_t what_bytes);
    int count;     /* of `which`; EVERY_PIN: as many as the request has */
    int pair_step; /* beside another requirement every so many are looked at */
    bool
        farther; /* the next is farther from what was asked for: the first that works and the last are told */
};

static void drop_pin(struct adv_advise_request *request, int at)
{
    request->pins[at] = request->pins[--request->pins_count];
}

static bool without_axis(struct adv_advise_request *request, int axis, char *what, size_t what_bytes)
{
    const char *key = adv_key_of_axis(false, (enum adv_axis)axis);
    if (!request->axis_pinned[axis]) return false;
    (void)snprintf(what, what_bytes, "without the pin %s", key);
    request->axis_pinned[axis] = false;
    request->workload.base.family.ici[axis] = 1;
    for (int i = 0; i < request->pins_count; i++)
        if (!strcmp(request->pins[i].key, key)) drop_pin(request, i);
    return true;
}

static bool without_network_axis(struct adv_advise_request *request, int axis, char *what, size_t what_bytes)
{
    const char *key = adv_key_of_axis(true, (enum adv_axis)axis);
    int at = 0;
    while (at < request->pins_count && strcmp(request->pins[at].key, key) != 0) at++;
    if (at == request->pins_count) return false;
    (void)snprintf(what, what_bytes, "without the pin %s", key);
    drop_pin(request, at);
    return true;
}

/* The key goes back to MaxText's default, and is open where the search varies it. */
static bool without_key(struct adv_advise_request *request, int at, char *what, size_t what_bytes)
{
    if (at >= request->pins_count || strstr(request->pins[at].key, "_parallelism")) return false;
    const char *key = request->pins[at].key;
    struct adv_plan defaults;
    adv_plan_defaults(&defaults, &request->model);
    defaults.family.seq_len = request->workload.seq_len;
    if (!adv_key_copy(key, &defaults, &request->workload.base)) return false;
    (void)snprintf(what, what_bytes, "without the pin %s", key);
    request->vocab_tiling_pinned =
        request->vocab_tiling_pinned && strcmp(key, ADV_NAME_NUM_VOCAB_TILING) != 0;
    request->batch_pinned = request->batch_pinned && strcmp(key, ADV_NAME_PER_DEVICE_BATCH_SIZE) != 0;
    drop_pin(request, at);
    return true;
}

static bool with_all_axes(struct adv_advise_request *request, int which, char *what, size_t what_bytes)
{
    static const enum adv_axis all[] = {ADV_AXIS_DATA,           ADV_AXIS_STAGE,   ADV_AXIS_FSDP,
                                        ADV_AXIS_FSDP_TRANSPOSE, ADV_AXIS_CONTEXT, ADV_AXIS_ULYSSES,
                                        ADV_AXIS_TENSOR,         ADV_AXIS_EXPERT};
    bool restricted = false;
    (void)which;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        restricted = restricted || !request->axis_allowed[all[i]];
        request->axis_allowed[all[i]] = true;
    }
    (void)snprintf(what, what_bytes, "without search.axes");
    return restricted;
}

/* One axis beside those of search.axes. */
static bool with_one_more_axis(struct adv_advise_request *request, int which, char *what, size_t what_bytes)
{
    static const enum adv_axis axes[MORE_AXES] = {ADV_AXIS_FSDP, ADV_AXIS_TENSOR, ADV_AXIS_EXPERT,
                                                  ADV_AXIS_DATA};
    enum adv_axis axis = axes[which];
    if (request->axis_allowed[axis] || request->axis_pinned[axis]) return false;
    request->axis_allowed[axis] = true;
    (void)snprintf(what, what_bytes, "with %s in search.axes", adv_axis_key(axis));
    return true;
}

/* Multiples of the number of devices' divisors around `sequences`, nearest first, of two as near the larger;
 * without `sequences` itself. Returns how many of at most `BATCHES`. */
static int nearest_batches(double sequences, int devices, double nearest[BATCHES])
{
    int count = 0;
    for (int unit = 1; unit <= devices; unit++) {
        if (devices % unit != 0) continue;
        double below = floor(sequences / unit + 1e-9) * unit, above = ceil(sequences / unit - 1e-9) * unit;
        double two[] = {above, below};
        for (int i = 0; i < 2; i++) {
            double away = fabs(two[i] - sequences);
            if (two[i] < 1 || away <= 1e-9 * sequences) continue;
            int at = count;
            while (at > 0 && fabs(nearest[at - 1] - sequences) > away) at--;
            bool known = false;
            for (int j = 0; j < at; j++) known = known || fabs(nearest[j] - two[i]) < 0.5;
            double *place = known ? NULL : adv_list_open(nearest, sizeof *nearest, &count, BATCHES, at);
            if (place) *place = two[i];
        }
    }
    return count;
}

/* The nearest batches that some part of the devices shares out evenly, the last one that all do: of such a
 * batch the next larger one. By the member that the request has. */
static bool with_another_batch(struct adv_advise_request *request, int which, char *what, size_t what_bytes)
{
    struct adv_workload *workload = &request->workload;
    double devices = request->cluster.devices, sequences = workload->global_batch_sequences;
    if (workload->tokens_per_step > 0) sequences = workload->tokens_per_step / (double)workload->seq_len;
    if (workload->per_device_batch_size > 0) sequences = workload->per_device_batch_size * devices;
    double nearest[BATCHES], near = adv_max(1, floor(sequences / devices + 0.5)) * devices;
    if (which < BATCHES) {
        if (which >= nearest_batches(sequences, request->cluster.devices, nearest)) return false;
        near = nearest[which];
    } else if (fabs(near - sequences) <= 1e-9 * near) {
        near += devices;
    }
    if (workload->per_device_batch_size > 0) {
        workload->per_device_batch_size = workload->base.family.per_device_batch_size = near / devices;
        (void)snprintf(what, what_bytes, "with per_device_batch_size=%.10g", near / devices);
    } else if (workload->tokens_per_step > 0) {
        workload->tokens_per_step = near * (double)workload->seq_len;
        (void)snprintf(what, what_bytes, "with tokens_per_step=%.0f", workload->tokens_per_step);
    } else {
        workload->global_batch_sequences = near;
        (void)snprintf(what, what_bytes, "with global_batch_sequences=%.0f", near);
    }
    return true;
}

/* The nearest length that kernels can cut into blocks, or the longest that the model has positions for. */
static bool with_another_length(struct adv_advise_request *request, int which, char *what, size_t what_bytes)
{
    enum { LEARNED = -1 };
    static const int64_t units[LENGTHS] = {LEARNED, 128, 1024};
    struct adv_workload *workload = &request->workload;
    int64_t nearest = workload->seq_len;
    if (units[which] != LEARNED) {
        struct adv_near near = adv_near_multiples(units[which], workload->seq_len);
        bool up = near.below <= 0 || near.above - workload->seq_len <= workload->seq_len - near.below;
        nearest = up ? near.above : near.below;
    } else if (request->model.has_learned_positions) {
        nearest = adv_min_i(nearest, request->model.position_rows);
    }
    if (nearest == workload->seq_len) return false;
    int used = snprintf(what, what_bytes, "with seq_len=%lld", (long long)nearest);
    if (workload->tokens_per_step > 0) { /* as many sequences as before */
        workload->tokens_per_step *= (double)nearest / (double)workload->seq_len;
        (void)snprintf(what + used, what_bytes - (size_t)used, " and tokens_per_step=%.0f",
                       workload->tokens_per_step);
    }
    workload->seq_len = workload->base.family.seq_len = nearest;
    return true;
}

/* Not every decoder has every optimizer; all have MaxText's default. */
static bool with_another_optimizer(struct adv_advise_request *request, int which, char *what,
                                   size_t what_bytes)
{
    struct adv_plan *base = &request->workload.base;
    (void)which;
    if (base->family.optimizer == ADV_OPT_ADAMW || adv_request_pins(request, ADV_NAME_OPT_TYPE)) return false;
    base->family.optimizer = ADV_OPT_ADAMW;
    (void)snprintf(what, what_bytes, "with optimizer=adamw");
    return true;
}

static bool has_plans(const struct adv_advise_request *request, const struct adv_constants *constants)
{
    struct adv_arena arena;
    struct adv_space space;
    adv_arena_init(&arena, ADV_LIMIT_ARENA_BYTES);
    bool found =
        adv_space_build(request, constants, &arena, &space, NULL) == ADV_OK && space.families_count > 0;
    adv_arena_free(&arena);
    return found;
}

/* Requirements that can be given up, one row per kind. */
static const struct relief reliefs[] = {
    {without_axis, ADV_AXIS_COUNT, 1, false},
    {without_network_axis, ADV_AXIS_COUNT, 1, false},
    {without_key, EVERY_PIN, 1, false},
    {with_all_axes, 1, 1, false},
    {with_another_batch, BATCHES + 1, BATCHES, true},
    {with_another_length, LENGTHS, 1, true},
    {with_another_optimizer, 1, 1, false},
    {with_one_more_axis, MORE_AXES, 1, false},
};
enum { RELIEF_KINDS = sizeof reliefs / sizeof *reliefs, NAMED = 3, TRIALS = 64 };

struct reliever {
    const struct adv_space *space;
    struct adv_advise_request *trial;
    int named, trials;
    char *text;
    size_t text_bytes;
};

/* Names what is given up in the trial when that leaves plans. */
static bool name_if_it_works(struct reliever *reliever, const char *what)
{
    if (reliever->trials++ >= TRIALS || strstr(reliever->text, what)) return false;
    if (!has_plans(reliever->trial, reliever->space->constants)) return false;
    size_t used = strlen(reliever->text);
    (void)snprintf(reliever->text + used, reliever->text_bytes - used, "%s%s",
                   reliever->named++ ? ", or " : "; it works ", what);
    return true;
}

/* Gives up one more requirement, from `kind` and `which` on: each in turn on its own, or `more` beside it. */
static void give_up(struct reliever *reliever, int kind, int which, int more, const char *before)
{
    struct adv_advise_request *trial = reliever->trial;
    const struct adv_advise_request saved = *trial;
    for (; kind < RELIEF_KINDS; kind++, which = 0) {
        int count = reliefs[kind].count == EVERY_PIN ? saved.pins_count : reliefs[kind].count;
        int step = more > 0 || *before ? reliefs[kind].pair_step : 1;
        for (; which < count && reliever->named < NAMED; which += step) {
            char what[2 * ADV_LIMIT_NAME], both[2 * sizeof what + 8];
            *trial = saved;
            if (!reliefs[kind].apply(trial, which, what, sizeof what)) continue;
            (void)snprintf(both, sizeof both, "%s%s%s", before, *before ? " and " : "", what);
            if (more > 0)
                give_up(reliever, kind, reliefs[kind].farther ? count : which + 1, more - 1, both);
            else if (name_if_it_works(reliever, both) && reliefs[kind].farther && which < count - 1)
                which = count - 1 - step;
        }
    }
    *trial = saved;
}

/* "; it works without the pin x, or with y=z": single requirements given up in turn, or else pairs. */
static void name_reliefs(const struct adv_space *space, struct adv_arena *arena, char *text,
                         size_t text_bytes)
{
    struct reliever reliever = {.space = space, .text = text, .text_bytes = text_bytes};
    reliever.trial = adv_arena_alloc(arena, sizeof *reliever.trial);
    text[0] = '\0';
    for (int more = 0; more < 2 && reliever.trial && reliever.named == 0; more++) {
        *reliever.trial = *space->request;
        give_up(&reliever, 0, 0, more, "");
    }
}

/* The rules that a plan of the space breaks. */
struct nearest {
    struct adv_plan plan;
    struct adv_finding finding;
    int broken_count; /* ADV_LIMIT_FINDINGS + 1: no plan was looked at */
    bool of_pin;      /* the finding is about a pinned key */
};

/* Of a plan's findings the one to tell: of a pinned key before others, then the first. Returns how many
 * forbid the plan. */
static int pick(const struct adv_space *space, const adv_err *found, struct nearest *nearest)
{
    int count = 0;
    nearest->of_pin = false;
    for (int i = 0; i < found->count; i++) {
        const struct adv_finding *finding = &found->findings[i];
        const char *slash = strrchr(finding->pointer, '/');
        if (finding->code == ADV_OK) continue; /* only a warning */
        bool of_pin = slash && !strstr(slash, "_parallelism") && adv_request_pins(space->request, slash + 1);
        if (count++ == 0 || (of_pin && !nearest->of_pin)) {
            nearest->finding = *finding;
            nearest->of_pin = of_pin;
        }
    }
    return count;
}

/* Of the simplest mesh and each split of the batch the plan that breaks fewest rules. */
static void find_nearest(const struct adv_space *space, enum adv_axis fill, struct nearest *nearest)
{
    const struct adv_advise_request *request = space->request;
    struct adv_batch_split splits[ADV_BATCH_SPLITS];
    struct nearest next;
    nearest->broken_count = ADV_LIMIT_FINDINGS + 1;
    bool has_mesh = simplest_mesh(space, fill, &next.plan);
    int splits_count = has_mesh ? adv_batch_splits(request, splits, NULL) : 0;
    for (int i = 0; i < splits_count; i++) {
        adv_err found = adv_err_empty();
        next.plan.family.per_device_batch_size = splits[i].per_device_batch_size;
        next.plan.family.gradient_accumulation_steps = splits[i].gradient_accumulation_steps;
        (void)!adv_plan_check(&next.plan, &request->model, &request->cluster, &found, &found);
        next.broken_count = pick(space, &found, &next);
        if (next.broken_count > 0 && next.broken_count < nearest->broken_count) *nearest = next;
    }
}

/* "8192 tokens over 128 context shards …": what no tile can put right. False: something else is wrong. */
static bool say_short_shards(const struct nearest *nearest, char *text, size_t text_bytes)
{
    enum { LANES = 128 }; /* of a register: the least rows of an attention block */
    int context = nearest->plan.family.ici[ADV_AXIS_CONTEXT];
    if (nearest->broken_count > ADV_LIMIT_FINDINGS || context == 1 ||
        nearest->plan.family.seq_len / context >= LANES)
        return false;
    (void)snprintf(text, text_bytes,
                   "%lld tokens over %d context shards are %lld a shard, and attention takes blocks of %d",
                   (long long)nearest->plan.family.seq_len, context,
                   (long long)(nearest->plan.family.seq_len / context), LANES);
    return true;
}

/* "38.4 sequences": a batch that no mesh can share out. */
static bool say_broken_batch(const struct adv_advise_request *request, char *text, size_t text_bytes)
{
    double batch = request->workload.per_device_batch_size, sequences = batch * request->cluster.devices;
    if (batch <= 0 || (sequences >= 1 && fabs(sequences - floor(sequences + 0.5)) <= 1e-6 * sequences))
        return false;
    (void)snprintf(text, text_bytes,
                   "%.10g sequences per device x %d devices are %.10g, not a whole number of sequences",
                   batch, request->cluster.devices, sequences);
    return true;
}

void adv_space_explain_empty(const struct adv_space *space, struct adv_arena *arena, char *text,
                             size_t text_bytes)
{
    const struct adv_advise_request *request = space->request;
    enum adv_axis fill = filling_axis(request);
    struct nearest nearest;
    char instead[ADV_LIMIT_DETAIL], clash[ADV_LIMIT_DETAIL / 2];
    find_nearest(space, fill, &nearest);
    name_reliefs(space, arena, instead, sizeof instead);
    if (space->considered == 0)
        (void)snprintf(text, text_bytes, "no mesh of the allowed axes has the %d devices of a slice%s",
                       request->cluster.devices_per_slice, instead);
    else if (say_broken_batch(request, clash, sizeof clash) ||
             say_short_shards(&nearest, clash, sizeof clash))
        (void)snprintf(text, text_bytes, "none of %ld combinations is legal: %s%s", space->considered, clash,
                       instead);
    else if (nearest.broken_count >
             ADV_LIMIT_FINDINGS) /* the simplest mesh is legal by itself: the axes asked for exclude it */
        (void)snprintf(
            text, text_bytes, "none of %ld combinations is legal (the rule that forbids most is %s)%s",
            space->considered, space->most_broken_rule ? space->most_broken_rule : "ici-product", instead);
    else if (nearest.of_pin)
        (void)snprintf(text, text_bytes, "none of %ld combinations is legal: %.200s%s", space->considered,
                       nearest.finding.detail, instead);
    else
        (void)snprintf(
            text, text_bytes,
            "none of %ld combinations is legal; with %s=%d and per_device_batch_size=%.6g: %.200s%s",
            space->considered, adv_axis_key(fill), nearest.plan.family.ici[fill],
            nearest.plan.family.per_device_batch_size, nearest.finding.detail, instead);
}

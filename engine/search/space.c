#include "engine/search/space.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "engine/maxtext/names.h"
#include "engine/search/bounds.h"
#include "engine/search/in_order.h"
#include "engine/search/space_batch.h"
#include "engine/search/space_choices.h"
#include "engine/search/space_meshes.h"
#include "engine/search/space_walk.h"

/* Parts that the meshes are cut into, for two threads. */
enum { PARTS = 32 };

/* Of the memory that is left when meshes are known, what families and their bounds do not get: plans found,
 * steps from a baseline, near misses and reasons need less. */
enum { REST_PART = 8 };

struct building {
    struct adv_space *space;
    const struct adv_walk_shared *shared;
    struct adv_mesh_list meshes;
    bool over;       /* nobody waits for the answer any more */
    int most;        /* families that the request's memory has room for */
    atomic_int left; /* of them, beside those of the parts that were taken */
    struct adv_in_order job;
    struct adv_walked parts[PARTS];
    int starts[PARTS]; /* of their families in the space, once all are known */
};

static bool is_given_up(void *context)
{
    struct building *building = context;
    building->over = building->over || adv_budget_over(building->space->request->budget);
    return building->over;
}

static void walk_part(void *context, int worker, int slot, int item)
{
    struct building *building = context;
    const int count = building->meshes.count, parts = building->job.count;
    (void)slot; /* nothing is used twice */
    building->parts[item].most = atomic_load_explicit(&building->left, memory_order_relaxed);
    for (int i = item * count / parts; i < (item + 1) * count / parts; i++) {
        if (worker > 0 ? atomic_load_explicit(&building->job.stop, memory_order_relaxed)
                       : is_given_up(building))
            return;
        adv_walk_mesh(building->shared, building->meshes.ici[i], &building->parts[item]);
    }
}

/* Parts are taken in order: what is kept of a space that is too large does not depend on the threads. */
static bool take_part(void *context, int slot, int item)
{
    struct building *building = context;
    (void)slot;
    const int left = building->left - building->parts[item].count;
    atomic_store_explicit(&building->left, left > 0 ? left : 0, memory_order_relaxed);
    return !building->over;
}

static bool walk_now(void *context, int item)
{
    walk_part(context, 0, 0, item);
    return take_part(context, 0, item);
}

/* Brings the families of a part to those of the space. */
static void bring_part(struct building *building, int item)
{
    struct adv_walked *part = &building->parts[item];
    const int start = building->starts[item], room = building->space->families_count - start;
    for (int i = 0; i < part->count && i < room; i++) {
        struct adv_family *family = &building->space->families[start + i];
        *family = part->families[i];
        if (family->bounded_by >= 0) family->bounded_by += start;
    }
    free(part->families);
    part->families = NULL;
}

static bool join_part(void *context, int item)
{
    bring_part(context, item);
    return !is_given_up(context);
}

static void join_ahead(void *context, int worker, int slot, int item)
{
    (void)worker;
    (void)slot;
    bring_part(context, item);
}

static bool take_joined(void *context, int slot, int item)
{
    (void)slot;
    (void)item;
    return !is_given_up(context);
}

/* By two threads: the system gives the space its memory as it is written. */
static void join_families(struct building *building)
{
    const struct adv_budget *budget = building->space->request->budget;
    struct adv_in_order job = {.context = building,
                               .count = building->job.count,
                               .work = join_ahead,
                               .take = take_joined,
                               .direct = join_part,
                               .over = is_given_up};
    adv_in_order_run(&job, budget ? budget->crew : NULL);
    for (int i = 0; i < job.count; i++) free(building->parts[i].families);
}

/* Brings the parts together, in order. */
static void join(struct building *building, struct adv_arena *arena)
{
    struct adv_space *space = building->space;
    struct adv_walked all = {0};
    for (int i = 0; i < building->job.count; i++) {
        struct adv_walked *part = &building->parts[i];
        building->starts[i] = all.count < building->most ? all.count : building->most;
        all.count += part->count;
        space->considered += part->considered;
        for (int rule = 0; rule < ADV_WALKED_RULES && part->rules[rule]; rule++)
            adv_walked_count(&all, part->rules[rule], part->rule_counts[rule]);
    }
    const int room = all.count < building->most ? all.count : building->most;
    if (!building->over) space->families = adv_arena_bare(arena, (size_t)room * sizeof *space->families);
    space->families_count = space->families ? room : 0;
    join_families(building);
    if (building->over) return;
    space->illegal = all.illegal;
    space->left_out = space->considered - space->illegal - space->families_count + building->meshes.left_out;
    space->considered += building->meshes.left_out;
    long worst = 0;
    for (int i = 0; i < ADV_WALKED_RULES && all.rules[i]; i++) {
        if (all.rule_counts[i] <= worst) continue;
        worst = all.rule_counts[i];
        space->most_broken_rule = all.rules[i];
    }
}

static void walk_meshes(struct building *building, const struct adv_arena *arena)
{
    const struct adv_budget *budget = building->space->request->budget;
    const size_t left_bytes = arena->limit_bytes - arena->used_bytes;
    const size_t most = (left_bytes - left_bytes / REST_PART) /
                        (sizeof *building->space->families + ADV_BOUND_BYTES_PER_FAMILY);
    building->most = most < INT_MAX / 2 ? (int)most : INT_MAX / 2;
    atomic_init(&building->left, building->most);
    building->job =
        (struct adv_in_order){.context = building,
                              .count = building->meshes.count < PARTS ? building->meshes.count : PARTS,
                              .work = walk_part,
                              .take = take_part,
                              .direct = walk_now,
                              .over = is_given_up};
    adv_in_order_run(&building->job, budget ? budget->crew : NULL);
}

/* All but the families. False: memory is exhausted. */
static bool begin(const struct adv_advise_request *request, const struct adv_constants *constants,
                  struct adv_arena *arena, struct adv_space *space)
{
    *space = (struct adv_space){.request = request, .constants = constants, .base = request->workload.base};
    space->base.family.seq_len = request->workload.seq_len;
    adv_choices_apply(request, &space->base);
    const bool experts = adv_model_has_experts(&request->model);
    space->fp8_through_tokamax = experts && space->base.family.moe == ADV_MOE_MEGABLOX &&
                                 !adv_request_pins(request, ADV_NAME_USE_TOKAMAX_GMM) &&
                                 !adv_request_pins(request, ADV_NAME_MEGABLOX);
    space->may_shard_experts = experts && !adv_request_pins(request, ADV_NAME_SHARD_EXP_ON_FSDP) &&
                               !adv_request_pins(request, ADV_NAME_CUSTOM_MESH_AND_RULE);
    adv_plan_list_rules(ADV_RULES_OF_MESH, &space->mesh_rules);
    adv_plan_list_rules(ADV_RULES_OF_BATCH, &space->batch_rules);
    adv_tile_pins_of(request, &space->base, &space->tile_pins);
    space->tiles =
        adv_tile_memo_create(&request->model, &request->cluster, constants, &space->tile_pins, arena);
    return space->tiles != NULL;
}

/* Of families with pinned tiles those whose kernels all compile, unless there are none: then the pins are
 * taken at their word, and the answer warns. False: the budget is over. */
static bool prefer_what_compiles(struct adv_space *space, struct adv_arena *arena)
{
    int *places =
        space->tile_pins.any ? adv_arena_array(arena, (size_t)space->families_count, sizeof *places) : NULL;
    int kept = 0;
    for (int i = 0; places && i < space->families_count; i++) {
        struct adv_plan plan;
        if (adv_budget_over_at(space->request->budget, i)) return false;
        places[i] = adv_space_plan(space, &space->families[i], &plan) ? kept++ : -1;
    }
    if (kept == 0 || kept == space->families_count) return true;
    for (int i = 0; i < space->families_count; i++) {
        struct adv_family *family = &space->families[i];
        if (family->bounded_by >= 0) family->bounded_by = places[family->bounded_by];
        if (places[i] >= 0) space->families[places[i]] = *family;
    }
    space->illegal += space->families_count - kept;
    space->families_count = kept;
    return true;
}

adv_code adv_space_build(const struct adv_advise_request *request, const struct adv_constants *constants,
                         struct adv_arena *arena, struct adv_space *space, adv_err *err)
{
    struct building *building = adv_arena_alloc(arena, sizeof *building);
    if (!begin(request, constants, arena, space) || !building)
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    building->space = space;
    adv_code code = adv_walk_prepare(space, arena, &building->shared, err);
    if (code != ADV_OK) return code;
    code = adv_space_meshes(request, arena, &building->meshes);
    if (code == ADV_OK) walk_meshes(building, arena);
    if (code == ADV_OK) join(building, arena);
    if (code == ADV_OK && !building->over) building->over = !prefer_what_compiles(space, arena);
    if (code == ADV_E_TIMEOUT || building->over) return adv_budget_refuse(err);
    if (code == ADV_OK && (space->families_count > 0 || space->left_out == 0)) return ADV_OK;
    const bool system_has_none = code == ADV_E_MEMORY || (building->most > 0 && !space->families);
    return adv_err_add(err, system_has_none ? ADV_E_MEMORY : ADV_E_REQUEST_MEMORY, "", NULL,
                       "there is no room for a single combination");
}

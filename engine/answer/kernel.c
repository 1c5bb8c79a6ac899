#include "engine/answer/answer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/json/encode_kernel.h"
#include "engine/kernel/family.h"
#include "engine/kernel/tune.h"

static struct adv_kernel_machine machine_of(const struct adv_kernel_request *request,
                                            const struct adv_budget *budget)
{
    return (struct adv_kernel_machine){&request->chip->chip, &request->chip->constants,
                                       request->scoped_vmem_limit_bytes, request->wide_tiles, budget};
}

static adv_code simulate_choice(const struct adv_kernel_machine *machine,
                                const struct adv_kernel_request *request, struct adv_kernel_choice *choice,
                                adv_err *err)
{
    return adv_kernel_family_of(request->kernel)->time(machine, request, &choice->tile, &choice->time, err);
}

/* A tile over the limit does not compile: which buffer is too large, and what would do. */
static void warn_vmem(const struct adv_kernel_request *request, const struct adv_kernel_time *time,
                      adv_err *warnings)
{
    struct adv_vmem_part parts[ADV_VMEM_PARTS];
    const struct adv_kernel_family *family = adv_kernel_family_of(request->kernel);
    const int count = adv_kernel_tiles_itself(request)
                          ? 0
                          : family->vmem_parts(&request->chip->chip, request, &request->tile, parts);
    const double limit_kib =
        adv_vmem_needed_limit_kib(&request->chip->chip, request->kernel, time->vmem_bytes);
    const bool can = limit_kib * ADV_KIB <= adv_vmem_capacity_bytes(&request->chip->chip);
    int largest = 0;
    char hint[ADV_LIMIT_DETAIL], buffer[ADV_LIMIT_NAME] = "";
    if (time->fits_vmem) return;
    for (int i = 1; i < count; i++)
        if (parts[i].bytes > parts[largest].bytes) largest = i;
    if (count > 0)
        (void)snprintf(buffer, sizeof buffer, "; its largest buffer is %s with %.0f KiB", parts[largest].name,
                       ceil(parts[largest].bytes / ADV_KIB));
    if (can)
        (void)snprintf(hint, sizeof hint,
                       "scoped_vmem_limit_kib %.0f (--xla_tpu_scoped_vmem_limit_kib), or a "
                       "smaller tile: tune finds the best that fits",
                       limit_kib);
    else
        (void)snprintf(
            hint, sizeof hint, "a smaller tile: it needs a limit of %.0f KiB, and a %s device has %.0f KiB",
            limit_kib, request->chip->chip.name, adv_vmem_capacity_bytes(&request->chip->chip) / ADV_KIB);
    ADV_WARN(warnings, "over-vmem", "/tile", hint,
             "the tile does not compile: it takes %.0f KiB of VMEM, the limit is %.0f KiB%s",
             ceil(time->vmem_bytes / ADV_KIB), time->vmem_limit_bytes / ADV_KIB, buffer);
}

static adv_code simulate(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                         struct adv_kernel_time *time, adv_err *err, adv_err *warnings)
{
    struct adv_kernel_choice choice = {.tile = request->tile};
    adv_code code = simulate_choice(machine, request, &choice, err);
    *time = choice.time;
    if (code == ADV_OK) warn_vmem(request, time, warnings);
    return code;
}

static adv_code walk(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                     const struct adv_kernel_time *time, struct adv_timeline *timeline, adv_err *err)
{
    const struct adv_kernel_family *family = adv_kernel_family_of(request->kernel);
    if (family->timeline) return family->timeline(machine, request, timeline, err);
    adv_one_step_timeline(machine, time, timeline);
    return ADV_OK;
}

/* MaxText's default tile. False when it is not legal for this shape. */
static bool standard_choice(const struct adv_kernel_machine *machine,
                            const struct adv_kernel_request *request, struct adv_kernel_choice *choice)
{
    memset(choice, 0, sizeof *choice);
    return adv_kernel_family_of(request->kernel)->standard(request, &choice->tile) &&
           simulate_choice(machine, request, choice, NULL) == ADV_OK;
}

static struct adv_kernel_choice choice_at(const struct adv_ranking *ranking, int i)
{
    struct adv_kernel_choice choice = {.time = ranking->times[i], .chance_frac = (double)NAN};
    adv_kernel_tile_take(ranking->family, ranking->tiles, i, &choice.tile);
    return choice;
}

/* Attention counts block pairs, grouped matmuls tiles that are no duplicates, the rest tiles. */
static void make_short_list(const struct adv_ranking *ranking, struct adv_kernel_tuning *tuning)
{
    struct adv_short_entry entries[ADV_SHORT_LIST] = {{0}};
    int count = ranking->count < ADV_SHORT_LIST ? ranking->count : ADV_SHORT_LIST;
    if (ranking->family->short_list)
        count = ranking->family->short_list(ranking, entries);
    else
        for (int i = 0; i < count; i++) entries[i].best = i;
    tuning->short_list_count = count;
    for (int i = 0; i < count; i++) {
        struct adv_kernel_listed *listed = &tuning->short_list[i];
        listed->best = choice_at(ranking, entries[i].best);
        listed->others_count = entries[i].others_count;
        for (int k = 0; k < listed->others_count; k++)
            listed->others[k] = choice_at(ranking, entries[i].others[k]);
    }
}

/* Ranks the tuner's space. */
static adv_code rank(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                     struct adv_arena *arena, struct adv_ranking *ranking, adv_err *err)
{
    const size_t entries = (size_t)ranking->top_k;
    ranking->times = adv_arena_array(arena, entries, sizeof *ranking->times);
    ranking->tiles = adv_arena_array(arena, entries, ranking->family->tile_bytes);
    if (!ranking->times || !ranking->tiles)
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request is too large");
    return adv_tune(machine, request, ranking, err);
}

/* Chooses from the ranking the tiles to run: the likeliest winners, and as many buffers as each is likely to
 * want. The loss has no published losers to judge chances by: its fastest. */
static adv_code choose(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                       const struct adv_ranking *ranking, struct adv_arena *arena,
                       struct adv_kernel_tuning *tuning, adv_err *err)
{
    struct adv_tile_candidate *candidates = adv_arena_array(arena, ADV_CHOICE_CANDIDATES, sizeof *candidates);
    if (!candidates) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request is too large");
    int count = 0;
    if (ranking->family->candidates)
        count = ranking->family->candidates(machine, request, ranking, candidates);
    tuning->choices_count = adv_tune_choose(candidates, count, request->top_k);
    for (int i = 0; i < tuning->choices_count; i++) {
        struct adv_kernel_choice *choice = &tuning->choices[i];
        *choice = choice_at(ranking, candidates[i].tile);
        choice->chance_frac = candidates[i].chance_frac;
        if (!candidates[i].buffers || candidates[i].buffers == choice->tile.gmm.input_buffer_count) continue;
        choice->tile.gmm.input_buffer_count = candidates[i].buffers;
        const adv_code code = simulate_choice(machine, request, choice, err);
        if (code != ADV_OK) return code;
    }
    if (ranking->family->candidates) return ADV_OK;
    tuning->choices_count = ranking->count < request->top_k ? ranking->count : request->top_k;
    for (int i = 0; i < tuning->choices_count; i++) tuning->choices[i] = choice_at(ranking, i);
    return ADV_OK;
}

static adv_code tune(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                     struct adv_arena *arena, struct adv_kernel_tuning *tuning, adv_err *err)
{
    const int top_k = request->top_k;
    const struct adv_kernel_family *family = adv_kernel_family_of(request->kernel);
    const int least = family->candidates ? ADV_CHOICE_RANKED : ADV_SHORT_LIST;
    struct adv_ranking ranking = {.family = family, .top_k = top_k < least ? least : top_k};
    *tuning =
        (struct adv_kernel_tuning){.choices = adv_arena_array(arena, (size_t)top_k, sizeof *tuning->choices)};
    if (!tuning->choices) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request is too large");
    tuning->has_standard = standard_choice(machine, request, &tuning->standard);
    adv_code code = rank(machine, request, arena, &ranking, err);
    tuning->evaluated_count = ranking.evaluated_count;
    if (code == ADV_OK) code = choose(machine, request, &ranking, arena, tuning, err);
    if (code != ADV_OK) return code;
    make_short_list(&ranking, tuning);
    tuning->has_next = tuning->choices_count > 0 &&
                       adv_tune_next_better(machine, request, tuning->choices[0].time.time_s,
                                            &tuning->next.tile, &tuning->next.time, &tuning->next_limit_kib);
    return adv_budget_over(machine->budget) ? adv_budget_refuse(err) : ADV_OK;
}

/* Draws the tiles around the best one and the default. */
static adv_code draw_map(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                         struct adv_arena *arena, struct adv_kernel_tuning *tuning, adv_err *err)
{
    struct adv_kernel_tile seeds[2];
    int count = 0;
    if (!request->tile_map || tuning->choices_count == 0) return ADV_OK;
    struct adv_tile_map *map = adv_arena_array(arena, 1, sizeof *map);
    if (!map) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request is too large");
    seeds[count++] = tuning->choices[0].tile;
    if (tuning->has_standard) seeds[count++] = tuning->standard.tile;
    const adv_code code = adv_tile_map_fill(machine, request, seeds, count, map, err);
    tuning->map = map;
    return code;
}

/* MaxText's default can mask the tail of a contraction, which the tuners do not try: it costs more than the
 * model says. */
static void warn_of_standard(const struct adv_kernel_tuning *tuning, adv_err *warnings)
{
    double best_s = tuning->choices_count > 0 ? tuning->choices[0].time.time_s : (double)INFINITY;
    double standard_s = tuning->standard.time.time_s;
    if (!tuning->has_standard || !tuning->standard.time.fits_vmem || standard_s >= best_s) return;
    ADV_WARN(warnings, "default-outside-space", "", "its tail is masked; measure it beside the ranked tiles",
             "MaxText's default tile is outside the tuners' space, and predicted %.1f %% faster "
             "than the best tile in it",
             100.0 * (best_s / standard_s - 1.0));
}

static void tag_kernel(struct adv_answer_job *job, const struct adv_kernel_request *request)
{
    (void)snprintf(job->answer->chip, sizeof job->answer->chip, "%s", request->chip->chip.name);
    adv_answer_tag_wish(job, &request->wish);
}

adv_code adv_answer_simulate(struct adv_answer_job *job)
{
    struct adv_kernel_request request;
    struct adv_kernel_time time;
    adv_code code = adv_decode_kernel_request(job->catalog, job->root, true, &job->arena, &request, job->err,
                                              job->warnings);
    if (code != ADV_OK) return code;
    const struct adv_kernel_machine machine = machine_of(&request, job->budget);
    code = simulate(&machine, &request, &time, job->err, job->warnings);
    if (code != ADV_OK) return code;
    tag_kernel(job, &request);
    struct adv_timeline timeline = {.capacity = ADV_LIMIT_TIMELINE_STEPS};
    const bool drawn = request.timeline || request.trace;
    if (drawn) {
        timeline.steps = adv_arena_array(&job->arena, ADV_LIMIT_TIMELINE_STEPS, sizeof *timeline.steps);
        if (!timeline.steps) return adv_answer_no_memory(job->err);
        code = walk(&machine, &request, &time, &timeline, job->err);
    }
    if (code == ADV_OK)
        job->result =
            adv_encode_simulation(job->catalog, &request, &time, drawn ? &timeline : NULL, job->warnings);
    return code;
}

/* Says how the sweep's program differs from the tuned kernel. */
static void warn_of_sweep(const struct adv_kernel_request *request, adv_err *warnings)
{
    const char *lines[ADV_SWEEP_DIFFERENCES];
    const struct adv_kernel_family *family = adv_kernel_family_of(request->kernel);
    const int count = warnings && family->differences ? family->differences(request, lines) : 0;
    for (int i = 0; i < count; i++)
        ADV_WARN(warnings, "sweep", "/sweep", NULL, "the sweep is not as tuned: %s", lines[i]);
}

adv_code adv_answer_tune(struct adv_answer_job *job)
{
    struct adv_kernel_request request;
    struct adv_kernel_tuning tuning;
    adv_code code = adv_decode_kernel_request(job->catalog, job->root, false, &job->arena, &request, job->err,
                                              job->warnings);
    if (code != ADV_OK) return code;
    const struct adv_kernel_machine machine = machine_of(&request, job->budget);
    code = tune(&machine, &request, &job->arena, &tuning, job->err);
    if (code == ADV_OK) code = draw_map(&machine, &request, &job->arena, &tuning, job->err);
    job->answer->evaluations = tuning.evaluated_count;
    if (code != ADV_OK) return code;
    tag_kernel(job, &request);
    warn_of_standard(&tuning, job->warnings);
    warn_of_sweep(&request, job->warnings);
    job->result = adv_encode_tuning(job->catalog, &request, &tuning, job->warnings);
    return ADV_OK;
}

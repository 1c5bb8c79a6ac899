#include "engine/advise_kernel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/kernel/legal.h"
#include "engine/kernel/tune_choice.h"
#include "engine/kernel/tune_space.h"
#include "engine/kernel/vmem.h"

static struct adv_kernel_machine machine_of(const struct adv_kernel_request *request)
{
    return (struct adv_kernel_machine){&request->chip->chip, &request->chip->constants,
                                       request->scoped_vmem_limit_bytes, request->wide_tiles};
}

static adv_code simulate_xla(const struct adv_kernel_request *request, struct adv_kernel_time *time,
                             adv_err *err)
{
    struct adv_kernel_machine machine = machine_of(request);
    if (adv_kernel_is_xla_attention(request->kernel))
        return adv_attention_xla_time(&machine, request->kernel == ADV_KERNEL_ATTENTION_XLA_BWD,
                                      &request->attention, time, err);
    if (request->kernel == ADV_KERNEL_MATMUL) return adv_matmul_time(&machine, &request->matmul, time, err);
    const bool gradient = request->kernel == ADV_KERNEL_RAGGED_DOT_XLA_TGMM;
    return adv_gmm_xla_time(&machine, gradient ? ADV_KERNEL_TGMM : ADV_KERNEL_GMM, &request->gmm, time, err);
}

static adv_code simulate_choice(const struct adv_kernel_request *request, struct adv_kernel_choice *choice,
                                adv_err *err)
{
    struct adv_kernel_machine machine = machine_of(request);
    if (adv_kernel_is_attention(request->kernel)) {
        return adv_splash_time(&machine, request->kernel, &request->attention, &choice->attention,
                               &request->attention_flags, &choice->time, err);
    }
    if (adv_kernel_is_gmm(request->kernel)) {
        struct adv_kernel_time *time = &choice->time;
        const adv_code code = adv_gmm_time(&machine, request->kernel, &request->gmm, &choice->gmm, time, err);
        if (code == ADV_OK)
            time->fits_vmem =
                adv_vmem_compiles(machine.chip, request->kernel, time->vmem_bytes, time->vmem_limit_bytes);
        return code;
    }
    if (adv_kernel_is_xla(request->kernel)) return simulate_xla(request, &choice->time, err);
    return adv_xent_time(&machine, request->kernel, &request->xent, &choice->xent, &choice->time, err);
}

/* A tile over the limit does not compile: which buffer is too large, and what would do. */
static void warn_vmem(const struct adv_kernel_request *request, const struct adv_kernel_time *time,
                      adv_err *warnings)
{
    struct adv_vmem_part parts[ADV_VMEM_PARTS];
    const int count = adv_kernel_vmem_parts(request, parts);
    const double limit_kib =
        adv_vmem_needed_limit_kib(&request->chip->chip, request->kernel, time->vmem_bytes);
    const bool can = limit_kib * ADV_KIB <= adv_vmem_capacity_bytes(&request->chip->chip);
    int largest = 0;
    char hint[ADV_LIMIT_DETAIL], buffer[ADV_LIMIT_NAME] = "";
    if (time->fits_vmem || !warnings) return;
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
        (void)snprintf(hint, sizeof hint,
                       "a smaller tile: it needs a limit of %.0f KiB, and a %s device has "
                       "%.0f KiB",
                       limit_kib, request->chip->chip.name,
                       adv_vmem_capacity_bytes(&request->chip->chip) / ADV_KIB);
    (void)adv_err_add(warnings, ADV_OK, "/tile", hint,
                      "the tile does not compile: it takes %.0f KiB of VMEM, the limit is %.0f KiB%s",
                      ceil(time->vmem_bytes / ADV_KIB), time->vmem_limit_bytes / ADV_KIB, buffer);
    adv_err_rule(warnings, "over-vmem");
}

adv_code adv_kernel_simulate(const struct adv_kernel_request *request, struct adv_kernel_time *time,
                             adv_err *err, adv_err *warnings)
{
    struct adv_kernel_choice choice = {
        .attention = request->attention_tile, .gmm = request->gmm_tile, .xent = request->xent_tile};
    adv_code code = simulate_choice(request, &choice, err);
    *time = choice.time;
    if (code == ADV_OK) warn_vmem(request, time, warnings);
    return code;
}

adv_code adv_kernel_timeline(const struct adv_kernel_request *request, const struct adv_kernel_time *time,
                             struct adv_timeline *timeline, adv_err *err)
{
    struct adv_kernel_machine machine = machine_of(request);
    if (adv_kernel_is_attention(request->kernel))
        return adv_splash_timeline(&machine, request->kernel, &request->attention, &request->attention_tile,
                                   &request->attention_flags, timeline, err);
    if (adv_kernel_is_gmm(request->kernel))
        return adv_gmm_timeline(&machine, request->kernel, &request->gmm, &request->gmm_tile, timeline, err);
    if (!adv_kernel_is_xla(request->kernel))
        return adv_xent_timeline(&machine, request->kernel, &request->xent, &request->xent_tile, timeline,
                                 err);
    adv_one_step_timeline(&machine, time, timeline);
    return ADV_OK;
}

/* MaxText's default tile. False when it is not legal for this shape. */
static bool standard_choice(const struct adv_kernel_request *request, struct adv_kernel_choice *choice)
{
    memset(choice, 0, sizeof *choice);
    choice->attention.blocks = adv_tune_default_blocks(&request->attention);
    choice->attention.q_layout = choice->attention.k_layout = choice->attention.v_layout =
        ADV_LAYOUT_HEAD_DIM_MINOR;
    choice->gmm = adv_tune_default_gmm(&request->gmm);
    choice->xent = adv_tune_default_xent();
    if (adv_kernel_is_gmm(request->kernel) &&
        adv_legal_gmm(request->kernel, &request->gmm, &choice->gmm, NULL, NULL) != ADV_OK)
        return false;
    return simulate_choice(request, choice, NULL) == ADV_OK;
}

/* A ranking of the request's kernel: the array of its tiles is set. */
struct ranking {
    struct adv_attention_tile *attention;
    struct adv_gmm_tile *gmm;
    struct adv_xent_tile *xent;
    struct adv_kernel_time *times;
    int count;
};

static struct adv_kernel_choice choice_at(const struct ranking *ranking, int i)
{
    struct adv_kernel_choice choice = {.time = ranking->times[i], .chance_frac = (double)NAN};
    if (ranking->attention) choice.attention = ranking->attention[i];
    if (ranking->gmm) choice.gmm = ranking->gmm[i];
    if (ranking->xent) choice.xent = ranking->xent[i];
    return choice;
}

/* Attention counts block pairs, grouped matmuls tiles that are no duplicates, the rest tiles. */
static void make_short_list(const struct ranking *ranking, struct adv_kernel_tuning *tuning)
{
    struct adv_short_entry entries[ADV_SHORT_LIST] = {{0}};
    int count = ranking->count < ADV_SHORT_LIST ? ranking->count : ADV_SHORT_LIST;
    if (ranking->attention)
        count = adv_splash_short_list(ranking->attention, ranking->times, ranking->count, entries);
    else if (ranking->gmm)
        count = adv_gmm_short_list(ranking->gmm, ranking->times, ranking->count, entries);
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

/* Ranks the tuner's space; top_k entries of every array. */
static adv_code rank(const struct adv_kernel_request *request, int top_k, struct adv_arena *arena,
                     struct ranking *ranking, long *evaluated, adv_err *err)
{
    struct adv_kernel_machine machine = machine_of(request);
    const size_t entries = (size_t)top_k;
    ranking->times = adv_arena_array(arena, entries, sizeof *ranking->times);
    if (adv_kernel_is_attention(request->kernel)) {
        ranking->attention = adv_arena_array(arena, entries, sizeof *ranking->attention);
        if (ranking->times && ranking->attention)
            return adv_splash_tune(&machine, request->kernel, &request->attention, &request->attention_flags,
                                   top_k, ranking->attention, ranking->times, &ranking->count, evaluated,
                                   err);
    } else if (adv_kernel_is_gmm(request->kernel)) {
        ranking->gmm = adv_arena_array(arena, entries, sizeof *ranking->gmm);
        if (ranking->times && ranking->gmm)
            return adv_gmm_tune(&machine, request->kernel, &request->gmm, top_k, ranking->gmm, ranking->times,
                                &ranking->count, evaluated, err);
    } else {
        ranking->xent = adv_arena_array(arena, entries, sizeof *ranking->xent);
        if (ranking->times && ranking->xent)
            return adv_xent_tune(&machine, request->kernel, &request->xent, top_k, ranking->xent,
                                 ranking->times, &ranking->count, evaluated, err);
    }
    return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request is too large");
}

static bool next_better(const struct adv_kernel_request *request, double than_s,
                        struct adv_kernel_choice *next, double *limit_kib)
{
    struct adv_kernel_machine machine = machine_of(request);
    const enum adv_kernel kernel = request->kernel;
    if (adv_kernel_is_attention(kernel))
        return adv_splash_next_better(&machine, kernel, &request->attention, &request->attention_flags,
                                      than_s, &next->attention, &next->time, limit_kib);
    if (adv_kernel_is_gmm(kernel))
        return adv_gmm_next_better(&machine, kernel, &request->gmm, than_s, &next->gmm, &next->time,
                                   limit_kib);
    return adv_xent_next_better(&machine, kernel, &request->xent, than_s, &next->xent, &next->time,
                                limit_kib);
}

/* What of the ranking to run: the likeliest winners, and as many buffers as each is likely to want. The loss
 * has no published losers to judge chances by: its fastest. */
static adv_code choose(const struct adv_kernel_request *request, const struct ranking *ranking,
                       struct adv_arena *arena, struct adv_kernel_tuning *tuning, adv_err *err)
{
    struct adv_kernel_machine machine = machine_of(request);
    struct adv_candidate *candidates = adv_arena_array(arena, ADV_CHOICE_CANDIDATES, sizeof *candidates);
    if (!candidates) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request is too large");
    int count = 0;
    if (ranking->attention)
        count = adv_splash_candidates(&machine, request->kernel, ranking->attention, ranking->times,
                                      ranking->count, candidates);
    else if (ranking->gmm)
        count = adv_gmm_candidates(&machine, request->kernel, &request->gmm, ranking->gmm, ranking->times,
                                   ranking->count, candidates);
    tuning->choices_count = adv_tune_choose(candidates, count, request->top_k);
    for (int i = 0; i < tuning->choices_count; i++) {
        struct adv_kernel_choice *choice = &tuning->choices[i];
        *choice = choice_at(ranking, candidates[i].tile);
        choice->chance_frac = candidates[i].chance_frac;
        if (!ranking->gmm || candidates[i].buffers == choice->gmm.input_buffer_count) continue;
        choice->gmm.input_buffer_count = candidates[i].buffers;
        const adv_code code = simulate_choice(request, choice, err);
        if (code != ADV_OK) return code;
    }
    if (!ranking->xent) return ADV_OK;
    tuning->choices_count = ranking->count < request->top_k ? ranking->count : request->top_k;
    for (int i = 0; i < tuning->choices_count; i++) tuning->choices[i] = choice_at(ranking, i);
    return ADV_OK;
}

adv_code adv_kernel_tune(const struct adv_kernel_request *request, struct adv_arena *arena,
                         struct adv_kernel_tuning *tuning, adv_err *err)
{
    const int top_k = request->top_k;
    const bool listed = adv_kernel_is_attention(request->kernel) || adv_kernel_is_gmm(request->kernel);
    const int least = listed ? ADV_CHOICE_RANKED : ADV_SHORT_LIST;
    struct ranking ranking = {.count = 0};
    *tuning =
        (struct adv_kernel_tuning){.choices = adv_arena_array(arena, (size_t)top_k, sizeof *tuning->choices)};
    if (!tuning->choices) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request is too large");
    tuning->has_standard = standard_choice(request, &tuning->standard);
    adv_code code =
        rank(request, top_k < least ? least : top_k, arena, &ranking, &tuning->evaluated_count, err);
    if (code == ADV_OK) code = choose(request, &ranking, arena, tuning, err);
    if (code != ADV_OK) return code;
    make_short_list(&ranking, tuning);
    tuning->has_next = tuning->choices_count > 0 && next_better(request, tuning->choices[0].time.time_s,
                                                                &tuning->next, &tuning->next_limit_kib);
    return ADV_OK;
}

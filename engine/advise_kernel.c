#include "engine/advise_kernel.h"

#include <string.h>

#include "engine/base/units.h"

static struct adv_kernel_machine machine_of(const struct adv_kernel_request *request)
{
    return (struct adv_kernel_machine){&request->chip->chip, &request->chip->constants,
                                       request->scoped_vmem_limit_bytes, request->wide_tiles};
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
        return adv_gmm_time(&machine, request->kernel, &request->gmm, &choice->gmm, &choice->time, err);
    }
    if (request->kernel == ADV_KERNEL_MATMUL)
        return adv_matmul_time(&machine, &request->matmul, &choice->time, err);
    return adv_xent_time(&machine, request->kernel, &request->xent, &choice->xent, &choice->time, err);
}

adv_code adv_kernel_simulate(const struct adv_kernel_request *request, struct adv_kernel_time *time,
                             adv_err *err)
{
    struct adv_kernel_choice choice = {
        .attention = request->attention_tile, .gmm = request->gmm_tile, .xent = request->xent_tile};
    adv_code code = simulate_choice(request, &choice, err);
    *time = choice.time;
    return code;
}

adv_code adv_kernel_timeline(const struct adv_kernel_request *request, const struct adv_kernel_time *time,
                             struct adv_timeline *timeline, adv_err *err)
{
    struct adv_kernel_machine machine = machine_of(request);
    if (adv_kernel_is_attention(request->kernel))
        return adv_splash_timeline(&machine, request->kernel, &request->attention, &request->attention_tile,
                                   &request->attention_flags, timeline, err);
    if (adv_kernel_is_gmm(request->kernel) && request->gmm.version == 1)
        return adv_gmm_timeline(&machine, request->kernel, &request->gmm, &request->gmm_tile, timeline, err);
    adv_one_step_timeline(&machine, time, timeline);
    return ADV_OK;
}

/* MaxText's default tiles: 512 for attention (clamped to the sequence), 512/1024/1024 for grouped matmuls,
 * 1024/512/2048 for the fused loss of tokamax. False when they are not legal for this shape. */
static bool standard_choice(const struct adv_kernel_request *request, struct adv_kernel_choice *choice)
{
    int64_t longest = adv_min_i(request->attention.q_len, request->attention.kv_len);
    int block = (int)adv_min_i(512, longest > 0 ? longest : 512);
    memset(choice, 0, sizeof *choice);
    choice->attention.blocks =
        (struct adv_splash_blocks){block, block, block, block, block, block, block, block};
    choice->attention.q_layout = choice->attention.k_layout = choice->attention.v_layout =
        ADV_LAYOUT_HEAD_DIM_MINOR;
    choice->gmm = (struct adv_gmm_tile){512, 1024, 1024, 2};
    choice->xent = (struct adv_xent_tile){1024, 512, 2048};
    return simulate_choice(request, choice, NULL) == ADV_OK;
}

static void keep_best(struct adv_kernel_choice *choices, int *count, int top_k,
                      const struct adv_kernel_choice *choice)
{
    int at = *count;
    while (at > 0 && choice->time.time_s < choices[at - 1].time.time_s) at--;
    if (at >= top_k) return;
    if (*count < top_k) (*count)++;
    for (int i = *count - 1; i > at; i--) choices[i] = choices[i - 1];
    choices[at] = *choice;
}

/* Every tile triple of tokamax' tuner for the fused loss. */
static void tune_xent(const struct adv_kernel_request *request, struct adv_kernel_tuning *tuning)
{
    static const int blocks[] = {128, 256, 512, 1024, 2048, 4096};
    static const int widths[] = {256, 512, 640, 768, 1024, 1280, 2048, 2560};
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
        for (size_t h = 0; h < sizeof widths / sizeof *widths; h++) {
            for (size_t v = 0; v < sizeof blocks / sizeof *blocks; v++) {
                struct adv_kernel_choice choice = {.xent = {blocks[b], widths[h], blocks[v]}};
                tuning->evaluated_count++;
                if (simulate_choice(request, &choice, NULL) != ADV_OK || !choice.time.fits_vmem) continue;
                keep_best(tuning->choices, &tuning->choices_count, request->top_k, &choice);
            }
        }
    }
}

/* Attention counts block pairs; grouped matmuls have no duplicates. */
static void list_pallas(bool splash, const struct adv_attention_tile *attention,
                        const struct adv_gmm_tile *gmm, const struct adv_kernel_time *times, int found,
                        struct adv_kernel_tuning *tuning)
{
    struct adv_short_entry entries[ADV_SHORT_LIST] = {{0}};
    int count = found < ADV_SHORT_LIST ? found : ADV_SHORT_LIST;
    if (splash)
        count = adv_splash_short_list(attention, times, found, entries);
    else
        for (int i = 0; i < count; i++) entries[i].best = i;
    tuning->short_list_count = count;
    for (int i = 0; i < count; i++) {
        struct adv_kernel_listed *listed = &tuning->short_list[i];
        const int best = entries[i].best;
        listed->best =
            (struct adv_kernel_choice){.attention = attention[best], .gmm = gmm[best], .time = times[best]};
        listed->others_count = entries[i].others_count;
        for (int k = 0; k < listed->others_count; k++)
            listed->others[k] = (struct adv_kernel_choice){.attention = attention[entries[i].others[k]],
                                                           .time = times[entries[i].others[k]]};
    }
}

static adv_code tune_pallas(const struct adv_kernel_request *request, struct adv_arena *arena,
                            struct adv_kernel_tuning *tuning, adv_err *err)
{
    struct adv_kernel_machine machine = machine_of(request);
    const bool splash = adv_kernel_is_attention(request->kernel);
    const int ranked = splash && request->top_k < ADV_SHORT_LIST_RANKED ? ADV_SHORT_LIST_RANKED
                       : request->top_k < ADV_SHORT_LIST                ? ADV_SHORT_LIST
                                                                        : request->top_k;
    const size_t top_k = (size_t)ranked;
    struct adv_kernel_time *times = adv_arena_array(arena, top_k, sizeof *times);
    struct adv_attention_tile *attention = adv_arena_array(arena, top_k, sizeof *attention);
    struct adv_gmm_tile *gmm = adv_arena_array(arena, top_k, sizeof *gmm);
    if (!times || !attention || !gmm)
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request is too large");
    int found = 0;
    adv_code code =
        splash ? adv_splash_tune(&machine, request->kernel, &request->attention, &request->attention_flags,
                                 ranked, attention, times, &found, &tuning->evaluated_count, err)
               : adv_gmm_tune(&machine, request->kernel, &request->gmm, ranked, gmm, times, &found,
                              &tuning->evaluated_count, err);
    if (code != ADV_OK) return code;
    tuning->choices_count = found < request->top_k ? found : request->top_k;
    for (int i = 0; i < tuning->choices_count; i++)
        tuning->choices[i] =
            (struct adv_kernel_choice){.attention = attention[i], .gmm = gmm[i], .time = times[i]};
    list_pallas(splash, attention, gmm, times, found, tuning);
    struct adv_kernel_choice *next = &tuning->next;
    tuning->has_next = splash ? adv_splash_next_better(&machine, request->kernel, &request->attention,
                                                       &request->attention_flags, times[0].time_s,
                                                       &next->attention, &next->time, &tuning->next_limit_kib)
                              : adv_gmm_next_better(&machine, request->kernel, &request->gmm, times[0].time_s,
                                                    &next->gmm, &next->time, &tuning->next_limit_kib);
    return ADV_OK;
}

adv_code adv_kernel_tune(const struct adv_kernel_request *request, struct adv_arena *arena,
                         struct adv_kernel_tuning *tuning, adv_err *err)
{
    *tuning = (struct adv_kernel_tuning){
        .choices = adv_arena_array(arena, (size_t)request->top_k, sizeof *tuning->choices)};
    if (!tuning->choices) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request is too large");
    if (request->kernel == ADV_KERNEL_MATMUL) {
        return adv_err_add(err, ADV_E_UNSUPPORTED, "/kernel", "simulate it instead",
                           "XLA chooses the tiles of a dense matmul: nothing to tune");
    }
    if (adv_kernel_is_gmm(request->kernel) && request->gmm.version == 2) {
        return adv_err_add(err, ADV_E_UNSUPPORTED, "/shape/version", "simulate it instead, or version 1",
                           "version 2 of the grouped matmul chooses its own tiles: nothing to tune");
    }
    tuning->has_standard = standard_choice(request, &tuning->standard);
    if (adv_kernel_is_attention(request->kernel) || adv_kernel_is_gmm(request->kernel))
        return tune_pallas(request, arena, tuning, err);
    tune_xent(request, tuning);
    for (int i = 0; i < tuning->choices_count && i < ADV_SHORT_LIST; i++)
        tuning->short_list[tuning->short_list_count++].best = tuning->choices[i];
    return ADV_OK;
}

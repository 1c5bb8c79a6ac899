#include "engine/answer/microbatches.h"

#include <math.h>

#include "engine/maxtext/names.h"
#include "engine/rank/rank.h"
#include "engine/search/space_batch.h"

enum { EVALUATIONS = 20000 };

static bool is_asked(const struct adv_advise_request *request, const struct adv_search_result *found)
{
    return found->found_count > 0 && request->workload.per_device_batch_size > 1.0 &&
           request->objective != ADV_OBJECTIVE_HBM && request->max_changes == ADV_CHANGES_ANY &&
           !adv_request_pins(request, ADV_NAME_PER_DEVICE_BATCH_SIZE) &&
           !adv_request_pins(request, ADV_NAME_GRADIENT_ACCUMULATION_STEPS);
}

/* The request for the same sequences a step as a global batch, over the slice's axes as `plan` has them. */
static void ask_globally(const struct adv_plan *plan, double sequences, struct adv_advise_request *request)
{
    request->workload.global_batch_sequences = sequences;
    request->workload.per_device_batch_size = 0.0;
    request->batch_pinned = request->has_baseline = request->wants_sensitivities = false;
    request->top_k = 1;
    request->include = 0;
    const bool has_fewer = request->max_evaluations > 0 && request->max_evaluations < EVALUATIONS;
    request->max_evaluations = has_fewer ? request->max_evaluations : EVALUATIONS;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        request->axis_pinned[i] = true;
        request->workload.base.family.ici[i] = plan->family.ici[i];
    }
}

/* Whether a search for the global batch would rank `split` before `first`, and not as its tie. */
static bool is_better(const struct adv_candidate *split, const struct adv_candidate *first,
                      enum adv_objective objective)
{
    const double share = 1.0 - ADV_RANK_TIE_FRAC;
    return split->plan.family.gradient_accumulation_steps > 1 &&
           split->estimate.step_time_s < first->estimate.step_time_s &&
           adv_rank_metric(objective, &split->estimate) <
               share * adv_rank_metric(objective, &first->estimate);
}

static void warn(const struct adv_candidate *split, const struct adv_candidate *first, double sequences,
                 adv_err *warnings)
{
    const struct adv_plan_family *family = &split->plan.family;
    const double split_s = split->estimate.step_time_s, first_s = first->estimate.step_time_s;
    ADV_WARN(warnings, "one-microbatch", "/workload/per_device_batch_size",
             "give the batch of the whole step, global_batch_sequences: a search for it splits it",
             "%.10g sequences a device in one microbatch take %.3f s a step; the same %.0f sequences a "
             "step as %d microbatches (" ADV_NAME_PER_DEVICE_BATCH_SIZE
             " %.10g, " ADV_NAME_GRADIENT_ACCUMULATION_STEPS " %d) take %.3f s, %.1f %% less",
             first->plan.family.per_device_batch_size, first_s, sequences,
             family->gradient_accumulation_steps, family->per_device_batch_size,
             family->gradient_accumulation_steps, split_s, 100.0 * (1.0 - split_s / first_s));
}

void adv_microbatches_warn(const struct adv_advise_request *request, const struct adv_constants *constants,
                           const struct adv_search_result *found, adv_err *warnings)
{
    const double sequences = request->workload.per_device_batch_size * request->cluster.devices;
    if (!is_asked(request, found) || sequences != floor(sequences)) return;
    struct adv_arena arena;
    adv_err unused = adv_err_empty();
    adv_arena_init(&arena, ADV_LIMIT_ARENA_BYTES);
    struct adv_advise_request *global = adv_arena_alloc(&arena, sizeof *global);
    struct adv_search_result *split = adv_arena_alloc(&arena, sizeof *split);
    if (global && split) {
        *global = *request;
        ask_globally(&found->found[0].plan, sequences, global);
        if (adv_search_run(global, NULL, constants, &arena, split, &unused) == ADV_OK &&
            split->found_count > 0 && is_better(&split->found[0], &found->found[0], request->objective))
            warn(&split->found[0], &found->found[0], sequences, warnings);
    }
    adv_arena_free(&arena);
}

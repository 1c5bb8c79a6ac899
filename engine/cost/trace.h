/* trace.h: the account of one step, layer kind by layer kind: for pictures of a layer in time.
 *
 * The search and the estimate keep one sum over all layers. A trace is the same computation once more, noting
 * what each layer kind added to every slot; what no layer added is the embedding's, the head's or the step's.
 * Where a calibration corrects the step time, the slots and times of the layers are corrected with it.
 */
#pragma once

#include <string.h>

#include "engine/cost/passes.h"

struct adv_layer_trace {
    double times;                          /* how often such a layer runs in a step, on one device */
    struct adv_slot slots[ADV_TERM_COUNT]; /* of one layer and one time */
    struct adv_layer_time time;
};

struct adv_step_trace {
    struct adv_mesh mesh;
    struct adv_cost cost;       /* its pointers are into this trace and the input */
    struct adv_account account; /* of the whole step */
    struct adv_slot before[ADV_TERM_COUNT];
    struct adv_layer_trace layers[ADV_LIMIT_LAYER_KINDS]; /* cost.model->layer_kinds_count of them */
};

/* Prices the plan of `input` as adv_estimate_plan does. Some 30 KiB: the caller keeps it in its arena.
 * `input` must outlive the trace. Errors as of adv_estimate_plan. */
ADV_MUST_CHECK adv_code adv_trace_step(const struct adv_estimate_input *input, struct adv_step_trace *trace,
                                       adv_err *err);

/* Around what one layer kind adds to the account, `times` over. Nothing where nothing is traced. */
static inline void adv_trace_enter(const struct adv_account *account)
{
    if (account->trace) memcpy(account->trace->before, account->slots, sizeof account->slots);
}

static inline void adv_trace_leave(const struct adv_account *account, int kind, double times,
                                   const struct adv_layer_time *time)
{
    if (!account->trace) return;
    struct adv_layer_trace *layer = &account->trace->layers[kind];
    layer->times = times;
    layer->time = *time;
    for (int i = 0; i < ADV_TERM_COUNT; i++) {
        const struct adv_slot *after = &account->slots[i], *before = &account->trace->before[i];
        struct adv_slot *slot = &layer->slots[i];
        slot->seconds += (after->seconds - before->seconds) / times;
        slot->exposed_seconds += (after->exposed_seconds - before->exposed_seconds) / times;
        slot->count += (after->count - before->count) / times;
        slot->flops += (after->flops - before->flops) / times;
        slot->bytes += (after->bytes - before->bytes) / times;
    }
}

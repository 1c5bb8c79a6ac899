#include "engine/answer/room.h"

#include "engine/base/text.h"
#include "engine/explain/why.h"
#include "engine/json/encode_advise.h"
#include "engine/maxtext/names.h"
#include "engine/search/space_batch.h"

/* What telling takes at most: of a ranked plan and the baseline all, of the others their configuration. */
static size_t telling_bytes(const struct adv_advise_request *request)
{
    const size_t config = sizeof(struct adv_config) + ADV_LIMIT_CONFIG_TEXT_BYTES;
    const size_t plan = config + sizeof(struct adv_estimate) + sizeof(struct adv_ledger) + sizeof(adv_err) +
                        sizeof(struct adv_advice_list) + sizeof(struct adv_reread) + sizeof(struct adv_why) +
                        sizeof(struct adv_changes);
    const size_t plans = (size_t)request->top_k + 1, others = ADV_SEARCH_PARETO + ADV_SEARCH_NEAR;
    return plans * plan + others * config + (plans + others) * sizeof(struct adv_told_plan) +
           sizeof(struct adv_sensitivities);
}

adv_code adv_room_judge(adv_code code, const struct adv_arena *arena, adv_err *err)
{
    if (code != ADV_E_REQUEST_MEMORY && (code != ADV_E_MEMORY || !arena->was_refused)) return code;
    adv_err_init(err);
    return adv_err_add(
        err, ADV_E_REQUEST_MEMORY, "",
        "ask for less at once: fewer plans (top_k), machines or documents; of a search, pin keys "
        "or name fewer search.axes",
        "this needs more than the %zu MiB of memory that a request has", arena->limit_bytes / (1024 * 1024));
}

adv_code adv_room_search(const struct adv_advise_request *request, const struct adv_reread *baseline,
                         const struct adv_constants *constants, struct adv_arena *arena,
                         struct adv_search_result *result, adv_err *err)
{
    const size_t limit_bytes = arena->limit_bytes, kept_back = telling_bytes(request);
    const bool has_room = kept_back < limit_bytes - arena->used_bytes;
    arena->limit_bytes = has_room ? limit_bytes - kept_back : arena->used_bytes;
    const adv_code code = adv_search_run(request, baseline, constants, arena, result, err);
    arena->limit_bytes = limit_bytes;
    return adv_room_judge(code, arena, err);
}

void adv_room_warn(const struct adv_advise_request *request, const struct adv_search_result *result,
                   adv_err *warnings)
{
    const long legal = result->considered - result->illegal;
    char hint[ADV_LIMIT_DETAIL] = "name fewer search.axes, or pin some of them";
    if (result->left_out == 0) return;
    if (!request->batch_pinned && !adv_request_pins(request, ADV_NAME_GRADIENT_ACCUMULATION_STEPS))
        adv_append(hint, sizeof hint, "; pin " ADV_NAME_GRADIENT_ACCUMULATION_STEPS);
    if (request->workload.any_quantization) adv_append(hint, sizeof hint, "; name one workload.quantization");
    if (request->top_k > 1) adv_append(hint, sizeof hint, "; ask for a lower search.top_k");
    ADV_WARN(
        warnings, "space-too-large", "/search", hint,
        "%ld of %ld legal combinations were not tried: the request's memory has no room for them, and what "
        "is best among all may be one of them",
        result->left_out, legal);
}

/* price.c: an estimate request down to its two numbers, without the answer around them. */
#include <math.h>

#include "engine/answer/answer.h"
#include "engine/answer/room.h"
#include "engine/base/crew.h"
#include "engine/cost/estimate.h"
#include "engine/json/decode_request.h"
#include "engine/json/request_text.h"

static adv_code price_plan(const struct adv_catalog *catalog, const json_t *root, struct adv_arena *arena,
                           struct adv_price *price, adv_err *err)
{
    struct adv_estimate_request *request = adv_arena_alloc(arena, sizeof *request);
    struct adv_estimate *estimate = adv_arena_bare(arena, sizeof *estimate);
    if (!request || !estimate) return adv_answer_no_memory(err);
    adv_code code = adv_decode_estimate_request(catalog, root, arena, request, err, NULL);
    if (code != ADV_OK) return code;
    const struct adv_catalog_chip *chip = adv_catalog_chip(catalog, request->cluster.chip.name);
    const struct adv_estimate_input input = {&request->model, &request->cluster, &chip->constants,
                                             &request->plan, request->flops_convention};
    code = adv_estimate_plan(&input, estimate, NULL, err);
    if (code != ADV_OK) return code;
    price->step_time_s = estimate->step_time_s;
    price->hbm_bytes_per_device = round(estimate->hbm_bytes_per_device); /* as an answer has it */
    return ADV_OK;
}

adv_code adv_price_within(const struct adv_catalog *catalog, const char *json, size_t json_bytes,
                          const struct adv_budget *budget, struct adv_price *price, adv_err *err)
{
    ADV_JSON_OWN json_t *root = NULL;
    struct adv_arena arena;
    struct adv_crew *crew = budget ? budget->crew : NULL;
    price->step_time_s = price->hbm_bytes_per_device = (double)NAN;
    if (adv_budget_over(budget)) return adv_budget_refuse(err);
    adv_arena_init(&arena, ADV_LIMIT_ARENA_BYTES);
    adv_code code =
        adv_decode_request_text(catalog, ADV_REQUEST_ESTIMATE, json, json_bytes, NULL, 0, &arena, &root, err);
    adv_crew_enter(crew);
    if (code == ADV_OK) code = price_plan(catalog, root, &arena, price, err);
    adv_crew_leave(crew);
    code = adv_room_judge(code, &arena, err);
    adv_arena_free(&arena);
    return code;
}

#include "engine/search/price.h"

#include <string.h>

#include "engine/base/units.h"
#include "engine/rank/rank.h"
#include "engine/search/space_choices.h"

enum { ASKED_EVERY = 8 }; /* plans; each takes microseconds, rarely a millisecond */

static void remove_at(struct adv_near_list *list, int at)
{
    for (int i = at; i + 1 < list->count; i++) {
        list->scores[i] = list->scores[i + 1];
        list->items[i] = list->items[i + 1];
    }
    list->count--;
}

static void offer_near(struct adv_near_list *list, double score, const struct adv_plan *plan,
                       const struct adv_estimate *estimate)
{
    if (list->count == ADV_NEAR_KEPT && score >= list->scores[ADV_NEAR_KEPT - 1]) return;
    for (int i = 0; i < list->count; i++) {
        if (!adv_rank_same_mesh(&list->items[i].plan, plan)) continue;
        if (list->scores[i] <= score) return;
        remove_at(list, i);
        break;
    }
    if (list->count == ADV_NEAR_KEPT) list->count--;
    int at = list->count++;
    while (at > 0 && list->scores[at - 1] > score) {
        list->scores[at] = list->scores[at - 1];
        list->items[at] = list->items[at - 1];
        at--;
    }
    list->scores[at] = score;
    list->items[at] = (struct adv_candidate){.plan = *plan, .estimate = *estimate};
}

bool adv_price(struct adv_pricer *pricer, const struct adv_plan *unfinished, struct adv_estimate *estimate)
{
    const bool asks = pricer->evaluated % ASKED_EVERY == 0; /* a stop that was seen is seen again */
    if (pricer->evaluated >= pricer->budget || (asks && adv_budget_over(pricer->request->budget))) {
        pricer->spent = true;
        return false;
    }
    pricer->evaluated++;
    struct adv_plan finished = *unfinished;
    const struct adv_plan *plan = &finished;
    adv_choices_finish(&finished);
    struct adv_estimate_input input = {&pricer->request->model, &pricer->request->cluster, pricer->constants,
                                       plan, ADV_FLOPS_CAUSAL_HALF};
    if (adv_estimate_again(&input, pricer->scratch, estimate, NULL) != ADV_OK) {
        pricer->unsupported++;
        return false;
    }
    if (pricer->cloud) adv_cloud_offer(pricer->cloud, estimate);
    if (adv_rank_fits(estimate, pricer->memory_frac)) {
        adv_front_offer(&pricer->front, plan, estimate);
        return true;
    }
    double over = estimate->hbm_bytes_per_device / estimate->hbm_limit_bytes_per_device;
    if (estimate->host_limit_bytes_per_host > 0)
        over = adv_max(over, estimate->host_bytes_per_host / estimate->host_limit_bytes_per_host);
    double time_s = adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, estimate);
    offer_near(&pricer->fast, time_s * over, plan, estimate);
    offer_near(&pricer->small, over, plan, estimate);
    return true;
}

bool adv_price_memory(const struct adv_pricer *pricer, const struct adv_plan *unfinished,
                      struct adv_estimate *estimate)
{
    struct adv_plan plan = *unfinished;
    adv_choices_finish(&plan);
    struct adv_estimate_input input = {&pricer->request->model, &pricer->request->cluster, pricer->constants,
                                       &plan, ADV_FLOPS_CAUSAL_HALF};
    return adv_estimate_memory_again(&input, pricer->scratch, estimate, NULL) == ADV_OK;
}

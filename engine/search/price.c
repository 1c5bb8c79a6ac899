#include "engine/search/price.h"

#include <string.h>

#include "engine/base/units.h"
#include "engine/cost/over_vmem.h"
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

static bool is_near(const struct adv_near_list *list, double score)
{
    return list->count < ADV_NEAR_KEPT || score < list->scores[ADV_NEAR_KEPT - 1];
}

typedef bool is_alike(const struct adv_plan *a, const struct adv_plan *b);

static bool is_solved_with(const struct adv_plan *a, const struct adv_plan *b)
{
    return a->optimizer_host_offload == b->optimizer_host_offload && adv_plan_same_family(a, b);
}

/* Of plans that are `alike` the list holds one. */
static void offer_near(struct adv_near_list *list, is_alike *alike, double score, const struct adv_plan *plan,
                       const struct adv_estimate *estimate)
{
    if (!is_near(list, score)) return;
    for (int i = 0; i < list->count; i++) {
        if (!alike(&list->items[i].plan, plan)) continue;
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

/* Counts the plan. False: the budget is spent, or the request has been given up. */
static bool may_price(struct adv_pricer *pricer)
{
    const bool asks = pricer->evaluated % ASKED_EVERY == 0; /* a stop that was seen is seen again */
    bool over = pricer->evaluated >= pricer->budget;
    if (pricer->stop)
        over |= atomic_load_explicit(pricer->stop, memory_order_relaxed);
    else
        over |= asks && adv_budget_over(pricer->request->budget);
    pricer->spent |= over;
    pricer->evaluated += !over;
    return !over;
}

/* What came out of a plan that was counted: one without a price is none of those evaluated. */
static bool is_priced(struct adv_pricer *pricer, bool known)
{
    pricer->evaluated -= !known;
    return known;
}

/* How far a plan that does not fit is above the limits. */
static double over_limit(const struct adv_estimate *estimate)
{
    double over = estimate->hbm_bytes_per_device / estimate->hbm_limit_bytes_per_device;
    if (estimate->host_limit_bytes_per_host > 0)
        over = adv_max(over, estimate->host_bytes_per_host / estimate->host_limit_bytes_per_host);
    return over;
}

bool adv_price_fits(struct adv_pricer *pricer, const struct adv_estimate *estimate)
{
    return adv_rank_fits_again(&pricer->room, estimate, pricer->share);
}

double adv_price_room_bytes(struct adv_pricer *pricer, const struct adv_estimate *estimate)
{
    return adv_rank_room_again(&pricer->room, estimate, pricer->share);
}

bool adv_price_compiles(const struct adv_pricer *pricer, const struct adv_plan *plan)
{
    const struct adv_advise_request *request = pricer->request;
    const struct adv_estimate_input input = {&request->model, &request->cluster, pricer->constants, plan,
                                             ADV_FLOPS_CAUSAL_HALF};
    struct adv_estimate estimate;
    struct adv_over_vmem found;
    return !pricer->ledger || adv_estimate_plan(&input, &estimate, pricer->ledger, NULL) != ADV_OK ||
           !adv_over_vmem_find(pricer->ledger, &request->cluster.chip, &plan->flags, &found);
}

static void show(struct adv_pricer *pricer, const struct adv_plan *plan, const struct adv_estimate *estimate)
{
    if (adv_price_fits(pricer, estimate)) {
        if (!pricer->ledger ||
            (adv_front_wants(&pricer->front, estimate) && adv_price_compiles(pricer, plan)))
            adv_front_offer(&pricer->front, plan, estimate);
        return;
    }
    const double over = over_limit(estimate), time = adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, estimate);
    offer_near(&pricer->fast, adv_rank_same_mesh, time * over, plan, estimate);
    offer_near(&pricer->small, adv_rank_same_mesh, over, plan, estimate);
    if (over <= 1) offer_near(&pricer->tight, is_solved_with, time, plan, estimate);
}

bool adv_price(struct adv_pricer *pricer, const struct adv_plan *unfinished, struct adv_estimate *estimate)
{
    if (adv_choices_are_finished(unfinished)) return adv_price_as_it_is(pricer, unfinished, estimate);
    struct adv_plan plan = *unfinished;
    adv_choices_finish(&plan);
    return adv_price_as_it_is(pricer, &plan, estimate);
}

bool adv_price_as_it_is(struct adv_pricer *pricer, const struct adv_plan *plan, struct adv_estimate *estimate)
{
    if (!may_price(pricer)) return false;
    struct adv_estimate_input input = {&pricer->request->model, &pricer->request->cluster, pricer->constants,
                                       plan, ADV_FLOPS_CAUSAL_HALF};
    const bool known =
        is_priced(pricer, !adv_plan_uncountable(plan, input.model) &&
                              adv_estimate_again(&input, pricer->scratch, estimate, NULL) == ADV_OK);
    const struct adv_places places = adv_places_of(plan);
    if (pricer->tape) adv_tape_write(pricer->tape, &places, known ? estimate : NULL);
    if (!known || pricer->tape) return known;
    if (pricer->cloud) adv_cloud_offer(pricer->cloud, estimate);
    show(pricer, plan, estimate);
    return true;
}

/* Whether `show` would change anything; it may say so of a plan where it would not. */
static bool would_show(struct adv_pricer *pricer, const struct adv_estimate *estimate)
{
    if (adv_price_fits(pricer, estimate)) return adv_front_wants(&pricer->front, estimate);
    const double over = over_limit(estimate), time = adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, estimate);
    return is_near(&pricer->fast, time * over) || is_near(&pricer->small, over) ||
           (over <= 1 && is_near(&pricer->tight, time));
}

/* Shows a plan that is only written down where somebody looks. */
static void show_placed(struct adv_pricer *pricer, const struct adv_plan_source *family,
                        const struct adv_places *places, const struct adv_estimate *priced)
{
    if (pricer->cloud) adv_cloud_offer(pricer->cloud, priced);
    if (!would_show(pricer, priced)) return;
    struct adv_plan plan;
    struct adv_estimate estimate = {.step_time_s = 0.0};
    memcpy(&estimate, priced, ADV_ESTIMATE_AGAIN_BYTES);
    family->write(family->context, &plan);
    adv_places_write(places, &plan);
    adv_choices_finish(&plan);
    show(pricer, &plan, &estimate);
}

bool adv_price_again(struct adv_pricer *pricer, const struct adv_tape *tape, int at,
                     const struct adv_plan_source *family)
{
    struct adv_estimate estimate;
    if (!may_price(pricer)) return false;
    if (is_priced(pricer, adv_tape_read(tape, at, &estimate)))
        show_placed(pricer, family, &tape->rows[at].places, &estimate);
    return true;
}

static void copy_plan(const void *context, struct adv_plan *plan)
{
    *plan = *(const struct adv_plan *)context;
}

bool adv_price_placed(struct adv_pricer *pricer, const struct adv_plan *family,
                      const struct adv_places *places, struct adv_estimate *estimate)
{
    if (!may_price(pricer)) return false;
    const signed char scheduling = adv_choices_scheduling(family, places->tensors);
    const bool known =
        is_priced(pricer, adv_estimate_placed(pricer->scratch, places, scheduling, estimate, NULL) == ADV_OK);
    const struct adv_plan_source source = {copy_plan, family};
    if (pricer->tape)
        adv_tape_write(pricer->tape, places, known ? estimate : NULL);
    else if (known)
        show_placed(pricer, &source, places, estimate);
    return known;
}

void adv_price_memory(const struct adv_pricer *pricer, const struct adv_plan *family,
                      const struct adv_places *places, struct adv_estimate *estimate)
{
    adv_estimate_memory_placed(pricer->scratch, places, adv_choices_scheduling(family, places->tensors),
                               estimate);
}

#include "engine/search/why.h"

#include <math.h>
#include <stdio.h>

#include "engine/base/units.h"
#include "engine/rank/rank.h"

/* Says which memory is short, and which change would help. `others_help`: of the misses in the answer,
 * another one has a remedy.
 */
static void explain(const struct adv_remedy *remedy, double asked_frac, double best_s, bool others_help,
                    const char *larger, struct adv_near_miss *miss)
{
    const struct adv_estimate *estimate = &miss->candidate.estimate;
    const double hbm_limit = asked_frac * estimate->hbm_limit_bytes_per_device;
    const double host_limit = asked_frac * estimate->host_limit_bytes_per_host;
    double hbm = estimate->hbm_bytes_per_device - hbm_limit;
    double host = estimate->host_bytes_per_host - host_limit;
    bool host_short = host > 0 && !(hbm > 0);
    double short_bytes = host_short ? host : hbm;
    char gain[64] = "", share[64] = "";
    const char *helps = remedy->text;
    if (!remedy->found && others_help)
        helps = "no memory saver makes this mesh fit, but the first near miss has one";
    if (best_s > 0) (void)snprintf(gain, sizeof gain, " (the best that fits takes %.3f s)", best_s);
    if (asked_frac < 1)
        (void)snprintf(share, sizeof share, " that search.memory_frac=%.4g allows", asked_frac);
    (void)snprintf(miss->reason, sizeof miss->reason,
                   "%.3f s a step%s, but %.2f GiB of %s memory are %s (%.2f of %.2f GiB%s); %s%s",
                   estimate->step_time_s, gain, fabs(short_bytes) / ADV_GIB, host_short ? "host" : "device",
                   short_bytes > 0 ? "short" : "all that is left, too little to be sure",
                   (host_short ? estimate->host_bytes_per_host : estimate->hbm_bytes_per_device) / ADV_GIB,
                   (host_short ? host_limit : hbm_limit) / ADV_GIB, share, helps,
                   remedy->found || others_help ? "" : larger);
}

/* Says how likely the plan fits, rounded down lest it read as what is asked for, which probability ranks it,
 * and what settles it. */
static void explain_unsure(double probability_asked, double ranks, double best_s, struct adv_near_miss *miss)
{
    const struct adv_estimate *estimate = &miss->candidate.estimate;
    (void)snprintf(miss->reason, sizeof miss->reason,
                   "%.3f s a step (the best that fits takes %.3f s), and it fits with a probability of %.2f "
                   "where %.4g is asked for: search.fit_probability=%.2f ranks it or one as good, and the "
                   "compiler says whether it fits (verify)",
                   estimate->step_time_s, best_s, floor(100 * estimate->fit_probability) / 100,
                   probability_asked, ranks);
}

/* Whether the plan that may fit speaks against another one: of its own family, which is neither faster nor
 * surer; or both, but with an interval for which it is ranked behind. */
static bool is_outdone(const struct adv_search_result *result, const struct adv_candidate *candidate)
{
    if (!result->has_unsure) return false;
    const struct adv_estimate *unsure = &result->unsure.estimate, *its = &candidate->estimate;
    const bool faster = its->step_time_s < unsure->step_time_s;
    const bool surer = its->fit_probability > unsure->fit_probability;
    return (faster && surer) ||
           (!faster && !surer && adv_plan_same_family(&result->unsure.plan, &candidate->plan));
}

/* The best that fits: its metric, and its time in seconds; 0 when there is none. */
static double best_found(const struct adv_search_result *result, double *best_s)
{
    double best = *best_s = 0;
    for (int i = 0; i < result->found_count; i++) {
        double metric = adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &result->found[i].estimate);
        if (i > 0 && metric >= best) continue;
        best = metric;
        *best_s = result->found[i].estimate.step_time_s;
    }
    return best;
}

/* Whether a remedy is told before another: it costs less, or as much and the plan that it makes is faster. */
static bool is_before(const struct adv_remedy *remedy, const struct adv_remedy *other)
{
    if (remedy->cost != other->cost || !remedy->found) return remedy->cost < other->cost;
    return adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &remedy->estimate) <
           adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &other->estimate);
}

/* Cheapest remedy first; in the order of the search where nothing tells them apart. */
static void insert(const struct adv_remedy *remedies, int order[ADV_NEAR_KEPT], int count, int item)
{
    int at = count;
    while (at > 0 && is_before(&remedies[item], &remedies[order[at - 1]])) {
        order[at] = order[at - 1];
        at--;
    }
    order[at] = item;
}

adv_code adv_near_misses_find(const struct adv_advise_request *request, const struct adv_constants *constants,
                              struct adv_pricer *pricer, struct adv_arena *arena,
                              struct adv_search_result *result, adv_err *err)
{
    struct adv_near_list *list = result->found_count > 0 ? &pricer->fast : &pricer->small;
    struct adv_remedy *remedies = adv_arena_array(arena, ADV_NEAR_KEPT, sizeof *remedies);
    result->near_misses = adv_arena_array(arena, ADV_SEARCH_NEAR, sizeof *result->near_misses);
    if (!result->near_misses || !remedies)
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    if (request->objective == ADV_OBJECTIVE_HBM && result->found_count > 0)
        return ADV_OK; /* least HBM is the goal: a larger plan has nothing that speaks for it */
    double best_s = 0, best = best_found(result, &best_s);
    int order[ADV_NEAR_KEPT], count = 0;
    for (int i = 0; i < list->count; i++) {
        adv_estimate_verdict(&list->items[i].estimate);
        bool faster = adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &list->items[i].estimate) <
                      best * (1 - ADV_WORTH_TELLING_FRAC);
        if (result->found_count > 0 && (!faster || is_outdone(result, &list->items[i]))) continue;
        if (adv_budget_over(request->budget)) return adv_budget_refuse(err);
        adv_remedy_find(request, constants, &list->items[i].plan, &remedies[i]);
        insert(remedies, order, count++, i);
    }
    bool any_helps = count > 0 && remedies[order[0]].found;
    char larger[ADV_LIMIT_NAME] = "";
    if (count > 0 && !any_helps && result->found_count == 0)
        adv_larger_slice(request, constants, larger, sizeof larger);
    if (result->has_unsure) {
        struct adv_near_miss *miss = &result->near_misses[result->near_count++];
        miss->candidate = result->unsure;
        explain_unsure(request->fit_probability, result->unsure_probability, best_s, miss);
    }
    for (int i = 0; i < count && result->near_count < ADV_SEARCH_NEAR; i++) {
        struct adv_near_miss *miss = &result->near_misses[result->near_count++];
        miss->candidate = list->items[order[i]];
        explain(&remedies[order[i]], request->memory_frac, best_s, any_helps, larger, miss);
    }
    return ADV_OK;
}

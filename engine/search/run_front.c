/* run_front.c: the front's thrifty end, where a search for speed has no business: the smallest plans of the
 * families in the answer, and the most frugal families of all, with the optimizer state on the device and on
 * the host. They are shown to the front as they are priced. */
#include "engine/search/frugal.h"
#include "engine/search/run.h"

struct widening {
    struct adv_search_run *run;
    bool offloads; /* frugal families also with the optimizer state on the host */
    struct adv_frugal frugal[ADV_FRUGAL_PLANS];
    int frugal_count;
    struct adv_in_order job;
    struct ahead {
        struct adv_tape tape;
        struct adv_plan family; /* what its plans have in common */
        bool whole;
    } ahead[ADV_IN_ORDER_SLOTS];
};

/* The smallest plan of `family` is priced; what else became of it nobody asks. */
static void price_smallest(const struct adv_search_run *run, struct adv_pricer *pricer,
                           const struct adv_plan *family)
{
    struct adv_plan plan = *family;
    struct adv_estimate estimate;
    (void)adv_remat_smallest(&run->open, pricer, &plan, &estimate);
}

static void price_ahead(struct widening *widening, int worker, int slot, const struct adv_plan *family)
{
    struct ahead *ahead = &widening->ahead[slot];
    adv_tape_rewind(&ahead->tape);
    struct adv_pricer *pricer = adv_run_pricer(widening->run, worker, &ahead->tape, &widening->job.stop);
    ahead->family = *family;
    adv_remat_set_all(&widening->run->open, &ahead->family, ADV_PLACE_REMAT);
    price_smallest(widening->run, pricer, family);
    ahead->whole = !pricer->spent && !ahead->tape.broken;
}

static void write_family(const void *context, struct adv_plan *plan)
{
    *plan = ((const struct ahead *)context)->family;
}

/* False: it was not priced, or is more than the budget has left. */
static bool show_ahead(struct widening *widening, int slot)
{
    struct ahead *ahead = &widening->ahead[slot];
    struct adv_pricer *pricer = &widening->run->pricer;
    const struct adv_plan_source source = {write_family, ahead};
    if (!ahead->whole || ahead->tape.count > pricer->budget - pricer->evaluated) return false;
    for (int i = 0; i < ahead->tape.count; i++) (void)adv_price_again(pricer, &ahead->tape, i, &source);
    return true;
}

/* The first item is the search for the frugal families, which no pricing waits for; behind it come the
 * families in the answer. */
static const struct adv_plan *kept_plan(const struct widening *widening, int item)
{
    return &widening->run->kept[item - 1].plan;
}

static bool widen_by_kept(void *context, int item)
{
    struct widening *widening = context;
    struct adv_search_run *run = widening->run;
    if (item == 0)
        widening->frugal_count = adv_frugal_families(&run->space, 0, widening->frugal);
    else
        price_smallest(run, &run->pricer, kept_plan(widening, item));
    return !run->pricer.spent;
}

static void kept_ahead(void *context, int worker, int slot, int item)
{
    struct widening *widening = context;
    if (item == 0)
        (void)widen_by_kept(widening, item);
    else
        price_ahead(widening, worker, slot, kept_plan(widening, item));
}

static bool take_kept(void *context, int slot, int item)
{
    struct widening *widening = context;
    if (item > 0 && !show_ahead(widening, slot)) return widen_by_kept(widening, item);
    return !widening->run->pricer.spent;
}

static struct adv_plan frugal_plan(const struct widening *widening, int item)
{
    const int each = widening->offloads ? 2 : 1;
    struct adv_plan plan;
    adv_space_plan(&widening->run->space, widening->frugal[item / each].family, &plan);
    if (item % each == 1) plan.optimizer_host_offload = true;
    return plan;
}

static bool widen_by_frugal(void *context, int item)
{
    struct widening *widening = context;
    const struct adv_plan plan = frugal_plan(widening, item);
    price_smallest(widening->run, &widening->run->pricer, &plan);
    return !widening->run->pricer.spent;
}

static void frugal_ahead(void *context, int worker, int slot, int item)
{
    struct widening *widening = context;
    const struct adv_plan plan = frugal_plan(widening, item);
    price_ahead(widening, worker, slot, &plan);
}

static bool take_frugal(void *context, int slot, int item)
{
    struct widening *widening = context;
    if (!show_ahead(widening, slot)) return widen_by_frugal(widening, item);
    return !widening->run->pricer.spent;
}

static bool is_given_up(void *context)
{
    struct adv_search_run *run = ((const struct widening *)context)->run;
    run->pricer.spent |= adv_budget_over(run->request->budget);
    return run->pricer.spent;
}

void adv_run_widen_front(struct adv_search_run *run, bool offloads)
{
    struct widening widening = {.run = run, .offloads = offloads};
    widening.job = (struct adv_in_order){.context = &widening,
                                         .count = run->kept_count + 1,
                                         .work = kept_ahead,
                                         .take = take_kept,
                                         .direct = widen_by_kept,
                                         .over = is_given_up};
    adv_run_in_order(run, &widening.job, true);
    widening.job = (struct adv_in_order){.context = &widening,
                                         .count = widening.frugal_count * (offloads ? 2 : 1),
                                         .work = frugal_ahead,
                                         .take = take_frugal,
                                         .direct = widen_by_frugal,
                                         .over = is_given_up};
    if (!run->pricer.spent) adv_run_in_order(run, &widening.job, true);
    for (int i = 0; i < ADV_IN_ORDER_SLOTS; i++) adv_tape_free(&widening.ahead[i].tape);
}

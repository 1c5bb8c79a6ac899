#include <limits.h>
#include <stdlib.h>

#include "engine/cost/scratch.h"
#include "engine/search/run.h"

static struct adv_crew *crew_of(const struct adv_search_run *run)
{
    return run->request->budget ? run->request->budget->crew : NULL;
}

void adv_run_make_workers(struct adv_search_run *run)
{
    if (!crew_of(run)) return;
    run->workers = calloc(ADV_IN_ORDER_WORKERS, sizeof *run->workers);
    run->helper_scratch = malloc(sizeof *run->helper_scratch);
    if (!run->workers || !run->helper_scratch) {
        adv_run_free_workers(run);
        return;
    }
    run->helper_scratch->valid = false;
    run->workers[0].pricer.scratch = run->pricer.scratch;
    run->workers[1].pricer.scratch = run->helper_scratch;
}

void adv_run_free_workers(struct adv_search_run *run)
{
    free(run->workers);
    free(run->helper_scratch);
    run->workers = NULL;
    run->helper_scratch = NULL;
}

struct adv_pricer *adv_run_pricer(const struct adv_search_run *run, int worker, struct adv_tape *tape,
                                  const atomic_bool *stop)
{
    struct adv_pricer *pricer = &run->workers[worker].pricer;
    pricer->request = run->request;
    pricer->constants = run->pricer.constants;
    pricer->share = run->pricer.share;
    pricer->evaluated = 0;
    pricer->budget = LONG_MAX;
    pricer->spent = false;
    pricer->tape = tape;
    pricer->stop = worker > 0 ? stop : NULL; /* the request's budget is asked by its own thread alone */
    return pricer;
}

void adv_run_in_order(struct adv_search_run *run, struct adv_in_order *job, bool has_room)
{
    adv_in_order_run(job, has_room && run->workers ? crew_of(run) : NULL);
}

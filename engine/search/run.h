/* run.h: one search from start to end, as the passes of run.c share it. */
#pragma once

#include "engine/search/bounds.h"
#include "engine/search/in_order.h"
#include "engine/search/price.h"
#include "engine/search/remat_space.h"
#include "engine/search/search.h"
#include "engine/search/space.h"

/* The tools of a thread that prices ahead of the run. */
struct adv_run_worker {
    struct adv_pricer pricer; /* with a tape; the first one's scratch is the run's */
};

/* Families that are no plan or cannot enter the answer have no bound. That of a family which another one
 * bounds is worked out when the cutoff is known: most are above it. */
enum adv_run_bounded { ADV_RUN_UNBOUNDED = -1, ADV_RUN_DERIVED = -2 };

struct adv_search_run {
    const struct adv_advise_request *request;
    struct adv_arena *arena;
    struct adv_search_result *result;
    struct adv_space space;
    struct adv_remat_space open;
    struct adv_pricer pricer;
    struct adv_candidate *kept; /* best plans of solved families, by metric; ADV_RANK_KEPT entries */
    int kept_count;
    double cutoff;                      /* a family bounded above it cannot enter the answer */
    double *least;                      /* of each family: what none of its plans is below by the metric */
    struct adv_bound *bounds, *scratch; /* room for one of each family */
    int *bound_at;     /* of each family where its bound stands in `bounds`, or enum adv_run_bounded */
    int derived_count; /* of them */
    bool offloaded;    /* families were looked at once more with the optimizer state on the host */
    struct adv_run_worker *workers; /* one for each thread; NULL: nothing is priced ahead */
    struct adv_cost_scratch *helper_scratch;
    struct adv_rank_share share; /* of the limits, that plans may use before any compromise */
    struct adv_ledger *ledger;   /* with a baseline: for what comes of it, whose tiles need not compile */
    bool complete;
    bool no_memory; /* the system had none for the bounds */
};

/* How many of the best plans a search settles: those of the answer, and always the one after the first, for
 * the explanation of the first. */
static inline int adv_run_ranked_count(const struct adv_advise_request *request)
{
    return request->top_k > 1 ? request->top_k : 2;
}

/* Of the limit, that plans with nothing on the host may take to fit with `probability`. */
double adv_run_limit_frac(const struct adv_search_run *run, double probability);

/* Whether `a` is better by the objective; of plans that take the same memory, faster. */
bool adv_run_comes_before(enum adv_objective objective, const struct adv_estimate *a,
                          const struct adv_estimate *b);

/* Takes a plan into the answer, where it is good enough: with room for its ties (rank.h proves that no more
 * is needed), and of a family the best only. The estimate's interval is set. */
void adv_run_insert(struct adv_search_run *run, const struct adv_plan *plan,
                    const struct adv_estimate *estimate);

/* The same beside what is there of its family. */
void adv_run_add(struct adv_search_run *run, const struct adv_plan *plan,
                 const struct adv_estimate *estimate);

/* Makes room for a helper, where one may come: not of the arena, so that a search has as much memory with one
 * as without. Without room there is none. */
void adv_run_make_workers(struct adv_search_run *run);
void adv_run_free_workers(struct adv_search_run *run);

/* The pricer of worker `worker`, to price ahead onto `tape` until `stop`. */
struct adv_pricer *adv_run_pricer(const struct adv_search_run *run, int worker, struct adv_tape *tape,
                                  const atomic_bool *stop);

/* Works on `job`, with a helper where there is one, and, as `has_room` says, room for what it finds. */
void adv_run_in_order(struct adv_search_run *run, struct adv_in_order *job, bool has_room);

/* Looks at every family, and bounds those that are not out of the question and that no other one bounds, into
 * run->bounds, in the order of the families; those out of the question are counted. Returns how many bounds
 * there are. */
int adv_run_bound(struct adv_search_run *run);

/* Adds the derived bounds that are not above the cutoff to the `priced` others, in the order of the families.
 * Returns how many. */
int adv_run_derive(struct adv_search_run *run, int priced, double cutoff);

/* Goes through all families of the space with the base as it is, best bound first, until no further one can
 * enter the answer. */
void adv_run_families(struct adv_search_run *run);

/* Takes a plan that is likely to fit into the answer, improved with what is left of the budget. */
void adv_run_frugally(struct adv_search_run *run);

/* Where the plan that would be first is not almost sure to fit (ADV_RANK_ALMOST_SURE_PROBABILITY): adds the
 * first of those tied with the best that are, of the families of the best plans. */
ADV_MUST_CHECK adv_code adv_run_add_surer(struct adv_search_run *run, adv_err *err);

/* Fills result->unsure: the fastest plan found of those that fit with less certainty than is asked for,
 * faster than what is ranked, and the probability with which a search finds it. */
ADV_MUST_CHECK adv_code adv_run_find_unsure(struct adv_search_run *run, adv_err *err);

/* Shows the front what takes least memory: of the families in the answer, and of the most frugal ones, also,
 * as `offloads` says, with the optimizer state on the host. */
void adv_run_widen_front(struct adv_search_run *run, bool offloads);

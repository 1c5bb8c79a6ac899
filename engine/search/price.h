/* price.h: the one place where the search estimates a plan: counts it, minds the budget, and shows what came
 * out. */
#pragma once

#include <stdatomic.h>

#include "engine/cost/ledger.h"
#include "engine/maxtext/read.h"
#include "engine/rank/pareto.h"
#include "engine/rank/rank.h"
#include "engine/search/cloud.h"
#include "engine/search/tape.h"
#include "engine/spec/request.h"

enum { ADV_NEAR_KEPT = 8 };

/* Plans that did not fit, one of a kind, best score first. */
struct adv_near_list {
    int count;
    double scores[ADV_NEAR_KEPT];
    struct adv_candidate items[ADV_NEAR_KEPT];
};

struct adv_pricer {
    const struct adv_advise_request *request;
    const struct adv_reread *baseline; /* see adv_search_run */
    const struct adv_constants *constants;
    struct adv_cost_scratch *scratch; /* of the family being priced; from the request's arena */
    struct adv_rank_share share;      /* of the limits, that a plan may use: rank.h */
    struct adv_rank_room room;        /* adv_price_fits's own */
    long evaluated, budget;
    bool spent;                 /* the budget ran out: something was left unpriced */
    struct adv_front front;     /* of the plans that fit */
    struct adv_cloud *cloud;    /* of all plans; NULL: nobody asked */
    struct adv_near_list fast;  /* one of a mesh, by time x (memory over limit): fast and nearly fitting */
    struct adv_near_list small; /* one of a mesh, by memory over limit */
    struct adv_near_list tight; /* within the limit, but above what a plan may use: by time, one of a family
                                   with its optimizer where it is */
    struct adv_ledger *ledger;  /* NULL: tiles were tuned, and are not asked whether they compile */
    struct adv_tape *tape;   /* where what is priced is written instead of being counted and shown; or NULL */
    const atomic_bool *stop; /* of a pricer with a tape: asked instead of the request's budget; or NULL */
};

/* Estimates `plan` with the flags that belong to it (adv_choices_finish). False: budget spent or plan
 * unsupported (adv_plan_uncountable, or what has no place on the torus), which counts as none; `estimate` is
 * then not to be read. */
bool adv_price(struct adv_pricer *pricer, const struct adv_plan *plan, struct adv_estimate *estimate);

/* The same with the flags that the plan has. */
bool adv_price_as_it_is(struct adv_pricer *pricer, const struct adv_plan *plan,
                        struct adv_estimate *estimate);

/* Whether the plan's kernels find the VMEM that their tiles need; true without a ledger. Some dozen
 * evaluations' work, not counted. */
bool adv_price_compiles(const struct adv_pricer *pricer, const struct adv_plan *plan);

/* adv_price for a plan of the family that adv_price priced last, and knew: `family`, any of its plans, with
 * its tensors in these places. */
bool adv_price_placed(struct adv_pricer *pricer, const struct adv_plan *family,
                      const struct adv_places *places, struct adv_estimate *estimate);

/* The memory of such a plan alone (adv_estimate_memory_placed): a small part of an evaluation's work, not
 * counted, shown to nobody. */
void adv_price_memory(const struct adv_pricer *pricer, const struct adv_plan *family,
                      const struct adv_places *places, struct adv_estimate *estimate);

/* Whether a plan that was priced may be proposed, and HBM bytes that such plans may take. */
bool adv_price_fits(struct adv_pricer *pricer, const struct adv_estimate *estimate);
double adv_price_room_bytes(struct adv_pricer *pricer, const struct adv_estimate *estimate);

/* A family's plan, for adv_price_again. */
struct adv_plan_source {
    void (*write)(const void *context, struct adv_plan *plan);
    const void *context;
};

/* Counts and shows row `at` of a tape as adv_price does. False: budget spent. */
bool adv_price_again(struct adv_pricer *pricer, const struct adv_tape *tape, int at,
                     const struct adv_plan_source *family);

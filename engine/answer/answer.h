/* answer.h: one request on its way through the engine. Only this folder knows all the others.
 *
 * A document is decoded into a request, the request is answered by a struct, and the struct is encoded in one
 * pass. There is a function for each kind of request, in a file of its own; answer.c calls them.
 */
#pragma once

#include "engine/advise.h"
#include "engine/base/arena.h"
#include "engine/base/budget.h"
#include "engine/json/json_read.h"
#include "engine/spec/request.h"

struct adv_answer_job {
    const struct adv_catalog *catalog;
    const json_t *root;              /* the document */
    const struct adv_budget *budget; /* NULL: none */
    struct adv_arena arena;          /* holds the request and its answer */
    adv_err *warnings, *err;
    struct adv_answer *answer; /* its tags; `json` is left to the caller */
    json_t *result;            /* the answer encoded, a new reference */
};

/* Each fills job->result and the tags. On error the findings are in job->err and the result is NULL. */
ADV_MUST_CHECK adv_code adv_answer_estimate(struct adv_answer_job *job);
ADV_MUST_CHECK adv_code adv_answer_advise(struct adv_answer_job *job);
ADV_MUST_CHECK adv_code adv_answer_simulate(struct adv_answer_job *job);
ADV_MUST_CHECK adv_code adv_answer_tune(struct adv_answer_job *job);
ADV_MUST_CHECK adv_code adv_answer_lint(struct adv_answer_job *job);

/* ADV_E_MEMORY, with its finding. */
adv_code adv_answer_no_memory(adv_err *err);

/* Names the job in the answer's tags; `estimate` may be NULL. */
struct adv_estimate;
void adv_answer_tag(struct adv_answer_job *job, const struct adv_model *model,
                    const struct adv_cluster *cluster, const struct adv_estimate *estimate);
void adv_answer_tag_wish(struct adv_answer_job *job, const struct adv_store_wish *wish);

/* Warns where the chip's predictions are corrected by what was fitted on those of another engine
 * ("calibration-of-another-engine"). `constants`: those of the chip. */
void adv_answer_warn_of_calibration(const struct adv_answer_job *job, const struct adv_constants *constants);

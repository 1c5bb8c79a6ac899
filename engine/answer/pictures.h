/* pictures.h: what an answer holds beside its usual members, because the request includes it. */
#ifndef ADV_ANSWER_PICTURES_H
#define ADV_ANSWER_PICTURES_H

#include "engine/answer/answer.h"
#include "engine/cost/input.h"

/* Sets timeline, roofline, links and scaling in job->result where `include` has their bits. */
ADV_MUST_CHECK adv_code adv_answer_include(struct adv_answer_job *job, unsigned include,
                                           const struct adv_estimate_input *input);

#endif

/* decode_gate.h: the bodies of the gate's requests: POST /v1/checks and PUT /v1/baselines. Thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"

/* The limits of a check: the limit's name, the code of its reason, the largest value that is taken. Ten
 * thousand percent is no limit any more but somebody's percent written as a fraction, and no decrease is one
 * of 100 %. Adding a limit = adding a row here and to the measures of server/gate.c. The limit on the step
 * time is one on the time per token: a step with other tokens is another amount of work. */
#define ADV_GATE_LIMIT_TABLE(X)                                                                              \
    X(STEP_TIME, "step_time_increase_frac", "step_time", 100.0)                                              \
    X(TIME_PER_TOKEN, "time_per_token_increase_frac", "time_per_token", 100.0)                               \
    X(TOKENS_PER_CHIP, "tokens_per_s_per_chip_decrease_frac", "tokens_per_s_per_chip", 0.99)                 \
    X(USD_PER_TOKEN, "usd_per_token_increase_frac", "usd_per_token", 100.0)                                  \
    X(HBM, "hbm_increase_frac", "hbm", 100.0)
#define ADV_GATE_LIMIT_ENUM(name, member, code, most) ADV_GATE_##name,
enum adv_gate_limit { ADV_GATE_LIMIT_TABLE(ADV_GATE_LIMIT_ENUM) ADV_GATE_LIMITS };
#undef ADV_GATE_LIMIT_ENUM

/* In what the two sides may only differ when the check says so ("allow_unlike"). */
enum adv_gate_unlike { ADV_GATE_UNLIKE_MODEL, ADV_GATE_UNLIKE_SEQUENCE, ADV_GATE_UNLIKES };

struct adv_gate_request {
    char baseline_run_id[ADV_LIMIT_NAME]; /* or, when "", project and label */
    char baseline_project[ADV_LIMIT_NAME], baseline_label[ADV_LIMIT_NAME];
    char candidate_run_id[ADV_LIMIT_NAME];  /* or, when "", candidate_request */
    char candidate_git_ref[ADV_LIMIT_NAME]; /* that the request names; "" = none */
    char *candidate_request;                /* an estimate request as JSON text; malloc'ed, may be NULL */
    size_t candidate_request_bytes;
    double limits_frac[ADV_GATE_LIMITS]; /* NAN: not a limit */
    bool must_fit;                       /* default true */
    bool must_compile;                   /* by the real compiler's word; default false */
    bool reports;                        /* Markdown and JUnit within the JSON */
    bool may_differ[ADV_GATE_UNLIKES];
};

const char *adv_gate_limit_member(enum adv_gate_limit limit);
const char *adv_gate_limit_code(enum adv_gate_limit limit);
const char *adv_gate_unlike_name(enum adv_gate_unlike unlike); /* "model", "sequence_length" */

/* {baseline: {run_id} | {project, label}, candidate: {run_id} | estimate request, limits?: {…},
 * allow_unlike?: […], reports?: bool}; all findings at once. */
ADV_MUST_CHECK adv_code adv_decode_gate(const char *json, size_t json_bytes, struct adv_gate_request *request,
                                        adv_err *err);
void adv_gate_request_free(struct adv_gate_request *request);

/* {run_id} */
ADV_MUST_CHECK adv_code adv_decode_run_id(const char *json, size_t json_bytes, char run_id[ADV_LIMIT_NAME],
                                          adv_err *err);

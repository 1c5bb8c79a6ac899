/* decode_gate.h: the bodies of the gate's requests: POST /v1/checks and PUT /v1/baselines. Thread safe. */
#ifndef ADV_JSON_DECODE_GATE_H
#define ADV_JSON_DECODE_GATE_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"

struct adv_gate_request {
    char baseline_run_id[ADV_LIMIT_NAME]; /* or, when "", project and label */
    char baseline_project[ADV_LIMIT_NAME], baseline_label[ADV_LIMIT_NAME];
    char candidate_run_id[ADV_LIMIT_NAME]; /* or, when "", candidate_request */
    char *candidate_request;               /* an estimate request as JSON text; malloc'ed, may be NULL */
    size_t candidate_request_bytes;
    double step_time_increase_frac, hbm_increase_frac; /* NAN: not a limit */
    bool must_fit;                                     /* default true */
};

/* {baseline: {run_id} | {project, label}, candidate: {run_id} | estimate request, limits?: {…}}; all findings
 * at once. */
ADV_MUST_CHECK adv_code adv_decode_gate(const char *json, size_t json_bytes, struct adv_gate_request *request,
                                        adv_err *err);
void adv_gate_request_free(struct adv_gate_request *request);

/* {run_id} */
ADV_MUST_CHECK adv_code adv_decode_run_id(const char *json, size_t json_bytes, char run_id[ADV_LIMIT_NAME],
                                          adv_err *err);

#endif

/* decode_proof.h: the body of POST /v1/runs/{run_id}/verifications. Thread safe. */
#ifndef ADV_JSON_DECODE_PROOF_H
#define ADV_JSON_DECODE_PROOF_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"

struct adv_proof_request {
    int first_rank, last_rank; /* "rank": n is n … n, "top": k is 1 … k */
    bool whole;                /* "mode": "whole" */
};

/* {rank | top, mode?}; an empty document asks for rank 1. All findings at once. */
ADV_MUST_CHECK adv_code adv_decode_proof_request(const char *json, size_t json_bytes,
                                                 struct adv_proof_request *request, adv_err *err);

#endif

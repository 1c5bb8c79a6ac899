/* decode_bodies.h: the small bodies of the store's routes: a project to calibrate, plans to verify, a
 * measurement and the answer it belongs to. All findings at once. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"
#include "engine/calibrate/measured.h"

/* POST /v1/calibrations: {"project": "alpha"}; the name goes into `project`. */
ADV_MUST_CHECK adv_code adv_decode_calibration(const char *json, size_t json_bytes,
                                               char project[ADV_LIMIT_NAME], adv_err *err);

struct adv_proof_request {
    int first_rank, last_rank; /* "rank": n is n … n, "top": k is 1 … k */
    bool whole;                /* "mode": "whole" */
};

/* POST /v1/runs/{run_id}/verifications: {rank | top, mode?}; an empty document asks for rank 1. */
ADV_MUST_CHECK adv_code adv_decode_proof_request(const char *json, size_t json_bytes,
                                                 struct adv_proof_request *request, adv_err *err);

/* POST /v1/runs/{run_id}/measurements: {step_time_s, tokens_per_s_per_chip?, hbm_bytes_per_device?, source,
 * at}. */
ADV_MUST_CHECK adv_code adv_decode_measured(const char *json, size_t json_bytes,
                                            struct adv_measured *measured, adv_err *err);

/* The prediction for plan `rank` (from 1) of a stored answer of an estimate or advise request. Errors as
 * adv_decode_answer. */
ADV_MUST_CHECK adv_code adv_decode_measured_plan(const char *response_json, size_t response_bytes, int rank,
                                                 struct adv_measured_plan *plan, adv_err *err);

/* 2026-11-21 or 2026-11-21T05:00:00Z by its looks, not the calendar; seconds may be left out or have a
 * fraction, and the place of Z have an offset: +01:00, -0930, +02. */
bool adv_looks_like_time(const char *text);

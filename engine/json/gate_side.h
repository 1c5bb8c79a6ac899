/* gate_side.h: what a check compares of an answer, and the question that asks for it again.
 *
 * An answer is that of an estimate, or of an advise: then it stands for its first plan. Thread safe.
 */
#pragma once

#include <stdbool.h>

#include "engine/base/err.h"
#include "engine/catalog/catalog.h"

struct adv_gate_numbers {
    double step_time_s, step_time_low_s, step_time_high_s; /* 90 % interval */
    double tokens_per_step, sequence_tokens;
    double tokens_per_s_per_chip, usd_per_billion_tokens; /* NAN without a price */
    double hbm_bytes_per_device;
    bool fits; /* also where it is tight */
    char fit_verdict[ADV_LIMIT_NAME];
    double fit_probability;
    char over_vmem[ADV_LIMIT_DETAIL]; /* which kernel does not compile for want of VMEM; ""
                                         none */
    char model[ADV_LIMIT_NAME], decoder_block[ADV_LIMIT_NAME];
    double layers_count, params_total, params_active; /* with the block, what tells models apart */
    double tflops_per_token; /* of the model at that length, however the step is made: windows count here */
    double expert_capacity_factor;   /* by which routed tokens are dropped; NAN: none is */
    char convention[ADV_LIMIT_NAME]; /* by which those are counted */
    char variant[ADV_LIMIT_DETAIL];  /* how it differs from the named model; "" not at all */
    char chip[ADV_LIMIT_NAME], topology[ADV_LIMIT_NAME];
    int slices;
    double price_usd_per_chip_hour;  /* NAN: none */
    bool is_what_if;                 /* its hardware is not the published one */
    char numerics[ADV_LIMIT_DETAIL]; /* number formats and optimizer, where they are not MaxText's defaults */
    char maxtext[ADV_LIMIT_NAME], libtpu[ADV_LIMIT_NAME]; /* releases that it is for; "" not said */
    int warnings_count;              /* of the plan; those that other members tell are not among them */
    char warnings[ADV_LIMIT_DETAIL]; /* "remat_polcy is not a MaxText key; …", as far as there is room */
    char outdated[ADV_LIMIT_DETAIL]; /* why its calibration should be fitted again; "" not at all */
    char engine_version[ADV_LIMIT_NAME], catalog_hash[ADV_LIMIT_NAME], calibration[ADV_LIMIT_NAME];
};

/* ADV_E_INVALID: the answer holds no step time (of a kernel, or without a plan that fits). */
ADV_MUST_CHECK adv_code adv_gate_read_answer(const char *response_json, struct adv_gate_numbers *numbers,
                                             adv_err *err);

/* Whether this engine gave the answer by `catalog`: same version, catalog and calibration. */
bool adv_gate_is_todays(const struct adv_catalog *catalog, const struct adv_gate_numbers *numbers);

/* The estimate request that prices the same plan again, under the calibration of `project` ("": none): the
 * run's own, or that of an advise's plan `rank`, from 1. Without wishes to be stored. *json is malloc'ed.
 * ADV_E_INVALID: the answer does not say on which machine the plan is. */
ADV_MUST_CHECK adv_code adv_gate_ask_again(const char *request_json, const char *response_json, int rank,
                                           const char *project, char **json, adv_err *err);

/* A run's request as it reads under the run's project, which may have come from a token: another asks the
 * same by it. *json is malloc'ed. */
ADV_MUST_CHECK adv_code adv_gate_name_project(const char *request_json, const char *project, char **json,
                                              adv_err *err);

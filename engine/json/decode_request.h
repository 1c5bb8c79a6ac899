/* decode_request.h: an estimate or advise request (POST /v1/estimate, /v1/advise) becomes a checked struct.
 *
 * All errors of a document are reported at once: unknown members with the nearest name, wrong types, wrong
 * keys, and every legality rule the configuration breaks. Requests live in `arena`; documents may be freed
 * afterwards.
 */
#pragma once

#include "engine/base/arena.h"
#include "engine/catalog/catalog.h"
#include "engine/json/json_read.h"
#include "engine/spec/request.h"

/* Fills `request` from the document `root`. On error the struct is not usable: ADV_E_INVALID (members),
 * ADV_E_ILLEGAL (the combination), ADV_E_UNSUPPORTED, ADV_E_MEMORY. `warnings` gets what the answer should
 * tell; it may be NULL. */
ADV_MUST_CHECK adv_code adv_decode_estimate_request(const struct adv_catalog *catalog, const json_t *root,
                                                    struct adv_arena *arena,
                                                    struct adv_estimate_request *request, adv_err *err,
                                                    adv_err *warnings);

ADV_MUST_CHECK adv_code adv_decode_advise_request(const struct adv_catalog *catalog, const json_t *root,
                                                  struct adv_arena *arena, struct adv_advise_request *request,
                                                  adv_err *err, adv_err *warnings);

/* The model `value` with the architecture keys of `config` (at `config_at`, may be NULL) on top. Changes of a
 * catalog model that MaxText takes only with override_model_config are warnings. Returns true when the model
 * is usable. */
bool adv_decode_request_model(const struct adv_catalog *catalog, const json_t *value, const char *at,
                              const json_t *config, const char *config_at, struct adv_model *model,
                              adv_err *err, adv_err *warnings);

/* Kernels count rows in whole numbers up to 2^28: far beyond any memory, but within what keys can say. False,
 * with a finding: the plan has more. */
bool adv_decode_rows_are_countable(const struct adv_plan *plan, const struct adv_model *model, adv_err *err);

/* MaxText's own model "default": the base_* dimensions of base.yml as an object; new reference. */
json_t *adv_decode_default_model(const struct adv_catalog *catalog);

/* decode_model.h: the `model` member of a request: a catalog name, an object of MaxText keys, or
 * {"hf_config": {…}}. */
#pragma once

#include "engine/base/arena.h"
#include "engine/catalog/catalog.h"
#include "engine/json/json_read.h"
#include "engine/spec/model_build.h"
#include "engine/spec/request.h"

/* Builds the model `value` (at JSON pointer `at`) describes, with the architecture keys of `overrides` (an
 * object or NULL, at `overrides_at`) on top, as MaxText takes them from the command line with
 * override_model_config. Everything wrong is reported at once in `err`: missing dims, wrong types, an unknown
 * name or architecture (with the nearest or the known ones in the hint). `warnings` (may be NULL) gets
 * members that change nothing here and values that were assumed. Thread safe; allocates nothing. */
ADV_MUST_CHECK adv_code adv_decode_model_over(const struct adv_catalog *catalog, const json_t *value,
                                              const char *at, const json_t *overrides,
                                              const char *overrides_at, struct adv_model *model, adv_err *err,
                                              adv_err *warnings);

/* MaxText's architecture keys of `object` into `keys` (defaults first). Members in `ignored` are skipped;
 * others that are not architecture keys are added to `unknown` (may be NULL) with the nearest key as hint. */
ADV_MUST_CHECK adv_code adv_decode_model_keys(const json_t *object, const char *at,
                                              struct adv_model_keys *keys, adv_err *err, adv_err *unknown);

/* The dims of a Hugging Face config.json as MaxText keys. ADV_E_UNSUPPORTED: an architecture without a table
 * here. */
ADV_MUST_CHECK adv_code adv_decode_hf_config(const json_t *config, const char *at,
                                             struct adv_model_keys *keys, adv_err *err, adv_err *warnings);

/* Writes the settings of a config.json beyond its dimensions to `object` as MaxText's keys: without them
 * MaxText trains another model of the same size. `keys` is what adv_decode_hf_config made of it. */
void adv_decode_hf_settings(const json_t *config, const struct adv_model_keys *keys, json_t *object);

/* The architecture keys of a model given as an object, as MaxText takes them: what was given of MaxText's
 * keys, or what a Hugging Face configuration comes to. *count is 0 for a name. Keys and values are in
 * `arena`. ADV_E_MEMORY when it is exhausted. */
ADV_MUST_CHECK adv_code adv_decode_model_given(const json_t *value, struct adv_arena *arena,
                                               const struct adv_pin **keys, int *count);

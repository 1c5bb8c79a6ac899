/* decode_plan.h: a MaxText configuration (its own keys and values) becomes a resolved plan.
 *
 * Keys and values are taken from JSON here; what they mean is known in maxtext/read.h.
 *
 * Order of a decode: adv_decode_config_model() on the keys of the architecture, then the model is built, then
 * adv_decode_config() for the rest.
 */
#pragma once

#include "engine/base/arena.h"
#include "engine/catalog/catalog.h"
#include "engine/json/json_read.h"
#include "engine/maxtext/read.h"

/* The architecture keys of `config` (NULL is fine), values normalised, as a new JSON object; the caller gives
 * it back with json_decref. NULL only when memory is exhausted. Wrong types are reported by
 * adv_decode_config. */
json_t *adv_decode_config_model(const struct adv_catalog *catalog, const json_t *config);

/* With override_model_config the catalog's name stands for another model: warns of it, and says in which of
 * the architecture keys `overrides`, which stand at `at` ("model-overridden"). */
void adv_decode_say_variant(const struct adv_catalog *catalog, const char *name, const json_t *overrides,
                            const char *at, adv_err *warnings);

struct adv_decode_config_input {
    const struct adv_catalog *catalog;
    const struct adv_model *model;
    const struct adv_cluster *cluster;
    const json_t *config;    /* object or NULL: defaults */
    const char *model_name;  /* whose file in MaxText sets some keys ("gpt3-175b": opt_type), or NULL */
    const char *at;          /* pointer of `config`: "/config", "/pins", "/baseline/config" */
    bool strict;             /* unknown and old keys are errors */
    struct adv_arena *arena; /* owns the texts of `config` and what reading takes */
    bool binding; /* every key is to hold (pins): a placement that the policy ignores is an error */
};

/* Fills `plan` and the echo `config` (may be NULL; its flags are untouched). Every wrong key adds a finding;
 * a plan is filled as far as possible even then, so that legality can be checked too. plan->flags is left
 * unset. */
ADV_MUST_CHECK adv_code adv_decode_config(const struct adv_decode_config_input *input, struct adv_plan *plan,
                                          struct adv_config *config, adv_err *err, adv_err *warnings);

/* A batch that does not split over its shards may only be so small because an axis that was to split
 * sequences is ignored: the hint of that error says what the warning does, which a refusal does not show. */
void adv_decode_explain_batch(adv_err *err, const adv_err *warnings);

/* decode_plan.h: a MaxText configuration (its own keys and values) becomes a resolved plan.
 *
 * Every key is checked against the key catalog: type, allowed values, bounds. Keys that change the prediction
 * go into the plan; known keys that do not are accepted; keys MaxText once had take effect under their
 * current name and are warnings, as are keys it never had (errors when strict). Legality of the combination
 * is adv_plan_check()'s.
 *
 * Order of a decode: adv_decode_config_model() on the keys of the architecture, then the model is built, then
 * adv_decode_config() for the rest. Names of the warnings' rules: "unknown-key", "renamed-key",
 * "dropped-key", "derived-key", "ignored-axis", "ignored-calibration", "ignored-placement", "not-modelled",
 * "approximated-value".
 */
#ifndef ADV_JSON_DECODE_PLAN_H
#define ADV_JSON_DECODE_PLAN_H

#include "engine/base/arena.h"
#include "engine/catalog/catalog.h"
#include "engine/emit/config.h"
#include "engine/json/config_state.h"
#include "engine/json/json_read.h"
#include "engine/spec/request.h"

/* True for MaxText's architecture keys ("base_emb_dim", "decoder_block", …): what adv_model_keys holds. */
bool adv_decode_is_model_key(const char *name);

/* The architecture keys of `config` (NULL is fine), values normalised, as a new JSON object; the caller gives
 * it back with json_decref. NULL only when memory is exhausted. Wrong types are reported by
 * adv_decode_config. */
json_t *adv_decode_config_model(const struct adv_catalog *catalog, const json_t *config);

struct adv_decode_config_input {
    const struct adv_catalog *catalog;
    const struct adv_model *model;
    const struct adv_cluster *cluster;
    const json_t *config;         /* object or NULL: defaults */
    const json_t *model_defaults; /* keys the model's own file sets ("opt_type" of gpt3-175b), or NULL */
    const char *at;               /* pointer of `config`: "/config", "/pins", "/baseline/config" */
    bool strict;                  /* unknown and old keys are errors */
    struct adv_arena *arena;      /* owns the texts of `config` */
    bool binding; /* every key is to hold (pins): a placement that the policy ignores is an error */
};

/* Fills `plan` and the echo `config` (may be NULL; its flags are untouched). Every wrong key adds a finding;
 * a plan is filled as far as possible even then, so that legality can be checked too. plan->flags is left
 * unset. */
ADV_MUST_CHECK adv_code adv_decode_config(const struct adv_decode_config_input *input, struct adv_plan *plan,
                                          struct adv_config *config, adv_err *err, adv_err *warnings);

/* The same in two steps, for a configuration that is read over and over with a few keys set over it: its
 * keys, once; then those of `changes` and what follows from all together. Findings are not told: ADV_OK when
 * the changes have no errors. */
void adv_decode_config_keys(const struct adv_decode_config_input *input, struct adv_config_state *state);
ADV_MUST_CHECK adv_code adv_decode_config_over(const struct adv_decode_config_input *input,
                                               const struct adv_config_state *state,
                                               const struct adv_config_change *changes, int changes_count,
                                               struct adv_plan *plan);

/* A batch that does not split over its shards may only be so small because an axis that was to split
 * sequences is ignored: the hint of that error says what the warning does, which a refusal does not show. */
void adv_decode_explain_batch(adv_err *err, const adv_err *warnings);

#endif

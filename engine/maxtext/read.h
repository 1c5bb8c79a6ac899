/* read.h: a MaxText configuration (its own keys and values) becomes a resolved plan.
 *
 * Every key is checked against the key catalog: type, allowed values, bounds. Keys that change the prediction
 * (keys.h) go into the plan; known keys that do not are accepted; keys MaxText once had take effect under
 * their current name and are warnings, as are keys it never had (errors when strict). Legality of the
 * combination is adv_plan_check()'s. Names of the warnings' rules: "unknown-key", "renamed-key",
 * "dropped-key", "derived-key", "ignored-axis", "ignored-calibration", "ignored-placement", "not-modelled",
 * "approximated-value".
 */
#pragma once

#include "engine/base/arena.h"
#include "engine/maxtext/keys.h"
#include "engine/maxtext/value.h"
#include "engine/spec/request.h"

/* A configuration as it was given. */
struct adv_config_source {
    const struct adv_catalog *catalog;
    const struct adv_model *model;
    const struct adv_cluster *cluster;
    const struct adv_given *given;
    int given_count;
    const struct adv_given *defaults; /* keys that the model's own file sets ("opt_type" of gpt3-175b) */
    int defaults_count;
    const char *at; /* pointer of the keys: "/config", "/pins", "/baseline/config" */
    bool strict;    /* unknown and old keys are errors */
    bool binding;   /* every key is to hold (pins): a placement that the policy ignores is an error */
};

enum adv_attention_choice { ADV_CHOICE_AUTO, ADV_CHOICE_DOT_PRODUCT, ADV_CHOICE_FLASH };

/* A configuration while it is read. Most keys go straight into the plan; those whose meaning depends on other
 * keys wait beside it until all were seen. */
struct adv_config_state {
    struct adv_plan plan;
    enum adv_attention_choice attention;
    bool sparse_matmul, megablox, use_tokamax_gmm, use_gmm_v2;
    bool moe_two_stage, dense_two_stage;
    bool weight_calibration_fixed, act_calibration_fixed;
    bool override_model_config;
    bool says_sparse_matmul;  /* the configuration itself, not the model's file */
    bool given[ADV_KEYS_MAX]; /* rows of adv_keys that took a value */
};

/* Fills `plan`. Every wrong key adds a finding; a plan is filled as far as possible even then, so that
 * legality can be checked too. plan->flags is left unset. */
ADV_MUST_CHECK adv_code adv_config_read(const struct adv_config_source *source, struct adv_plan *plan,
                                        adv_err *err, adv_err *warnings);

/* Makes a source of keys that were kept as JSON texts. `model_name`: the catalog's, NULL for a model without
 * a name there; with it come the keys that MaxText's own file of the model sets. All but the source has to
 * outlive it. ADV_E_MEMORY only. */
ADV_MUST_CHECK adv_code adv_config_source_open(struct adv_config_source *source,
                                               const struct adv_catalog *catalog,
                                               const struct adv_model *model, const char *model_name,
                                               const struct adv_cluster *cluster,
                                               const struct adv_config *config, struct adv_arena *arena,
                                               adv_err *err);

/* Warns of keys in `config`, which is at `at`, that name another model than the request's `model` (NULL: an
 * object) or another machine than its cluster ("contradiction"). */
void adv_config_contradictions(const struct adv_catalog *catalog, const char *model,
                               const struct adv_cluster *cluster, const struct adv_config *config,
                               const char *at, adv_err *warnings);

/* True for MaxText's architecture keys ("base_emb_dim", "decoder_block", …): what adv_model_keys holds. */
bool adv_config_is_model_key(const char *name);

/* A configuration that is read over and over with a few keys set over it. A key that has no effect in it now
 * may have one then. */
struct adv_reread {
    struct adv_config_source source;
    struct adv_config_state read; /* its keys */
};

/* The arguments are those of adv_config_source_open. ADV_E_MEMORY only. */
ADV_MUST_CHECK adv_code adv_reread_open(struct adv_reread *reread, const struct adv_catalog *catalog,
                                        const struct adv_model *model, const char *model_name,
                                        const struct adv_cluster *cluster, const struct adv_config *config,
                                        struct adv_arena *arena, adv_err *err);

/* The same of the baseline of `request`, in the arena; NULL in *reread without one. ADV_E_MEMORY only. */
ADV_MUST_CHECK adv_code adv_reread_baseline(const struct adv_catalog *catalog,
                                            const struct adv_advise_request *request, struct adv_arena *arena,
                                            const struct adv_reread **reread, adv_err *err);

/* One key by which two plans differ, with MaxText's default spelled out where a plan does not set it. */
struct adv_config_change {
    const char *key, *from_json, *to_json;
};

/* The plan with `changes` set over the configuration. False: it cannot be read. */
bool adv_reread_over(const struct adv_reread *reread, const struct adv_config_change *changes,
                     int changes_count, struct adv_plan *plan);

/* The keys that MaxText's own file of the catalog's model `model_name` (NULL: none) sets; strings live in
 * the arena. */
ADV_MUST_CHECK adv_code adv_config_of_model(const struct adv_catalog *catalog, const char *model_name,
                                            struct adv_arena *arena, const struct adv_given **given,
                                            int *count, adv_err *err);

/* decode_recipe.h: a recipe as it lies in a repository becomes a request.
 *
 * A recipe is a shell script with variables and their defaults, an XPK, gcluster or gcloud command line, a
 * Kubernetes manifest (its containers' commands, arguments and environment are read), a MaxText YAML file or
 * loose key=value words. Nothing is run. What only a run could say, and the answer depends on, is an error
 * that names the variable and the member that says it instead.
 */
#pragma once

#include "engine/base/arena.h"
#include "engine/catalog/catalog.h"
#include "engine/json/json_read.h"
#include "engine/recipe/recipe.h"

/* The choices with which a text is read. */
struct adv_recipe_wish {
    int command;         /* which of several trainings, from 1; 0: there must be one */
    const json_t *given; /* config beside the recipe: its keys need no value in the recipe; may be NULL */
    bool has_cluster;    /* the machine is given beside the recipe */
    const char *maxtext; /* the release that is given beside the recipe, NULL: none */
    bool needs_model;    /* the recipe has to say the model: it is not given beside it, and is priced */
};

/* A text as {config, xla_flags, cluster?}, or as the request it is (JSON or YAML with the members of one).
 * The caller gives *request back with json_decref; NULL on error. Findings are at /recipe. ADV_E_SYNTAX:
 * nothing of MaxText is in it; ADV_E_INVALID: variables without a value, several trainings;
 * ADV_E_UNSUPPORTED; ADV_E_TOO_LARGE.
 */
ADV_MUST_CHECK adv_code adv_decode_recipe(const struct adv_catalog *catalog, const char *text,
                                          size_t text_bytes, const struct adv_recipe_wish *wish,
                                          struct adv_arena *arena, json_t **request, adv_err *err,
                                          adv_err *warnings);

enum adv_recipe_use { ADV_RECIPE_ESTIMATE, ADV_RECIPE_ADVISE, ADV_RECIPE_LINT };

/* Replaces the member `recipe` of a request by what it says: config, xla_flags, model and cluster where the
 * request does not say them; for advise also workload, and the configuration is the baseline. Keys of config
 * (for advise: baseline.config) beside it count more. A request without `recipe` stays as it is. *root is a
 * new document then. */
ADV_MUST_CHECK adv_code adv_decode_recipe_member(const struct adv_catalog *catalog, enum adv_recipe_use use,
                                                 struct adv_arena *arena, json_t **root, adv_err *err,
                                                 adv_err *warnings);

/* The cluster in the headline of a file that the advisor wrote, for those whose commands name no machine; a
 * new reference, NULL: no such line. */
json_t *adv_recipe_own_cluster(const char *text, size_t text_bytes);

/* The releases that such a file says it is for, as the member `software`; NULL: the pinned ones, or one that
 * the catalog does not know. */
json_t *adv_recipe_own_software(const struct adv_catalog *catalog, const char *text, size_t text_bytes);

/* Whether a document of YAML is a manifest: it has apiVersion and kind. */
bool adv_recipe_is_manifest(const json_t *document);

/* Adds the trainings of all containers of the manifest, wherever they stand in it, to `recipe`; the machine
 * is that of the pod's nodeSelector, the slices the replicas of its replicated job. Errors are those of
 * adv_recipe_read. */
ADV_MUST_CHECK adv_code adv_recipe_read_manifest(const json_t *document, struct adv_arena *arena,
                                                 struct adv_recipe *recipe, adv_err *err);

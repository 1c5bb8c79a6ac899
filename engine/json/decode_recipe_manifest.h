/* decode_recipe_manifest.h: the commands inside a Kubernetes manifest. */
#pragma once

#include "engine/base/arena.h"
#include "engine/json/json_read.h"
#include "engine/recipe/recipe.h"

/* Whether a document of YAML is a manifest: it has apiVersion and kind. */
bool adv_recipe_is_manifest(const json_t *document);

/* Adds the trainings of all containers of the manifest, wherever they stand in it, to `recipe`; the machine
 * is that of the pod's nodeSelector, the slices the replicas of its replicated job. Errors are those of
 * adv_recipe_read. */
ADV_MUST_CHECK adv_code adv_recipe_read_manifest(const json_t *document, struct adv_arena *arena,
                                                 struct adv_recipe *recipe, adv_err *err);

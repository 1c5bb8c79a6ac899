/* request_text.h: the text of a request, whatever it is written in, as the plain JSON request it means. */
#pragma once

#include "engine/advise.h"
#include "engine/base/arena.h"
#include "engine/json/json_read.h"

/* JSON, or for estimate, advise and lint also a recipe (decode_recipe.h), alone or as the member `recipe`;
 * with what is given beside it. What reading it warns of is in the member `recipe_notes`. The caller gives
 * *root back. */
ADV_MUST_CHECK adv_code adv_decode_request_text(const struct adv_catalog *catalog, enum adv_request_kind kind,
                                                const char *text, size_t text_bytes,
                                                const struct adv_given_member *given, int given_count,
                                                struct adv_arena *arena, json_t **root, adv_err *err);

/* The warnings in `recipe_notes` of a request that was made from a recipe. */
void adv_decode_recipe_notes(const json_t *root, adv_err *warnings);

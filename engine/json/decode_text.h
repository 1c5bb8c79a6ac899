/* decode_text.h: MaxText keys written as text (loose words of a command line, YAML) as the JSON a request
 * has; whole recipes are read in decode_recipe.h.
 *
 * The result is {"config": {key: value}, "xla_flags": [...]}: keys from key=value words of a MaxText command
 * (also inside quoted arguments and shell variables) or from a YAML mapping; flags from LIBTPU_INIT_ARGS,
 * compile_xla_flags and --xla_… words. Nothing is executed and no variable of the environment is read.
 */
#pragma once

#include "engine/json/json_read.h"

/* A YAML document as JSON: plain scalars as MaxText reads them, quoted ones as strings; aliases of scalars
 * and of flat lists and mappings are followed. ADV_E_SYNTAX with the line, all keys that are there twice at
 * once; ADV_E_UNSUPPORTED for aliases of nested values. Only the first document of a stream is read. */
ADV_MUST_CHECK adv_code adv_decode_yaml(const char *text, size_t text_bytes, json_t **root, adv_err *err);

/* The same of all documents of a stream, as an array. ADV_E_TOO_LARGE: more than 64. */
ADV_MUST_CHECK adv_code adv_decode_yaml_all(const char *text, size_t text_bytes, json_t **documents,
                                            adv_err *err);

/* Whether a text is YAML rather than a script, by its first line that says something. */
bool adv_text_is_yaml(const char *text, size_t text_bytes);

/* A Hugging Face config.json as the model of a request, which has no other member then; others as they are.
 * Takes over the reference. */
json_t *adv_text_model_as_request(json_t *root);

/* The same, and a document of MaxText keys alone as the config of a request. */
json_t *adv_text_as_request(json_t *root);

/* The words of a shell text. Never fails on content; ADV_E_MEMORY. */
ADV_MUST_CHECK adv_code adv_decode_shell(const char *text, size_t text_bytes, json_t **root, adv_err *err);

/* decode_text.h: a MaxText job written as text (shell script, command line, YAML) as the JSON a lint request
 * has.
 *
 * The result is {"config": {key: value}, "xla_flags": [...]}: keys from key=value words of a MaxText command
 * (also inside quoted arguments and shell variables) or from a YAML mapping; flags from LIBTPU_INIT_ARGS,
 * compile_xla_flags and --xla_… words. Nothing is executed and no variable of the environment is read.
 */
#ifndef ADV_JSON_DECODE_TEXT_H
#define ADV_JSON_DECODE_TEXT_H

#include "engine/json/json_read.h"

/* JSON, YAML or shell by looking at it. ADV_E_SYNTAX when it is none of them or empty; ADV_E_TOO_LARGE. The
 * caller gives *root back with json_decref; NULL on error. */
ADV_MUST_CHECK adv_code adv_decode_lint_text(const char *text, size_t text_bytes, json_t **root,
                                             adv_err *err);

/* A YAML document as JSON: plain scalars as MaxText reads them, quoted ones as strings; aliases of scalars
 * and of flat lists and mappings are followed. ADV_E_SYNTAX with the line, all keys that are there twice at
 * once; ADV_E_UNSUPPORTED for aliases of nested values. Only the first document of a stream is read. */
ADV_MUST_CHECK adv_code adv_decode_yaml(const char *text, size_t text_bytes, json_t **root, adv_err *err);

/* The words of a shell text. Never fails on content; ADV_E_MEMORY. */
ADV_MUST_CHECK adv_code adv_decode_shell(const char *text, size_t text_bytes, json_t **root, adv_err *err);

#endif

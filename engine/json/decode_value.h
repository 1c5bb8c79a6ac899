/* decode_value.h: values of MaxText keys from JSON and from the text of a command line. maxtext/value.h knows
 * what they mean to a key.
 */
#pragma once

#include "engine/base/arena.h"
#include "engine/json/json_read.h"
#include "engine/maxtext/value.h"

/* A raw value; strings are borrowed from the document, texts of lists and objects live in the arena,
 * or are "" without one. False: no memory. */
bool adv_decode_value(const json_t *json, struct adv_arena *arena, struct adv_value *value);

/* The text of a command line as JSON: true, 12, 1e6, null ("None"), a list in brackets, else a string.
 * New reference; NULL only when memory is exhausted. */
json_t *adv_decode_scalar_text(const char *text);

/* The text of a word of the command line, where nothing and ~ are null and quotes make a string. As
 * adv_decode_scalar_text otherwise. */
json_t *adv_decode_word_text(const char *text);

/* A configuration whose strings have the types of their keys ("4" of an integer key is 4), as if it had come
 * as JSON in the first place: what reads `config` by hand then sees one spelling only. New reference; keys
 * that take strings, keys MaxText does not have and what is no object stay as they are. NULL: out of memory,
 * or `config` is NULL. */
json_t *adv_decode_typed_config(const struct adv_catalog *catalog, const json_t *config);

/* json_load.h: JSON text to values, also when memory ends in the middle of a word.
 *
 * The reader of libjansson (2.14) ignores that the buffer of the current word could not grow, and then reads
 * and writes behind its end. Here every allocation of one reading that fails is served from a spare piece,
 * which was taken before; the text then ends at once and the reading fails. Nothing else in the product calls
 * json_load*. Thread safe.
 */
#pragma once

#include <stddef.h>

#include <jansson.h>

/* Like json_loadb: a `text` of NULL is an empty one; `flags` and `error` (may be NULL) are the library's.
 * NULL with the code json_error_out_of_memory when memory ended. The caller gives the value back with
 * json_decref. */
json_t *adv_json_load(const char *text, size_t length_bytes, size_t flags, json_error_t *error);

/* The same for a string; NULL gives NULL. `flags` as above; errors are not told. */
json_t *adv_json_load_string(const char *text, size_t flags);

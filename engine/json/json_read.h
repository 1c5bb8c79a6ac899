/* json_read.h: the only way JSON text becomes values: parsing with limits, typed getters that report
 * findings.
 *
 * Every getter takes the object, the JSON pointer of that object (`at`, "" for the document) and a member
 * name. It returns true when the member is present, valid and was written to *value; false otherwise. A
 * missing optional member is silent, everything else wrong adds one finding with the member's pointer, so a
 * decoder simply calls all getters and looks at err->code at the end. Nothing here allocates except
 * adv_json_parse. Only files in engine/json/ include this header (it includes jansson). Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/json/json_load.h"

enum adv_json_need { ADV_JSON_OPTIONAL, ADV_JSON_REQUIRED };

/* The text after a UTF-8 byte order mark, which some editors put first; `text` itself without one. */
const char *adv_json_after_mark(const char *text, size_t *length_bytes);

/* Parses one document (object or array), a byte order mark before it is passed over. ADV_E_SYNTAX: not JSON
 * (line and column in the detail), a member twice in an object, nesting beyond ADV_LIMIT_JSON_DEPTH.
 * ADV_E_TOO_LARGE: longer than ADV_LIMIT_BODY_BYTES. The caller gives *root back with json_decref. *root is
 * NULL on error. */
ADV_MUST_CHECK adv_code adv_json_parse(const char *text, size_t length_bytes, json_t **root, adv_err *err);

/* Like adv_json_parse without the length limit: for our own data files. */
ADV_MUST_CHECK adv_code adv_json_parse_file_text(const char *text, size_t length_bytes, json_t **root,
                                                 adv_err *err);

/* The same of a body that has to be an object of members among `names`; others are findings, too. NULL, with
 * findings: there is no object. New reference. */
json_t *adv_json_body(const char *text, size_t length_bytes, const char *const *names, int names_count,
                      adv_err *err);

/* `at`/`index`, like adv_json_pointer of err.h. */
const char *adv_json_pointer_index(char pointer[ADV_LIMIT_POINTER], const char *at, size_t index);
/* The same as a value that lasts as long as the block it stands in. */
#define ADV_AT_INDEX(at, index) adv_json_pointer_index((char[ADV_LIMIT_POINTER]){0}, at, index)

/* Names in the place of two arguments, `names` and `names_count`: ADV_JSON_NAMES("rank", "top"). */
#define ADV_JSON_NAMES(...)                                                                                  \
    (const char *const[]){__VA_ARGS__}, (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* "an object", "a string", …: for findings. */
const char *adv_json_type_name(const json_t *value);

/* JSON null counts as absent in all getters below. Numbers must be finite; a refused one names the nearest
 * legal value. */
bool adv_json_string(const json_t *object, const char *at, const char *member, enum adv_json_need need,
                     const char **value, adv_err *err);
/* A text of lines, with whatever is in it; a string has no control characters (adv_text_has_control). */
bool adv_json_lines(const json_t *object, const char *at, const char *member, enum adv_json_need need,
                    const char **value, adv_err *err);
/* Integers also in the spelling 8.0. */
bool adv_json_integer(const json_t *object, const char *at, const char *member, enum adv_json_need need,
                      int64_t low, int64_t high, int64_t *value, adv_err *err);
bool adv_json_int(const json_t *object, const char *at, const char *member, enum adv_json_need need, int low,
                  int high, int *value, adv_err *err);
bool adv_json_number(const json_t *object, const char *at, const char *member, enum adv_json_need need,
                     double low, double high, double *value, adv_err *err);
bool adv_json_bool(const json_t *object, const char *at, const char *member, enum adv_json_need need,
                   bool *value, adv_err *err);
/* The member itself when it is an object (array); NULL otherwise. */
json_t *adv_json_object(const json_t *object, const char *at, const char *member, enum adv_json_need need,
                        adv_err *err);
json_t *adv_json_array(const json_t *object, const char *at, const char *member, enum adv_json_need need,
                       adv_err *err);

/* One of `names`; *index is its place. A finding lists the nearest name, or all of them when there are at
 * most 16. */
bool adv_json_choice(const json_t *object, const char *at, const char *member, enum adv_json_need need,
                     const char *const *names, int names_count, int *index, adv_err *err);

/* `value` must be an object: adds ADV_E_INVALID at `at` otherwise. */
bool adv_json_is_object(const json_t *value, const char *at, adv_err *err);

/* Adds a finding for each member that is not in `names`, with the nearest name as hint. True when there is
 * none. */
bool adv_json_known_members(const json_t *object, const char *at, const char *const *names, int names_count,
                            adv_err *err);

/* Is the member there, and not null? `object` may be NULL. */
static inline bool adv_json_has(const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);
    return value && !json_is_null(value);
}

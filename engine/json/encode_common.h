/* encode_common.h: what all answers share: numbers, findings, the engine's name tag, and the way from tree to
 * text.
 *
 * Numbers that are not finite become null. Members keep the order in which they are set, reals are written
 * with 12 significant digits: the same input, version and catalog give the same bytes. Functions that make
 * values return NULL only when memory is exhausted; setting a NULL value into an object loses that member and
 * adv_encode_text reports it.
 */
#pragma once

#include "engine/base/arena.h"
#include "engine/catalog/catalog.h"
#include "engine/json/json_load.h"
#include "engine/spec/request.h"

/* Values: json_real, or null for NaN and infinities; whole numbers below 2^53 are written without a fraction;
 * NULL and "" become null. A value of jansson is taken over as it is. */
json_t *adv_encode_number(double value);
json_t *adv_encode_integer(int64_t value);
json_t *adv_encode_string(const char *value);
json_t *adv_encode_bool(bool value);
json_t *adv_encode_itself(json_t *value);
/* What a comparison gives is an int: json_boolean(a > b). */
#define ADV_VALUE(value)                                                                                     \
    _Generic((value), bool: adv_encode_bool, int: adv_encode_integer, int64_t: adv_encode_integer,           \
             double: adv_encode_number, char *: adv_encode_string, const char *: adv_encode_string,          \
             json_t *: adv_encode_itself)(value)

/* A member of an object: ADV_M("bytes", part->bytes). */
struct adv_member {
    const char *name;
    json_t *value;
};
static inline struct adv_member adv_encode_member(const char *name, json_t *value)
{
    return (struct adv_member){name, value};
}
#define ADV_M(name, value) adv_encode_member(name, ADV_VALUE(value))
/* One that is called like the field. */
#define ADV_F(from, field) ADV_M(#field, (from)->field)
/* One that is left out, and not evaluated, unless the condition holds. */
#define ADV_M_IF(condition, name, value) adv_encode_member(name, (condition) ? ADV_VALUE(value) : NULL)

/* A new object of members in their order: ADV_OBJECT(ADV_M("name", name), ADV_M("bytes", bytes)); or further
 * members of one that is there. */
#define ADV_OBJECT(...)      adv_encode_members(json_object(), __VA_ARGS__, (struct adv_member){0})
#define ADV_PUT(object, ...) (void)adv_encode_members(object, __VA_ARGS__, (struct adv_member){0})
json_t *adv_encode_members(json_t *object, ...);

/* Declares the array `list` of `element`, which is made anew for each `i` below `count`. */
#define ADV_LIST(list, i, count, element)                                                                    \
    json_t *list = json_array();                                                                             \
    for (int i = 0; i < (count); i++) (void)json_array_append_new(list, element)
json_t *adv_encode_strings(const char *const *strings, int count);

/* {"version", "catalog_hash", "calibration"} */
json_t *adv_encode_engine(const struct adv_catalog *catalog);
/* The releases that an answer is for. */
json_t *adv_encode_software(const struct adv_software *software);

/* {severity, pointer, code, detail, hint}; without a severity where that is NULL, and without an empty hint.
 */
json_t *adv_encode_finding(const char *severity, const struct adv_finding *finding);
/* Lists of them, without severities. */
json_t *adv_encode_findings(const adv_err *err);
json_t *adv_encode_finding_list(const struct adv_finding *findings, int count);

/* The keys of a configuration as an object, its flags as an array. */
json_t *adv_encode_config(const struct adv_config *config);
json_t *adv_encode_flags(const struct adv_config *config);

/* {"name", "params_total", "params_active", "layers"} and {"chip", "topology", "slices", …} of an answer. */
json_t *adv_encode_model(const struct adv_model *model);
json_t *adv_encode_cluster(const struct adv_cluster *cluster);

/* The kind of a layer's attention: "full", "window", …; "other" beyond the known ones. */
const char *adv_encode_attention(const struct adv_layer *layer);

/* A value that is written before the tree which it belongs to, maybe on another thread: a string of the
 * arena, to be passed to adv_encode_written. NULL: out of memory, or `value` is NULL. */
const char *adv_encode_ahead(json_t *value, struct adv_arena *arena);

/* The text of a value with all digits of its numbers, of the arena; NULL when memory is exhausted. */
const char *adv_encode_exactly(const json_t *value, struct adv_arena *arena);

/* Stands for that value in the tree: only adv_encode_text can read it. A new reference. */
json_t *adv_encode_written(const char *written);

/* Compact text, malloc'ed; takes over the reference to `root` (also on failure). NULL: out of memory. */
char *adv_encode_text(json_t *root, size_t *text_bytes);

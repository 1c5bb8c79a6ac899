/* encode_common.h: what all answers share: numbers, findings, the engine's name tag, and the way from tree to
 * text.
 *
 * Numbers that are not finite become null. Members keep the order in which they are set, reals are written
 * with 12 significant digits: the same input, version and catalog give the same bytes. Functions that make
 * values return NULL only when memory is exhausted; setting a NULL value into an object loses that member and
 * adv_encode_text reports it.
 */
#pragma once

#include <jansson.h>

#include "engine/catalog/catalog.h"
#include "engine/spec/request.h"

/* json_real, or null for NaN and infinities. Whole numbers below 2^53 are written without a fraction. */
json_t *adv_encode_number(double value);
void adv_encode_set_number(json_t *object, const char *member, double value);
void adv_encode_set_integer(json_t *object, const char *member, int64_t value);
void adv_encode_set_string(json_t *object, const char *member,
                           const char *value); /* NULL and "" become null */
void adv_encode_set_bool(json_t *object, const char *member, bool value);

/* Sets members that are called like fields of the struct `from` points to: ADV_SET(row, term, name, seconds).
 */
#define ADV_SET(object, from, ...)                                                                           \
    ADV_SET_COUNTED(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)(object, from, __VA_ARGS__)
#define ADV_SET_COUNTED(a, b, c, d, e, f, g, h, i, j, k, l, count, ...) ADV_SET_##count
#define ADV_SET_1(object, from, field)                                                                       \
    _Generic((from)->field, bool: adv_encode_set_bool, int: adv_encode_set_integer, int64_t: adv_encode_set_integer,       \
             double: adv_encode_set_number, char *: adv_encode_set_string, const char *: adv_encode_set_string)            \
    (object, #field, (from)->field)
#define ADV_SET_2(o, from, field, ...)  ADV_SET_1(o, from, field), ADV_SET_1(o, from, __VA_ARGS__)
#define ADV_SET_3(o, from, field, ...)  ADV_SET_1(o, from, field), ADV_SET_2(o, from, __VA_ARGS__)
#define ADV_SET_4(o, from, field, ...)  ADV_SET_1(o, from, field), ADV_SET_3(o, from, __VA_ARGS__)
#define ADV_SET_5(o, from, field, ...)  ADV_SET_1(o, from, field), ADV_SET_4(o, from, __VA_ARGS__)
#define ADV_SET_6(o, from, field, ...)  ADV_SET_1(o, from, field), ADV_SET_5(o, from, __VA_ARGS__)
#define ADV_SET_7(o, from, field, ...)  ADV_SET_1(o, from, field), ADV_SET_6(o, from, __VA_ARGS__)
#define ADV_SET_8(o, from, field, ...)  ADV_SET_1(o, from, field), ADV_SET_7(o, from, __VA_ARGS__)
#define ADV_SET_9(o, from, field, ...)  ADV_SET_1(o, from, field), ADV_SET_8(o, from, __VA_ARGS__)
#define ADV_SET_10(o, from, field, ...) ADV_SET_1(o, from, field), ADV_SET_9(o, from, __VA_ARGS__)
#define ADV_SET_11(o, from, field, ...) ADV_SET_1(o, from, field), ADV_SET_10(o, from, __VA_ARGS__)
#define ADV_SET_12(o, from, field, ...) ADV_SET_1(o, from, field), ADV_SET_11(o, from, __VA_ARGS__)

/* {"version", "catalog_hash", "calibration"} */
json_t *adv_encode_engine(const struct adv_catalog *catalog);

/* Members pointer, code, detail and, where there is one, hint. */
void adv_encode_set_finding(json_t *row, const struct adv_finding *finding);
/* [{pointer, code, detail, hint}] */
json_t *adv_encode_findings(const adv_err *err);
json_t *adv_encode_finding_list(const struct adv_finding *findings, int count);

/* The keys of a configuration as an object, its flags as an array. */
json_t *adv_encode_config(const struct adv_config *config);
json_t *adv_encode_flags(const struct adv_config *config);

/* {"name", "params_total", "params_active", "layers"} and {"chip", "topology", "slices", …} of an answer. */
json_t *adv_encode_model(const struct adv_model *model);
json_t *adv_encode_cluster(const struct adv_cluster *cluster);

/* Compact text, malloc'ed; takes over the reference to `root` (also on failure). NULL: out of memory. */
char *adv_encode_text(json_t *root, size_t *text_bytes);

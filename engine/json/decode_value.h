/* decode_value.h: one MaxText value, however it was spelled: 8192, 8192.0, "8192", "1e6", "True",
 * "[silu,linear]".
 *
 * The catalog says which types a key takes and which values are allowed; this module turns JSON (or the text
 * of a command line) into a value of such a type, as MaxText would. It knows nothing of what a key means.
 */
#ifndef ADV_JSON_DECODE_VALUE_H
#define ADV_JSON_DECODE_VALUE_H

#include "engine/catalog/catalog.h"
#include "engine/json/json_read.h"

enum adv_value_kind {
    ADV_VALUE_NULL,
    ADV_VALUE_BOOL,
    ADV_VALUE_INT,
    ADV_VALUE_FLOAT,
    ADV_VALUE_STRING,
    ADV_VALUE_OTHER
};

struct adv_value {
    enum adv_value_kind kind;
    bool boolean;
    int64_t integer;    /* INT */
    double number;      /* INT and FLOAT */
    const char *string; /* STRING: borrowed from the document */
};

/* ADV_E_INVALID at `pointer`: a type the key does not take, a value outside `allowed`, a bound of
 * `constraints` broken. */
ADV_MUST_CHECK adv_code adv_decode_value(const struct adv_catalog_key *key, const json_t *json,
                                         const char *pointer, struct adv_value *value, adv_err *err);

/* What a command line's text means as JSON: true, 12, 1e6, null ("None"), a list in brackets, else a string.
 * New reference; NULL only when memory is exhausted. */
json_t *adv_decode_scalar_text(const char *text);

/* A configuration whose strings have the types of their keys ("4" of an integer key is 4), as if it had come
 * as JSON in the first place: what reads `config` by hand then sees one spelling only. New reference; keys
 * that take strings, keys MaxText does not have and what is no object stay as they are. NULL: out of memory,
 * or `config` is NULL. */
json_t *adv_decode_typed_config(const struct adv_catalog *catalog, const json_t *config);

#endif

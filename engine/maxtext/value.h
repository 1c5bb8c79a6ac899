/* value.h: one value of a MaxText key, however it was spelled: 8192, 8192.0, "8192", "1e6", "True",
 * "[silu,linear]".
 *
 * A value is first raw, with the type that its document gives it. adv_value_read() turns it into the type
 * that its key takes, as MaxText's command line would. The meaning of a key is not known here. Thread safe;
 * allocates nothing.
 */
#pragma once

#include "engine/base/err.h"
#include "engine/catalog/catalog.h"

enum adv_value_kind {
    ADV_VALUE_NULL,
    ADV_VALUE_BOOL,
    ADV_VALUE_INT,
    ADV_VALUE_FLOAT,
    ADV_VALUE_STRING,
    ADV_VALUE_LIST,
    ADV_VALUE_OBJECT
};

struct adv_value {
    enum adv_value_kind kind;
    bool boolean;
    int64_t integer;    /* INT */
    double number;      /* INT and FLOAT */
    const char *string; /* STRING; the text of a LIST or an OBJECT; borrowed */
};

/* A key with its raw value, as somebody gave it. */
struct adv_given {
    const char *key;
    struct adv_value value;
};

/* ADV_E_INVALID at `pointer`: a type that the key does not take, a value outside `allowed`; ADV_E_RANGE: a
 * bound of `constraints` broken. */
ADV_MUST_CHECK adv_code adv_value_read(const struct adv_catalog_key *key, const struct adv_value *raw,
                                       const char *pointer, struct adv_value *value, adv_err *err);

/* The raw value that a command line's text stands for: true ("yes", "on"), 12, 1e6, null ("None"), a list in
 * brackets, else a string. A whole number written with a point is a FLOAT. */
struct adv_value adv_value_of_word(const char *text);

/* The raw value of a JSON text without white space around it. `room` holds the string of a STRING and is as
 * long as `text` at least. False: it is none. */
bool adv_value_of_json(const char *text, char *room, struct adv_value *value);

/* Equal raw values: of one type and content, or numbers of one value (1 and 1.0). */
bool adv_value_same(const struct adv_value *a, const struct adv_value *b);

/* The value given for `key`; NULL without one. */
const struct adv_value *adv_given_find(const struct adv_given *given, int count, const char *key);

bool adv_catalog_key_takes(const struct adv_catalog_key *key, enum adv_key_type type);

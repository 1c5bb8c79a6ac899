#include "engine/json/json_read.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/maxtext/names.h"

/* Containers are counted before parsing: a hostile document never reaches the recursive parser. */
static int nesting_depth(const char *text, size_t length_bytes)
{
    int depth = 0;
    int deepest = 0;
    bool in_string = false;
    for (size_t i = 0; i < length_bytes; i++) {
        char c = text[i];
        if (in_string) {
            if (c == '\\') i++;
            if (c == '"') in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > deepest) deepest = depth;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return deepest;
}

const char *adv_json_after_mark(const char *text, size_t *length_bytes)
{
    static const char mark[] = "\xef\xbb\xbf";
    const size_t mark_bytes = sizeof mark - 1;
    if (*length_bytes < mark_bytes || memcmp(text, mark, mark_bytes) != 0) return text;
    *length_bytes -= mark_bytes;
    return text + mark_bytes;
}

/* Infinity and NaN, which Python writes and JSON does not have, in quotes: a reader that needs a number there
 * says that it is none. NULL: there is none of them, or no memory. */
static char *quote_infinities(const char *text, size_t length_bytes)
{
    static const char *const words[] = {"-Infinity", "Infinity", "NaN"};
    char *copy = malloc(length_bytes * 2 + 1);
    size_t used = 0;
    bool in_string = false, found = false;
    for (size_t at = 0; copy && at < length_bytes; at++) {
        size_t word = 0;
        for (size_t i = 0; !in_string && !word && i < sizeof words / sizeof *words; i++) {
            const size_t length = strlen(words[i]);
            if (length_bytes - at >= length && memcmp(text + at, words[i], length) == 0) word = length;
        }
        if (word) {
            copy[used++] = '"';
            memcpy(copy + used, text + at, word);
            used += word;
            copy[used++] = '"';
            at += word - 1;
            found = true;
            continue;
        }
        if (in_string && text[at] == '\\' && at + 1 < length_bytes)
            copy[used++] = text[at++];
        else if (text[at] == '"')
            in_string = !in_string;
        copy[used++] = text[at];
    }
    if (copy) copy[used] = '\0';
    if (found) return copy;
    free(copy);
    return NULL;
}

adv_code adv_json_parse_file_text(const char *text, size_t length_bytes, json_t **root, adv_err *err)
{
    *root = NULL;
    text = adv_json_after_mark(text, &length_bytes);
    int depth = nesting_depth(text, length_bytes);
    if (depth > ADV_LIMIT_JSON_DEPTH)
        return adv_err_add(err, ADV_E_SYNTAX, "", NULL, "nesting is %d deep, the limit is %d", depth,
                           ADV_LIMIT_JSON_DEPTH);
    size_t blank = 0;
    while (blank < length_bytes && isspace((unsigned char)text[blank])) blank++;
    if (blank == length_bytes) return adv_err_add(err, ADV_E_SYNTAX, "", NULL, "the document is empty");
    const size_t flags =
        JSON_REJECT_DUPLICATES | JSON_DECODE_ANY; /* what is no object is told by its reader */
    json_error_t error, again = {0};
    json_t *value = adv_json_load(text, length_bytes, flags, &error);
    if (!value && json_error_code(&error) == json_error_numeric_overflow) {
        /* an integer beyond 64 bits becomes a real, so that its member is reported with the others */
        value = adv_json_load(text, length_bytes, flags | JSON_DECODE_INT_AS_REAL, &again);
    }
    char *quoted = value ? NULL : quote_infinities(text, length_bytes);
    if (quoted) {
        value = adv_json_load(quoted, strlen(quoted), flags, &again);
        free(quoted);
    }
    if (!value && (json_error_code(&error) == json_error_out_of_memory ||
                   json_error_code(&again) == json_error_out_of_memory))
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the document");
    if (!value)
        return adv_err_add(err, ADV_E_SYNTAX, "", NULL, "not valid JSON at line %d, column %d: %s",
                           error.line, error.column, error.text);
    *root = value;
    return ADV_OK;
}

adv_code adv_json_parse(const char *text, size_t length_bytes, json_t **root, adv_err *err)
{
    *root = NULL;
    if (length_bytes > ADV_LIMIT_BODY_BYTES)
        return adv_err_add(err, ADV_E_TOO_LARGE, "", NULL, "%zu bytes, the limit is %d", length_bytes,
                           ADV_LIMIT_BODY_BYTES);
    return adv_json_parse_file_text(text, length_bytes, root, err);
}

json_t *adv_json_body(const char *text, size_t length_bytes, const char *const *names, int names_count,
                      adv_err *err)
{
    ADV_JSON_OWN json_t *root = NULL;
    if (adv_json_parse(text, length_bytes, &root, err) || !adv_json_is_object(root, "", err)) return NULL;
    (void)adv_json_known_members(root, "", names, names_count, err);
    return json_incref(root);
}

const char *adv_json_pointer_index(char pointer[ADV_LIMIT_POINTER], const char *at, size_t index)
{
    (void)snprintf(pointer, ADV_LIMIT_POINTER, "%s/%zu", at, index);
    return pointer;
}

const char *adv_json_type_name(const json_t *value)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object",   [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
        [JSON_INTEGER] = "an integer", [JSON_REAL] = "a number",  [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",        [JSON_NULL] = "null",
    };
    return value ? names[json_typeof(value)] : "nothing";
}

/* The member, or NULL when absent or null (reported when required). */
static json_t *lookup(const json_t *object, const char *at, const char *member, enum adv_json_need need,
                      adv_err *err)
{
    json_t *value = json_object_get(object, member);
    if (value && !json_is_null(value)) return value;
    if (need == ADV_JSON_REQUIRED) ADV_REFUSE(err, ADV_AT(at, member), NULL, "`%s` is required", member);
    return NULL;
}

static bool refuse_type(const json_t *value, const char *at, const char *member, const char *wanted,
                        const char *hint, adv_err *err)
{
    ADV_REFUSE(err, ADV_AT(at, member), hint, "`%s` must be %s, not %s", member, wanted,
               adv_json_type_name(value));
    return false;
}

/* Ranges that begin with the least number that is above 0. */
static const double above_zero = 1e-6;

/* A number of the wrong kind or outside its range; `member` is whole or not. The hint is what was probably
 * meant: a quoted number without its quotes, the whole numbers around a fraction, the nearest end of the
 * range. */
static bool refuse_number(const json_t *value, const char *at, const char *member, bool whole, double low,
                          double high, adv_err *err)
{
    char hint[ADV_LIMIT_NAME], *end = NULL;
    const char *wanted = whole ? "a whole number" : "a number", *text = json_string_value(value);
    if (!json_is_number(value)) {
        const bool is_decimal = text && strspn(text, "-.0123456789eE") == strlen(text);
        const double quoted = is_decimal ? strtod(text, &end) : 0.0;
        (void)snprintf(hint, sizeof hint, "a number from %.15g to %.15g", low, high);
        if (is_decimal && end != text && !*end && quoted >= low && quoted <= high && strlen(text) < 24)
            (void)snprintf(hint, sizeof hint, "%s, without quotes", text);
        return refuse_type(value, at, member, wanted, hint, err);
    }
    const double number = json_number_value(value);
    if (whole && number > low && number < high) {
        (void)snprintf(hint, sizeof hint, "%.0f or %.0f", floor(number), ceil(number));
        ADV_REFUSE(err, ADV_AT(at, member), hint, "`%s` must be a whole number, not %.15g", member, number);
        return false;
    }
    const double nearest = number < low ? low : high;
    (void)snprintf(hint, sizeof hint, "%.15g, the nearest legal value", nearest);
    if (nearest > 0 && nearest < above_zero) (void)snprintf(hint, sizeof hint, "a number above 0, such as 1");
    (void)adv_err_add(err, ADV_E_RANGE, ADV_AT(at, member), hint,
                      "`%s` is %.15g, must be from %.15g to %.15g", member, number, low, high);
    return false;
}

bool adv_json_lines(const json_t *object, const char *at, const char *member, enum adv_json_need need,
                    const char **value, adv_err *err)
{
    json_t *found = lookup(object, at, member, need, err);
    if (!found) return false;
    if (!json_is_string(found)) return refuse_type(found, at, member, "a string", NULL, err);
    *value = json_string_value(found);
    return true;
}

bool adv_json_string(const json_t *object, const char *at, const char *member, enum adv_json_need need,
                     const char **value, adv_err *err)
{
    const char *text = NULL;
    if (!adv_json_lines(object, at, member, need, &text, err)) return false;
    if (adv_text_has_control(text)) {
        ADV_REFUSE(err, ADV_AT(at, member), NULL, "%s has control characters", member);
        return false;
    }
    *value = text;
    return true;
}

bool adv_json_integer(const json_t *object, const char *at, const char *member, enum adv_json_need need,
                      int64_t low, int64_t high, int64_t *value, adv_err *err)
{
    json_t *found = lookup(object, at, member, need, err);
    if (!found) return false;
    const double number = json_number_value(found);
    const bool whole = json_is_integer(found) || (json_is_real(found) && number == floor(number));
    const int64_t exact = json_is_integer(found) ? (int64_t)json_integer_value(found)
                          : fabs(number) < 9e15  ? (int64_t)number
                                                 : 0;
    const bool beyond = json_is_real(found) && fabs(number) >= 9e15;
    if (!whole || beyond || exact < low || exact > high)
        return refuse_number(found, at, member, true, (double)low, (double)high, err);
    *value = exact;
    return true;
}

bool adv_json_int(const json_t *object, const char *at, const char *member, enum adv_json_need need, int low,
                  int high, int *value, adv_err *err)
{
    int64_t wide = 0;
    if (!adv_json_integer(object, at, member, need, low, high, &wide, err)) return false;
    *value = (int)wide;
    return true;
}

bool adv_json_number(const json_t *object, const char *at, const char *member, enum adv_json_need need,
                     double low, double high, double *value, adv_err *err)
{
    json_t *found = lookup(object, at, member, need, err);
    if (!found) return false;
    const double number = json_number_value(found);
    if (!json_is_number(found) || !(number >= low && number <= high))
        return refuse_number(found, at, member, false, low, high, err);
    *value = number;
    return true;
}

bool adv_json_bool(const json_t *object, const char *at, const char *member, enum adv_json_need need,
                   bool *value, adv_err *err)
{
    json_t *found = lookup(object, at, member, need, err);
    if (!found) return false;
    if (!json_is_boolean(found))
        return refuse_type(found, at, member, "true or false",
                           json_is_string(found) ? "true or false, without quotes" : NULL, err);
    *value = json_is_true(found);
    return true;
}

json_t *adv_json_object(const json_t *object, const char *at, const char *member, enum adv_json_need need,
                        adv_err *err)
{
    json_t *found = lookup(object, at, member, need, err);
    if (found && !json_is_object(found)) {
        (void)refuse_type(found, at, member, "an object", NULL, err);
        return NULL;
    }
    return found;
}

json_t *adv_json_array(const json_t *object, const char *at, const char *member, enum adv_json_need need,
                       adv_err *err)
{
    json_t *found = lookup(object, at, member, need, err);
    if (found && !json_is_array(found)) {
        (void)refuse_type(found, at, member, "an array", NULL, err);
        return NULL;
    }
    return found;
}

/* What other tools and people call some members: MaxText and XPK first. */
static const struct {
    const char *theirs, *ours;
} other_words[] = {{ADV_NAME_MAX_TARGET_LENGTH, "seq_len"},
                   {"sequence_length", "seq_len"},
                   {"context_length", "seq_len"},
                   {ADV_NAME_NUM_SLICES, "slices"},
                   {"tpu_type", "accelerator"},
                   {"chips", "topology"},
                   {"num_chips", "topology"},
                   {"devices", "topology"},
                   {"batch_size", "global_batch_sequences"}};

static size_t shared_bytes(const char *a, const char *b)
{
    size_t shared = 0;
    while (a[shared] && a[shared] == b[shared]) shared++;
    return shared;
}

/* The name that begins like `given` the longest: one of them begins the other, or two thirds of `given`, six
 * letters at the least, are alike; else NULL. */
static const char *name_that_begins_like(const char *given, const char *const *names, int names_count)
{
    const char *best = NULL;
    const size_t length = strlen(given);
    size_t most = 2;
    for (int i = 0; i < names_count; i++) {
        const size_t shared = shared_bytes(given, names[i]);
        const bool alike = shared == length || !names[i][shared] || (shared >= 6 && 3 * shared >= 2 * length);
        if (shared <= most || !alike) continue;
        best = names[i];
        most = shared;
    }
    return best;
}

/* The name that other tools have for it, the one nearest to `given`, whatever its case, or one that begins
 * like it; NULL: none. */
static const char *nearest_name(const char *given, const char *const *names, int names_count)
{
    char lower[ADV_LIMIT_NAME];
    adv_text_lower(given, lower, sizeof lower);
    for (size_t k = 0; k < sizeof other_words / sizeof other_words[0]; k++) {
        if (strcmp(lower, other_words[k].theirs) != 0) continue;
        for (int i = 0; i < names_count; i++)
            if (strcmp(names[i], other_words[k].ours) == 0) return names[i];
    }
    const char *nearest = adv_text_nearest(given, names, names_count);
    return nearest ? nearest : name_that_begins_like(lower, names, names_count);
}

/* "did you mean `x`?", else the whole list when it is short, as far as it goes into a hint, else "". `given`
 * and `taken` may be NULL; members of `taken` are there already, so they are not what was meant. */
static void suggest(char hint[ADV_LIMIT_DETAIL], const char *given, const json_t *taken,
                    const char *const *names, int names_count)
{
    hint[0] = '\0';
    const char *nearest = given ? nearest_name(given, names, names_count) : NULL;
    if (nearest && !json_object_get(taken, nearest)) {
        (void)snprintf(hint, ADV_LIMIT_DETAIL, "did you mean `%s`?", nearest);
        return;
    }
    size_t used = strlen("known:");
    for (int i = 0; i < names_count; i++) used += strlen(names[i]) + strlen(" ``");
    if (used >= ADV_LIMIT_DETAIL) return;
    (void)snprintf(hint, ADV_LIMIT_DETAIL, "known:");
    for (int i = 0; i < names_count; i++) adv_append(hint, ADV_LIMIT_DETAIL, " `%s`", names[i]);
}

bool adv_json_choice(const json_t *object, const char *at, const char *member, enum adv_json_need need,
                     const char *const *names, int names_count, int *index, adv_err *err)
{
    const char *given = NULL;
    const json_t *found = json_object_get(object, member);
    if (found && !json_is_null(found) && !adv_json_string(object, at, member, need, &given, err))
        return false;
    if (!given && need == ADV_JSON_OPTIONAL) return false;
    for (int i = 0; given && i < names_count; i++) {
        if (strcmp(given, names[i]) != 0) continue;
        *index = i;
        return true;
    }
    char hint[ADV_LIMIT_DETAIL];
    suggest(hint, given, NULL, names, names_count);
    ADV_REFUSE(err, ADV_AT(at, member), hint,
               given ? "`%s` does not know the value \"%.80s\"" : "`%s` is required", member, given);
    return false;
}

bool adv_json_is_object(const json_t *value, const char *at, adv_err *err)
{
    if (json_is_object(value)) return true;
    ADV_REFUSE(err, at, NULL, "must be an object, not %s", adv_json_type_name(value));
    return false;
}

bool adv_json_known_members(const json_t *object, const char *at, const char *const *names, int names_count,
                            adv_err *err)
{
    bool all_known = true;
    for (struct adv_json_walk given = {.in = object}; adv_json_next_member(&given);) {
        const char *member = given.key;
        bool known = false;
        for (int i = 0; i < names_count && !known; i++) known = strcmp(member, names[i]) == 0;
        if (known) continue;
        char hint[ADV_LIMIT_DETAIL] = "";
        if (adv_err_has_room(err)) suggest(hint, member, object, names, names_count);
        ADV_REFUSE(err, ADV_AT(at, member), hint, "unknown member `%.80s`", member);
        all_known = false;
    }
    return all_known;
}

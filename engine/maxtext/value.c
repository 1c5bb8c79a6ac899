#include "engine/maxtext/value.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/text.h"

bool adv_catalog_key_takes(const struct adv_catalog_key *key, enum adv_key_type type)
{
    return (key->types >> type) & 1u;
}

static bool is_null_word(const char *text)
{
    return strcasecmp(text, "none") == 0 || strcasecmp(text, "null") == 0;
}

/* As YAML 1.1 reads it, which is what MaxText's loader and command line speak. */
static bool bool_word(const char *text, bool *value)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        *value = i % 2 == 1;
        if (strcasecmp(text, words[i]) == 0) return true;
    }
    return false;
}

/* A text where nothing but true or false fits: letters are words, too. */
static bool bool_text(const char *text, bool *value)
{
    static const char letters[] = "fntyFNTY";
    const char *at = *text && !text[1] ? strchr(letters, *text) : NULL;
    *value = at && (at - letters) % 4 >= 2;
    return at || bool_word(text, value);
}

/* Decimal numbers only: no hexadecimal, no "inf", no "nan". */
static bool number_word(const char *text, double *value)
{
    if (!*text || strspn(text, "+-.0123456789eE_") != strlen(text) || !strpbrk(text, "0123456789"))
        return false;
    char digits[64];
    size_t used = 0;
    for (const char *at = text; *at && used + 1 < sizeof digits; at++) {
        if (*at != '_') digits[used++] = *at;
    }
    digits[used] = '\0';
    char *end = NULL;
    *value = strtod(digits, &end);
    return *end == '\0' && isfinite(*value);
}

/* An INT where it is a whole number. */
static void set_number(struct adv_value *value, double number)
{
    bool is_whole = number == floor(number) && fabs(number) < 9e15;
    value->kind = is_whole ? ADV_VALUE_INT : ADV_VALUE_FLOAT;
    value->number = number;
    value->integer = is_whole ? (int64_t)number : 0;
}

struct adv_value adv_value_of_word(const char *text)
{
    struct adv_value value = {.kind = ADV_VALUE_STRING, .string = text};
    size_t length = strlen(text);
    if (is_null_word(text)) {
        value.kind = ADV_VALUE_NULL;
    } else if (bool_word(text, &value.boolean)) {
        value.kind = ADV_VALUE_BOOL;
    } else if (number_word(text, &value.number)) {
        set_number(&value, value.number);
        if (strpbrk(text, ".")) value.kind = ADV_VALUE_FLOAT;
    } else if (length >= 2 && text[0] == '[' && text[length - 1] == ']') {
        value.kind = ADV_VALUE_LIST;
    }
    return value;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* The string of a JSON text, which opens and closes with quotes. Writers escape control characters as \u00xx;
 * all others above 127 come as UTF-8. */
static bool unquote(const char *text, char *room)
{
    static const char letters[] = "bfnrt\"\\/", meant[] = "\b\f\n\r\t\"\\/";
    const char *at = text + 1;
    for (; *at && *at != '"'; at++) {
        if (*at != '\\') {
            *room++ = *at;
            continue;
        }
        const char *letter = *++at ? strchr(letters, *at) : NULL;
        if (letter) {
            *room++ = meant[letter - letters];
            continue;
        }
        if (strncmp(at, "u00", 3) != 0 || hex_digit(at[3]) < 0 || hex_digit(at[4]) < 0) return false;
        *room++ = (char)(hex_digit(at[3]) << 4 | hex_digit(at[4]));
        at += 4;
    }
    *room = '\0';
    return *at == '"' && at[1] == '\0';
}

bool adv_value_of_json(const char *text, char *room, struct adv_value *value)
{
    char *end = NULL;
    *value = (struct adv_value){.kind = ADV_VALUE_NULL, .string = text};
    if (strcmp(text, "null") == 0) return true;
    if (*text == '[' || *text == '{') {
        value->kind = *text == '[' ? ADV_VALUE_LIST : ADV_VALUE_OBJECT;
        return true;
    }
    if (*text == '"') {
        value->kind = ADV_VALUE_STRING;
        value->string = room;
        return unquote(text, room);
    }
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        value->kind = ADV_VALUE_BOOL;
        value->boolean = *text == 't';
        return true;
    }
    errno = 0;
    if (strpbrk(text, ".eE")) {
        value->kind = ADV_VALUE_FLOAT;
        value->number = strtod(text, &end);
        return end != text && *end == '\0' && isfinite(value->number);
    }
    value->kind = ADV_VALUE_INT;
    value->integer = strtoll(text, &end, 10);
    value->number = (double)value->integer;
    return end != text && *end == '\0' && errno == 0;
}

static bool is_number(const struct adv_value *value)
{
    return value->kind == ADV_VALUE_INT || value->kind == ADV_VALUE_FLOAT;
}

bool adv_value_same(const struct adv_value *a, const struct adv_value *b)
{
    if (is_number(a) && is_number(b)) return !(a->number < b->number || a->number > b->number);
    if (a->kind != b->kind) return false;
    if (a->kind == ADV_VALUE_BOOL) return a->boolean == b->boolean;
    return a->kind == ADV_VALUE_NULL || strcmp(a->string, b->string) == 0;
}

const struct adv_value *adv_given_find(const struct adv_given *given, int count, const char *key)
{
    for (int i = 0; i < count; i++)
        if (adv_text_same(given[i].key, key)) return &given[i].value;
    return NULL;
}

/* A string, as the first type of the key that it can be. */
static struct adv_value typed_text(const struct adv_catalog_key *key, const char *text)
{
    struct adv_value value = {.kind = ADV_VALUE_STRING, .string = text};
    double number = 0;
    if (is_null_word(text) && key->nullable)
        value.kind = ADV_VALUE_NULL;
    else if (adv_catalog_key_takes(key, ADV_KEY_STRING))
        return value;
    else if (adv_catalog_key_takes(key, ADV_KEY_BOOL) && bool_text(text, &value.boolean))
        value.kind = ADV_VALUE_BOOL;
    else if (number_word(text, &number))
        set_number(&value, number);
    else if (*text == '[' && adv_catalog_key_takes(key, ADV_KEY_LIST))
        value.kind = ADV_VALUE_LIST;
    else if (*text == '{' && adv_catalog_key_takes(key, ADV_KEY_OBJECT))
        value.kind = ADV_VALUE_OBJECT;
    return value;
}

static struct adv_value typed(const struct adv_catalog_key *key, const struct adv_value *raw)
{
    struct adv_value value = raw->kind == ADV_VALUE_STRING ? typed_text(key, raw->string) : *raw;
    if (raw->kind == ADV_VALUE_FLOAT) set_number(&value, raw->number);
    bool is_flag_number = value.kind == ADV_VALUE_INT && (value.integer == 0 || value.integer == 1);
    if (is_flag_number && adv_catalog_key_takes(key, ADV_KEY_BOOL) &&
        !adv_catalog_key_takes(key, ADV_KEY_INT) && !adv_catalog_key_takes(key, ADV_KEY_FLOAT)) {
        value.kind = ADV_VALUE_BOOL;
        value.boolean = value.integer == 1;
    }
    return value;
}

static bool type_fits(const struct adv_catalog_key *key, const struct adv_value *value)
{
#define BIT(type) (1u << (type))
    static const unsigned fitting[] = {
        [ADV_VALUE_NULL] = 0,
        [ADV_VALUE_BOOL] = BIT(ADV_KEY_BOOL),
        [ADV_VALUE_INT] = BIT(ADV_KEY_INT) | BIT(ADV_KEY_FLOAT) | BIT(ADV_KEY_STRING),
        [ADV_VALUE_FLOAT] = BIT(ADV_KEY_FLOAT),
        [ADV_VALUE_STRING] = BIT(ADV_KEY_STRING),
        [ADV_VALUE_LIST] = BIT(ADV_KEY_LIST) | BIT(ADV_KEY_OBJECT),
        [ADV_VALUE_OBJECT] = BIT(ADV_KEY_OBJECT),
    };
#undef BIT
    return key->types == 0 || (value->kind == ADV_VALUE_NULL && key->nullable) ||
           (key->types & fitting[value->kind]) != 0;
}

/* base.yml's own value is right whatever the type says: an empty string stands for "no list" there. */
static bool is_default(const struct adv_catalog_key *key, const struct adv_value *raw)
{
    char room[ADV_LIMIT_DETAIL];
    struct adv_value usual;
    return key->default_json && strlen(key->default_json) < sizeof room &&
           adv_value_of_json(key->default_json, room, &usual) && usual.kind == raw->kind &&
           adv_value_same(&usual, raw);
}

static void describe_types(const struct adv_catalog_key *key, char *text, size_t text_bytes)
{
    static const char *const names[] = {"true or false", "an integer", "a number",
                                        "a string",      "a list",     "an object"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if ((key->types >> i) & 1u) adv_append(text, text_bytes, "%s%s", text[0] ? " or " : "", names[i]);
}

static const char *type_name(const struct adv_value *raw)
{
    static const char *const names[] = {
        [ADV_VALUE_NULL] = "null",       [ADV_VALUE_BOOL] = "false",      [ADV_VALUE_INT] = "an integer",
        [ADV_VALUE_FLOAT] = "a number",  [ADV_VALUE_STRING] = "a string", [ADV_VALUE_LIST] = "an array",
        [ADV_VALUE_OBJECT] = "an object"};
    return raw->kind == ADV_VALUE_BOOL && raw->boolean ? "true" : names[raw->kind];
}

static bool is_allowed(const struct adv_catalog_key *key, const char *spelling)
{
    for (int i = 0; i < key->allowed_count; i++)
        if (strcmp(key->allowed[i], spelling) == 0) return true;
    return false;
}

/* All of them where they fit into a hint, else the nearest. */
static void list_allowed(const struct adv_catalog_key *key, const char *given, char *text, size_t text_bytes)
{
    size_t used = 0;
    for (int i = 0; i < key->allowed_count; i++) used += strlen(key->allowed[i]) + strlen(", \"\"");
    if (used + strlen("one of ") >= text_bytes) {
        const char *nearest = adv_text_nearest(given, key->allowed, key->allowed_count);
        if (nearest)
            (void)snprintf(text, text_bytes, "did you mean %s?", nearest);
        else
            (void)snprintf(text, text_bytes, "one of the %d values in the key catalog", key->allowed_count);
        return;
    }
    for (int i = 0; i < key->allowed_count; i++)
        adv_append(text, text_bytes, "%s%s", i ? ", " : "one of ",
                   *key->allowed[i] ? key->allowed[i] : "\"\"");
}

/* `constraints` is a list such as ["Ge(ge=0.0)", "Le(le=1.0)"]: the bound follows the operator's "xx=". */
static bool breaks_bound(const char *constraints, const char *operator_text, double number, double *bound)
{
    const char *at = strstr(constraints, operator_text);
    if (!at) return false;
    *bound = strtod(at + strlen(operator_text), NULL);
    const bool is_bound = !(number < *bound) && !(number > *bound), excludes = operator_text[1] == 't';
    return (is_bound && excludes) || (operator_text[0] == 'g' ? number < *bound : number > *bound);
}

static adv_code check_bounds(const struct adv_catalog_key *key, const struct adv_value *value,
                             const char *pointer, adv_err *err)
{
    static const struct {
        const char *text, *words;
    } operators[] = {{"gt=", "greater than"}, {"ge=", "at least"}, {"lt=", "less than"}, {"le=", "at most"}};
    if (!is_number(value)) return ADV_OK;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        double bound = 0;
        if (!key->constraints || !breaks_bound(key->constraints, operators[i].text, value->number, &bound))
            continue;
        return adv_err_add(err, ADV_E_RANGE, pointer, NULL, "%s is %.12g; it must be %s %.12g", key->name,
                           value->number, operators[i].words, bound);
    }
    return ADV_OK;
}

adv_code adv_value_read(const struct adv_catalog_key *key, const struct adv_value *raw, const char *pointer,
                        struct adv_value *value, adv_err *err)
{
    *value = typed(key, raw);
    char text[ADV_LIMIT_DETAIL] = "", number[32] = "";
    const bool is_string = value->kind == ADV_VALUE_STRING;
    const char *quote = is_string ? "\"" : "";
    if (!type_fits(key, value)) {
        if (is_default(key, raw)) return ADV_OK;
        describe_types(key, text, sizeof text);
        return adv_err_add(err, ADV_E_INVALID, pointer, NULL, "%s takes %s, not %s%.80s%s", key->name, text,
                           quote, is_string ? value->string : type_name(raw), quote);
    }
    if (key->allowed && is_number(value)) (void)snprintf(number, sizeof number, "%.12g", value->number);
    const char *spelling = is_string ? value->string : number;
    if (key->allowed && (is_string || is_number(value)) && !is_allowed(key, spelling)) {
        list_allowed(key, is_string ? spelling : "", text, sizeof text);
        return adv_err_add(err, ADV_E_INVALID, pointer, text, "%s does not take %s%.80s%s", key->name, quote,
                           spelling, quote);
    }
    return check_bounds(key, value, pointer, err);
}

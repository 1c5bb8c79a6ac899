/* encode_text.c: a tree as text, byte for byte as json_dumps writes it with JSON_COMPACT, JSON_ENCODE_ANY and
 * 12 significant digits, in a fraction of its time: the writing of a long answer shows beside its search. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/json/encode_common.h"

/* Before the text of a value that was written ahead: no string begins with this byte, which is not UTF-8. */
enum { WRITTEN = 0xff };

static void write_escaped(struct adv_text *out, unsigned char byte)
{
    static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *at = byte ? strchr(plain, byte) : NULL;
    if (at)
        adv_text_append_bytes(out, (const char[]){'\\', letters[at - plain]}, 2);
    else
        adv_text_format(out, "\\u%04X", byte);
}

static bool stands_for_itself(unsigned char byte)
{
    return byte >= ' ' && byte != '"' && byte != '\\';
}

/* How many bytes from the start on surely stand for themselves, by eights: of a word, those that are 0, and
 * those below a blank, are found by what subtracting borrows. */
static size_t plain_bytes(const char *string, size_t bytes)
{
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    size_t plain = 0;
    for (; plain + 8 <= bytes; plain += 8) {
        uint64_t word;
        memcpy(&word, string + plain, sizeof word);
        const uint64_t quotes = word ^ ones * '"', slashes = word ^ ones * '\\';
        if ((((word - ones * ' ') & ~word) | ((quotes - ones) & ~quotes) | ((slashes - ones) & ~slashes)) &
            highs)
            break;
    }
    return plain;
}

static void write_escapes(struct adv_text *out, const char *string, size_t bytes)
{
    size_t from = 0;
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char byte = (unsigned char)string[i];
        if (stands_for_itself(byte)) continue;
        adv_text_append_bytes(out, string + from, i - from);
        write_escaped(out, byte);
        from = i + 1;
    }
    adv_text_append_bytes(out, string + from, bytes - from);
}

/* UTF-8 stays as it is, and so does what is written. */
static void write_string(struct adv_text *out, const char *string, size_t bytes)
{
    if (bytes > 0 && (unsigned char)string[0] == WRITTEN) {
        adv_text_append_bytes(out, string + 1, bytes - 1);
        return;
    }
    size_t plain = plain_bytes(string, bytes);
    while (plain < bytes && stands_for_itself((unsigned char)string[plain])) plain++;
    if (plain < bytes) {
        adv_text_append_bytes(out, "\"", 1);
        write_escapes(out, string, bytes);
        adv_text_append_bytes(out, "\"", 1);
        return;
    }
    char *text = adv_text_open(out, bytes + 2);
    if (!text) return;
    text[0] = text[bytes + 1] = '"';
    memcpy(text + 1, string, bytes);
}

enum { DIGITS = 12 };

/* The digits of a number as "%.12g" rounds them, and the place of the first, for numbers that it writes
 * without an exponent. The product with an exact power of ten is off by less than a ten thousandth of the
 * last digit: false where that leaves open which way to round. */
static bool round_digits(double value, uint64_t *digits, int *place)
{
    static const double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    static const double least = 1e-3, most = 1e11, open = 1e-3;
    if (!(value >= least && value < most)) return false;
    int at = -3;
    while (at < DIGITS - 2 && value >= (at < -1 ? 1 / powers[-at - 1] : powers[at + 1])) at++;
    const double scaled = value * powers[DIGITS - 1 - at], whole = floor(scaled), rest = scaled - whole;
    if (!(scaled >= powers[DIGITS - 1] && scaled < powers[DIGITS] - 1) || fabs(rest - 0.5) < open)
        return false;
    *digits = (uint64_t)whole + (rest > 0.5);
    *place = at;
    return true;
}

/* Writes such a number; false: it is left to the C library. */
static bool write_plain_real(struct adv_text *out, double value)
{
    char text[2 * DIGITS], *at = text;
    uint64_t digits;
    int place, count = DIGITS;
    if (!round_digits(fabs(value), &digits, &place)) return false;
    while (digits % 10 == 0) { /* it is not zero */
        digits /= 10;
        count--;
    }
    const int before = place + 1; /* digits before the point; below 1 there are zeros behind it */
    if (value < 0) *at++ = '-';
    if (before <= 0) *at++ = '0';
    char *first = at;
    if (before > 0 && count <= before) { /* whole */
        for (int i = before - 1; i >= 0; i--) {
            first[i] = (char)('0' + (i < count ? digits % 10 : 0));
            if (i < count) digits /= 10;
        }
        memcpy(first + before, ".0", 2);
        at = first + before + 2;
    } else {
        const int zeros = before < 0 ? -before : 0, lead = before > 0 ? before : 0;
        for (int i = count - 1; i >= 0; i--) {
            first[i + (i >= lead ? 1 + zeros : 0)] = (char)('0' + digits % 10);
            digits /= 10;
        }
        first[lead] = '.';
        memset(first + lead + 1, '0', (size_t)zeros);
        at = first + count + 1 + zeros;
    }
    adv_text_append_bytes(out, text, (size_t)(at - text));
    return true;
}

/* A real keeps a point or an exponent, so that it is read back as one; exponents have neither plus nor
 * leading zeros. */
static void write_real(struct adv_text *out, double value, int digits)
{
    char text[32];
    if (digits == DIGITS && write_plain_real(out, value)) return;
    (void)snprintf(text, sizeof text, "%.*g", digits, value);
    char *exponent = strchr(text, 'e');
    if (exponent) {
        const char *power = exponent + 2 + strspn(exponent + 2, "0");
        exponent += exponent[1] == '-' ? 2 : 1;
        memmove(exponent, power, strlen(power) + 1);
    }
    adv_text_append(out, text);
    if (!exponent && !strchr(text, '.')) adv_text_append(out, ".0");
}

static void write_integer(struct adv_text *out, json_int_t value)
{
    char text[24], *at = text + sizeof text;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do {
        *--at = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (value < 0) *--at = '-';
    adv_text_append_bytes(out, at, (size_t)(text + sizeof text - at));
}

static void write_value(struct adv_text *out, json_t *value, int digits);

static void write_array(struct adv_text *out, const json_t *array, int digits)
{
    adv_text_append_bytes(out, "[", 1);
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i > 0) adv_text_append_bytes(out, ",", 1);
        write_value(out, json_array_get(array, i), digits);
    }
    adv_text_append_bytes(out, "]", 1);
}

static void write_object(struct adv_text *out, json_t *object, int digits)
{
    adv_text_append_bytes(out, "{", 1);
    void *first = json_object_iter(object);
    for (void *at = first; at; at = json_object_iter_next(object, at)) {
        const char *key = json_object_iter_key(at);
        if (at != first) adv_text_append_bytes(out, ",", 1);
        write_string(out, key, strlen(key));
        adv_text_append_bytes(out, ":", 1);
        write_value(out, json_object_iter_value(at), digits);
    }
    adv_text_append_bytes(out, "}", 1);
}

/* Trees are as deep as the engine makes them, or as a parser lets them be. */
static void write_value(struct adv_text *out, json_t *value, int digits)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        write_object(out, value, digits);
        break;
    case JSON_ARRAY:
        write_array(out, value, digits);
        break;
    case JSON_STRING:
        write_string(out, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        write_integer(out, json_integer_value(value));
        break;
    case JSON_REAL:
        write_real(out, json_real_value(value), digits);
        break;
    case JSON_TRUE:
        adv_text_append(out, "true");
        break;
    case JSON_FALSE:
        adv_text_append(out, "false");
        break;
    case JSON_NULL:
        adv_text_append(out, "null");
        break;
    }
}

const char *adv_encode_ahead(json_t *value, struct adv_arena *arena)
{
    struct adv_text out = adv_text_empty(SIZE_MAX);
    if (!value) return NULL;
    adv_text_append_bytes(&out, (const char[]){(char)WRITTEN}, 1);
    write_value(&out, value, DIGITS);
    const char *written = out.overflow ? NULL : adv_arena_copy(arena, out.data);
    adv_text_free(&out);
    return written;
}

const char *adv_encode_exactly(const json_t *value, struct adv_arena *arena)
{
    enum { ALL_DIGITS = 17 };
    struct adv_text out = adv_text_empty(SIZE_MAX);
    write_value(&out, (json_t *)(uintptr_t)value, ALL_DIGITS);
    const char *text = out.overflow ? NULL : adv_arena_copy(arena, out.data);
    adv_text_free(&out);
    return text;
}

json_t *adv_encode_written(const char *written)
{
    return json_string_nocheck(written);
}

char *adv_encode_text(json_t *root, size_t *text_bytes)
{
    struct adv_text out = adv_text_empty(SIZE_MAX);
    *text_bytes = 0;
    if (!root) return NULL;
    write_value(&out, root, DIGITS);
    json_decref(root);
    char *text = out.overflow ? NULL : realloc(out.data, out.length_bytes + 1); /* it may be kept for long */
    if (!text) adv_text_free(&out);
    *text_bytes = out.length_bytes;
    return text;
}

/* text.h: bounded string builders and the nearest-name search behind "did you mean". */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/code.h"

/* Grows up to limit_bytes; past it `overflow` is set and further text is dropped, never written out of
 * bounds. */
struct adv_text {
    char *data; /* NUL-terminated once something was appended; NULL before */
    size_t length_bytes;
    size_t capacity_bytes;
    size_t limit_bytes;
    bool overflow; /* limit or memory exhausted: the text is incomplete */
};

/* Without text, to hold at most limit_bytes. adv_text_init makes one in place. */
struct adv_text adv_text_empty(size_t limit_bytes);
void adv_text_init(struct adv_text *text, size_t limit_bytes);
void adv_text_append(struct adv_text *text, const char *string);
void adv_text_append_bytes(struct adv_text *text, const char *bytes, size_t length_bytes);

/* Appends that many bytes, which the caller writes; NULL, and nothing appended, where there is no room. */
char *adv_text_open(struct adv_text *text, size_t length_bytes);
void adv_text_format(struct adv_text *text, const char *format, ...) ADV_PRINTF(2, 3);
void adv_text_free(struct adv_text *text);

/* Appends to a text of at most `text_bytes`, which is cut there. */
void adv_append(char *text, size_t text_bytes, const char *format, ...) ADV_PRINTF(3, 4);

/* Whether two names are the same. Of most names in a table the first letters differ: that needs no call. */
static inline bool adv_text_same(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

/* Makes what may have been cut inside a character UTF-8 again, in place: what is left of the character goes,
 * and bytes that never were UTF-8 become '?'. */
void adv_text_mend(char *text);

/* Whether a text in UTF-8 has characters that no list and no terminal shows as such: controls (C0, DEL, C1),
 * line and paragraph separators, those that turn the direction of what follows, U+FFFE and U+FFFF. */
bool adv_text_has_control(const char *text);

/* Reads a whole number from 0 to `most` that is written in digits and nothing else: no sign, blank or leading
 * zero. */
bool adv_text_whole(const char *text, int most, int *number);

/* Defines the function that gives the values of an enumeration their names, which are listed in its order. */
#define ADV_NAMES(function, type, ...)                                                                       \
    const char *function(type value)                                                                         \
    {                                                                                                        \
        static const char *const names[] = {__VA_ARGS__};                                                    \
        return (size_t)value < sizeof names / sizeof *names ? names[value] : "unknown";                      \
    }

/* Writes `text` in small letters of ASCII, as much of it as goes into `lower`. */
void adv_text_lower(const char *text, char *lower, size_t lower_bytes);

/* The name of `names[0..count)` nearest to `wanted` within a third of its length, as it is written or else in
 * small letters; NULL: none. `names` may hold NULLs. */
const char *adv_text_nearest(const char *wanted, const char *const *names, int count);

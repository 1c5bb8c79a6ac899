#include "engine/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/limits.h"

struct adv_text adv_text_empty(size_t limit_bytes)
{
    return (struct adv_text){.limit_bytes = limit_bytes};
}

void adv_text_init(struct adv_text *text, size_t limit_bytes)
{
    *text = adv_text_empty(limit_bytes);
}

static bool reserve(struct adv_text *text, size_t more_bytes)
{
    if (text->overflow) return false;
    if (more_bytes >= text->limit_bytes - text->length_bytes) {
        text->overflow = true;
        return false;
    }
    size_t needed = text->length_bytes + more_bytes + 1;
    if (needed <= text->capacity_bytes) return true;
    size_t capacity = text->capacity_bytes ? text->capacity_bytes : 256;
    while (capacity < needed) capacity *= 2;
    char *grown = realloc(text->data, capacity);
    if (!grown) {
        text->overflow = true;
        return false;
    }
    text->data = grown;
    text->capacity_bytes = capacity;
    return true;
}

char *adv_text_open(struct adv_text *text, size_t length_bytes)
{
    if (!reserve(text, length_bytes)) return NULL;
    char *opened = text->data + text->length_bytes;
    text->length_bytes += length_bytes;
    opened[length_bytes] = '\0';
    return opened;
}

void adv_text_append_bytes(struct adv_text *text, const char *bytes, size_t length_bytes)
{
    char *opened = adv_text_open(text, length_bytes);
    if (opened) memcpy(opened, bytes, length_bytes);
}

void adv_text_append(struct adv_text *text, const char *string)
{
    adv_text_append_bytes(text, string, strlen(string));
}

void adv_text_format(struct adv_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length >= 0 && reserve(text, (size_t)length)) {
        (void)vsnprintf(text->data + text->length_bytes, (size_t)length + 1, format, again);
        text->length_bytes += (size_t)length;
    }
    va_end(again);
}

void adv_text_free(struct adv_text *text)
{
    free(text->data);
    text->data = NULL;
    text->length_bytes = text->capacity_bytes = 0;
}

void adv_append(char *text, size_t text_bytes, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text + used, text_bytes - used, format, args);
    va_end(args);
}

/* Bytes of the UTF-8 sequence at `at`, 0 when it is not one (overlong forms and surrogates included). */
static int sequence_length(const unsigned char *at)
{
    int length = at[0] < 0x80                     ? 1
                 : at[0] >= 0xc2 && at[0] <= 0xdf ? 2
                 : (at[0] & 0xf0) == 0xe0         ? 3
                 : at[0] >= 0xf0 && at[0] <= 0xf4 ? 4
                                                  : 0;
    for (int i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0;
    }
    bool is_overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    bool is_beyond = (at[0] == 0xed && at[1] > 0x9f) || (at[0] == 0xf4 && at[1] > 0x8f);
    return is_overlong || is_beyond ? 0 : length;
}

void adv_text_mend(char *text)
{
    char *end = text;
    for (const char *at = text; *at;) {
        const unsigned char *bytes = (const unsigned char *)at;
        const int length = sequence_length(bytes);
        const bool is_cut = length == 0 && *bytes >= 0xc2 && *bytes <= 0xf4;
        if (length == 0 && !is_cut) *end++ = '?';
        for (int i = 0; i < length; i++) *end++ = at[i];
        at += length ? length : 1;
        while (is_cut && ((unsigned char)*at & 0xc0) == 0x80) at++;
    }
    *end = '\0';
}

/* Levenshtein distance of two names, at most `cap` + 1 (names longer than 95 bytes count as far). */
static int distance_of(const char *a, const char *b, int cap)
{
    size_t la = strlen(a);
    size_t lb = strlen(b);
    if (la >= ADV_LIMIT_NAME || lb >= ADV_LIMIT_NAME) return cap + 1;
    int row[ADV_LIMIT_NAME + 1];
    for (size_t j = 0; j <= lb; j++) row[j] = (int)j;
    for (size_t i = 1; i <= la; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= lb; j++) {
            int above = row[j];
            int best = diagonal + (a[i - 1] != b[j - 1]);
            if (above + 1 < best) best = above + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best;
            diagonal = above;
        }
    }
    return row[lb] > cap ? cap + 1 : row[lb];
}

bool adv_text_has_control(const char *text)
{
    static const struct {
        unsigned char head[2], first, last; /* of the last byte */
    } longer[] = {{{0xe2, 0x80}, 0xa8, 0xae}, {{0xe2, 0x81}, 0xa6, 0xa9}, {{0xef, 0xbf}, 0xbe, 0xbf}};
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at < ' ' || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0)) return true;
        for (size_t i = 0; *at >= 0xe2 && i < sizeof longer / sizeof *longer; i++)
            if (memcmp(at, longer[i].head, 2) == 0 && at[2] >= longer[i].first && at[2] <= longer[i].last)
                return true;
    }
    return false;
}

bool adv_text_whole(const char *text, int most, int *number)
{
    int64_t value = 0;
    const size_t length = strlen(text);
    if (length < 1 || length > 10 || (*text == '0' && length > 1)) return false;
    for (const char *at = text; *at; at++) {
        if (*at < '0' || *at > '9') return false;
        value = value * 10 + (*at - '0');
    }
    if (value > most) return false;
    *number = (int)value;
    return true;
}

void adv_text_lower(const char *text, char *lower, size_t lower_bytes)
{
    size_t length = 0;
    for (; text[length] && length + 1 < lower_bytes; length++) {
        const char letter = text[length];
        lower[length] = letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
    }
    lower[length] = '\0';
}

static const char *nearest_as_written(const char *wanted, const char *const *names, int count)
{
    int cap = (int)(strlen(wanted) / 3) + 1;
    const char *nearest = NULL;
    for (int i = 0; i < count; i++) {
        if (!names[i]) continue;
        int distance = distance_of(wanted, names[i], cap);
        if (distance > cap) continue;
        nearest = names[i];
        if (distance == 0) break;
        cap = distance - 1;
    }
    return nearest;
}

const char *adv_text_nearest(const char *wanted, const char *const *names, int count)
{
    const char *nearest = nearest_as_written(wanted, names, count);
    if (nearest) return nearest;
    char lower[ADV_LIMIT_NAME + 1]; /* of a longer name the whole is as far as its beginning */
    adv_text_lower(wanted, lower, sizeof lower);
    return nearest_as_written(lower, names, count);
}

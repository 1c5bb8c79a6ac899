#include "server/json_text.h"

#include <math.h>
#include <string.h>

/* Length of the UTF-8 sequence that starts at `at` (1 to 4, NUL-terminated text), or 0 when it is not one
 * (RFC 3629). */
static int utf8_length(const char *at)
{
    const unsigned char *u = (const unsigned char *)at;
    if (u[0] < 0x80) return 1;
    int length = 0;
    if (u[0] >= 0xc2 && u[0] <= 0xdf)
        length = 2;
    else if (u[0] >= 0xe0 && u[0] <= 0xef)
        length = 3;
    else if (u[0] >= 0xf0 && u[0] <= 0xf4)
        length = 4;
    for (int i = 1; i < length; i++)
        if ((u[i] & 0xc0) != 0x80) return 0;
    bool overlong = (u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xf0 && u[1] < 0x90);
    bool surrogate = u[0] == 0xed && u[1] > 0x9f;
    bool beyond = u[0] == 0xf4 && u[1] > 0x8f;
    return overlong || surrogate || beyond ? 0 : length;
}

bool adv_utf8_valid(const char *text)
{
    while (*text) {
        int length = utf8_length(text);
        if (length == 0) return false;
        text += length;
    }
    return true;
}

void adv_json_text_quote(struct adv_text *text, const char *value)
{
    if (!value) {
        adv_text_append(text, "null");
        return;
    }
    adv_text_append(text, "\"");
    while (*value) {
        int length = utf8_length(value);
        if (length == 0) {
            adv_text_append(text, "\\ufffd");
            length = 1;
        } else if (length > 1) {
            adv_text_append_bytes(text, value, (size_t)length);
        } else if (*value == '"' || *value == '\\') {
            adv_text_format(text, "\\%c", *value);
        } else if ((unsigned char)*value < 0x20 || *value == 0x7f) {
            adv_text_format(text, "\\u%04x", (unsigned)*value);
        } else {
            adv_text_append_bytes(text, value, 1);
        }
        value += length;
    }
    adv_text_append(text, "\"");
}

static void append_name(struct adv_text *text, const char *name)
{
    char last = text->length_bytes ? text->data[text->length_bytes - 1] : '{';
    adv_text_format(text, "%s\"%s\":", last == '{' || last == '[' ? "" : ",", name);
}

void adv_json_text_string(struct adv_text *text, const char *name, const char *value)
{
    append_name(text, name);
    adv_json_text_quote(text, value);
}

void adv_json_text_raw(struct adv_text *text, const char *name, const char *json)
{
    append_name(text, name);
    adv_text_append(text, json ? json : "null");
}

void adv_json_text_number(struct adv_text *text, const char *name, double value)
{
    append_name(text, name);
    adv_text_format(text, isfinite(value) ? "%.12g" : "null", value);
}

void adv_json_text_bool(struct adv_text *text, const char *name, bool value)
{
    adv_json_text_raw(text, name, value ? "true" : "false");
}

void adv_json_text_extend(struct adv_text *text, const char *object, size_t object_bytes, const char *members)
{
    while (object_bytes && object[object_bytes - 1] != '}') object_bytes--;
    if (object_bytes) object_bytes--;
    adv_text_append_bytes(text, object, object_bytes);
    size_t end = text->length_bytes;
    while (end && (text->data[end - 1] == ' ' || text->data[end - 1] == '\n')) end--;
    adv_text_format(text, "%s%s}", end && text->data[end - 1] == '{' ? "" : ",", members);
}

/* The length of what `at` begins with, and in `shown` how people see it: a blank for control characters,
 * U+FFFD for what is no UTF-8. */
static int read_shown(const char *at, char shown[5])
{
    const int length = utf8_length(at);
    memset(shown, 0, 5);
    memcpy(shown, length ? at : "\xef\xbf\xbd", length ? (size_t)length : 3);
    if (adv_text_has_control(shown)) memcpy(shown, " ", 2);
    return length ? length : 1;
}

void adv_markdown_text(struct adv_text *text, const char *value, const char *marks)
{
    char shown[5];
    for (const char *at = value ? value : ""; *at;) {
        at += read_shown(at, shown);
        if (strchr(marks, *shown)) adv_text_append(text, "\\");
        adv_text_append(text, shown);
    }
}

void adv_xml_text(struct adv_text *text, const char *value)
{
    char shown[5];
    for (const char *at = value ? value : ""; *at;) {
        at += read_shown(at, shown);
        if (strchr("<>&\"", *shown))
            adv_text_format(text, "&#%d;", *shown);
        else
            adv_text_append(text, shown);
    }
}

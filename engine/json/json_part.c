#include "engine/json/json_part.h"

#include <string.h>

static const char *over_blanks(const char *text)
{
    return text + strspn(text, " \t\n\r");
}

/* Behind the string that begins here, or at the end of a text that ends within it. */
static const char *over_string(const char *text)
{
    for (text++; *text && *text != '"'; text++)
        if (*text == '\\' && text[1]) text++;
    return *text ? text + 1 : text;
}

/* Behind the value that begins here, or at the end of a text that ends within it. */
static const char *over_value(const char *text)
{
    int depth = 0;
    if (*text != '{' && *text != '[' && *text != '"') return text + strcspn(text, ",]} \t\n\r");
    do {
        if (*text == '"') {
            text = over_string(text);
            continue;
        }
        depth += (*text == '{' || *text == '[') - (*text == '}' || *text == ']');
        text++;
    } while (*text && depth > 0);
    return text;
}

/* Where the value begins that should be here. */
static const char *value_at(const char *text)
{
    return strchr(",]}", *text) ? NULL : text; /* the end of the text is among these */
}

const char *adv_json_part_member(const char *object, const char *name)
{
    const size_t name_bytes = strlen(name);
    const char *at = object ? over_blanks(object) : "";
    if (*at != '{') return NULL;
    for (at = over_blanks(at + 1); *at == '"'; at = over_blanks(at + 1)) {
        const char *const key = at + 1;
        at = over_blanks(over_string(at));
        if (*at != ':') break;
        at = over_blanks(at + 1);
        if (strncmp(key, name, name_bytes) == 0 && key[name_bytes] == '"') return value_at(at);
        at = over_blanks(over_value(at));
        if (*at != ',') break;
    }
    return NULL;
}

const char *adv_json_part_element(const char *array, int index)
{
    const char *at = array ? over_blanks(array) : "";
    if (*at != '[' || index < 0) return NULL;
    at = over_blanks(at + 1);
    for (; index > 0; index--) {
        at = over_blanks(over_value(at));
        if (*at != ',') return NULL;
        at = over_blanks(at + 1);
    }
    return value_at(at);
}

json_t *adv_json_part_load(const char *part)
{
    if (!part) return NULL;
    part = over_blanks(part);
    return adv_json_load(part, (size_t)(over_value(part) - part), JSON_REJECT_DUPLICATES | JSON_DECODE_ANY,
                         NULL);
}

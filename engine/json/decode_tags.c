#include "engine/json/decode_tags.h"

#include <string.h>

#include "engine/json/json_read.h"

static bool is_tag(const json_t *value)
{
    const char *text = json_string_value(value);
    const size_t length = json_string_length(value);
    if (!text || length < 1 || length > ADV_LIMIT_TAG_BYTES || strlen(text) != length) return false;
    for (const unsigned char *at = (const unsigned char *)text; *at; at++)
        if (*at == ',' || *at < ' ' || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0)) return false;
    return true;
}

static bool is_twice(const json_t *tags, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (json_equal(json_array_get(tags, i), json_array_get(tags, index))) return true;
    return false;
}

static void check(const json_t *tags, adv_err *err)
{
    const size_t count = json_array_size(tags);
    if (count > ADV_LIMIT_TAGS) {
        ADV_REFUSE(err, "/tags", NULL, "a run has at most %d tags, not %zu", ADV_LIMIT_TAGS, count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_tag(json_array_get(tags, i)))
            ADV_REFUSE(err, ADV_AT_INDEX("/tags", i), NULL,
                       "a tag is a string of 1 to %d bytes without commas and control characters",
                       ADV_LIMIT_TAG_BYTES);
        else if (is_twice(tags, i))
            ADV_REFUSE(err, ADV_AT_INDEX("/tags", i), NULL, "the tag '%s' is there twice",
                       json_string_value(json_array_get(tags, i)));
    }
}

void adv_check_tags(const json_t *root, adv_err *err)
{
    const json_t *list = adv_json_array(root, "", "tags", ADV_JSON_OPTIONAL, err);
    if (list) check(list, err);
}

adv_code adv_decode_tags(const char *json, size_t json_bytes, char **tags, adv_err *err)
{
    ADV_JSON_OWN json_t *root = adv_json_body(json, json_bytes, ADV_JSON_NAMES("tags"), err);
    const json_t *list = root ? adv_json_array(root, "", "tags", ADV_JSON_REQUIRED, err) : NULL;
    *tags = NULL;
    if (list) check(list, err);
    if (!list || err->code) return err->code;
    *tags = json_dumps(list, JSON_COMPACT);
    return *tags ? ADV_OK : adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the tags");
}

#include "engine/json/decode_store.h"

#include <string.h>

#include "engine/base/text.h"

enum { TEXT_BYTES_MAX = ADV_LIMIT_NAME - 1 };

static const char *keep_text(const json_t *root, const char *member, struct adv_arena *arena, adv_err *err)
{
    const char *text = NULL;
    if (!adv_json_string(root, "", member, ADV_JSON_OPTIONAL, &text, err)) return NULL;
    if (strlen(text) > TEXT_BYTES_MAX) {
        (void)adv_err_add(err, ADV_E_RANGE, ADV_AT("", member), NULL, "%s is %zu bytes long; at most %d",
                          member, strlen(text), TEXT_BYTES_MAX);
        return NULL;
    }
    const char *copy = adv_arena_copy(arena, text);
    if (!copy) (void)adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request is too large");
    return copy;
}

static bool is_tag(const json_t *value)
{
    const char *text = json_string_value(value);
    const size_t length = json_string_length(value);
    if (!text || length < 1 || length > ADV_LIMIT_TAG_BYTES || strlen(text) != length) return false;
    return !strchr(text, ',') && !adv_text_has_control(text);
}

static bool is_twice(const json_t *tags, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (json_equal(json_array_get(tags, i), json_array_get(tags, index))) return true;
    return false;
}

static void check_tags(const json_t *tags, adv_err *err)
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

adv_code adv_decode_tags(const char *json, size_t json_bytes, char **tags, adv_err *err)
{
    ADV_JSON_OWN json_t *root = adv_json_body(json, json_bytes, ADV_JSON_NAMES("tags"), err);
    const json_t *list = root ? adv_json_array(root, "", "tags", ADV_JSON_REQUIRED, err) : NULL;
    *tags = NULL;
    if (list) check_tags(list, err);
    if (!list || err->code) return err->code;
    *tags = json_dumps(list, JSON_COMPACT);
    return *tags ? ADV_OK : adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the tags");
}

void adv_decode_store(const json_t *root, struct adv_arena *arena, struct adv_store_wish *wish, adv_err *err)
{
    memset(wish, 0, sizeof *wish);
    const char *attempt = json_string_value(json_object_get(root, "store"));
    wish->store = attempt && strcmp(attempt, ADV_STORE_TRY) == 0;
    if (attempt && !wish->store)
        ADV_REFUSE(err, "/store", "true, false or \"" ADV_STORE_TRY "\"", "store is not \"%.40s\"", attempt);
    else if (!attempt)
        (void)adv_json_bool(root, "", "store", ADV_JSON_OPTIONAL, &wish->store, err);
    wish->label = keep_text(root, "label", arena, err);
    wish->project = keep_text(root, "project", arena, err);
    wish->git_ref = keep_text(root, "git_ref", arena, err);
    const json_t *tags = adv_json_array(root, "", "tags", ADV_JSON_OPTIONAL, err);
    if (tags) check_tags(tags, err); /* the store takes them from the request */
}

int adv_decode_verify(const json_t *root, adv_err *err)
{
    int top = 0;
    const json_t *verify = adv_json_object(root, "", "verify", ADV_JSON_OPTIONAL, err);
    if (!verify) return 0;
    (void)adv_json_known_members(verify, "/verify", ADV_JSON_NAMES("top"), err);
    (void)adv_json_int(verify, "/verify", "top", ADV_JSON_REQUIRED, 1, ADV_LIMIT_RANKED, &top, err);
    if (json_is_false(json_object_get(root, "store")))
        ADV_REFUSE(err, "/store", "leave one of them out", "what is to be verified is stored");
    return top;
}

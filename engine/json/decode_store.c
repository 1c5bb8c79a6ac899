#include "engine/json/decode_store.h"

#include <string.h>

#include "engine/json/decode_tags.h"

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
    adv_check_tags(root, err); /* the store takes them from the request */
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

#include "engine/json/decode_value.h"

#include "engine/json/json_load.h"

#include <stdlib.h>
#include <string.h>

bool adv_decode_value(const json_t *json, struct adv_arena *arena, struct adv_value *value)
{
    static const enum adv_value_kind kinds[] = {
        [JSON_NULL] = ADV_VALUE_NULL,   [JSON_TRUE] = ADV_VALUE_BOOL,    [JSON_FALSE] = ADV_VALUE_BOOL,
        [JSON_INTEGER] = ADV_VALUE_INT, [JSON_REAL] = ADV_VALUE_FLOAT,   [JSON_STRING] = ADV_VALUE_STRING,
        [JSON_ARRAY] = ADV_VALUE_LIST,  [JSON_OBJECT] = ADV_VALUE_OBJECT};
    *value = (struct adv_value){.kind = kinds[json_typeof(json)],
                                .boolean = json_is_true(json),
                                .integer = json_integer_value(json),
                                .number = json_number_value(json),
                                .string = json_string_value(json)};
    if (!json_is_array(json) && !json_is_object(json)) return true;
    value->string = "";
    if (!arena) return true;
    char *text = json_dumps(json, JSON_COMPACT);
    value->string = text ? adv_arena_copy(arena, text) : NULL;
    free(text);
    return value->string != NULL;
}

/* A list in JSON; or "[silu, linear]" -> ["silu", "linear"], where quotes around elements are dropped. */
static json_t *list_of(const char *text)
{
    json_t *list = adv_json_load_string(text, JSON_REJECT_DUPLICATES);
    if (list) return list;
    list = json_array();
    size_t length = strlen(text);
    if (!list || length < 2) return list;
    const char *at = text + 1;
    const char *end = text + length - 1;
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        const char *from = at;
        const char *to = stop;
        while (from < to && strchr(" \t'\"", *from)) from++;
        while (to > from && strchr(" \t'\"", to[-1])) to--;
        char element[ADV_LIMIT_DETAIL];
        if (to > from && (size_t)(to - from) < sizeof element) {
            memcpy(element, from, (size_t)(to - from));
            element[to - from] = '\0';
            (void)json_array_append_new(list, adv_decode_scalar_text(element));
        }
        at = stop + 1;
    }
    return list;
}

json_t *adv_decode_scalar_text(const char *text)
{
    const struct adv_value value = adv_value_of_word(text);
    json_t *json = NULL;
    switch (value.kind) {
    case ADV_VALUE_NULL:
        return json_null();
    case ADV_VALUE_BOOL:
        return json_boolean(value.boolean);
    case ADV_VALUE_INT:
        return json_integer((json_int_t)value.integer);
    case ADV_VALUE_FLOAT:
        return json_real(value.number);
    case ADV_VALUE_LIST:
        return list_of(text);
    case ADV_VALUE_STRING:
    case ADV_VALUE_OBJECT:
        json = json_string(text);
    }
    return json ? json : json_string("");
}

json_t *adv_decode_word_text(const char *text)
{
    const size_t length = strlen(text);
    if (length == 0 || strcmp(text, "~") == 0) return json_null();
    const bool quoted = length > 1 && (text[0] == '"' || text[0] == '\'') && text[length - 1] == text[0] &&
                        !memchr(text + 1, text[0], length - 2);
    return quoted ? json_stringn(text + 1, length - 2) : adv_decode_scalar_text(text);
}

json_t *adv_decode_typed_config(const struct adv_catalog *catalog, const json_t *config)
{
    json_t *given = (json_t *)(uintptr_t)config;
    if (!json_is_object(config)) return json_incref(given);
    json_t *typed = json_copy(given);
    for (struct adv_json_walk entry = {.in = given}; adv_json_next_member(&entry);) {
        const struct adv_catalog_key *key = adv_catalog_key(catalog, entry.key);
        if (typed && json_is_string(entry.value) && key && key->types != 0 &&
            !adv_catalog_key_takes(key, ADV_KEY_STRING))
            (void)json_object_set_new(typed, entry.key,
                                      adv_decode_scalar_text(json_string_value(entry.value)));
    }
    return typed;
}

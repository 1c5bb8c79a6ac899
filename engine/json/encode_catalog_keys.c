#include <string.h>

#include "engine/json/encode_catalog.h"
#include "engine/json/json_load.h"

static json_t *encode_types(unsigned types)
{
    static const char *const names[] = {
        [ADV_KEY_BOOL] = "bool",     [ADV_KEY_INT] = "int",   [ADV_KEY_FLOAT] = "float",
        [ADV_KEY_STRING] = "string", [ADV_KEY_LIST] = "list", [ADV_KEY_OBJECT] = "object",
    };
    json_t *list = json_array();
    for (unsigned type = 0; type < sizeof names / sizeof names[0]; type++)
        if (types & (1u << type)) (void)json_array_append_new(list, json_string(names[type]));
    return list;
}

static json_t *encode_key(const struct adv_catalog_key *key)
{
    json_t *object = json_object();
    adv_encode_set_string(object, "name", key->name);
    (void)json_object_set_new(object, "types", encode_types(key->types));
    (void)json_object_set_new(object, "nullable", json_boolean(key->nullable));
    (void)json_object_set_new(object, "default", adv_json_load_string(key->default_json, JSON_DECODE_ANY));
    if (key->allowed_count > 0) {
        json_t *allowed = json_array();
        for (int i = 0; i < key->allowed_count; i++)
            (void)json_array_append_new(allowed, json_string(key->allowed[i]));
        (void)json_object_set_new(object, "allowed", allowed);
    }
    if (*key->constraints) adv_encode_set_string(object, "constraints", key->constraints);
    if (*key->what) adv_encode_set_string(object, "what", key->what);
    if (*key->note) adv_encode_set_string(object, "note", key->note);
    adv_encode_set_string(object, "group", key->group);
    return object;
}

json_t *adv_encode_catalog_keys(const struct adv_catalog *catalog)
{
    json_t *list = json_array();
    for (int i = 0; i < adv_catalog_keys_count(catalog); i++)
        (void)json_array_append_new(list, encode_key(adv_catalog_key_at(catalog, i)));
    return list;
}

/* A key of today, one MaxText once had, or an XLA flag (with or without its dashes). */
json_t *adv_encode_catalog_key(const struct adv_catalog *catalog, const char *name)
{
    const struct adv_catalog_key *key = adv_catalog_key(catalog, name);
    if (key) {
        json_t *object = encode_key(key);
        adv_encode_set_provenance(object, adv_catalog_keys_provenance(catalog));
        return object;
    }
    const struct adv_catalog_old_key *old_key = adv_catalog_old_key(catalog, name);
    if (old_key) {
        json_t *object = json_object();
        adv_encode_set_string(object, "name", old_key->name);
        (void)json_object_set_new(object, "current",
                                  old_key->current ? json_string(old_key->current) : json_null());
        adv_encode_set_string(object, "why", old_key->why);
        return object;
    }
    const struct adv_catalog_flag *flag = adv_catalog_flag(catalog, name + strspn(name, "-"));
    if (!flag) return NULL;
    json_t *object = json_pack("{s:s,s:s,s:s}", "name", flag->name, "type", flag->type, "what", flag->what);
    adv_encode_set_provenance(object, adv_catalog_flags_provenance(catalog));
    return object;
}

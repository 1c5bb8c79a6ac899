/* decode_catalog_releases.c: releases.json, which tests/compile/releases.py writes. */
#include <stdio.h>
#include <string.h>

#include "engine/json/decode_catalog.h"

static void copy_release(char release[ADV_LIMIT_RELEASE], const struct adv_catalog_file *file,
                         const json_t *object, const char *member)
{
    const char *text = "";
    if (adv_json_string(object, file->at, member, ADV_JSON_REQUIRED, &text, file->err))
        (void)snprintf(release, ADV_LIMIT_RELEASE, "%s", text);
}

static int index_of(const struct adv_catalog_releases *releases, const json_t *name, int otherwise)
{
    const char *text = json_string_value(name);
    for (int i = 0; i < releases->maxtext_count && text; i++)
        if (strcmp(releases->maxtext[i], text) == 0) return i;
    return otherwise;
}

static void decode_keys(const struct adv_catalog_file *file, const json_t *maxtext,
                        struct adv_catalog_releases *releases)
{
    const json_t *list = adv_json_array(maxtext, file->at, "keys", ADV_JSON_REQUIRED, file->err);
    const size_t count = json_array_size(list);
    releases->keys = adv_catalog_rows(file, count, sizeof *releases->keys);
    if (!releases->keys) return;
    for (size_t i = 0; i < count; i++) {
        const char *name;
        json_t *since, *last;
        if (json_unpack(json_array_get(list, i), "[s,o,o!]", &name, &since, &last) != 0) {
            adv_catalog_refuse(file, "maxtext/keys", i, "must be [key, first release or null, last or null]");
            return;
        }
        releases->keys[i] =
            (struct adv_catalog_key_range){adv_catalog_keep(file, name), index_of(releases, since, 0),
                                           index_of(releases, last, releases->maxtext_count - 1)};
    }
    releases->keys_count = (int)count;
}

static bool decode_refusals(const struct adv_catalog_file *file, const json_t *row,
                            struct adv_catalog_libtpu *libtpu)
{
    const char *release;
    json_t *unknown, *refused, *item;
    size_t index;
    if (json_unpack((json_t *)(uintptr_t)row, "{s:s,s:o,s:o!}", "release", &release, "unknown", &unknown,
                    "refused", &refused) != 0)
        return false;
    libtpu->release = adv_catalog_keep(file, release);
    libtpu->refusals =
        adv_catalog_rows(file, json_array_size(unknown) + json_array_size(refused), sizeof *libtpu->refusals);
    if (!libtpu->refusals) return true;
    json_array_foreach(unknown, index, item) libtpu->refusals[libtpu->refusals_count++] =
        (struct adv_catalog_refusal){.flag = adv_catalog_keep(file, json_string_value(item))};
    json_array_foreach(refused, index, item)
    {
        const char *flag, *value;
        json_t *chips, *with;
        if (json_unpack(item, "{s:s,s:s,s:o,s:o!}", "flag", &flag, "value", &value, "chips", &chips, "with",
                        &with) != 0)
            return false;
        struct adv_catalog_refusal *refusal = &libtpu->refusals[libtpu->refusals_count++];
        refusal->flag = adv_catalog_keep(file, flag);
        refusal->value = adv_catalog_keep(file, value);
        refusal->chips = adv_catalog_keep_list(file, chips, file->at, &refusal->chips_count);
        refusal->with = adv_catalog_keep_list(file, with, file->at, &refusal->with_count);
    }
    return true;
}

static void decode_libtpu(const struct adv_catalog_file *file, struct adv_catalog_releases *releases)
{
    const json_t *list = adv_json_array(file->root, file->at, "libtpu", ADV_JSON_REQUIRED, file->err);
    const size_t count = json_array_size(list);
    releases->libtpu = adv_catalog_rows(file, count, sizeof *releases->libtpu);
    if (!releases->libtpu) return;
    memset(releases->libtpu, 0, (count > 0 ? count : 1) * sizeof *releases->libtpu);
    for (size_t i = 0; i < count; i++)
        if (!decode_refusals(file, json_array_get(list, i), &releases->libtpu[i]))
            adv_catalog_refuse(file, "libtpu", i,
                               "must be {release, unknown, refused[{flag, value, chips, with}]}");
    releases->libtpu_count = (int)count;
}

static void decode_jax(const struct adv_catalog_file *file, struct adv_catalog_releases *releases)
{
    const json_t *list = adv_json_array(file->root, file->at, "jax", ADV_JSON_REQUIRED, file->err);
    const size_t count = json_array_size(list);
    releases->jax = adv_catalog_rows(file, count, sizeof *releases->jax);
    if (!releases->jax) return;
    for (size_t i = 0; i < count; i++) {
        const char *release, *libtpu;
        if (json_unpack(json_array_get(list, i), "[s,s!]", &release, &libtpu) != 0) {
            adv_catalog_refuse(file, "jax", i, "must be [release, the libtpu that it asks for]");
            return;
        }
        releases->jax[i] =
            (struct adv_catalog_jax){adv_catalog_keep(file, release), adv_catalog_keep(file, libtpu)};
    }
    releases->jax_count = (int)count;
}

void adv_decode_catalog_releases(const struct adv_catalog_file *file)
{
    struct adv_catalog_releases *releases = &file->catalog->releases;
    const json_t *pinned = adv_json_object(file->root, file->at, "pinned", ADV_JSON_REQUIRED, file->err);
    const json_t *maxtext = adv_json_object(file->root, file->at, "maxtext", ADV_JSON_REQUIRED, file->err);
    if (!pinned || !maxtext) return;
    copy_release(releases->pinned.maxtext, file, pinned, "maxtext");
    copy_release(releases->pinned.jax, file, pinned, "jax");
    copy_release(releases->pinned.libtpu, file, pinned, "libtpu");
    const json_t *list = adv_json_array(maxtext, file->at, "releases", ADV_JSON_REQUIRED, file->err);
    releases->maxtext = adv_catalog_keep_list(file, list, file->at, &releases->maxtext_count);
    decode_keys(file, maxtext, releases);
    decode_jax(file, releases);
    decode_libtpu(file, releases);
}

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

static bool decode_range(const struct adv_catalog_file *file, json_t *row, void *element)
{
    const struct adv_catalog_releases *releases = &file->catalog->releases;
    const char *name;
    json_t *since, *last;
    if (json_unpack(row, "[s,o,o!]", &name, &since, &last) != 0) return false;
    *(struct adv_catalog_range *)element =
        (struct adv_catalog_range){adv_catalog_keep(file, name), index_of(releases, since, 0),
                                   index_of(releases, last, releases->maxtext_count - 1)};
    return true;
}

static bool decode_ignored(const struct adv_catalog_file *file, json_t *list,
                           struct adv_catalog_libtpu *libtpu)
{
    libtpu->ignored = adv_catalog_rows(file, json_array_size(list), sizeof *libtpu->ignored);
    for (struct adv_json_walk item = {.in = list}; libtpu->ignored && adv_json_next(&item);) {
        json_t *chips, *unless;
        struct adv_catalog_ignored *row = &libtpu->ignored[libtpu->ignored_count++];
        if (json_unpack(item.value, "{s:s,s:o,s:o,s:s!}", "flag", &row->flag, "chips", &chips, "unless",
                        &unless, "what", &row->what) != 0)
            return false;
        ADV_CATALOG_KEEP(file, &row->flag, &row->what);
        const size_t several = sizeof row->unless / sizeof *row->unless;
        if (!json_is_null(unless) && json_array_size(unless) != several) return false;
        for (size_t i = 0; i < several && !json_is_null(unless); i++)
            row->unless[i] = adv_catalog_keep(file, json_string_value(json_array_get(unless, i)));
        row->chips = adv_catalog_keep_list(file, chips, file->at, &row->chips_count);
    }
    return true;
}

static bool decode_libtpu(const struct adv_catalog_file *file, json_t *row, void *element)
{
    struct adv_catalog_libtpu *libtpu = element;
    json_t *unknown, *refused, *ignored;
    if (json_unpack(row, "{s:s,s:o,s:o,s:o!}", "release", &libtpu->release, "unknown", &unknown, "refused",
                    &refused, "ignored", &ignored) != 0)
        return false;
    ADV_CATALOG_KEEP(file, &libtpu->release);
    if (!decode_ignored(file, ignored, libtpu)) return false;
    libtpu->refusals =
        adv_catalog_rows(file, json_array_size(unknown) + json_array_size(refused), sizeof *libtpu->refusals);
    if (!libtpu->refusals) return true;
    for (struct adv_json_walk item = {.in = unknown}; adv_json_next(&item);)
        libtpu->refusals[libtpu->refusals_count++] =
            (struct adv_catalog_refusal){.flag = adv_catalog_keep(file, json_string_value(item.value))};
    for (struct adv_json_walk item = {.in = refused}; adv_json_next(&item);) {
        json_t *chips, *with;
        struct adv_catalog_refusal *refusal = &libtpu->refusals[libtpu->refusals_count++];
        if (json_unpack(item.value, "{s:s,s:s,s:o,s:o!}", "flag", &refusal->flag, "value", &refusal->value,
                        "chips", &chips, "with", &with) != 0)
            return false;
        ADV_CATALOG_KEEP(file, &refusal->flag, &refusal->value);
        refusal->chips = adv_catalog_keep_list(file, chips, file->at, &refusal->chips_count);
        refusal->with = adv_catalog_keep_list(file, with, file->at, &refusal->with_count);
    }
    return true;
}

static bool decode_jax(const struct adv_catalog_file *file, json_t *row, void *element)
{
    struct adv_catalog_jax *jax = element;
    if (json_unpack(row, "[s,s!]", &jax->release, &jax->libtpu) != 0) return false;
    ADV_CATALOG_KEEP(file, &jax->release, &jax->libtpu);
    return true;
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
    releases->keys =
        adv_catalog_decode_rows(file, maxtext, "maxtext/keys", "[key, first release or null, last or null]",
                                sizeof *releases->keys, decode_range, &releases->keys_count);
    releases->models = adv_catalog_decode_rows(
        file, maxtext, "maxtext/models", "[model, first release or null, last or null]",
        sizeof *releases->models, decode_range, &releases->models_count);
    releases->jax = adv_catalog_decode_rows(file, file->root, "jax", "[release, the libtpu that it asks for]",
                                            sizeof *releases->jax, decode_jax, &releases->jax_count);
    releases->libtpu = adv_catalog_decode_rows(
        file, file->root, "libtpu",
        "{release, unknown, refused[{flag, value, chips, with}], ignored[{flag, chips, unless, what}]}",
        sizeof *releases->libtpu, decode_libtpu, &releases->libtpu_count);
}

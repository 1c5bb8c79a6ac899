#include "engine/json/decode_catalog.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/embed.h"
#include "engine/base/hash.h"
#include "engine/json/encode_common.h"

enum { DATA_FILE_MAX_BYTES = 4 * 1024 * 1024 }; /* keys.json, the largest, has 0.1 MiB */

/* In loading order: constants go into the chips. */
static const struct data_file {
    const char *name;
    void (*decode)(const struct adv_catalog_file *file);
    bool is_calibration;
} data_files[] = {
    {"chips.json", adv_decode_catalog_chips, false},
    {"kernel_constants.json", adv_decode_catalog_constants, true},
    {"link_constants.json", adv_decode_catalog_constants, true},
    {"step_constants.json", adv_decode_catalog_constants, true},
    {"memory_constants.json", adv_decode_catalog_constants, true},
    {"models.json", adv_decode_catalog_models, false},
    {"topologies.json", adv_decode_catalog_topologies, false},
    {"keys.json", adv_decode_catalog_keys, false},
    {"old_keys.json", adv_decode_catalog_old_keys, false},
    {"flags.json", adv_decode_catalog_flags, false},
    {"releases.json", adv_decode_catalog_releases, false},
};
enum { DATA_FILES = sizeof data_files / sizeof data_files[0] };

static const char *no_memory(const struct adv_catalog_file *file)
{
    (void)adv_err_add(file->err, ADV_E_MEMORY, file->at, NULL, "no memory for the catalog");
    return "";
}

const char *adv_catalog_keep(const struct adv_catalog_file *file, const char *text)
{
    const char *copy = adv_arena_copy(&file->catalog->arena, text ? text : "");
    return copy ? copy : no_memory(file);
}

const char *adv_catalog_keep_json(const struct adv_catalog_file *file, const json_t *value)
{
    if (!value) return adv_catalog_keep(file, "{}");
    const char *text = adv_encode_exactly(value, &file->catalog->arena);
    return text ? text : no_memory(file);
}

void *adv_catalog_rows(const struct adv_catalog_file *file, size_t count, size_t element_bytes)
{
    void *rows = adv_arena_array(&file->catalog->arena, count > 0 ? count : 1, element_bytes);
    if (!rows) (void)adv_err_add(file->err, ADV_E_MEMORY, file->at, NULL, "no memory for the catalog");
    return rows;
}

void adv_catalog_keep_texts(const struct adv_catalog_file *file, const char **const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) *texts[i] = adv_catalog_keep(file, *texts[i]);
}

void *adv_catalog_decode_rows(const struct adv_catalog_file *file, const json_t *object, const char *list,
                              const char *form, size_t element_bytes, adv_catalog_row *decode, int *count)
{
    const char *slash = strrchr(list, '/');
    const json_t *rows =
        adv_json_array(object, file->at, slash ? slash + 1 : list, ADV_JSON_REQUIRED, file->err);
    const size_t size = json_array_size(rows);
    char *elements = adv_catalog_rows(file, size, element_bytes);
    *count = 0;
    if (!elements) return NULL;
    memset(elements, 0, size * element_bytes);
    for (size_t i = 0; i < size; i++) {
        if (decode(file, json_array_get(rows, i), elements + i * element_bytes)) continue;
        char at[ADV_LIMIT_POINTER];
        (void)snprintf(at, sizeof at, "%s/%s/%zu", file->at, list, i);
        ADV_REFUSE(file->err, at, NULL, "must be %s", form);
        return NULL;
    }
    *count = (int)size;
    return elements;
}

const char *const *adv_catalog_keep_list(const struct adv_catalog_file *file, const json_t *list,
                                         const char *at, int *count)
{
    *count = 0;
    const char **copies = adv_catalog_rows(file, json_array_size(list), sizeof *copies);
    if (!copies) return NULL;
    for (struct adv_json_walk item = {.in = list}; adv_json_next(&item);) {
        const char *text = json_string_value(item.value);
        if (!text) ADV_REFUSE(file->err, at, NULL, "item %zu must be a string", item.index);
        copies[(*count)++] = adv_catalog_keep(file, text);
    }
    return copies;
}

struct adv_provenance adv_catalog_file_provenance(const struct adv_catalog_file *file)
{
    struct adv_provenance from = {"", "", "", "", ""};
    (void)adv_json_string(file->root, file->at, "source", ADV_JSON_REQUIRED, &from.source, file->err);
    (void)adv_json_string(file->root, file->at, "date", ADV_JSON_REQUIRED, &from.date, file->err);
    (void)adv_json_string(file->root, file->at, "confidence", ADV_JSON_REQUIRED, &from.confidence, file->err);
    ADV_CATALOG_KEEP(file, &from.source, &from.date, &from.confidence);
    return from;
}

/* The whole file, malloc'ed; NULL when it is not there or cannot be read (the latter is a finding). */
static char *read_file(const char *directory, const char *name, size_t *length_bytes, adv_err *err)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path) return NULL;
    FILE *stream = fopen(path, "rb");
    if (!stream) {
        if (errno != ENOENT)
            (void)adv_err_add(err, ADV_E_IO, "", NULL, "%s cannot be opened: %s", path, strerror(errno));
        return NULL;
    }
    char *text = malloc(DATA_FILE_MAX_BYTES);
    *length_bytes = text ? fread(text, 1, DATA_FILE_MAX_BYTES, stream) : 0;
    if (!text || ferror(stream) || *length_bytes == DATA_FILE_MAX_BYTES) {
        (void)adv_err_add(err, ADV_E_IO, "", NULL, "%s cannot be read or is larger than 4 MiB", path);
        free(text);
        text = NULL;
    }
    (void)fclose(stream);
    return text;
}

static const struct adv_embedded_file *embedded(const char *name)
{
    for (const struct adv_embedded_file *file = adv_embedded_catalog; file->name; file++)
        if (strcmp(file->name, name) == 0) return file;
    return NULL;
}

struct hashes {
    uint64_t all, calibration;
    char fitted_at[32];
    int own_files_count; /* of the caller's folder */
};

static void decode_root(struct adv_catalog *catalog, const struct data_file *data, const json_t *root,
                        const char *at, struct hashes *hashes, adv_err *err)
{
    struct adv_catalog_file file = {.catalog = catalog, .root = root, .at = at, .err = err};
    if (adv_json_is_object(root, at, err)) data->decode(&file);
    if (!data->is_calibration) return;
    const char *fitted_at = json_string_value(json_object_get(root, "fitted_at"));
    if (fitted_at && strcmp(fitted_at, hashes->fitted_at) > 0)
        (void)snprintf(hashes->fitted_at, sizeof hashes->fitted_at, "%s", fitted_at);
}

/* The values of a file lie together and are given back together: taking them one by one, and going through
 * them to give them back, takes as long as reading them. */
static void decode_text(struct adv_catalog *catalog, const struct data_file *data, const char *text,
                        size_t length_bytes, struct hashes *hashes, adv_err *err)
{
    const char *at = ADV_AT("", data->name);
    hashes->all = adv_hash_bytes(hashes->all, text, length_bytes);
    if (data->is_calibration) hashes->calibration = adv_hash_bytes(hashes->calibration, text, length_bytes);
    adv_err found = adv_err_empty();
    struct adv_arena values;
    json_t *root;
    adv_arena_init(&values, ADV_LIMIT_ARENA_BYTES);
    adv_json_keep_in(&values);
    adv_code code = adv_json_parse_file_text(text, length_bytes, &root, &found);
    if (!adv_json_keep_no_more() && code == ADV_OK)
        code = adv_err_add(&found, ADV_E_MEMORY, "", NULL, "no memory for the catalog");
    if (code == ADV_OK)
        decode_root(catalog, data, root, at, hashes, err);
    else
        adv_err_merge(err, &found, at);
    adv_arena_free(&values);
}

static void load_file(struct adv_catalog *catalog, const struct data_file *data, const char *override_dir,
                      struct hashes *hashes, adv_err *err)
{
    size_t length_bytes = 0;
    int findings = err->count;
    char *own = override_dir ? read_file(override_dir, data->name, &length_bytes, err) : NULL;
    if (own) {
        hashes->own_files_count++;
        decode_text(catalog, data, own, length_bytes, hashes, err);
        free(own);
        return;
    }
    if (err->count > findings) return;
    const struct adv_embedded_file *file = embedded(data->name);
    if (file)
        decode_text(catalog, data, (const char *)file->data, file->length_bytes, hashes, err);
    else
        (void)adv_err_add(err, ADV_E_IO, "", NULL, "the data file %s is missing", data->name);
}

struct adv_catalog *adv_catalog_load(const char *override_dir, adv_err *err)
{
    adv_err found = adv_err_empty();
    struct adv_catalog *catalog = calloc(1, sizeof *catalog);
    if (!catalog) {
        (void)adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the catalog");
        return NULL;
    }
    adv_arena_init(&catalog->arena, ADV_LIMIT_ARENA_BYTES);
    struct hashes hashes = {.all = ADV_HASH_START, .calibration = ADV_HASH_START};
    for (int i = 0; i < DATA_FILES; i++) load_file(catalog, &data_files[i], override_dir, &hashes, &found);
    if (override_dir && hashes.own_files_count == 0 && found.code == ADV_OK)
        (void)adv_err_add(&found, ADV_E_IO, "",
                          "the folder has chips.json, models.json or other files of the catalog",
                          "there is no catalog file in %.400s", override_dir);
    (void)snprintf(catalog->hash, sizeof catalog->hash, "%016llx", (unsigned long long)hashes.all);
    (void)snprintf(catalog->calibration, sizeof catalog->calibration, "%s/%016llx",
                   hashes.fitted_at[0] ? hashes.fitted_at : "undated",
                   (unsigned long long)hashes.calibration);
    if (found.code == ADV_OK) return catalog;
    if (err) adv_err_merge(err, &found, "");
    adv_catalog_free(catalog);
    return NULL;
}

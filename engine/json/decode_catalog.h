/* decode_catalog.h: inside the catalog loader: reading of the data files. Only engine/json/decode_catalog*.c
 * use it. */
#pragma once

#include "engine/catalog/catalog_data.h"
#include "engine/json/json_read.h"

/* One data file being read; `at` is "/<file>". */
struct adv_catalog_file {
    struct adv_catalog *catalog;
    const json_t *root;
    const char *at;
    adv_err *err;
};

/* Each fills its part of the catalog and reports everything wrong. */
void adv_decode_catalog_chips(const struct adv_catalog_file *file);
void adv_decode_catalog_models(const struct adv_catalog_file *file);
void adv_decode_catalog_topologies(const struct adv_catalog_file *file);
void adv_decode_catalog_constants(const struct adv_catalog_file *file); /* after chips */
void adv_decode_catalog_keys(const struct adv_catalog_file *file);
void adv_decode_catalog_old_keys(const struct adv_catalog_file *file);
void adv_decode_catalog_flags(const struct adv_catalog_file *file);
void adv_decode_catalog_releases(const struct adv_catalog_file *file);

/* Helpers: arena copies that report exhaustion, arrays of strings, a file-wide pedigree. */
const char *adv_catalog_keep(const struct adv_catalog_file *file, const char *text);
/* Puts copies in the place of texts: ADV_CATALOG_KEEP(file, &row->name, &row->why). */
#define ADV_CATALOG_KEEP(file, ...)                                                                          \
    adv_catalog_keep_texts(file, (const char **[]){__VA_ARGS__},                                             \
                           sizeof((const char **[]){__VA_ARGS__}) / sizeof(char **))
void adv_catalog_keep_texts(const struct adv_catalog_file *file, const char **const *texts, size_t count);
/* A value as compact text; "{}" for NULL. */
const char *adv_catalog_keep_json(const struct adv_catalog_file *file, const json_t *value);
void *adv_catalog_rows(const struct adv_catalog_file *file, size_t count, size_t element_bytes);
const char *const *adv_catalog_keep_list(const struct adv_catalog_file *file, const json_t *list,
                                         const char *at, int *count);
struct adv_provenance adv_catalog_file_provenance(const struct adv_catalog_file *file);
/* Reads a row into a zeroed element; false: it is not of its form. */
typedef bool adv_catalog_row(const struct adv_catalog_file *file, json_t *row, void *element);
/* The rows of `list` ("rows", or "maxtext/keys": a member of `object`), each read by `decode`. NULL and no
 * rows after a finding: there is no list, a row is not of the `form`, or memory is exhausted. */
void *adv_catalog_decode_rows(const struct adv_catalog_file *file, const json_t *object, const char *list,
                              const char *form, size_t element_bytes, adv_catalog_row *decode, int *count);

#include "engine/json/decode_cluster.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/list.h"
#include "engine/base/text.h"
#include "engine/base/units.h"

struct reader {
    const struct adv_catalog *catalog;
    const json_t *value;
    const char *at;
    struct adv_cluster *cluster;
    adv_err *err;
};

static adv_code refuse(const struct reader *reader, adv_code code, const char *member, const char *hint,
                       const char *detail)
{
    return adv_err_add(reader->err, code, ADV_AT(reader->at, member), hint, "%s", detail);
}

/* By name or alias; "TPU v5p", "tpu_v6e" and "cloud-tpu-v4" mean the chip without the maker's words. */
static const struct adv_catalog_chip *find_chip(const struct adv_catalog *catalog, const char *name)
{
    static const char *const words[] = {"google", "cloud", "tpu"};
    const struct adv_catalog_chip *row = adv_catalog_chip(catalog, name);
    for (size_t i = 0; i < sizeof words / sizeof *words && !row; i++) {
        name += strspn(name, " -_");
        size_t length = strlen(words[i]);
        if (strncasecmp(name, words[i], length) != 0 || !name[length] || !strchr(" -_", name[length]))
            continue;
        name += length + strspn(name + length, " -_");
        row = adv_catalog_chip(catalog, name);
    }
    return row;
}

/* Chip by name or alias into the cluster; false with a finding for `member`. */
static bool set_chip(const struct reader *reader, const char *name, const char *member)
{
    const struct adv_catalog_chip *row = find_chip(reader->catalog, name);
    char text[ADV_LIMIT_DETAIL];
    char hint[ADV_LIMIT_DETAIL] = "known:";
    if (row && row->chip.is_tpu) {
        reader->cluster->chip = row->chip;
        return true;
    }
    if (row) {
        (void)snprintf(text, sizeof text, "%s is in the catalog for comparison of headline numbers only",
                       row->chip.name);
        (void)refuse(reader, ADV_E_UNSUPPORTED, member, "plans are made for TPUs: tpu7x v6e v5p v5e v4",
                     text);
        return false;
    }
    for (int i = 0; i < adv_catalog_tables(reader->catalog)->chips_count; i++) {
        const struct adv_chip *chip = &adv_catalog_tables(reader->catalog)->chips[i].chip;
        if (chip->is_tpu) adv_append(hint, sizeof hint, " %s", chip->name);
    }
    (void)snprintf(text, sizeof text, "the catalog has no chip \"%.80s\"", name);
    (void)refuse(reader, ADV_E_INVALID, member, hint, text);
    return false;
}

/* Without spaces, with small "x": "4 X 4 x 4" is "4x4x4". Cut when it is too long to be a shape. */
static void tidy_shape(const char *shape, char *tidy, size_t tidy_bytes)
{
    size_t used = 0;
    for (; *shape && used + 1 < tidy_bytes; shape++) {
        if (!isspace((unsigned char)*shape)) tidy[used++] = *shape == 'X' ? 'x' : *shape;
    }
    tidy[used] = '\0';
}

/* A slice has no first axis: sizes in another order than the catalog's are the same slice. */
static void order_dims(const struct reader *reader)
{
    int *dims = reader->cluster->dims;
    const char *const *shapes = NULL;
    int axes = reader->cluster->chip.ici_axes >= 3 ? 3 : 2;
    int count = adv_catalog_shapes(reader->catalog, reader->cluster->chip.name, &shapes);
    for (int i = 0; i < count; i++) {
        int legal[3];
        if (!adv_cluster_parse_shape(shapes[i], axes, legal)) continue;
        bool same = adv_min_i(adv_min_i(dims[0], dims[1]), axes == 3 ? dims[2] : dims[0]) ==
                        adv_min_i(adv_min_i(legal[0], legal[1]), axes == 3 ? legal[2] : legal[0]) &&
                    dims[0] + dims[1] + dims[2] == legal[0] + legal[1] + legal[2] &&
                    (int64_t)dims[0] * dims[1] * dims[2] == (int64_t)legal[0] * legal[1] * legal[2];
        if (same) memcpy(dims, legal, sizeof legal);
        if (same) return;
    }
    for (int i = 0, ordered = 0; i < axes; i++) { /* not offered: smallest first, as schedulers write it */
        const int dim = dims[i];
        int at = i;
        while (at > 0 && dim < dims[at - 1]) at--;
        (void)adv_list_open(dims, sizeof *dims, &ordered, axes, at);
        dims[at] = dim;
    }
}

static bool set_shape(const struct reader *reader, const char *shape, const char *member)
{
    int axes = reader->cluster->chip.ici_axes >= 3 ? 3 : 2;
    char tidy[ADV_LIMIT_NAME];
    tidy_shape(shape, tidy, sizeof tidy);
    if (adv_cluster_parse_shape(tidy, axes, reader->cluster->dims)) {
        order_dims(reader);
        return true;
    }
    char text[ADV_LIMIT_DETAIL];
    (void)snprintf(text, sizeof text, "\"%.80s\" is not a slice shape of %s", shape,
                   reader->cluster->chip.name);
    (void)refuse(
        reader, ADV_E_INVALID, member,
        axes == 3 ? "chips along three axes, like \"4x4x4\"" : "chips along two axes, like \"16x16\"", text);
    return false;
}

/* "tpu7x-128": what MaxText calls compile_topology; "v5litepod-16": the same with an alias of the chip. */
static bool set_compile_topology(const struct reader *reader, const char *name, const char *count)
{
    char canonical[2 * ADV_LIMIT_NAME];
    (void)snprintf(canonical, sizeof canonical, "%s-%.32s", reader->cluster->chip.name, count);
    const struct adv_catalog_topology *row = adv_catalog_topology(reader->catalog, canonical);
    if (row) {
        memcpy(reader->cluster->dims, row->dims, sizeof row->dims);
        return true;
    }
    const char *nearest = NULL;
    long wanted = strtol(count, NULL, 10);
    long best = -1;
    for (int i = 0; i < adv_catalog_tables(reader->catalog)->topologies_count; i++) {
        row = &adv_catalog_tables(reader->catalog)->topologies[i];
        long distance = labs(strtol(strrchr(row->name, '-') + 1, NULL, 10) - wanted);
        if (strcmp(row->chip, reader->cluster->chip.name) != 0 || (best >= 0 && distance >= best)) continue;
        best = distance;
        nearest = row->name;
    }
    char text[ADV_LIMIT_DETAIL], hint[ADV_LIMIT_DETAIL];
    (void)snprintf(text, sizeof text, "there is no slice \"%.80s\"", name);
    (void)snprintf(hint, sizeof hint, "the nearest is %s", nearest ? nearest : "not known");
    (void)refuse(reader, ADV_E_INVALID, "accelerator", hint, text);
    return false;
}

/* "tpu7x-128" where a chip is asked for. */
static bool is_accelerator(const struct reader *reader, const char *name)
{
    const char *dash = strrchr(name, '-');
    char chip[ADV_LIMIT_NAME];
    if (!dash || dash == name || (size_t)(dash - name) >= sizeof chip || !isdigit((unsigned char)dash[1]))
        return false;
    (void)snprintf(chip, sizeof chip, "%.*s", (int)(dash - name), name);
    return !find_chip(reader->catalog, name) && find_chip(reader->catalog, chip);
}

static bool set_accelerator(const struct reader *reader, const char *name)
{
    const char *dash = strrchr(name, '-');
    char chip[ADV_LIMIT_NAME];
    if (!dash || dash == name || (size_t)(dash - name) >= sizeof chip) {
        (void)refuse(reader, ADV_E_INVALID, "accelerator",
                     "\"tpu7x-128\" (devices) or \"tpu7x-4x4x4\" (chips)",
                     "an accelerator is a chip, a dash, and a count or shape");
        return false;
    }
    (void)snprintf(chip, sizeof chip, "%.*s", (int)(dash - name), name);
    if (!set_chip(reader, chip, "accelerator")) return false;
    if (strpbrk(dash + 1, "xX")) return set_shape(reader, dash + 1, "accelerator");
    return set_compile_topology(reader, name, dash + 1);
}

/* The accelerator in the place of the chip; a topology beside it must be the same slice. */
static bool set_chip_by_accelerator(const struct reader *reader, const char *name)
{
    const char *topology = NULL;
    if (!set_accelerator(reader, name)) return false;
    if (!json_object_get(reader->value, "topology")) return true;
    if (!adv_json_string(reader->value, reader->at, "topology", ADV_JSON_REQUIRED, &topology, reader->err))
        return false;
    const int *dims = reader->cluster->dims;
    const int chips = dims[0] * dims[1] * dims[2];
    if (!set_shape(reader, topology, "topology")) return false;
    if (dims[0] * dims[1] * dims[2] == chips) return true;
    char text[ADV_LIMIT_DETAIL];
    (void)snprintf(text, sizeof text, "%.80s has %d chips, %.80s has %d", name, chips, topology,
                   dims[0] * dims[1] * dims[2]);
    (void)refuse(reader, ADV_E_INVALID, "topology", "leave one of them out", text);
    return false;
}

/* What to give for a missing topology; to advise also takes a number of chips. */
static const char *shape_wanted(const struct reader *reader)
{
    return json_object_get(reader->value, "chips")
               ? "the shape of a slice, such as \"4x4\"; advise chooses it where \"topology\": \"any\" stands beside "
                 "chips"
               : "the shape of a slice, such as \"4x4\" or \"4x4x4\"; GET /v1/catalog/topologies lists them";
}

/* Chip and dims, however they were given. */
static bool set_slice(const struct reader *reader)
{
    const char *accelerator, *chip = NULL, *topology = NULL;
    if (json_object_get(reader->value, "accelerator")) {
        if (json_object_get(reader->value, "chip") || json_object_get(reader->value, "topology")) {
            (void)refuse(reader, ADV_E_INVALID, "accelerator", NULL,
                         "give either `accelerator` or `chip` and `topology`");
            return false;
        }
        return adv_json_string(reader->value, reader->at, "accelerator", ADV_JSON_REQUIRED, &accelerator,
                               reader->err) &&
               set_accelerator(reader, accelerator);
    }
    bool has_chip = adv_json_string(reader->value, reader->at, "chip", ADV_JSON_REQUIRED, &chip, reader->err);
    if (has_chip && is_accelerator(reader, chip)) return set_chip_by_accelerator(reader, chip);
    bool has_topology = false;
    if (json_object_get(reader->value, "topology"))
        has_topology =
            adv_json_string(reader->value, reader->at, "topology", ADV_JSON_REQUIRED, &topology, reader->err);
    else
        (void)refuse(reader, ADV_E_INVALID, "topology", shape_wanted(reader), "`topology` is required");
    has_chip = has_chip && set_chip(reader, chip, "chip");
    return has_chip && has_topology && set_shape(reader, topology, "topology");
}

/* The fields that say what a chip is made of; a different number would be a different chip. */
static bool is_structural(const char *field)
{
    return strcmp(field, "devices_per_chip") == 0 || strcmp(field, "ici_axes") == 0 ||
           strcmp(field, "chips_per_host") == 0 || strcmp(field, "cores_per_chip") == 0 ||
           strcmp(field, "price_usd_per_chip_hour") == 0;
}

/* A value of the right size for a field that is not published: overrides are bounded around it. */
static double stand_in(const struct adv_chip *chip, const char *unit)
{
    if (strcmp(unit, "FLOP/s") == 0 || strcmp(unit, "op/s") == 0) return chip->peak_bf16_flops_per_s_per_chip;
    if (strcmp(unit, "bytes/s") == 0) return chip->hbm_bytes_per_s_per_chip;
    return 1;
}

/* Within a factor of 1000 of the catalog's number the formulas stay finite; beyond it is a slip of the unit.
 */
static bool is_possible(const struct adv_chip *published, const struct adv_chip_field *field, double number,
                        char *range, size_t range_bytes)
{
    const double factor = 1000;
    static const char *const counts[] = {"MXU", "rows", "columns", "cores", "chips"};
    bool whole = false;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) whole |= strcmp(field->unit, counts[i]) == 0;
    bool is_frac = strcmp(field->unit, "frac") == 0;
    double value = adv_chip_field_get(published, field);
    if (isnan(value)) value = stand_in(published, field->unit);
    double low = value > 0 ? value / factor : 0, high = value > 0 ? value * factor : factor;
    if (whole && low > 0) low = fmax(1, ceil(low));
    if (is_frac) high = 1;
    (void)snprintf(range, range_bytes, "%sfrom %.6g to %.6g %s", whole ? "a whole number " : "", low, high,
                   is_frac ? "(a share)" : field->unit);
    return number >= low && number <= high && !(whole && number != floor(number));
}

static void apply_override(const struct reader *reader, const char *name, const json_t *value)
{
    int count;
    const struct adv_chip_field *fields = adv_chip_fields(&count);
    const struct adv_chip_field *field = adv_chip_field(name);
    const char *pointer = ADV_AT(ADV_AT(reader->at, "overrides"), name);
    if (!field) {
        const char *known[64];
        char hint[ADV_LIMIT_DETAIL] = "";
        for (int i = 0; i < count && i < 64; i++) known[i] = fields[i].name;
        const char *nearest =
            adv_err_has_room(reader->err) ? adv_text_nearest(name, known, count < 64 ? count : 64) : NULL;
        if (nearest) (void)snprintf(hint, sizeof hint, "did you mean `%s`?", nearest);
        ADV_REFUSE(reader->err, pointer, hint, "a chip has no field `%.80s`", name);
        return;
    }
    double number = json_is_number(value) ? json_number_value(value) : (double)NAN;
    const struct adv_catalog_chip *known = adv_catalog_chip(reader->catalog, reader->cluster->chip.name);
    char range[ADV_LIMIT_NAME + 64];
    if (is_structural(name))
        ADV_REFUSE(reader->err, pointer, NULL, "`%s` cannot be overridden", name);
    else if (!json_is_number(value))
        ADV_REFUSE(reader->err, pointer, NULL, "`%s` must be a number (%s), not %s", name, field->unit,
                   adv_json_type_name(value));
    else if (known && !is_possible(&known->chip, field, number, range, sizeof range))
        (void)adv_err_add(reader->err, ADV_E_RANGE, pointer,
                          "what-if values stay within 1000 times the chip's own", "`%s` must be %s, not %.6g",
                          name, range, number);
    else
        adv_chip_field_set(&reader->cluster->chip, field, number);
}

/* A measured rate keeps its share of the specified one, unless it is given, too. */
static void follow(const struct reader *reader, const json_t *overrides, const char *name, double factor)
{
    const struct adv_chip_field *field = adv_chip_field(name);
    const struct adv_chip_field *follower = field ? adv_chip_field_follower(field) : NULL;
    struct adv_chip *chip = &reader->cluster->chip;
    if (follower && factor > 0 && !json_object_get(overrides, follower->name))
        adv_chip_field_set(chip, follower, factor * adv_chip_field_get(chip, follower));
}

static void apply_overrides(const struct reader *reader)
{
    json_t *overrides =
        adv_json_object(reader->value, reader->at, "overrides", ADV_JSON_OPTIONAL, reader->err);
    for (struct adv_json_walk given = {.in = overrides}; adv_json_next_member(&given);) {
        const char *name = given.key;
        const struct adv_chip_field *field = adv_chip_field(name);
        double before = field ? adv_chip_field_get(&reader->cluster->chip, field) : 0;
        apply_override(reader, name, given.value);
        if (before > 0)
            follow(reader, overrides, name, adv_chip_field_get(&reader->cluster->chip, field) / before);
        reader->cluster->has_overrides = true;
    }
}

/* Pointers of adv_cluster_build start with /cluster; the request may hold the cluster elsewhere. */
static adv_code build(const struct reader *reader)
{
    const char *const *shapes;
    int shapes_count = adv_catalog_shapes(reader->catalog, reader->cluster->chip.name, &shapes);
    adv_err found = adv_err_empty();
    adv_code code = adv_cluster_build(reader->cluster, shapes, shapes_count, &found);
    bool has_accelerator = json_object_get(reader->value, "accelerator") != NULL;
    for (int i = 0; i < found.count; i++) {
        const char *member = strrchr(found.findings[i].pointer, '/') + 1;
        if (has_accelerator && strcmp(member, "topology") == 0) member = "accelerator";
        (void)refuse(reader, found.findings[i].code, member, found.findings[i].hint,
                     found.findings[i].detail);
    }
    for (int i = 0; code == ADV_OK && i < adv_catalog_tables(reader->catalog)->topologies_count; i++) {
        const struct adv_catalog_topology *row = &adv_catalog_tables(reader->catalog)->topologies[i];
        if (strcmp(row->chip, reader->cluster->chip.name) == 0 &&
            strcmp(row->topology, reader->cluster->topology) == 0)
            (void)snprintf(reader->cluster->accelerator, sizeof reader->cluster->accelerator, "%s",
                           row->name);
    }
    return code;
}

/* A slice that the catalog does not list is run, but nobody may offer it. */
static void warn_of_shape(const struct reader *reader, adv_err *warnings)
{
    const struct adv_cluster *cluster = reader->cluster;
    const char *const *shapes = NULL;
    const int count = adv_catalog_shapes(reader->catalog, cluster->chip.name, &shapes);
    for (int i = 0; i < count; i++)
        if (strcmp(shapes[i], cluster->topology) == 0) return;
    ADV_WARN(warnings, "not-standard-shape", ADV_AT(reader->at, "topology"),
             "MaxText has no compile_topology of this name either: it cannot be compiled ahead",
             "%s of %s is not offered as a standard shape", cluster->topology, cluster->chip.name);
}

adv_code adv_decode_cluster(const struct adv_catalog *catalog, const json_t *value, const char *at,
                            struct adv_cluster *cluster, adv_err *err, adv_err *warnings)
{
    struct reader reader = {.catalog = catalog, .value = value, .at = at, .cluster = cluster, .err = err};
    int before = err->count + err->lost_count;
    memset(cluster, 0, sizeof *cluster);
    if (!json_is_object(value)) {
        bool list = json_is_array(value);
        return adv_err_add(err, ADV_E_INVALID, at,
                           list ? "advise compares several machines in the member `clusters`"
                                : "{\"chip\": \"tpu7x\", \"topology\": \"4x4x4\"}",
                           "must be an object, not %s", adv_json_type_name(value));
    }
    (void)adv_json_known_members(
        value, at,
        ADV_JSON_NAMES("chip", "topology", "slices", "accelerator", "price_usd_per_chip_hour", "overrides"),
        err);
    cluster->slices = 1;
    (void)adv_json_int(value, at, "slices", ADV_JSON_OPTIONAL, 1, ADV_CLUSTER_SLICES_MAX, &cluster->slices,
                       err);
    bool has_slice = set_slice(&reader);
    cluster->price_usd_per_chip_hour = has_slice ? cluster->chip.price_usd_per_chip_hour : (double)NAN;
    (void)adv_json_number(value, at, "price_usd_per_chip_hour", ADV_JSON_OPTIONAL, 0, 1e6,
                          &cluster->price_usd_per_chip_hour, err);
    if (has_slice) (void)!build(&reader);
    apply_overrides(&reader);
    if (warnings && has_slice && err->count + err->lost_count == before) warn_of_shape(&reader, warnings);
    if (warnings && cluster->has_overrides && err->count + err->lost_count == before)
        ADV_WARN(warnings, "what-if-hardware", ADV_AT(at, "overrides"), NULL,
                 "this is what-if hardware: the prediction is for a chip that differs from the published %s",
                 cluster->chip.name);
    return err->count + err->lost_count > before ? ADV_E_INVALID : ADV_OK;
}

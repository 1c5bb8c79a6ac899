#include "engine/json/decode_platforms.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/json/decode_cluster.h"

struct reader {
    const struct adv_catalog *catalog;
    const json_t *root;
    struct adv_platform_jobs *jobs;
    adv_err *err;
};

/* Members of the workload that say how much is trained. */
static const char *const of_training[] = {"total_tokens", "token_budget", "days_available"};

static bool is_any(const json_t *cluster)
{
    const char *topology = json_string_value(json_object_get(cluster, "topology"));
    return topology && strcmp(topology, "any") == 0;
}

bool adv_platforms_asked(const json_t *root)
{
    const json_t *workload = json_object_get(root, "workload");
    return json_object_get(root, "clusters") || is_any(json_object_get(root, "cluster")) ||
           json_object_get(root, "goodput") || json_object_get(workload, "total_tokens") ||
           json_object_get(workload, "token_budget") || json_object_get(workload, "days_available");
}

static struct adv_platform_job *next_job(struct reader *reader, const char *at)
{
    struct adv_platform_jobs *jobs = reader->jobs;
    if (jobs->count == ADV_PLATFORMS_MAX) {
        (void)adv_err_add(reader->err, ADV_E_RANGE, at, "ask in several requests",
                          "the request names more than %d machines", ADV_PLATFORMS_MAX);
        return NULL;
    }
    struct adv_platform_job *job = &jobs->items[jobs->count++];
    (void)snprintf(job->at, sizeof job->at, "%s", at);
    job->price_usd_per_chip_hour = job->assumed_mfu_frac = (double)NAN;
    return job;
}

/* The request with this cluster alone; takes over the reference to `cluster`. */
static void add_document(struct reader *reader, json_t *cluster, const char *at)
{
    ADV_JSON_OWN json_t *owned = cluster;
    struct adv_platform_job *job = next_job(reader, at);
    if (!job) return;
    job->document = json_copy((json_t *)(uintptr_t)reader->root);
    (void)json_object_del(job->document, "clusters");
    (void)json_object_del(job->document, "goodput");
    (void)json_object_set(job->document, "cluster", owned);
    const json_t *workload = json_object_get(reader->root, "workload");
    if (json_is_object(workload)) {
        json_t *plain = json_copy((json_t *)(uintptr_t)workload);
        for (size_t i = 0; i < sizeof of_training / sizeof *of_training; i++)
            (void)json_object_del(plain, of_training[i]);
        (void)json_object_set_new(job->document, "workload", plain);
    }
    reader->jobs->modelled++;
}

static void add_headline(struct reader *reader, const json_t *value, const char *at,
                         const struct adv_chip *chip)
{
    enum { CHIPS_MAX = 1 << 20 };
    struct adv_platform_job *job = next_job(reader, at);
    if (!job) return;
    job->chip = chip;
    job->price_usd_per_chip_hour = chip->price_usd_per_chip_hour;
    (void)adv_json_known_members(
        value, at, ADV_JSON_NAMES("chip", "chips", "price_usd_per_chip_hour", "assumed_mfu_frac"),
        reader->err);
    (void)adv_json_int(value, at, "chips", ADV_JSON_REQUIRED, 1, CHIPS_MAX, &job->chips, reader->err);
    (void)adv_json_number(value, at, "price_usd_per_chip_hour", ADV_JSON_OPTIONAL, 0, 1e6,
                          &job->price_usd_per_chip_hour, reader->err);
    (void)adv_json_number(value, at, "assumed_mfu_frac", ADV_JSON_OPTIONAL, 1e-3, 1, &job->assumed_mfu_frac,
                          reader->err);
}

static int shape_chips(const struct adv_chip *chip, const char *shape)
{
    int dims[3];
    return adv_cluster_parse_shape(shape, chip->ici_axes >= 3 ? 3 : 2, dims) ? dims[0] * dims[1] * dims[2]
                                                                             : 0;
}

/* The nearest chip counts that `slices_from`..`slices_to` equal slices make up. */
static void refuse_chips(struct reader *reader, const struct adv_chip *chip, const char *at, int chips,
                         int slices_from, int slices_to)
{
    const char *const *shapes;
    int shapes_count = adv_catalog_shapes(reader->catalog, chip->name, &shapes);
    struct nearest {
        int chips, slices;
        const char *shape;
    } below = {0, 0, NULL}, above = {0, 0, NULL};
    for (int slices = slices_from; slices <= slices_to; slices++) {
        for (int i = 0; i < shapes_count; i++) {
            int total = slices * shape_chips(chip, shapes[i]);
            struct nearest found = {total, slices, shapes[i]};
            if (total < chips && total > below.chips) below = found;
            if (total > chips && (!above.shape || total < above.chips)) above = found;
        }
    }
    char hint[ADV_LIMIT_DETAIL], text[2][ADV_LIMIT_NAME];
    const struct nearest *const both[] = {&below, &above};
    for (int i = 0; i < 2; i++) {
        text[i][0] = '\0';
        if (both[i]->shape)
            (void)snprintf(text[i], sizeof text[i], "%d (%d slice%s of %s)", both[i]->chips, both[i]->slices,
                           both[i]->slices == 1 ? "" : "s", both[i]->shape);
    }
    (void)snprintf(hint, sizeof hint, "the nearest that work: %s%s%s", text[0],
                   below.shape && above.shape ? ", " : "", text[1]);
    char slices[48];
    if (slices_from == slices_to)
        (void)snprintf(slices, sizeof slices, "%d slice%s", slices_from, slices_from == 1 ? "" : "s");
    else
        (void)snprintf(slices, sizeof slices, "%d to %d equal slices", slices_from, slices_to);
    ADV_REFUSE(reader->err, ADV_AT(at, "chips"), hint, "%s of %s cannot make up %d chips", slices, chip->name,
               chips);
}

/* Every legal shape and number of slices with that many chips in all. */
static void add_shapes(struct reader *reader, const json_t *value, const char *at,
                       const struct adv_chip *chip)
{
    enum { CHIPS_MAX = 1 << 20 };
    int chips = 0, given = 0;
    if (!adv_json_int(value, at, "chips", ADV_JSON_REQUIRED, 1, CHIPS_MAX, &chips, reader->err)) return;
    bool fixed =
        adv_json_int(value, at, "slices", ADV_JSON_OPTIONAL, 1, ADV_CLUSTER_SLICES_MAX, &given, reader->err);
    int from = fixed ? given : 1, to = fixed ? given : ADV_PLATFORM_SLICES_ANY;
    const char *const *shapes;
    int shapes_count = adv_catalog_shapes(reader->catalog, chip->name, &shapes);
    int before = reader->jobs->count;
    for (int slices = from; slices <= to; slices++) {
        for (int i = 0; i < shapes_count; i++) {
            if (slices * shape_chips(chip, shapes[i]) != chips) continue;
            json_t *cluster = json_copy((json_t *)(uintptr_t)value);
            (void)json_object_del(cluster, "chips");
            (void)json_object_set_new(cluster, "topology", json_string(shapes[i]));
            (void)json_object_set_new(cluster, "slices", json_integer(slices));
            add_document(reader, cluster, at);
        }
    }
    if (reader->jobs->count == before) refuse_chips(reader, chip, at, chips, from, to);
}

static void add_cluster(struct reader *reader, const json_t *value, const char *at, bool one_of_many)
{
    const char *name = json_string_value(json_object_get(value, "chip"));
    const struct adv_catalog_chip *row = name ? adv_catalog_chip(reader->catalog, name) : NULL;
    if (row && !row->chip.is_tpu && one_of_many) {
        add_headline(reader, value, at, &row->chip);
        return;
    }
    int first = reader->jobs->count;
    if (row && row->chip.is_tpu && is_any(value))
        add_shapes(reader, value, at, &row->chip);
    else
        add_document(reader, json_incref((json_t *)(uintptr_t)value), at);
    if (reader->jobs->count == first) return;
    struct adv_cluster cluster; /* what is wrong with it is the same for all its shapes */
    (void)!adv_decode_cluster(reader->catalog,
                              json_object_get(reader->jobs->items[first].document, "cluster"), at, &cluster,
                              reader->err, NULL);
}

static void add_clusters(struct reader *reader, const json_t *clusters)
{
    if (!json_is_array(clusters) || json_array_size(clusters) == 0) {
        ADV_REFUSE(reader->err, "/clusters", "[{\"chip\": \"tpu7x\", \"topology\": \"4x4x4\"}, …]",
                   "clusters must be an array of at least one cluster");
        return;
    }
    for (struct adv_json_walk entry = {.in = clusters}; adv_json_next(&entry);) {
        add_cluster(reader, entry.value, ADV_AT_INDEX("/clusters", entry.index), true);
    }
    if (reader->jobs->modelled == 0 && reader->jobs->count > 0)
        (void)adv_err_add(reader->err, ADV_E_UNSUPPORTED, "/clusters",
                          "add a cluster of TPUs to compare with",
                          "GPUs are headline rows for comparison; steps on them are not modelled");
}

static void read_training(struct reader *reader)
{
    struct adv_platform_jobs *jobs = reader->jobs;
    const json_t *workload = json_object_get(reader->root, "workload");
    double older = (double)NAN;
    jobs->total_tokens = jobs->days_available = (double)NAN;
    if (!json_is_object(workload)) return;
    (void)adv_json_number(workload, "/workload", "total_tokens", ADV_JSON_OPTIONAL, 1, 1e18,
                          &jobs->total_tokens, reader->err);
    (void)adv_json_number(workload, "/workload", "token_budget", ADV_JSON_OPTIONAL, 1, 1e18, &older,
                          reader->err);
    (void)adv_json_number(workload, "/workload", "days_available", ADV_JSON_OPTIONAL, 1e-3, 36500,
                          &jobs->days_available, reader->err);
    if (!isnan(older) && !isnan(jobs->total_tokens) && older != jobs->total_tokens)
        ADV_REFUSE(reader->err, "/workload/token_budget", "give total_tokens alone",
                   "token_budget is the older name of total_tokens, and they differ");
    if (isnan(jobs->total_tokens)) jobs->total_tokens = older;
}

static void read_goodput(struct reader *reader)
{
    static const char at[] = "/goodput";
    static const char *const members[] = {"failures_per_chip_day", "checkpoint_s", "restart_s",
                                          "checkpoint_interval_s"};
    struct adv_goodput *goodput = &reader->jobs->goodput;
    *goodput = (struct adv_goodput){(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    const json_t *value = json_object_get(reader->root, "goodput");
    if (!value) return;
    if (!json_is_object(value)) {
        ADV_REFUSE(reader->err, at, "{\"failures_per_chip_day\": 0.0005}", "goodput must be an object");
        return;
    }
    (void)adv_json_known_members(value, at, members, sizeof members / sizeof *members, reader->err);
    (void)adv_json_number(value, at, members[0], ADV_JSON_OPTIONAL, 0, 10, &goodput->failures_per_chip_day,
                          reader->err);
    (void)adv_json_number(value, at, members[1], ADV_JSON_OPTIONAL, 0, 86400, &goodput->checkpoint_s,
                          reader->err);
    (void)adv_json_number(value, at, members[2], ADV_JSON_OPTIONAL, 0, 604800, &goodput->restart_s,
                          reader->err);
    (void)adv_json_number(value, at, members[3], ADV_JSON_OPTIONAL, 1, 8640000,
                          &goodput->checkpoint_interval_s, reader->err);
    if (isnan(reader->jobs->total_tokens) && isnan(reader->jobs->days_available))
        ADV_REFUSE(reader->err, at, "give workload.total_tokens or days_available",
                   "goodput is that of a whole training, and nothing says how long it is");
}

adv_code adv_decode_platforms(const struct adv_catalog *catalog, const json_t *root,
                              struct adv_platform_jobs *jobs, adv_err *err)
{
    struct reader reader = {catalog, root, jobs, err};
    int before = err->count + err->lost_count;
    memset(jobs, 0, sizeof *jobs);
    read_training(&reader);
    read_goodput(&reader);
    const json_t *clusters = json_object_get(root, "clusters");
    const json_t *cluster = json_object_get(root, "cluster");
    if (clusters && cluster)
        ADV_REFUSE(err, "/clusters", NULL, "give either cluster or clusters");
    else if (clusters)
        add_clusters(&reader, clusters);
    else if (cluster)
        add_cluster(&reader, cluster, "/cluster", false);
    else
        ADV_REFUSE(err, "/cluster", "{\"chip\": \"tpu7x\", \"topology\": \"4x4x4\"}", "cluster is missing");
    return err->count + err->lost_count > before ? err->code : ADV_OK;
}

void adv_platform_jobs_free(struct adv_platform_jobs *jobs)
{
    for (int i = 0; i < jobs->count; i++) json_decref(jobs->items[i].document);
    jobs->count = 0;
}

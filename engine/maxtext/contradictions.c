#include <stdio.h>
#include <string.h>

#include "engine/maxtext/entries.h"
#include "engine/maxtext/read.h"

static void contradict(adv_err *warnings, const char *at, const char *key, const char *given,
                       const char *member, const char *counts)
{
    (void)adv_err_add_rule(warnings, ADV_OK, "contradiction", ADV_AT(at, key), "leave it out",
                           "%s says %.60s, but the request's %s is %.60s, which counts", key, given, member,
                           counts);
}

/* A key's value of the wanted kind; false: it has none. `room` holds a string. */
static bool find(const struct adv_config *config, const char *key, enum adv_value_kind kind,
                 char room[ADV_LIMIT_DETAIL], struct adv_value *value)
{
    const char *text = adv_config_find(config, key);
    return text && strlen(text) < ADV_LIMIT_DETAIL && adv_value_of_json(text, room, value) &&
           value->kind == kind;
}

void adv_config_contradictions(const struct adv_catalog *catalog, const char *model,
                               const struct adv_cluster *cluster, const struct adv_config *config,
                               const char *at, adv_err *warnings)
{
    static const char *const counts[] = {"num_slices", "compile_topology_num_slices"};
    char room[ADV_LIMIT_DETAIL];
    struct adv_value value;
    if (model && find(config, "model_name", ADV_VALUE_STRING, room, &value) && *value.string &&
        strcmp(model, value.string) != 0)
        contradict(warnings, at, "model_name", value.string, "model", model);
    if (find(config, "compile_topology", ADV_VALUE_STRING, room, &value) && *value.string) {
        const struct adv_catalog_topology *topology = adv_catalog_topology(catalog, value.string);
        bool same = topology && strcmp(topology->chip, cluster->chip.name) == 0 &&
                    strcmp(topology->topology, cluster->topology) == 0;
        if (!same && cluster->devices > 0)
            contradict(warnings, at, "compile_topology", value.string, "cluster",
                       *cluster->accelerator ? cluster->accelerator : cluster->topology);
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        char given[32], real[32];
        if (!find(config, counts[i], ADV_VALUE_INT, room, &value)) continue;
        (void)snprintf(given, sizeof given, "%lld", (long long)value.integer);
        (void)snprintf(real, sizeof real, "%d", cluster->slices);
        if (value.integer > 0 && cluster->slices > 0 && value.integer != cluster->slices)
            contradict(warnings, at, counts[i], given, "number of slices", real);
    }
    if (find(config, "hardware", ADV_VALUE_STRING, room, &value) && strcmp(value.string, "tpu") != 0)
        contradict(warnings, at, "hardware", value.string, "cluster", cluster->chip.name);
}

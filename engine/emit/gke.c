#include "engine/emit/gke.h"

#include <stdio.h>
#include <string.h>

/* Adding a chip = adding a row. */
static const struct row {
    const char *chip;
    const char *machine; /* without the chips of a host */
    const char *xpk;     /* prefix of XPK's types */
    int xpk_chips;       /* of XPK's smallest type */
    bool splits_hosts;
} rows[] = {
    {"tpu7x", "tpu7x-standard", "tpu7x", 1, true}, {"v6e", "ct6e-standard", "v6e", 1, false},
    {"v5p", "ct5p-hightpu", "v5p", 4, false},      {"v5e", "ct5lp-hightpu", "v5litepod", 8, false},
    {"v4", "ct4p-hightpu", "v4", 4, false},
};

static const struct row *row_of(const struct adv_artifact_source *source)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].chip, source->chip) == 0) return &rows[i];
    return NULL;
}

static int slices_of(const struct adv_artifact_source *source)
{
    return source->slices > 0 ? source->slices : 1;
}

int adv_gke_hosts_per_slice(const struct adv_artifact_source *source)
{
    const int slices = slices_of(source);
    return source->hosts > slices ? source->hosts / slices : 1;
}

int adv_gke_chips_per_host(const struct adv_artifact_source *source)
{
    const int chips = source->chips / (slices_of(source) * adv_gke_hosts_per_slice(source));
    return chips > 0 ? chips : 1;
}

bool adv_gke_xpk_type(const struct adv_artifact_source *source, char type[ADV_GKE_NAME])
{
    const struct row *row = row_of(source);
    const char *first = strchr(source->topology, 'x');
    const bool flat = first && !strchr(first + 1, 'x');
    const int chips = source->chips / slices_of(source);
    if (row && flat)
        (void)snprintf(type, ADV_GKE_NAME, "%s-%d", row->xpk, chips);
    else
        (void)snprintf(type, ADV_GKE_NAME, "%.64s-%.64s", row ? row->xpk : source->chip, source->topology);
    return !row || chips == 0 || chips >= row->xpk_chips;
}

void adv_gke_compute_type(const struct adv_artifact_source *source, char type[ADV_GKE_NAME])
{
    const struct row *row = row_of(source);
    (void)snprintf(type, ADV_GKE_NAME, "%.64s-%dt", row ? row->machine : source->chip,
                   adv_gke_chips_per_host(source));
}

bool adv_gke_splits_hosts(const struct adv_artifact_source *source)
{
    const struct row *row = row_of(source);
    return row && row->splits_hosts;
}

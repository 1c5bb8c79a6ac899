/* link_load.h: what the links of the machine carry in one step: bytes of each physical axis and how busy it
 * is.
 *
 * Rings and lines share a collective's bytes by their rates, as hardware/collective.h has it, so an axis's
 * bytes over its rate are the seconds that the cost model counts for it (before the in-step efficiency of
 * links).
 */
#pragma once

#include "engine/cost/trace.h"

enum { ADV_LINK_DCN = ADV_PHYSICAL_COUNT, ADV_LINK_PCIE, ADV_LINK_COUNT, ADV_LINK_FLOWS = 24 };
const char *adv_link_name(int link); /* "x" "y" "z" "core" "dcn" "pcie" */

/* One kind of collective on one axis. */
struct adv_link_flow {
    const char *term; /* "fsdp_all_gather", …: static */
    double bytes_per_chip;
};

struct adv_link_load {
    bool used, known;            /* known: its rate is in the catalog */
    int size;                    /* chips (cores, slices) along the axis; hosts' links: 1 */
    bool wraps;                  /* the whole axis is a ring */
    double bytes_per_s_per_chip; /* both directions of a ring; a line's one at its end */
    double bytes_per_chip;       /* the busiest chip takes in, per step */
    double busy_frac;            /* bytes over rate, of the step */
    int flows_count;
    struct adv_link_flow flows[ADV_LINK_FLOWS]; /* add up to bytes_per_chip */
};

struct adv_link_loads {
    double step_time_s;
    struct adv_link_load links[ADV_LINK_COUNT];
};

/* Pure. */
void adv_link_loads_find(const struct adv_step_trace *trace, struct adv_link_loads *loads);

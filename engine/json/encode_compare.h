/* encode_compare.h: stored answers side by side, and the same as JSON (api.md, POST /v1/compare). */
#pragma once

#include <jansson.h>

#include "engine/base/limits.h"

enum { ADV_COMPARE_RUNS = 64 };

/* One stored answer. */
struct adv_compared_run {
    const char *id;
    json_t *document;       /* owned by the caller */
    const json_t *estimate; /* the estimate in it, or that of an advise answer's first plan */
    double step_time_s, hbm_bytes_per_device;
};

struct adv_compared_term {
    const char *name; /* borrowed from the documents */
    double from, to;
};

/* Rows that add up to the difference of the totals. */
struct adv_compared_terms {
    int count;
    struct adv_compared_term rows[2 * (ADV_LIMIT_LEDGER_TERMS + ADV_LIMIT_MEMORY_PARTS)];
};

struct adv_compared_pair {
    const struct adv_compared_run *from, *to;
    struct adv_compared_terms time, memory;
};

/* {runs, differences}; `pairs`: one less than runs. New reference. */
json_t *adv_encode_compared(const struct adv_compared_run *runs, int count,
                            const struct adv_compared_pair *pairs);

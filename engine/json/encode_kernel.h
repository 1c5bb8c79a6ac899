/* encode_kernel.h: answers of POST /v1/kernels/simulate and /tune. */
#pragma once

#include <jansson.h>

#include "engine/json/decode_kernel.h"
#include "engine/json/encode_common.h"
#include "engine/kernel/tile_map.h"
#include "engine/kernel/timeline.h"

/* One tile choice of the request's kernel with its simulated time. */
struct adv_kernel_choice {
    struct adv_kernel_tile tile;
    struct adv_kernel_time time;
    double chance_frac; /* of a ranking: that it is the fastest of a sweep; NAN where that is not judged */
};

/* One entry of the short list: a choice and those that the model cannot tell from it. */
struct adv_kernel_listed {
    struct adv_kernel_choice best, others[ADV_SHORT_LIST_OTHERS];
    int others_count;
};

/* The result of tune. */
struct adv_kernel_tuning {
    struct adv_kernel_listed short_list[ADV_SHORT_LIST];
    int short_list_count;
    struct adv_kernel_choice *choices; /* those worth running (tune_choice.h), predicted fastest first */
    int choices_count;
    long evaluated_count;
    bool has_standard;
    struct adv_kernel_choice standard; /* MaxText's default tiles, where they are legal for the shape */
    bool has_next;
    struct adv_kernel_choice next; /* faster than the best, under a limit of next_limit_kib */
    double next_limit_kib;
    const struct adv_tile_map *map; /* NULL: not asked for, or no tile is legal */
};

/* New references. `timeline`: where the request asks for it or for a trace; else NULL. `warnings` may be
 * NULL. */
json_t *adv_encode_simulation(const struct adv_catalog *catalog, const struct adv_kernel_request *request,
                              const struct adv_kernel_time *time, const struct adv_timeline *timeline,
                              const adv_err *warnings);

json_t *adv_encode_tuning(const struct adv_catalog *catalog, const struct adv_kernel_request *request,
                          const struct adv_kernel_tuning *tuning, const adv_err *warnings);

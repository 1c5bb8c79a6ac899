/* encode_kernel.h: answers of POST /v1/kernels/simulate and /tune. */
#ifndef ADV_JSON_ENCODE_KERNEL_H
#define ADV_JSON_ENCODE_KERNEL_H

#include "engine/json/decode_kernel.h"
#include "engine/json/encode_common.h"
#include "engine/kernel/kernel.h"
#include "engine/kernel/timeline.h"

/* One tile choice of the request's kernel with its simulated time; which tile struct counts depends on the
 * kernel. */
struct adv_kernel_choice {
    struct adv_attention_tile attention;
    struct adv_gmm_tile gmm;
    struct adv_xent_tile xent;
    struct adv_kernel_time time;
};

/* New references. `timeline`: where the request asks for it or for a trace; else NULL. */
json_t *adv_encode_simulation(const struct adv_catalog *catalog, const struct adv_kernel_request *request,
                              const struct adv_kernel_time *time, const struct adv_timeline *timeline);

/* `standard`: MaxText's default tiles, NULL where they are not legal for the shape. */
json_t *adv_encode_tuning(const struct adv_catalog *catalog, const struct adv_kernel_request *request,
                          const struct adv_kernel_choice *choices, int choices_count,
                          const struct adv_kernel_choice *standard, long evaluated_count);

#endif

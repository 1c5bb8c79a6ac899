/* encode_timeline.h: members `timeline` and `trace` of a simulate answer. */
#ifndef ADV_JSON_ENCODE_TIMELINE_H
#define ADV_JSON_ENCODE_TIMELINE_H

#include <jansson.h>

#include "engine/kernel/timeline.h"

/* New reference: {end_us, walked, why_not_walked, representative_groups, steps: [{at, start_us, end_us,
 * dma_in, mxu, vector, dma_out: [start_us, end_us] or null}], omitted, outside_kernel}. */
json_t *adv_encode_timeline(const struct adv_timeline *timeline, const struct adv_kernel_time *time);

/* New reference: the same as trace events that Perfetto and chrome://tracing read; one thread per unit. */
json_t *adv_encode_kernel_trace(const struct adv_timeline *timeline, const struct adv_kernel_time *time,
                                const char *kernel);

#endif

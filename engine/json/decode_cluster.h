/* decode_cluster.h: the `cluster` member of a request. */
#pragma once

#include "engine/catalog/catalog.h"
#include "engine/json/json_read.h"
#include "engine/spec/cluster.h"

/* {"chip", "topology", "slices"} or {"accelerator": "tpu7x-128" | "tpu7x-4x4x4", "slices"}, either with
 * "price_usd_per_chip_hour" and "overrides": {chip field: number}. Findings of `value` at pointer `at`;
 * everything wrong is reported at once. What-if hardware is a warning (`warnings` may be NULL). */
ADV_MUST_CHECK adv_code adv_decode_cluster(const struct adv_catalog *catalog, const json_t *value,
                                           const char *at, struct adv_cluster *cluster, adv_err *err,
                                           adv_err *warnings);

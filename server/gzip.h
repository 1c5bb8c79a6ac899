/* gzip.h: bodies in the content coding gzip, which every client reads. */
#pragma once

#include <stddef.h>

#define ADV_GZIP_LEAST_BYTES 1024 /* what is shorter is sent as it is: it fits in a packet anyhow */

enum adv_gzip_effort {
    ADV_GZIP_ONCE = 9, /* for what is sent often */
    ADV_GZIP_FAST = 1  /* for one answer: 100 kB take a millisecond */
};

/* The bytes coded; malloc'ed. NULL when memory is exhausted or nothing is gained: send them as they are. */
char *adv_gzip(const void *bytes, size_t bytes_count, enum adv_gzip_effort effort, size_t *coded_bytes);

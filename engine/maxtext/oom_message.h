/* oom_message.h: what XLA says when memory does not suffice, read: how much of which memory, the largest
 * buffers, and for each which tensors it is likely to hold and which keys of MaxText make it smaller.
 *
 * Knows the compiler's "Ran out of memory in memory space hbm" (and host, vmem, smem) with its list of
 * allocations, the scoped VMEM message, and the allocator's at run time. Which tensor a buffer is, is a guess
 * by its operator and shape. Pure; thread safe.
 */
#pragma once

#include <stdbool.h>

#include "engine/base/err.h"

#define ADV_LIMIT_OOM_BUFFERS 32
#define ADV_LIMIT_OOM_KEYS    6

struct adv_oom_buffer {
    double bytes, unpadded_bytes; /* NAN where not said */
    char shape[ADV_LIMIT_NAME], operator_name[2 * ADV_LIMIT_NAME], allocation[ADV_LIMIT_NAME];
    const char *part; /* "weights_and_optimizer_state", "saved_activations", …; NULL: no guess */
    const char *keys[ADV_LIMIT_OOM_KEYS]; /* that shrink it, the cheapest first; up to the first NULL */
};

struct adv_oom_message {
    const char *space; /* "hbm", "host", "vmem", "smem" */
    bool at_run_time;  /* the allocator's word, not the compiler's: fragmentation and other programs count */
    double used_bytes, limit_bytes,
        exceeded_bytes; /* per device (of host memory: per host); NAN where not said */
    double reserved_bytes, program_bytes, arguments_bytes;
    int buffers_count;
    struct adv_oom_buffer buffers[ADV_LIMIT_OOM_BUFFERS];
    const char *keys[ADV_LIMIT_OOM_KEYS]; /* that help where no buffer is named */
    const char *remedy;                   /* what helps in this memory at all, one sentence */
};

/* ADV_E_INVALID at /message: it is no such message, or a GPU's. */
ADV_MUST_CHECK adv_code adv_oom_message_read(const char *text, struct adv_oom_message *message, adv_err *err);

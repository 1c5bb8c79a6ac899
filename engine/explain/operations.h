/* operations.h: the operations of one decoder layer on one device, with what they compute and move.
 *
 * Dense matmuls one by one, with the shapes a device multiplies; attention, grouped matmuls, routing and
 * elementwise passes as the cost model prices them. Seconds add up to what the layer's TensorCore is busy.
 */
#pragma once

#include "engine/cost/trace.h"

enum { ADV_OPERATIONS_MAX = 96 };

struct adv_operation {
    const char *name; /* "query_proj", "attention", …: static */
    enum adv_pass pass;
    enum adv_resource bound; /* what decides its time */
    double seconds;          /* in one layer and pass, on one device */
    double flops_per_device; /* 0: it is no matmul */
    double bytes_per_device; /* through HBM; of attention the operands alone, each once */
    bool bytes_are_least;    /* the kernel may move more than these */
};

struct adv_operations {
    int count; /* in the order in which they run: forward, recompute, backward */
    struct adv_operation list[ADV_OPERATIONS_MAX];
};

/* Of layer kind `kind`. Pure. */
void adv_operations_list(const struct adv_step_trace *trace, int kind, struct adv_operations *operations);

/* "forward", "recompute", "backward" */
const char *adv_pass_name(enum adv_pass pass);

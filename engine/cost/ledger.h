/* ledger.h: every term of one prediction, written where it is computed and read by ranking and explanation.
 */
#pragma once

#include "engine/base/limits.h"
#include "engine/hardware/mesh.h"
#include "engine/kernel/kernel.h"

/* The groups of terms, for sentences about several: bits, `again` beside what is computed again. */
enum adv_term_group {
    ADV_TERM_GROUP_NONE = 0,
    ADV_TERM_GROUP_AGAIN = 1,
    ADV_TERM_GROUP_MATMUL = 1 << 1,
    ADV_TERM_GROUP_ATTENTION = 1 << 2,
    ADV_TERM_GROUP_EXPERTS = 1 << 3,
    ADV_TERM_GROUP_ROUTING = 1 << 4,
    ADV_TERM_GROUP_ELEMENTWISE = 1 << 5,
    ADV_TERM_GROUP_LOGITS = 1 << 6,
    ADV_TERM_GROUP_LOSS = 1 << 7,
    ADV_TERM_GROUP_GATHER = 1 << 8, /* of FSDP, as the next */
    ADV_TERM_GROUP_SCATTER = 1 << 9,
    ADV_TERM_GROUP_SLICES = 1 << 10,
    ADV_TERM_GROUP_MATMUL_AGAIN = ADV_TERM_GROUP_MATMUL | ADV_TERM_GROUP_AGAIN,
    ADV_TERM_GROUP_ATTENTION_AGAIN = ADV_TERM_GROUP_ATTENTION | ADV_TERM_GROUP_AGAIN,
    ADV_TERM_GROUP_EXPERTS_AGAIN = ADV_TERM_GROUP_EXPERTS | ADV_TERM_GROUP_AGAIN,
    ADV_TERM_GROUP_ROUTING_AGAIN = ADV_TERM_GROUP_ROUTING | ADV_TERM_GROUP_AGAIN,
    ADV_TERM_GROUP_ELEMENTWISE_AGAIN = ADV_TERM_GROUP_ELEMENTWISE | ADV_TERM_GROUP_AGAIN,
};

/* One time term of a step. Exposed parts of all terms add up to the step time. */
struct adv_term {
    const char *name;    /* "attention_fwd", "fsdp_all_gather", …: static, stable, used by clients */
    const char *formula; /* id in engine/README.md: "T-attn", static */
    const char *source;  /* static */
    enum adv_resource resource;
    unsigned group;                            /* bits of enum adv_term_group */
    double seconds;                            /* of the resource, per step */
    double exposed_seconds;                    /* what it adds to the step */
    double count;                              /* how often per step (layers x passes) */
    double flops_per_device, bytes_per_device; /* inputs, 0 where they mean nothing */
};

enum adv_memory_at { ADV_AT_ALWAYS, ADV_AT_LOSS, ADV_AT_BACKWARD, ADV_AT_UPDATE };
const char *adv_memory_at_name(enum adv_memory_at at);

struct adv_memory_part {
    const char *name; /* "weights", "optimizer_state", "saved_activations", …: static, stable */
    double bytes_per_device;
    enum adv_memory_at at;
};

struct adv_kernel_use {
    enum adv_kernel kernel;
    char shape[ADV_LIMIT_NAME], tile[ADV_LIMIT_NAME]; /* readable */
    double time_us;
    double count;      /* per step */
    double vmem_bytes; /* by formula; 0: the kernel picks its own tiles */
};

struct adv_ledger {
    int terms_count;
    struct adv_term terms[ADV_LIMIT_LEDGER_TERMS];
    int memory_count;
    struct adv_memory_part memory[ADV_LIMIT_MEMORY_PARTS];
    int kernels_count;
    struct adv_kernel_use kernels[ADV_LIMIT_KERNELS];
    struct adv_mesh mesh;
};

/* request.h: a question about one kernel: its shape, tile and flags. Filled by engine/json/decode_kernel.c.
 */
#pragma once

#include "engine/catalog/catalog.h"
#include "engine/spec/kernel_shape.h"
#include "engine/spec/store_wish.h"

/* Of shapes and tiles those count that the kernel's family reads. */
struct adv_kernel_request {
    const struct adv_catalog_chip *chip;
    enum adv_kernel kernel;
    double scoped_vmem_limit_bytes; /* 0 = the chip's default */
    int top_k;                      /* tune */
    struct adv_store_wish wish;
    bool wide_tiles;      /* tune: beyond the field's search spaces */
    bool timeline, trace; /* simulate: members of the answer */
    bool tile_map;        /* tune: a member of the answer */
    struct adv_attention_shape attention;
    struct adv_attention_flags attention_flags;
    bool attention_base2_exp; /* taken, without effect on the time */
    struct adv_gmm_shape gmm;
    struct adv_matmul_shape matmul;
    struct adv_xent_shape xent;
    struct adv_kernel_tile tile;
};

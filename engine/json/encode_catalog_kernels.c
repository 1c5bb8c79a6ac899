/* What /v1/kernels/simulate and /tune take, as data: kernels, the members of shape and tile, the space tune
 * searches. */
#include <string.h>

#include "engine/json/encode_catalog.h"
#include "engine/json/kernel_members.h"
#include "engine/spec/kernel_shape.h"

#define ATTENTION_SPACE                                                                                      \
    "blocks of 1024 to 4096 (256 to 4096 below 1024 tokens) that divide the length, key blocks cut in 256 "  \
    "to "                                                                                                    \
    "1024; wide: 128 to 8192, cut in 128 to 2048"
#define GMM_SPACE                                                                                            \
    "tile_m of 64 to 1024 that divides m, tile_k and tile_n of 128 x 2^i, dim / 2^i and dim, 2 to 4 "        \
    "buffers; wide: tile_m of 16 to 2048"
#define XENT_SPACE                                                                                           \
    "b_block of 1024 to 4096 that divides the tokens, h_block of 128 to 2560, v_block of 128 to 4096; "      \
    "wide: "                                                                                                 \
    "b_block from 128"
static const struct {
    const char *what, *space; /* of tune; NULL = there is nothing to tune */
} kernels[ADV_KERNEL_COUNT] = {
    [ADV_KERNEL_SPLASH_FWD] = {"splash attention, forward", ATTENTION_SPACE},
    [ADV_KERNEL_SPLASH_FWD_RESIDUALS] =
        {"splash attention, forward with log-sum-exp kept for the backward pass", ATTENTION_SPACE},
    [ADV_KERNEL_SPLASH_BWD_FUSED] = {"splash attention, backward in one kernel", ATTENTION_SPACE},
    [ADV_KERNEL_SPLASH_BWD_DQ] = {"splash attention, backward of queries", ATTENTION_SPACE},
    [ADV_KERNEL_SPLASH_BWD_DKV] = {"splash attention, backward of keys and values", ATTENTION_SPACE},
    [ADV_KERNEL_GMM] = {"grouped matmul: rows of each group times its weights", GMM_SPACE},
    [ADV_KERNEL_TGMM] = {"transposed grouped matmul: the gradient of the weights", GMM_SPACE},
    [ADV_KERNEL_LINEAR_XENT] = {"logits and cross-entropy in one kernel", XENT_SPACE},
    [ADV_KERNEL_LINEAR_XENT_BWD] = {"its backward pass", XENT_SPACE},
    [ADV_KERNEL_MATMUL] = {"dense matmul as XLA compiles it", NULL},
    [ADV_KERNEL_ATTENTION_XLA] = {"XLA's own attention (dot_product), forward: the baseline of splash_fwd",
                                  NULL},
    [ADV_KERNEL_ATTENTION_XLA_BWD] = {"its backward pass: the baseline of splash_bwd_fused", NULL},
    [ADV_KERNEL_RAGGED_DOT_XLA] = {"XLA's own ragged dot: the baseline of gmm", NULL},
    [ADV_KERNEL_RAGGED_DOT_XLA_TGMM] =
        {"XLA's own ragged dot for the gradient of the weights: the baseline of tgmm", NULL},
};

static json_t *encode_kernel(enum adv_kernel kernel)
{
    json_t *object = json_object();
    adv_encode_set_string(object, "name", adv_kernel_name(kernel));
    adv_encode_set_string(object, "what", kernels[kernel].what);
    (void)json_object_set_new(object, "shape", adv_kernel_members_describe(kernel, ADV_KERNEL_SHAPE));
    (void)json_object_set_new(object, "tile",
                              adv_kernel_is_xla(kernel)
                                  ? json_array() /* XLA tiles it itself */
                                  : adv_kernel_members_describe(kernel, ADV_KERNEL_TILE));
    adv_encode_set_string(object, "search_space", kernels[kernel].space);
    return object;
}

json_t *adv_encode_catalog_kernels(const struct adv_catalog *catalog)
{
    (void)catalog;
    json_t *list = json_array();
    for (int i = 0; i < ADV_KERNEL_COUNT; i++)
        (void)json_array_append_new(list, encode_kernel((enum adv_kernel)i));
    return list;
}

/* Where a kernel was measured: the flags among the chips' constants. */
static double measured_flag(const struct adv_constants *constants, int kernel)
{
    switch ((enum adv_kernel)kernel) {
    case ADV_KERNEL_SPLASH_FWD:
    case ADV_KERNEL_SPLASH_FWD_RESIDUALS:
        return constants->splash_fwd_measured;
    case ADV_KERNEL_SPLASH_BWD_FUSED:
        return constants->splash_bwd_measured;
    case ADV_KERNEL_GMM:
    case ADV_KERNEL_TGMM:
    case ADV_KERNEL_RAGGED_DOT_XLA:
    case ADV_KERNEL_RAGGED_DOT_XLA_TGMM:
        return constants->gmm_measured;
    case ADV_KERNEL_LINEAR_XENT:
    case ADV_KERNEL_LINEAR_XENT_BWD:
        return constants->xent_measured;
    case ADV_KERNEL_MATMUL:
        return constants->matmul_measured;
    case ADV_KERNEL_ATTENTION_XLA:
        return constants->attention_xla_measured;
    case ADV_KERNEL_ATTENTION_XLA_BWD:
        return constants->attention_xla_bwd_measured;
    case ADV_KERNEL_SPLASH_BWD_DQ:
    case ADV_KERNEL_SPLASH_BWD_DKV:
    case ADV_KERNEL_COUNT:
        break;
    }
    return 0;
}

json_t *adv_encode_catalog_kernel(const struct adv_catalog *catalog, const char *name)
{
    for (int i = 0; i < ADV_KERNEL_COUNT; i++) {
        if (strcmp(adv_kernel_name((enum adv_kernel)i), name) != 0) continue;
        json_t *object = encode_kernel((enum adv_kernel)i);
        json_t *measured = json_array();
        for (int c = 0; c < adv_catalog_chips_count(catalog); c++) {
            const struct adv_catalog_chip *chip = adv_catalog_chip_at(catalog, c);
            if (chip->chip.is_tpu && measured_flag(&chip->constants, i) > 0)
                (void)json_array_append_new(measured, json_string(chip->chip.name));
        }
        (void)json_object_set_new(object, "measured_on", measured);
        return object;
    }
    return NULL;
}

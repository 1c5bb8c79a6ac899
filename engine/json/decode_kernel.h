/* decode_kernel.h: requests of POST /v1/kernels/simulate and /tune become a kernel, a shape, tiles and flags.
 */
#ifndef ADV_JSON_DECODE_KERNEL_H
#define ADV_JSON_DECODE_KERNEL_H

#include "engine/base/arena.h"
#include "engine/catalog/catalog.h"
#include "engine/json/decode_store.h"
#include "engine/json/json_read.h"
#include "engine/spec/kernel_shape.h"

struct adv_kernel_request {
    const struct adv_catalog_chip *chip;
    enum adv_kernel kernel;
    double scoped_vmem_limit_bytes; /* 0 = the chip's default */
    int top_k;                      /* tune */
    struct adv_store_wish wish;
    bool wide_tiles;      /* tune: beyond the field's search spaces */
    bool timeline, trace; /* simulate: members of the answer */
    struct adv_attention_shape attention;
    struct adv_attention_tile attention_tile;
    struct adv_attention_flags attention_flags;
    bool attention_base2_exp; /* taken, without effect on the time */
    struct adv_gmm_shape gmm;
    struct adv_gmm_tile gmm_tile;
    struct adv_matmul_shape matmul;
    struct adv_xent_shape xent;
    struct adv_xent_tile xent_tile;
};

bool adv_kernel_is_attention(enum adv_kernel kernel); /* of Pallas, with tiles, as the next */
bool adv_kernel_is_gmm(enum adv_kernel kernel);
bool adv_kernel_is_xla(enum adv_kernel kernel); /* XLA's own operation: it has no tiles of the caller's */
bool adv_kernel_tiles_itself(const struct adv_kernel_request *request); /* those, and GMM v2 */
bool adv_kernel_is_xla_attention(enum adv_kernel kernel);
bool adv_kernel_is_xla_ragged_dot(enum adv_kernel kernel);

/* Every member that is missing, unknown, mistyped or out of range (ADV_E_INVALID, ADV_E_RANGE) and every rule
 * of the kernel that the readable rest breaks (ADV_E_ILLEGAL, kernel/legal.h), at once; pointers are those of
 * the document. `with_tile`: simulate (tiles are needed, except where the kernel chooses them); otherwise
 * tune. `warnings`: what is legal at a price or not used; may be NULL. Group sizes live in `arena`. */
ADV_MUST_CHECK adv_code adv_decode_kernel_request(const struct adv_catalog *catalog, const json_t *root,
                                                  bool with_tile, struct adv_arena *arena,
                                                  struct adv_kernel_request *request, adv_err *err,
                                                  adv_err *warnings);

#endif

/* legal_near.h: the legal values next to a tile member that is not one: what hints of legal.h and of the
 * request reader are made of. Lengths of 0 are unknown: the member's own rule is all that is said then.
 * Allocates nothing; thread safe.
 */
#ifndef ADV_KERNEL_LEGAL_NEAR_H
#define ADV_KERNEL_LEGAL_NEAR_H

#include "engine/base/err.h"
#include "engine/base/near.h"
#include "engine/spec/kernel_shape.h"

enum { ADV_LEGAL_LANES = 128, ADV_LEGAL_LABELS = 1024 }; /* columns of a register; labels of a block */

/* One attention block and the length it has to cut. */
struct adv_legal_block {
    const char *name;
    int64_t block;
    const char *length_name;
    int64_t length;
    bool whole; /* queries: a length under 128 is taken whole; the kernels refuse such blocks of keys */
};

/* The blocks that `kernel` reads, in the order queries, keys, sub-block of keys; returns how many (2 or 3).
 */
int adv_legal_blocks_of(enum adv_kernel kernel, const struct adv_attention_shape *shape,
                        const struct adv_splash_blocks *blocks, struct adv_legal_block list[3]);

/* Can any block cut the length? */
bool adv_legal_can_cut(int64_t length, bool whole);

struct adv_legal_values {
    struct adv_near near; /* both 0: no value is legal for this shape, `rule` says what would make one */
    char rule[2 * ADV_LIMIT_NAME]; /* "a multiple of 128 that divides q_len 4096" */
};

/* Row tiles of a grouped matmul: divisors of m that fill registers of `unit` rows. */
void adv_legal_near_rows(int64_t m, int64_t unit, int64_t wanted, struct adv_legal_values *values);

/* Tiles along an axis whose last tile may hold less: multiples of 128, not beyond the axis, or all of it. */
void adv_legal_near_masked(const char *axis, int64_t length, int64_t wanted, struct adv_legal_values *values);

/* Token blocks of the fused loss. */
void adv_legal_near_tokens(int64_t tokens, int64_t wanted, struct adv_legal_values *values);

/* The shape that a tile member is judged with, and the tile it belongs to: borrowed, none of them NULL. */
struct adv_legal_context {
    enum adv_kernel kernel;
    const struct adv_attention_shape *attention;
    const struct adv_splash_blocks *blocks;
    const struct adv_gmm_shape *gmm;
    const struct adv_xent_shape *xent;
};

/* The legal values of the tile member `name` next to `wanted` (any number). False: `name` is no size of a
 * tile that a shape decides about (a buffer count, a layout). A block that the kernel does not read is judged
 * by its own rule. */
bool adv_legal_near_member(const struct adv_legal_context *context, const char *name, int64_t wanted,
                           struct adv_legal_values *values);

/* Writes "512 or 1024, a multiple of …" to `hint` and returns it; the rule alone when nothing is legal. */
const char *adv_legal_values_text(const struct adv_legal_values *values, char hint[ADV_LIMIT_DETAIL]);

#endif

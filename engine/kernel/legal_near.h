/* legal_near.h: the legal values next to a tile member that is not one, and the findings that several kernels
 * share: what the rules of legal.h and the hints of the request reader are made of. Lengths of 0 are unknown:
 * the member's own rule is all that is said then. Allocates nothing; thread safe.
 */
#pragma once

#include "engine/base/err.h"
#include "engine/base/near.h"
#include "engine/kernel/request.h"

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

/* Rows a tile of the format's grouped matmul must be a multiple of: 8 for float32, 16 for bfloat16, 32 for 8
 * bits. */
int adv_legal_row_unit(enum adv_format lhs);

/* Row tiles of a grouped matmul: divisors of m that fill registers of `unit` rows. */
void adv_legal_near_rows(int64_t m, int64_t unit, int64_t wanted, struct adv_legal_values *values);

/* Tiles along an axis whose last tile may hold less: multiples of 128, not beyond the axis, or all of it. */
void adv_legal_near_masked(const char *axis, int64_t length, int64_t wanted, struct adv_legal_values *values);

/* Leaves out values beyond `most`. */
void adv_legal_near_drop(struct adv_near *near, int64_t most);

/* Blocks of attention. A block that the kernel does not read is judged by its own rule; false: `name` is no
 * block. */
bool adv_legal_near_block(const struct adv_kernel_request *request, const char *name, int64_t wanted,
                          struct adv_legal_values *values);

/* Writes "512 or 1024, a multiple of …" to `hint` and returns it; the rule alone when nothing is legal. */
const char *adv_legal_values_text(const struct adv_legal_values *values, char hint[ADV_LIMIT_DETAIL]);

/* ADV_E_ILLEGAL: no tile divides the member `name` of a shape; `unit` does not either. */
adv_code adv_legal_untunable(const char *name, int64_t length, int64_t unit, adv_err *err);

/* A tile along an axis whose last tile may hold less, which is a warning: a multiple of 128 or the whole
 * axis. `contracts`: the tail is masked on both sides. */
adv_code adv_legal_masked(const char *name, const char *axis, int64_t tile, int64_t length, bool contracts,
                          adv_err *err, adv_err *warnings);

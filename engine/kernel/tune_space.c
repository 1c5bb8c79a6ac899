#include "engine/kernel/tune_space.h"

#include "engine/base/units.h"
#include "engine/kernel/legal.h"
#include "engine/kernel/legal_near.h"
#include "engine/kernel/splash_blocks.h"

enum { BLOCKS_MAX = 48, TILES_MAX = 24, ROWS_WHOLE = 1024, LANES = 128 };

/* The multiples of 128 from `least` to `most` that divide the length; returns how many there are now. */
static int add_divisors(int64_t length, int least, int most, int blocks[BLOCKS_MAX], int count)
{
    for (int size = least; size <= most; size += LANES) {
        if (length % size) continue;
        bool known = false;
        for (int i = 0; i < count; i++) known = known || blocks[i] == size;
        if (!known) blocks[count++] = size;
    }
    return count;
}

/* Block sizes of the field's tuners: powers of two from 256 to 4096 that divide the length, at least 1024
 * once the length is; and what they stand for where other lengths are cut, multiples of 128 in the same
 * range. A length that no power of two in the range divides takes all of them, a short one of queries itself.
 */
static int blocks_of(int64_t length, bool wide, bool whole, int blocks[BLOCKS_MAX])
{
    int least = length >= 1024 ? 1024 : 256, most = wide ? 8192 : 4096;
    bool cut = false;
    for (int size = least; size <= most; size *= 2) cut = cut || length % size == 0;
    if (wide || !cut) least = LANES;
    const int count = add_divisors(length, least, most, blocks, 0);
    if (count > 0 || length >= LANES || !whole) return count;
    blocks[0] = (int)length;
    return 1;
}

/* Sub-blocks of a key block, the field's favourites first: among equals the first found stays. */
static int parts_of(int block, bool wide, int parts[BLOCKS_MAX])
{
    static const int sizes[] = {512, 256, 1024, 128, 2048};
    int count = 0;
    for (int i = 0; i < (wide ? 5 : 4); i++)
        if (sizes[i] <= block && block % sizes[i] == 0 && (wide || sizes[i] > 128 || count == 0))
            parts[count++] = sizes[i];
    if (wide) count = add_divisors(block, LANES, block < 2048 ? block : 2048, parts, count);
    if (count == 0) parts[count++] = block;
    return count;
}

/* The layout of queries and values: the sequence along the lanes where a head would leave lanes empty, which
 * moves and holds fewer bytes (published winners: heads of 64 and 192). Whole lanes cost the same either way:
 * the layout of most published winners, keys along the sequence unless splash_keys_head_minor. */
static enum adv_layout layout_of(int head_dim)
{
    return head_dim % LANES ? ADV_LAYOUT_SEQ_MINOR : ADV_LAYOUT_HEAD_DIM_MINOR;
}

static struct adv_attention_tile tile_of(enum adv_kernel kernel, const struct adv_attention_shape *shape,
                                         int q, int kv, int c)
{
    struct adv_attention_tile tile = {.q_layout = layout_of(shape->head_dim_qk),
                                      .k_layout = ADV_LAYOUT_SEQ_MINOR,
                                      .v_layout = layout_of(shape->head_dim_v)};
    struct adv_splash_blocks *b = &tile.blocks;
    if (adv_splash_is_forward(kernel)) {
        b->block_q = q;
        b->block_kv = kv;
        b->block_kv_compute = c;
    } else if (kernel == ADV_KERNEL_SPLASH_BWD_DQ) {
        b->block_q_dq = q;
        b->block_kv_dq = kv;
    } else {
        b->block_q_dkv = q;
        b->block_kv_dkv = kv;
        b->block_kv_dkv_compute = c;
    }
    return tile;
}

struct adv_splash_blocks adv_tune_default_blocks(const struct adv_attention_shape *shape)
{
    const int64_t shorter = adv_min_i(shape->q_len, shape->kv_len);
    const int block = (int)adv_min_i(512, shorter > 0 ? shorter : 512);
    return (struct adv_splash_blocks){block, block, block, block, block, block, block, block};
}

/* The tiles of one pair of blocks, cut in every part. */
static int add_pair(enum adv_kernel kernel, const struct adv_attention_shape *shape, bool wide, int q, int kv,
                    struct adv_attention_tile *tiles, int count)
{
    int parts[BLOCKS_MAX] = {kv}, part_count = 1;
    if (kernel != ADV_KERNEL_SPLASH_BWD_DQ) part_count = parts_of(kv, wide, parts);
    for (int c = 0; c < part_count; c++) tiles[count++] = tile_of(kernel, shape, q, kv, parts[c]);
    return count;
}

int adv_splash_space(enum adv_kernel kernel, const struct adv_attention_shape *shape, bool wide,
                     struct adv_attention_tile tiles[ADV_SPLASH_SPACE_MAX])
{
    int q_blocks[BLOCKS_MAX], kv_blocks[BLOCKS_MAX], count = 0;
    const int q_count = blocks_of(shape->q_len, wide, true, q_blocks);
    const int kv_count = blocks_of(adv_splash_call_keys(shape), wide, false, kv_blocks);
    const struct adv_splash_blocks standard = adv_tune_default_blocks(shape);
    const int block = standard.block_q;
    bool missing = adv_legal_splash_blocks(kernel, shape, &standard, NULL) == ADV_OK;
    for (int q = 0; q < q_count; q++)
        for (int kv = 0; kv < kv_count; kv++) {
            count = add_pair(kernel, shape, wide, q_blocks[q], kv_blocks[kv], tiles, count);
            missing = missing && (q_blocks[q] != block || kv_blocks[kv] != block);
        }
    if (missing) tiles[count++] = tile_of(kernel, shape, block, block, block);
    return count;
}

/* Tiles of an axis: 128 * 2^i up to it, halves of it down to a 32nd, itself. A contraction that 128 does not
 * divide is kept whole: every tile of it would be masked. */
static int tiles_of(int64_t dim, bool contraction, int tiles[TILES_MAX])
{
    int count = 0;
    if (dim % 128 && contraction) {
        tiles[0] = (int)adv_round_up(dim, 128);
        return 1;
    }
    for (int64_t t = 128; t < dim && count < 12; t *= 2) tiles[count++] = (int)t;
    for (int i = 0; i < 6 && count < TILES_MAX; i++) {
        int64_t t = dim >> i;
        if (!contraction && t % 128) t = adv_round_up(t, 128); /* a share of an axis may overhang it */
        if (contraction && (dim % (INT64_C(1) << i) || t % 128)) continue;
        if (t < 128 || t > 1 << 15) continue;
        bool known = false;
        for (int j = 0; j < count; j++) known = known || tiles[j] == t;
        if (!known) tiles[count++] = (int)t;
    }
    if (dim % 128 || count == 0) tiles[count++] = (int)adv_round_up(dim, 128);
    return count;
}

/* Row tiles: those of the tuners that divide m and that the format's registers hold whole; few rows that none
 * of them divides are taken whole. */
static int row_tiles_of(const struct adv_gmm_shape *shape, bool wide, int tiles[BLOCKS_MAX])
{
    static const int rows[] = {64, 128, 256, 512, 1024, 16, 32, 2048};
    enum { FIELD = 5, ROWS = sizeof rows / sizeof *rows };
    const int unit = adv_legal_row_unit(shape->lhs);
    int count = 0;
    for (int i = 0; i < (wide ? ROWS : FIELD); i++) {
        if (i == FIELD && count == 0 && shape->m <= ROWS_WHOLE) tiles[count++] = (int)shape->m;
        if (shape->m % rows[i] == 0 && rows[i] % unit == 0) tiles[count++] = rows[i];
    }
    if (wide) return add_divisors(shape->m, LANES, 2048, tiles, count);
    if (count == 0 && shape->m <= ROWS_WHOLE) tiles[count++] = (int)shape->m;
    return count;
}

struct adv_gmm_tile adv_tune_default_gmm(const struct adv_gmm_shape *shape)
{
    return (struct adv_gmm_tile){(int)adv_min_i(512, shape->m), (int)adv_min_i(1024, shape->k),
                                 (int)adv_min_i(1024, shape->n), 2};
}

int adv_gmm_space(const struct adv_gmm_shape *shape, bool wide, struct adv_gmm_tile tiles[ADV_GMM_SPACE_MAX])
{
    int m_tiles[BLOCKS_MAX], k_tiles[TILES_MAX], n_tiles[TILES_MAX], count = 0;
    const int m_count = row_tiles_of(shape, wide, m_tiles);
    const int k_count = tiles_of(shape->k, true, k_tiles), n_count = tiles_of(shape->n, false, n_tiles);
    struct adv_gmm_tile standard = adv_tune_default_gmm(shape);
    bool missing = shape->k % standard.tile_k == 0 &&
                   adv_legal_gmm(ADV_KERNEL_GMM, shape, &standard, NULL, NULL) == ADV_OK;
    standard.input_buffer_count = 0;
    for (int m = 0; m < m_count; m++)
        for (int k = 0; k < k_count; k++)
            for (int n = 0; n < n_count; n++) {
                const struct adv_gmm_tile tile = {m_tiles[m], k_tiles[k], n_tiles[n], 0};
                missing = missing && (tile.tile_m != standard.tile_m || tile.tile_k != standard.tile_k ||
                                      tile.tile_n != standard.tile_n);
                tiles[count++] = tile;
            }
    if (missing) tiles[count++] = standard;
    return count;
}

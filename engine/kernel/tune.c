#include "engine/kernel/core.h"
#include "engine/kernel/vmem.h"

#include <stddef.h>
#include <string.h>

enum { BLOCKS_MAX = 16, TILES_MAX = 24 };

/* The k best so far, best first. */
struct best {
    int top_k, count;
    struct adv_kernel_time *times;
};

/* Where `time_s` belongs among the best, or -1. Makes room; the caller stores tile and time there. */
static int insert(struct best *best, double time_s, size_t tile_bytes, char *tiles)
{
    int at = best->count;
    while (at > 0 && time_s < best->times[at - 1].time_s) at--;
    if (at >= best->top_k) return -1;
    const int last = best->count < best->top_k ? best->count++ : best->top_k - 1;
    for (int i = last; i > at; i--) {
        best->times[i] = best->times[i - 1];
        memcpy(tiles + (size_t)i * tile_bytes, tiles + (size_t)(i - 1) * tile_bytes, tile_bytes);
    }
    return at;
}

/* Block sizes of the field's tuners: powers of two from 256 to 4096 that divide the length, at least 1024
 * once the length is; a length none of them divides takes multiples of 128, a short one itself. */
static int blocks_of(int64_t length, int blocks[BLOCKS_MAX])
{
    int count = 0;
    for (int size = length >= 1024 ? 1024 : 256; size <= 4096; size *= 2)
        if (length % size == 0) blocks[count++] = size;
    if (count > 0) return count;
    for (int size = 4096; size >= 128 && count < BLOCKS_MAX; size -= 128)
        if (length % size == 0) blocks[count++] = size;
    if (count == 0 && length < 128) blocks[count++] = (int)length;
    return count;
}

/* Sub-blocks of a key block, the field's favourites first: among equals the first found stays. */
static int parts_of(int block, int parts[BLOCKS_MAX])
{
    static const int sizes[] = {512, 256, 1024, 128};
    int count = 0;
    for (int i = 0; i < 4; i++)
        if (sizes[i] <= block && block % sizes[i] == 0 && (sizes[i] > 128 || count == 0))
            parts[count++] = sizes[i];
    if (count == 0) parts[count++] = block;
    return count;
}

static struct adv_attention_tile tile_of(enum adv_kernel kernel, const struct adv_attention_shape *shape,
                                         int q, int kv, int c)
{
    struct adv_attention_tile tile = {.q_layout = ADV_LAYOUT_HEAD_DIM_MINOR,
                                      .k_layout = ADV_LAYOUT_SEQ_MINOR,
                                      .v_layout = ADV_LAYOUT_HEAD_DIM_MINOR};
    if (shape->head_dim_qk <= 64) tile.q_layout = tile.v_layout = ADV_LAYOUT_SEQ_MINOR; /* no lanes wasted */
    struct adv_splash_blocks *b = &tile.blocks;
    if (kernel == ADV_KERNEL_SPLASH_FWD || kernel == ADV_KERNEL_SPLASH_FWD_RESIDUALS) {
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

adv_code adv_splash_tune(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                         const struct adv_attention_shape *shape, const struct adv_attention_flags *flags,
                         int top_k, struct adv_attention_tile *tiles, struct adv_kernel_time *times,
                         int *found_count, long *evaluated_count, adv_err *err)
{
    struct best best = {.top_k = top_k, .times = times};
    int q_blocks[BLOCKS_MAX], kv_blocks[BLOCKS_MAX], parts[BLOCKS_MAX];
    const int q_count = blocks_of(shape->q_len, q_blocks), kv_count = blocks_of(shape->kv_len, kv_blocks);
    double smallest_bytes = (double)INFINITY;
    *evaluated_count = 0;
    for (int q = 0; q < q_count; q++)
        for (int kv = 0; kv < kv_count; kv++) {
            const bool parted = kernel != ADV_KERNEL_SPLASH_BWD_DQ;
            int part_count = parted ? parts_of(kv_blocks[kv], parts) : 1;
            if (!parted) parts[0] = kv_blocks[kv];
            for (int c = 0; c < part_count; c++) {
                const struct adv_attention_tile tile =
                    tile_of(kernel, shape, q_blocks[q], kv_blocks[kv], parts[c]);
                struct adv_kernel_time time;
                const adv_code bad = adv_splash_time(machine, kernel, shape, &tile, flags, &time, err);
                if (bad) return bad;
                ++*evaluated_count;
                smallest_bytes = adv_min(smallest_bytes, time.vmem_bytes);
                if (!time.fits_vmem) continue;
                const int at = insert(&best, time.time_s, sizeof tile, (char *)tiles);
                if (at < 0) continue;
                tiles[at] = tile;
                times[at] = time;
            }
        }
    *found_count = best.count;
    if (best.count > 0) return ADV_OK;
    if (*evaluated_count == 0)
        return adv_err_add(err, ADV_E_ILLEGAL, "/shape", "sequence lengths that a multiple of 128 divides",
                           "no block size divides q_len %ld and kv_len %ld", (long)shape->q_len,
                           (long)shape->kv_len);
    return adv_err_add(err, ADV_E_ILLEGAL, "/scoped_vmem_limit_kib", "a higher limit",
                       "the smallest tile needs %.0f KiB of VMEM, the limit is %.0f KiB",
                       smallest_bytes / ADV_KIB, adv_core_vmem_limit_bytes(machine) / ADV_KIB);
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
        const int64_t t = dim >> i;
        if (dim % (INT64_C(1) << i) || t < 128 || t % 128 || t > 1 << 15) continue;
        bool known = false;
        for (int j = 0; j < count; j++) known = known || tiles[j] == t;
        if (!known) tiles[count++] = (int)t;
    }
    if (dim % 128 || count == 0) tiles[count++] = (int)adv_round_up(dim, 128);
    return count;
}

/* The tile with the buffers its kernel likes: two in gmm; in tgmm, which streams both inputs, up to four that
 * fit. input_buffer_count 0: not even two fit. */
static struct adv_gmm_tile deepest(enum adv_kernel kernel, const struct adv_gmm_shape *shape, double limit,
                                   int m, int k, int n)
{
    for (int buffers = kernel == ADV_KERNEL_TGMM ? 4 : 2; buffers >= 2; buffers--) {
        const struct adv_gmm_tile tile = {m, k, n, buffers};
        if (adv_vmem_fits(kernel, adv_vmem_gmm_bytes(kernel, shape, &tile), limit)) return tile;
    }
    return (struct adv_gmm_tile){m, k, n, 0};
}

adv_code adv_gmm_tune(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                      const struct adv_gmm_shape *shape, int top_k, struct adv_gmm_tile *tiles,
                      struct adv_kernel_time *times, int *found_count, long *evaluated_count, adv_err *err)
{
    struct best best = {.top_k = top_k, .times = times};
    static const int rows[] = {64, 128, 256, 512, 1024};
    const double limit = adv_core_vmem_limit_bytes(machine);
    int k_tiles[TILES_MAX], n_tiles[TILES_MAX];
    const int k_count = tiles_of(shape->k, true, k_tiles), n_count = tiles_of(shape->n, false, n_tiles);
    *evaluated_count = 0;
    for (size_t m = 0; m < sizeof rows / sizeof rows[0]; m++) {
        if (shape->m % rows[m]) continue;
        for (int k = 0; k < k_count; k++)
            for (int n = 0; n < n_count; n++) {
                const struct adv_gmm_tile tile =
                    deepest(kernel, shape, limit, rows[m], k_tiles[k], n_tiles[n]);
                ++*evaluated_count;
                if (tile.input_buffer_count == 0) continue;
                struct adv_kernel_time time;
                const adv_code bad = adv_gmm_time(machine, kernel, shape, &tile, &time, err);
                if (bad) return bad;
                const int at = insert(&best, time.time_s, sizeof tile, (char *)tiles);
                if (at < 0) continue;
                tiles[at] = tile;
                times[at] = time;
            }
    }
    *found_count = best.count;
    if (best.count > 0) return ADV_OK;
    return adv_err_add(err, ADV_E_ILLEGAL, "/shape", "an m that 128 divides, a higher scoped VMEM limit",
                       "no legal tile for m=%ld k=%ld n=%ld under %.0f KiB", (long)shape->m, (long)shape->k,
                       (long)shape->n, adv_core_vmem_limit_bytes(machine) / ADV_KIB);
}

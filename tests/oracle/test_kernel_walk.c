/* The closed forms against a walk over the grid: every tile classified element by element, every block
 * compared with the previous step's. */
#include "tests/unit/check.h"

#include "engine/base/units.h"
#include "engine/kernel/gmm_visits.h"
#include "engine/kernel/splash_blocks.h"
#include "tests/unit/kernel_machine.h"

/* Position in the sequence of local row `row` under context parallelism. */
static int64_t position(const struct adv_attention_shape *s, int64_t row)
{
    const int64_t r = s->context_shards;
    if (r <= 1 || !s->causal) return row;
    if (!s->context_load_balanced) return s->q_len * (r - 1) + row;
    const int64_t half = s->q_len / 2;
    return row < half ? row : s->q_len * r - s->q_len + row;
}

static int64_t segment(const struct adv_attention_shape *s, int64_t at)
{
    int64_t end = 0;
    for (int i = 0; i < s->segment_sizes_count; i++)
        if (at < (end += s->segment_sizes[i])) return i;
    return -1;
}

static bool allowed(const struct adv_attention_shape *s, int64_t q, int64_t k)
{
    if (s->segment_sizes && segment(s, q) != segment(s, k)) return false;
    if (!s->causal) return true;
    if (k > q) return false;
    if (s->window > 0 && q - k >= s->window) return false;
    return !(s->chunk > 0 && q / s->chunk != k / s->chunk);
}

static void walk(const struct adv_attention_shape *s, int64_t bq, int64_t bkv,
                 struct adv_splash_counts *counts)
{
    *counts = (struct adv_splash_counts){0};
    int64_t last = -1, first = -1;
    for (int64_t q0 = 0; q0 < s->q_len; q0 += bq) {
        bool any_active = false;
        for (int64_t k0 = 0; k0 < s->kv_len; k0 += bkv) {
            int64_t seen = 0;
            for (int64_t q = q0; q < q0 + bq; q++)
                for (int64_t k = k0; k < k0 + bkv; k++) seen += allowed(s, position(s, q), k);
            if (!seen) continue;
            any_active = true;
            counts->active += 1.0;
            counts->partial += seen < bq * bkv;
            counts->pairs += (double)seen;
            counts->kept += k0 / bkv == last;
            if (first < 0) first = k0 / bkv;
            last = k0 / bkv;
        }
        counts->q_blocks += any_active;
    }
    counts->wraps = first == last;
}

static void compare(const struct adv_attention_shape *s, int64_t bq, int64_t bkv)
{
    struct adv_splash_counts walked, counted;
    walk(s, bq, bkv, &walked);
    adv_splash_count_blocks(s, bq, bkv, &counted);
    if (walked.active != counted.active || walked.partial != counted.partial ||
        walked.q_blocks != counted.q_blocks || walked.kept != counted.kept || walked.pairs != counted.pairs ||
        walked.wraps != counted.wraps)
        fail_msg("q %ld kv %ld tiles %ld x %ld window %ld chunk %ld shards %d%s: active %g/%g partial %g/%g "
                 "rows %g/%g kept "
                 "%g/%g pairs %g/%g wraps %d/%d",
                 (long)s->q_len, (long)s->kv_len, (long)bq, (long)bkv, (long)s->window, (long)s->chunk,
                 s->context_shards, s->context_load_balanced ? " balanced" : "", counted.active,
                 walked.active, counted.partial, walked.partial, counted.q_blocks, walked.q_blocks,
                 counted.kept, walked.kept, counted.pairs, walked.pairs, counted.wraps, walked.wraps);
}

static struct adv_attention_shape shape_of(int64_t q_len, int64_t kv_len, bool causal)
{
    return (struct adv_attention_shape){.batch = 1,
                                        .q_heads = 1,
                                        .kv_heads = 1,
                                        .q_len = q_len,
                                        .kv_len = kv_len,
                                        .head_dim_qk = 128,
                                        .head_dim_v = 128,
                                        .causal = causal,
                                        .context_shards = 1};
}

/* Lengths are small: the counts do not know about the 128 lanes. */
static void attention_blocks_equal_the_walk(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 4, 6, 8, 12, 24};
    static const int64_t windows[] = {0, 1, 3, 5, 8, 24, 47, 100};
    static const int64_t chunks[] = {0, 4, 6, 16, 24};
    for (int q = 0; q < 8; q++)
        for (int k = 0; k < 8; k++) {
            struct adv_attention_shape s = shape_of(48, 48, false);
            compare(&s, sizes[q], sizes[k]);
            for (int w = 0; w < 8; w++)
                for (int c = 0; c < 5; c++) {
                    s = shape_of(48, 48, true);
                    s.window = windows[w];
                    s.chunk = chunks[c];
                    compare(&s, sizes[q], sizes[k]);
                }
        }
}

static void context_shards_equal_the_walk(void **state)
{
    (void)state;
    static const int64_t q_sizes[] = {1, 2, 3, 4, 6, 12};
    static const int64_t kv_sizes[] = {1, 2, 3, 4, 6, 8, 12, 24, 48};
    static const int64_t windows[] = {0, 5, 14};
    for (int q = 0; q < 6; q++)
        for (int k = 0; k < 9; k++)
            for (int balanced = 0; balanced < 2; balanced++)
                for (int w = 0; w < 3; w++) {
                    struct adv_attention_shape s = shape_of(12, 48, true);
                    s.context_shards = 4;
                    s.context_load_balanced = balanced;
                    s.window = windows[w];
                    compare(&s, q_sizes[q], kv_sizes[k]);
                }
}

/* More rows than keys, more keys than rows, known segments. */
static void unequal_lengths_and_segments_equal_the_walk(void **state)
{
    (void)state;
    static const int64_t segments[] = {10, 1, 21, 16};
    static const int64_t sizes[] = {1, 2, 3, 4, 6, 8, 12, 24};
    for (int q = 0; q < 8; q++)
        for (int k = 0; k < 8; k++) {
            struct adv_attention_shape s = shape_of(48, 24, true);
            compare(&s, sizes[q], sizes[k]);
            s = shape_of(24, 48, true);
            compare(&s, sizes[q], sizes[k]);
            for (int causal = 0; causal < 2; causal++) {
                s = shape_of(48, 48, causal);
                s.segment_sizes = segments;
                s.segment_sizes_count = 4;
                compare(&s, sizes[q], sizes[k]);
            }
        }
}

/* Bytes the forward grid moves: q and out once per query block, k and v whenever their block index changes.
 */
static void forward_bytes_equal_the_walk(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    const struct adv_attention_flags flags = {.kernel_only = true};
    for (int heads = 1; heads <= 4; heads *= 2)
        for (int kv = 512; kv <= 2048; kv *= 2)
            for (int causal = 0; causal < 2; causal++) {
                struct adv_attention_shape s = shape_of(2048, 2048, causal);
                s.q_heads = 4;
                s.kv_heads = heads;
                s.dtype = ADV_FORMAT_BF16;
                const struct adv_attention_tile tile = {
                    .blocks = {.block_q = 512, .block_kv = kv, .block_kv_compute = 512}};
                double bytes = 0.0;
                int64_t last = -1;
                for (int64_t h = 0; h < 4; h++)
                    for (int64_t q = 0; q < 4; q++) {
                        bytes += 2.0 * 512.0 * 128.0 * 2.0;
                        for (int64_t k = 0; k < 2048 / kv; k++) {
                            if (causal && k * kv > q * 512 + 511) continue;
                            const int64_t index = h / (4 / heads) * 100 + k;
                            if (index != last) bytes += 2.0 * kv * 128.0 * 2.0;
                            last = index;
                        }
                    }
                struct adv_kernel_time time;
                adv_err err;
                adv_err_init(&err);
                assert_int_equal(
                    adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_FWD, &s, &tile, &flags, &time, &err),
                    ADV_OK);
                assert_close(time.hbm_bytes, bytes, 0.0);
            }
}

struct gmm_walk {
    double steps, bytes;
};

/* The grouped matmul's grid in order, blocks fetched when an index changes, outputs written when theirs does.
 */
static struct gmm_walk walk_gmm(const struct adv_gmm_shape *s, const struct adv_gmm_tile *t)
{
    struct gmm_walk walked = {0.0, 0.0};
    int64_t last_lhs = -1, last_rhs = -1, last_out = -1;
    const int64_t k_tiles = adv_div_up(s->k, t->tile_k);
    for (int64_t n = 0; n < s->n; n += t->tile_n) {
        const double width = (double)adv_min_i(t->tile_n, s->n - n);
        int64_t start = 0;
        for (int64_t g = 0; g < s->num_groups; g++) {
            const int64_t end = start + s->group_sizes[g];
            for (int64_t m = start / t->tile_m; end > start && m < adv_div_up(end, t->tile_m); m++)
                for (int64_t k = 0; k < k_tiles; k++) {
                    const double depth = (double)adv_min_i(t->tile_k, s->k - k * t->tile_k);
                    const int64_t lhs = m * 1000 + k, rhs = (g * 1000 + k) * 1000 + n, out = m * 1000000 + n;
                    if (lhs != last_lhs) walked.bytes += t->tile_m * depth * 2.0;
                    if (rhs != last_rhs) walked.bytes += depth * width * 2.0;
                    if (out != last_out) walked.bytes += t->tile_m * width * 2.0;
                    last_lhs = lhs;
                    last_rhs = rhs;
                    last_out = out;
                    walked.steps += 1.0;
                }
            start = end;
        }
    }
    return walked;
}

static void grouped_matmul_steps_and_bytes_equal_the_walk(void **state)
{
    (void)state;
    static const int64_t groups[][5] = {
        {128, 128, 128, 128, 512}, {100, 0, 300, 1, 623}, {0, 0, 1024, 0, 0}, {1, 1, 1, 1, 1020}};
    static const struct adv_gmm_tile tiles[] = {
        {128, 512, 256, 2}, {256, 512, 128, 2}, {128, 128, 256, 2}, {128, 256, 192, 2}};
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    for (int g = 0; g < 4; g++)
        for (int t = 0; t < 4; t++) {
            const struct adv_gmm_shape s = {.m = 1024,
                                            .k = 512,
                                            .n = 448,
                                            .num_groups = 5,
                                            .distribution = ADV_GROUPS_GIVEN,
                                            .group_sizes = groups[g],
                                            .lhs = ADV_FORMAT_BF16,
                                            .rhs = ADV_FORMAT_BF16,
                                            .out = ADV_FORMAT_BF16,
                                            .version = 1};
            const struct gmm_walk walked = walk_gmm(&s, &tiles[t]);
            struct adv_kernel_time time;
            adv_err err;
            adv_err_init(&err);
            assert_int_equal(adv_gmm_time(&bench.machine, ADV_KERNEL_GMM, &s, &tiles[t], &time, &err),
                             ADV_OK);
            assert_close(time.grid_steps, walked.steps, 1e-12);
            assert_close(time.hbm_bytes, walked.bytes, 1e-12);
        }
}

static void floor_sum_equals_the_loop(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 12; n++)
        for (int64_t m = 1; m < 9; m++)
            for (int64_t a = 0; a < 20; a++)
                for (int64_t b = 0; b < 20; b++) {
                    int64_t sum = 0;
                    for (int64_t i = 0; i < n; i++) sum += (a * i + b) / m;
                    assert_int_equal(adv_splash_floor_sum(n, m, a, b), sum);
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_blocks_equal_the_walk),
        cmocka_unit_test(context_shards_equal_the_walk),
        cmocka_unit_test(unequal_lengths_and_segments_equal_the_walk),
        cmocka_unit_test(forward_bytes_equal_the_walk),
        cmocka_unit_test(grouped_matmul_steps_and_bytes_equal_the_walk),
        cmocka_unit_test(floor_sum_equals_the_loop),
    };
    return run_group(tests);
}

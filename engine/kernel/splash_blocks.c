#include "engine/kernel/splash_blocks.h"

#include "engine/base/units.h"

int64_t adv_splash_floor_sum(int64_t n, int64_t m, int64_t a, int64_t b)
{
    int64_t sum = 0;
    while (n > 0) { /* Euclid on (a, m): each turn swaps the roles of slope and modulus */
        if (a >= m) sum += (n - 1) * n / 2 * (a / m), a %= m;
        if (b >= m) sum += n * (b / m), b %= m;
        const int64_t top = a * n + b;
        if (top < m) break;
        n = top / m;
        b = top % m;
        const int64_t old_m = m;
        m = a;
        a = old_m;
    }
    return sum;
}

/* A run of `rows` consecutive query rows that starts at position `start` of the sequence. */
struct segment {
    int64_t start, rows;
};

/* Bounds of the segment that holds position q, when the packing is known. */
static void segment_of(const struct adv_attention_shape *shape, int64_t q, int64_t *first, int64_t *last)
{
    int64_t start = 0;
    for (int i = 0; i < shape->segment_sizes_count; i++) {
        if (q < start + shape->segment_sizes[i]) {
            *first = adv_max_i(*first, start);
            *last = adv_min_i(*last, start + shape->segment_sizes[i] - 1);
            return;
        }
        start += shape->segment_sizes[i];
    }
}

/* Keys first..last that row `q` may see; both grow with q. */
static void keys_of(const struct adv_attention_shape *shape, int64_t q, int64_t *first, int64_t *last)
{
    *first = 0;
    *last = shape->causal ? adv_min_i(q, shape->kv_len - 1) : shape->kv_len - 1;
    if (shape->causal && shape->window > 0) *first = adv_max_i(0, q - shape->window + 1);
    if (shape->causal && shape->chunk > 0) *first = adv_max_i(*first, q / shape->chunk * shape->chunk);
    if (shape->segment_sizes) segment_of(shape, q, first, last);
}

/* The state of a walk over query blocks: the first key tile of all and the last one so far, -1 before
 * it. */
struct walk {
    int64_t first, last;
};

/* One query block whose rows are the positions lowest..highest. Active tiles touch what any row sees; full
 * ones lie inside what all rows see: from the highest row's first key to the lowest row's last. */
static void count_row_block(const struct adv_attention_shape *shape, int64_t lowest, int64_t highest,
                            int64_t bkv, struct adv_splash_counts *counts, struct walk *walk, double times)
{
    int64_t see_first, see_last, full_first, full_last;
    keys_of(shape, lowest, &see_first, &full_last);
    keys_of(shape, highest, &full_first, &see_last);
    const int64_t active = adv_max_i(0, see_last / bkv - see_first / bkv + 1);
    const int64_t full = adv_max_i(0, (full_last + 1) / bkv - adv_div_up(full_first, bkv));
    counts->active += times * (double)active;
    counts->partial += times * (double)(active - full);
    if (active == 0) return;
    counts->q_blocks += times;
    if (see_first / bkv == walk->last) counts->kept += times;
    if (walk->last < 0) walk->first = see_first / bkv;
    walk->last = see_last / bkv;
}

/* Causal without window: closed form. Row block i sees key tiles up to the one of its last row; those that
 * end at or before its first row are full. Rows past the keys see all of them. */
static void count_causal(const struct adv_attention_shape *shape, struct segment part, int64_t bq,
                         int64_t bkv, struct adv_splash_counts *counts, struct walk *walk)
{
    const int64_t n = part.rows / bq;
    const int64_t inside = part.start >= shape->kv_len ? 0 : adv_min_i(n, (shape->kv_len - part.start) / bq);
    const int64_t active = adv_splash_floor_sum(inside, bkv, bq, part.start + bq - 1) + inside;
    const int64_t full = adv_splash_floor_sum(inside, bkv, bq, part.start + 1);
    counts->active += (double)active;
    counts->partial += (double)(active - full);
    counts->q_blocks += (double)inside;
    if (inside > 0) { /* every query block starts at tile 0: kept where the one before ended there */
        counts->kept += walk->last == 0 ? 1.0 : 0.0;
        counts->kept += (double)adv_max_i(0, adv_min_i(inside - 1, (bkv - part.start) / bq));
        if (walk->last < 0) walk->first = 0;
        walk->last = (part.start + inside * bq - 1) / bkv;
    }
    for (int64_t i = inside; i < n; i++) {
        const int64_t lowest = part.start + i * bq;
        count_row_block(shape, lowest, lowest + bq - 1, bkv, counts, walk, 1.0);
    }
}

/* Query blocks after which the pattern of tiles repeats, and the first block from which it does. */
static int64_t period(const struct adv_attention_shape *shape, struct segment part, int64_t bq, int64_t bkv,
                      int64_t *from)
{
    int64_t step = bkv; /* positions after which key tiles line up again */
    if (shape->chunk > 0) step = step / adv_gcd(step, shape->chunk) * shape->chunk;
    const int64_t blocks = step / adv_gcd(step, bq);
    const int64_t clear =
        shape->window > 0 ? shape->window : 0; /* before this the window is cut by the start */
    *from = part.start >= clear ? 0 : adv_div_up(clear - part.start, bq);
    return blocks;
}

static void count_banded(const struct adv_attention_shape *shape, struct segment part, int64_t bq,
                         int64_t bkv, struct adv_splash_counts *counts, struct walk *walk)
{
    const int64_t n = part.rows / bq;
    int64_t from = 0;
    const int64_t repeat = period(shape, part, bq, bkv, &from);
    from = adv_max_i(from, 1); /* the first block has no predecessor whose key tile it could keep */
    const bool inside =
        part.start + part.rows <= shape->kv_len; /* no row past the keys: the pattern never ends */
    int64_t whole = inside && n > from ? (n - from) / repeat : 0;
    if (whole < 2) whole = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i == from + repeat && whole > 0) { /* the periods in between are counted already: go past them */
            i = from + repeat * whole;
            walk->last += (whole - 1) * repeat * bq / bkv;
        }
        if (i >= n) break;
        const double times = whole > 0 && i >= from && i < from + repeat ? (double)whole : 1.0;
        const int64_t lowest = part.start + i * bq;
        count_row_block(shape, lowest, lowest + bq - 1, bkv, counts, walk, times);
    }
}

/* Pairs of rows before `end` when every row sees its last `reach` keys (itself included). */
static double banded_pairs(double end, double reach)
{
    const double cut = adv_min(end, reach);
    return cut * (cut + 1.0) / 2.0 + (end - cut) * reach;
}

/* The same when every row sees its own chunk up to itself, at most `reach` keys. */
static double chunked_pairs(int64_t end, int64_t chunk, double reach)
{
    return (double)(end / chunk) * banded_pairs((double)chunk, reach) +
           banded_pairs((double)(end % chunk), reach);
}

/* Allowed pairs of rows [start, start + rows). */
static double allowed_pairs(const struct adv_attention_shape *shape, struct segment part)
{
    if (shape->segment_sizes) {
        double pairs = 0.0;
        for (int i = 0; i < shape->segment_sizes_count; i++) {
            const double rows = (double)shape->segment_sizes[i];
            pairs += shape->causal ? rows * (rows + 1.0) / 2.0 : rows * rows;
        }
        return pairs;
    }
    if (!shape->causal) return (double)part.rows * (double)shape->kv_len;
    const int64_t end = part.start + part.rows;
    const double reach = shape->window > 0 ? (double)shape->window : (double)end;
    if (shape->chunk > 0)
        return chunked_pairs(end, shape->chunk, reach) - chunked_pairs(part.start, shape->chunk, reach);
    /* rows past the keys see all of them; no window reaches there */
    const double beyond = (double)adv_max_i(0, end - adv_max_i(part.start, shape->kv_len));
    const int64_t from = adv_min_i(part.start, shape->kv_len), to = adv_min_i(end, shape->kv_len);
    return banded_pairs((double)to, reach) - banded_pairs((double)from, reach) +
           beyond * (double)shape->kv_len;
}

static void count_part(const struct adv_attention_shape *shape, struct segment part, int64_t bq, int64_t bkv,
                       struct adv_splash_counts *counts, struct walk *walk)
{
    counts->pairs += allowed_pairs(shape, part);
    if (shape->segment_sizes) {
        for (int64_t q = part.start; q < part.start + part.rows; q += bq)
            count_row_block(shape, q, q + bq - 1, bkv, counts, walk, 1.0);
    } else if (!shape->causal) {
        const int64_t n = part.rows / bq, tiles = shape->kv_len / bkv;
        counts->active += (double)(n * tiles);
        counts->q_blocks += (double)n;
        if (tiles == 1) counts->kept += (double)(n - 1);
        walk->first = 0;
        walk->last = tiles - 1;
    } else if (shape->window > 0 || shape->chunk > 0) {
        count_banded(shape, part, bq, bkv, counts, walk);
    } else {
        count_causal(shape, part, bq, bkv, counts, walk);
    }
}

static void count_balanced(const struct adv_attention_shape *shape, int64_t bq, int64_t bkv,
                           struct adv_splash_counts *counts, struct walk *walk)
{
    const int64_t half = shape->q_len / 2;
    const struct segment low = {0, half};
    const struct segment high = {shape->q_len * shape->context_shards - (shape->q_len - half),
                                 shape->q_len - half};
    if (half % bq == 0) {
        count_part(shape, low, bq, bkv, counts, walk);
        count_part(shape, high, bq, bkv, counts, walk);
        return;
    }
    counts->pairs = allowed_pairs(shape, low) + allowed_pairs(shape, high);
    for (int64_t a = 0; a < shape->q_len; a += bq) {
        const int64_t b = a + bq - 1;
        const int64_t lowest = a < half ? a : high.start + a - half,
                      highest = b < half ? b : high.start + b - half;
        count_row_block(shape, lowest, highest, bkv, counts, walk, 1.0);
        if (a >= half || b < half) continue;
        /* this block's rows jump from the end of the low half-chunk to the start of the high one: so may
         * their keys */
        int64_t ignored, low_last, high_first;
        keys_of(shape, half - 1, &ignored, &low_last);
        keys_of(shape, high.start, &high_first, &ignored);
        const double gap = (double)adv_max_i(0, high_first / bkv - low_last / bkv - 1);
        counts->active -= gap;
        counts->partial -= gap;
    }
}

void adv_splash_count_blocks(const struct adv_attention_shape *shape, int64_t block_q, int64_t block_kv,
                             struct adv_splash_counts *counts)
{
    *counts = (struct adv_splash_counts){0};
    struct walk walk = {0, -1};
    const int64_t shards = adv_max_i(1, shape->context_shards);
    if (shards == 1 || !shape->causal) {
        count_part(shape, (struct segment){0, shape->q_len}, block_q, block_kv, counts, &walk);
    } else if (!shape->context_load_balanced) {
        const struct segment last = {shape->q_len * (shards - 1), shape->q_len};
        count_part(shape, last, block_q, block_kv, counts, &walk);
    } else {
        count_balanced(shape, block_q, block_kv, counts, &walk);
    }
    counts->wraps = walk.first == walk.last;
}

double adv_splash_calls(const struct adv_attention_shape *shape)
{
    if (!shape->context_ring || shape->context_shards <= 1) return 1.0;
    struct adv_splash_counts counts;
    adv_splash_count_blocks(shape, shape->q_len, adv_splash_call_keys(shape), &counts);
    return adv_max(1.0, counts.active);
}

void adv_splash_row_tiles(const struct adv_attention_shape *shape, int64_t block_q, int64_t block_kv,
                          int64_t q_block, struct adv_splash_row *row)
{
    const int64_t a = q_block * block_q, b = a + block_q - 1, half = shape->q_len / 2;
    const int64_t shards = shape->causal ? adv_max_i(1, shape->context_shards) : 1;
    const bool balanced = shards > 1 && shape->context_load_balanced;
    const int64_t high = shape->q_len * shards - shape->q_len; /* added to a row of the high half-chunk */
    const int64_t start = balanced ? 0 : high;
    const int64_t lowest = balanced && a >= half ? a + high : a + start;
    const int64_t highest = balanced && b >= half ? b + high : b + start;
    int64_t see_first, see_last, full_first, full_last;
    keys_of(shape, lowest, &see_first, &full_last);
    keys_of(shape, highest, &full_first, &see_last);
    *row = (struct adv_splash_row){.first = see_first / block_kv,
                                   .last = see_last / block_kv,
                                   .full_first = adv_div_up(full_first, block_kv),
                                   .full_last = (full_last + 1) / block_kv - 1,
                                   .hole_last = -1};
    if (!balanced || a >= half || b < half) return;
    int64_t ignored, low_last, high_first;
    keys_of(shape, half - 1, &ignored, &low_last);
    keys_of(shape, half + high, &high_first, &ignored);
    row->hole_first = low_last / block_kv + 1;
    row->hole_last = high_first / block_kv - 1;
}

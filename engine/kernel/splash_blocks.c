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
struct segment { int64_t start, rows; };

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

/* One query block whose rows are the positions lowest..highest. Active tiles touch what any row sees; full ones lie
 * inside what all rows see: from the highest row's first key to the lowest row's last. */
static void count_row_block(const struct adv_attention_shape *shape, int64_t lowest, int64_t highest, int64_t bkv,
                            struct adv_splash_counts *counts, double times)
{
    int64_t see_first, see_last, full_first, full_last;
    keys_of(shape, lowest, &see_first, &full_last);
    keys_of(shape, highest, &full_first, &see_last);
    const int64_t active = adv_max_i(0, see_last / bkv - see_first / bkv + 1);
    const int64_t full = adv_max_i(0, (full_last + 1) / bkv - adv_div_up(full_first, bkv));
    counts->active += times * (double)active;
    counts->partial += times * (double)(active - full);
    counts->q_blocks += active > 0 ? times : 0.0;
}

/* Causal without window: closed form. Row block i sees key tiles up to the one of its last row; those that end at or
 * before its first row are full. Rows past the keys see all of them. */
static void count_causal(const struct adv_attention_shape *shape, struct segment part, int64_t bq, int64_t bkv,
                         struct adv_splash_counts *counts)
{
    const int64_t n = part.rows / bq;
    const int64_t inside = part.start >= shape->kv_len ? 0 : adv_min_i(n, (shape->kv_len - part.start) / bq);
    const int64_t active = adv_splash_floor_sum(inside, bkv, bq, part.start + bq - 1) + inside;
    const int64_t full = adv_splash_floor_sum(inside, bkv, bq, part.start + 1);
    counts->active += (double)active;
    counts->partial += (double)(active - full);
    counts->q_blocks += (double)inside;
    if (inside == n) return;
    const int64_t lowest = part.start + inside * bq; /* the block that straddles the end of the keys */
    count_row_block(shape, lowest, lowest + bq - 1, bkv, counts, 1.0);
    const double beyond = (double)(n - inside - 1);
    counts->active += beyond * (double)(shape->kv_len / bkv);
    counts->q_blocks += beyond;
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* Query blocks after which the pattern of tiles repeats, and the first block from which it does. */
static int64_t period(const struct adv_attention_shape *shape, struct segment part, int64_t bq, int64_t bkv, int64_t *from)
{
    int64_t step = bkv; /* positions after which key tiles line up again */
    if (shape->chunk > 0) step = step / gcd(step, shape->chunk) * shape->chunk;
    const int64_t blocks = step / gcd(step, bq);
    const int64_t clear = shape->window > 0 ? shape->window : 0; /* before this the window is cut by the start */
    *from = part.start >= clear ? 0 : adv_div_up(clear - part.start, bq);
    return blocks;
}

static void count_banded(const struct adv_attention_shape *shape, struct segment part, int64_t bq, int64_t bkv,
                         struct adv_splash_counts *counts)
{
    const int64_t n = part.rows / bq;
    int64_t from = 0;
    const int64_t repeat = period(shape, part, bq, bkv, &from);
    const bool inside = part.start + part.rows <= shape->kv_len; /* no row past the keys: the pattern never ends */
    int64_t whole = inside && n > from ? (n - from) / repeat : 0;
    if (whole < 2) whole = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i == from + repeat && whole > 0) i = from + repeat * whole;
        if (i >= n) break;
        const double times = whole > 0 && i >= from && i < from + repeat ? (double)whole : 1.0;
        const int64_t lowest = part.start + i * bq;
        count_row_block(shape, lowest, lowest + bq - 1, bkv, counts, times);
    }
}

/* Allowed pairs of rows [start, start + rows). */
static double allowed_pairs(const struct adv_attention_shape *shape, struct segment part)
{
    const double rows = (double)part.rows, start = (double)part.start;
    if (!shape->causal) return rows * (double)shape->kv_len;
    double pairs = rows * (start + 1.0) + rows * (rows - 1.0) / 2.0;
    const double reach = shape->window > 0 ? (double)shape->window : 0.0;
    if (reach > 0.0) { /* rows at or past the window's length see `window` keys */
        const double cut = adv_max(0.0, adv_min(rows, start + rows - reach));
        const double first = start + rows - cut; /* position of the first such row */
        pairs -= cut * (first + 1.0 - reach) + cut * (cut - 1.0) / 2.0;
    }
    if (shape->chunk > 0) {
        const double chunk = (double)shape->chunk;
        pairs = adv_min(pairs, rows * (chunk + 1.0) / 2.0);
    }
    return pairs;
}

static void count_part(const struct adv_attention_shape *shape, struct segment part, int64_t bq, int64_t bkv,
                       struct adv_splash_counts *counts)
{
    counts->pairs += allowed_pairs(shape, part);
    if (shape->segment_sizes) {
        for (int64_t q = part.start; q < part.start + part.rows; q += bq)
            count_row_block(shape, q, q + bq - 1, bkv, counts, 1.0);
    } else if (!shape->causal) {
        const double n = (double)(part.rows / bq);
        counts->active += n * (double)(shape->kv_len / bkv);
        counts->q_blocks += n;
    } else if (shape->window > 0 || shape->chunk > 0) {
        count_banded(shape, part, bq, bkv, counts);
    } else {
        count_causal(shape, part, bq, bkv, counts);
    }
}

void adv_splash_count_blocks(const struct adv_attention_shape *shape, int64_t block_q, int64_t block_kv,
                             struct adv_splash_counts *counts)
{
    *counts = (struct adv_splash_counts){ 0 };
    const int64_t shards = adv_max_i(1, shape->context_shards);
    if (shards == 1 || !shape->causal) {
        count_part(shape, (struct segment){ 0, shape->q_len }, block_q, block_kv, counts);
        return;
    }
    if (!shape->context_load_balanced) {
        count_part(shape, (struct segment){ shape->q_len * (shards - 1), shape->q_len }, block_q, block_kv, counts);
        return;
    }
    const int64_t half = shape->q_len / 2;
    const struct segment low = { 0, half };
    const struct segment high = { shape->q_len * shards - (shape->q_len - half), shape->q_len - half };
    if (half % block_q == 0) {
        count_part(shape, low, block_q, block_kv, counts);
        count_part(shape, high, block_q, block_kv, counts);
        return;
    }
    /* a query block spans the seam: its rows go from the low half-chunk to the high one */
    counts->pairs = allowed_pairs(shape, low) + allowed_pairs(shape, high);
    for (int64_t i = 0; i < shape->q_len / block_q; i++) {
        const int64_t a = i * block_q, b = a + block_q - 1;
        count_row_block(shape, a < half ? a : high.start + a - half, b < half ? b : high.start + b - half, block_kv, counts,
                        1.0);
    }
}

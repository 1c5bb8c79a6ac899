/* Partly masked tiles of windows and chunks: against a mask that is written out pair by pair. */
#include "tests/unit/check.h"

#include <string.h>

#include "engine/spec/local_mask.h"
#include "tests/unit/draw.h"

enum { SEQ_MOST = 48 };

/* Whether the query in `row` of the order that context shards have sees `key`. */
static bool sees(const struct adv_local_mask *mask, int row, int key)
{
    const int seq = (int)mask->seq_len, shard = seq / mask->context, piece = shard / 2;
    int query = row;
    if (mask->load_balanced) {
        const int of_shard = row / shard, in_shard = row % shard;
        query = in_shard < piece ? of_shard * piece + in_shard
                                 : (2 * mask->context - 1 - of_shard) * piece + in_shard - piece;
    }
    if (key > query) return false;
    if (mask->chunked) return key / mask->window_tokens == query / mask->window_tokens;
    return query - key < mask->window_tokens;
}

static int written_out(const struct adv_local_mask *mask, int block_q, int block_kv)
{
    static unsigned char known[SEQ_MOST * SEQ_MOST][SEQ_MOST * SEQ_MOST];
    unsigned char tile[SEQ_MOST * SEQ_MOST];
    const int seq = (int)mask->seq_len, pairs = block_q * block_kv;
    int count = 0;
    for (int q = 0; q < seq; q += block_q)
        for (int k = 0; k < seq; k += block_kv) {
            int seen = 0;
            for (int i = 0; i < pairs; i++) seen += tile[i] = sees(mask, q + i / block_kv, k + i % block_kv);
            bool is_new = seen > 0 && seen < pairs;
            for (int i = 0; i < count && is_new; i++) is_new = memcmp(known[i], tile, (size_t)pairs) != 0;
            if (is_new) memcpy(known[count++], tile, (size_t)pairs);
        }
    return count;
}

static int below(int limit)
{
    static uint64_t seed = 7;
    return (int)(draw_next(&seed) % (uint64_t)limit);
}

static void contents_of_tiles_are_counted_once(void **state)
{
    (void)state;
    static const int divisors[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 48};
    enum { DIVISORS = sizeof divisors / sizeof *divisors };
    int balanced = 0, chunked = 0;
    for (int i = 0; i < 20000; i++) {
        struct adv_local_mask mask = {.seq_len = SEQ_MOST,
                                      .window_tokens = 1 + below(SEQ_MOST + 4),
                                      .chunked = below(2) == 1,
                                      .context = divisors[below(4)]};
        const int shard = SEQ_MOST / mask.context;
        mask.load_balanced = shard % 2 == 0 && below(2) == 1;
        const int block_q = divisors[below(DIVISORS)];
        const int block_kv = divisors[below(DIVISORS)];
        const int count = adv_local_mask_blocks(&mask, block_q, block_kv);
        if (shard % block_q != 0) {
            assert_int_equal(count, 0);
            continue;
        }
        balanced += mask.load_balanced;
        chunked += mask.chunked;
        const int expected = written_out(&mask, block_q, block_kv);
        if (count != expected)
            fail_msg("%d, not %d: window %d, chunked %d, context %d, balanced %d, tile %d x %d", count,
                     expected, (int)mask.window_tokens, mask.chunked, mask.context, mask.load_balanced,
                     block_q, block_kv);
    }
    assert_true(balanced > 1000 && chunked > 1000);
}

/* As MaxText 0.2.5 said of gemma3-4b: int8[5,4096,1024] is not divisible by a context axis of 2. */
static void long_tiles_of_a_short_window_have_more_contents(void **state)
{
    (void)state;
    const struct adv_local_mask mask = {
        .seq_len = 16384, .window_tokens = 1024, .context = 2, .load_balanced = true};
    assert_int_equal(adv_local_mask_blocks(&mask, 1024, 4096), 5);
    assert_int_equal(adv_local_mask_blocks(&mask, 1024, 1024), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contents_of_tiles_are_counted_once),
        cmocka_unit_test(long_tiles_of_a_short_window_have_more_contents),
    };
    return run_group(tests);
}

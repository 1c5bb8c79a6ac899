#include "tests/unit/check.h"

#include <string.h>

#include "engine/base/arena.h"

enum { LIMIT_BYTES = 1024 * 1024, PIECES = 40, PIECE_BYTES = 4000 };

static void fill(struct adv_arena *arena, unsigned char *pieces[PIECES], int first)
{
    for (int i = 0; i < PIECES; i++) {
        pieces[i] = adv_arena_alloc(arena, PIECE_BYTES);
        assert_non_null(pieces[i]);
        memset(pieces[i], first + i, PIECE_BYTES);
    }
}

static void assert_filled(unsigned char *const pieces[PIECES], int first)
{
    for (int i = 0; i < PIECES; i++) {
        assert_int_equal(pieces[i][0], first + i);
        assert_int_equal(pieces[i][PIECE_BYTES - 1], first + i);
    }
}

static void adopted_memory_stays_where_it_is_and_counts(void **state)
{
    (void)state;
    struct adv_arena arena, other;
    unsigned char *own[PIECES], *adopted[PIECES], *later[PIECES];
    adv_arena_init(&arena, LIMIT_BYTES);
    adv_arena_init(&other, LIMIT_BYTES);
    fill(&arena, own, 1);
    fill(&other, adopted, 1 + PIECES);
    const size_t used_bytes = arena.used_bytes + other.used_bytes;
    assert_true(adv_arena_adopt(&arena, &other));
    assert_int_equal(arena.used_bytes, used_bytes);
    assert_int_equal(other.used_bytes, 0);
    adv_arena_free(&other);
    fill(&arena, later, 1 + 2 * PIECES);
    assert_filled(own, 1);
    assert_filled(adopted, 1 + PIECES);
    assert_filled(later, 1 + 2 * PIECES);
    adv_arena_free(&arena);
}

static void an_empty_arena_adopts_and_is_adopted(void **state)
{
    (void)state;
    struct adv_arena arena, other;
    unsigned char *pieces[PIECES];
    adv_arena_init(&arena, LIMIT_BYTES);
    adv_arena_init(&other, LIMIT_BYTES);
    assert_true(adv_arena_adopt(&arena, &other));
    fill(&other, pieces, 1);
    assert_true(adv_arena_adopt(&arena, &other));
    assert_true(adv_arena_adopt(&arena, &other));
    assert_filled(pieces, 1);
    assert_int_equal(arena.used_bytes, PIECES * PIECE_BYTES);
    adv_arena_free(&arena);
}

static void more_than_the_cap_is_not_adopted(void **state)
{
    (void)state;
    struct adv_arena arena, other;
    unsigned char *own[PIECES], *others[PIECES];
    adv_arena_init(&arena, 2 * PIECES * PIECE_BYTES - 1);
    adv_arena_init(&other, LIMIT_BYTES);
    fill(&arena, own, 1);
    fill(&other, others, 1);
    assert_false(adv_arena_adopt(&arena, &other));
    assert_int_equal(arena.used_bytes, PIECES * PIECE_BYTES);
    assert_filled(others, 1);
    adv_arena_free(&other);
    adv_arena_free(&arena);
}

static void all_but_bare_memory_is_zeroed(void **state)
{
    (void)state;
    for (int repeat = 0; repeat < 3; repeat++) { /* in memory that was used before */
        struct adv_arena arena;
        adv_arena_init(&arena, LIMIT_BYTES);
        unsigned char *bare = adv_arena_bare(&arena, PIECE_BYTES);
        assert_non_null(bare);
        memset(bare, 0xff, PIECE_BYTES);
        for (int i = 0; i < PIECES; i++) {
            unsigned char *piece =
                i % 2 ? adv_arena_alloc(&arena, PIECE_BYTES) : adv_arena_array(&arena, 1, PIECE_BYTES);
            assert_non_null(piece);
            for (int k = 0; k < PIECE_BYTES; k++) assert_int_equal(piece[k], 0);
            memset(piece, 0xff, PIECE_BYTES);
        }
        assert_int_equal(arena.used_bytes, (1 + PIECES) * PIECE_BYTES);
        assert_null(adv_arena_bare(&arena, LIMIT_BYTES));
        adv_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adopted_memory_stays_where_it_is_and_counts),
        cmocka_unit_test(an_empty_arena_adopts_and_is_adopted),
        cmocka_unit_test(more_than_the_cap_is_not_adopted),
        cmocka_unit_test(all_but_bare_memory_is_zeroed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

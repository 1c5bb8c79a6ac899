/* Helpers: lent while idle, never more threads than processors, and work in order whoever did it. */
#include "tests/unit/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "engine/base/crew.h"
#include "engine/search/in_order.h"

struct gate {
    atomic_int started;
    atomic_bool open;
};

static void nap(void)
{
    const struct timespec millisecond = {.tv_nsec = 1000000};
    (void)nanosleep(&millisecond, NULL);
}

static void wait_at_gate(void *context)
{
    struct gate *gate = context;
    atomic_fetch_add(&gate->started, 1);
    while (!atomic_load(&gate->open)) nap();
}

static void a_helper_is_lent_while_one_is_idle(void **state)
{
    (void)state;
    struct adv_crew *crew = adv_crew_start(3, 0);
    assert_non_null(crew);
    struct gate gate = {0};
    struct adv_crew_task tasks[3] = {{wait_at_gate, &gate, false, NULL},
                                     {wait_at_gate, &gate, false, NULL},
                                     {wait_at_gate, &gate, false, NULL}};
    adv_crew_enter(crew);
    assert_true(adv_crew_lend(crew, &tasks[0]));
    assert_true(adv_crew_lend(crew, &tasks[1]));
    assert_false(adv_crew_lend(crew, &tasks[2])); /* three processors are at work */
    assert_false(adv_crew_crowded(crew));
    adv_crew_enter(crew); /* somebody else has work of its own */
    assert_true(adv_crew_crowded(crew));
    adv_crew_leave(crew);
    assert_false(adv_crew_crowded(crew));
    while (atomic_load(&gate.started) < 2) nap();
    atomic_store(&gate.open, true);
    adv_crew_wait(crew, &tasks[0]);
    adv_crew_wait(crew, &tasks[1]);
    assert_int_equal(atomic_load(&gate.started), 2);
    assert_true(adv_crew_lend(crew, &tasks[2])); /* idle again */
    adv_crew_wait(crew, &tasks[2]);
    adv_crew_leave(crew);
    adv_crew_stop(crew);
}

static void nobody_is_lent_where_all_processors_are_at_work(void **state)
{
    (void)state;
    struct gate gate = {.open = true};
    struct adv_crew_task task = {wait_at_gate, &gate, false, NULL};
    struct adv_crew *one = adv_crew_start(1, 0), *two = adv_crew_start(2, 0);
    assert_non_null(one);
    assert_non_null(two);
    assert_false(adv_crew_lend(one, &task));
    adv_crew_enter(two);
    adv_crew_enter(two);
    assert_false(adv_crew_lend(two, &task));
    adv_crew_leave(two);
    assert_true(adv_crew_lend(two, &task));
    adv_crew_wait(two, &task);
    adv_crew_leave(two);
    assert_int_equal(atomic_load(&gate.started), 1);
    adv_crew_stop(one);
    adv_crew_stop(two);
    assert_false(adv_crew_lend(NULL, &task)); /* no crew: no helpers */
    adv_crew_enter(NULL);
    assert_false(adv_crew_crowded(NULL));
    adv_crew_leave(NULL);
    adv_crew_stop(NULL);
}

enum { ITEMS = 500 };

struct sums {
    long worked[ADV_IN_ORDER_SLOTS]; /* what was worked out ahead */
    int seen[ITEMS], count;          /* items in the order they were taken */
    long total;
    int last; /* after which nothing is wanted; -1: all are */
    atomic_long ahead;
    bool over;
};

static long value_of(int item)
{
    long value = item;
    for (int i = 0; i < 2000 + item % 7 * 3000; i++) value = value * 31 % 1000003;
    return value;
}

static void work(void *context, int worker, int slot, int item)
{
    struct sums *sums = context;
    assert_true(worker >= 0 && worker < ADV_IN_ORDER_WORKERS);
    sums->worked[slot] = value_of(item);
    atomic_fetch_add(&sums->ahead, 1);
}

static bool see(struct sums *sums, int item, long value)
{
    sums->seen[sums->count++] = item;
    sums->total += value;
    return item != sums->last;
}

static bool take(void *context, int slot, int item)
{
    return see(context, item, ((struct sums *)context)->worked[slot]);
}

static bool direct(void *context, int item)
{
    return see(context, item, value_of(item));
}

static bool is_over(void *context)
{
    return ((struct sums *)context)->over;
}

/* Of some items, with a helper that starts at `ahead_from`, none after `last`. */
static void run_sums(struct sums *sums, struct adv_crew *crew, int items, int ahead_from, int last)
{
    memset(sums, 0, sizeof *sums);
    sums->last = last;
    struct adv_in_order job = {.context = sums,
                               .count = items,
                               .ahead_from = ahead_from,
                               .work = work,
                               .take = take,
                               .direct = direct,
                               .over = is_over};
    adv_in_order_run(&job, crew);
}

/* Returns how many were worked on ahead. */
static long expect_same_sums(struct adv_crew *crew, int items, int ahead_from, int last)
{
    struct sums alone, helped;
    run_sums(&alone, NULL, items, ahead_from, last);
    run_sums(&helped, crew, items, ahead_from, last);
    const int count = last < 0 ? items : last + 1;
    assert_int_equal(alone.count, count);
    assert_int_equal(helped.count, count);
    assert_int_equal(alone.total, helped.total);
    for (int k = 0; k < count; k++) assert_int_equal(helped.seen[k], k);
    assert_int_equal(atomic_load(&alone.ahead), 0);
    return atomic_load(&helped.ahead);
}

static void items_are_taken_in_order_whoever_did_them(void **state)
{
    (void)state;
    struct adv_crew *crew = adv_crew_start(2, 0);
    assert_non_null(crew);
    adv_crew_enter(crew);
    static const int lasts[] = {-1, 0, 1, 17, ITEMS - 1};
    long ahead = 0;
    for (int repeat = 0; repeat < 20; repeat++) {
        for (size_t i = 0; i < sizeof lasts / sizeof *lasts; i++)
            ahead += expect_same_sums(crew, ITEMS, 0, lasts[i]);
    }
    assert_true(ahead > 0); /* the helper did come */
    adv_crew_leave(crew);
    adv_crew_stop(crew);
}

static void a_helper_may_start_with_any_item(void **state)
{
    (void)state;
    struct adv_crew *crew = adv_crew_start(2, 0);
    assert_non_null(crew);
    adv_crew_enter(crew);
    long ahead = 0;
    for (int items = 0; items <= ADV_IN_ORDER_SLOTS; items++) {
        for (int from = 0; from <= items; from++) {
            ahead += expect_same_sums(crew, items, from, -1);
            if (items > 0) ahead += expect_same_sums(crew, items, from, items / 2);
        }
    }
    assert_true(ahead > 0);
    adv_crew_leave(crew);
    adv_crew_stop(crew);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_helper_is_lent_while_one_is_idle),
        cmocka_unit_test(nobody_is_lent_where_all_processors_are_at_work),
        cmocka_unit_test(items_are_taken_in_order_whoever_did_them),
        cmocka_unit_test(a_helper_may_start_with_any_item),
    };
    return cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL);
}

/* A whole training beside a simulation that draws every failure, and the best checkpoint interval beside a
 * scan of all intervals. */
#include "tests/unit/check.h"

#include "engine/rank/training.h"

static const struct adv_goodput nothing_given = {(double)NAN, (double)NAN, (double)NAN, (double)NAN};

static struct adv_training_of machine(int chips)
{
    return (struct adv_training_of){.tokens = 2e11,
                                    .days_available = (double)NAN,
                                    .step_time_s = 10,
                                    .step_time_low_s = 9.5,
                                    .step_time_high_s = 10.6,
                                    .tokens_per_step = 1e7,
                                    .state_bytes_per_device = 8e9,
                                    .host_link_bytes_per_s_per_device = 16e9,
                                    .price_usd_per_chip_hour = 4,
                                    .chips = chips};
}

static uint64_t drawn = 88172645463325252U;

/* Uniform in (0, 1). */
static double draw(void)
{
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    return ((double)(drawn >> 11) + 0.5) / 9007199254740992.0;
}

/* Days of one training, with each failure drawn; adds to the failures and the seconds of work they undo. */
static double simulate(const struct adv_training_of *of, const struct adv_goodput *goodput, double interval_s,
                       double *failures, double *lost_s)
{
    const double mean_s = 86400 / (goodput->failures_per_chip_day * of->chips);
    double left_s = of->tokens / of->tokens_per_step * of->step_time_s, wall_s = 0;
    while (left_s > 1e-6) {
        const double work_s = fmin(interval_s, left_s);
        for (bool restarts = false;; restarts = true) {
            const double restart_s = restarts ? goodput->restart_s : 0;
            const double need_s = work_s + goodput->checkpoint_s + restart_s;
            const double failure_s = -mean_s * log(draw());
            if (failure_s >= need_s) {
                wall_s += need_s;
                break;
            }
            wall_s += failure_s;
            *failures += 1;
            *lost_s += fmin(work_s, fmax(0, failure_s - restart_s));
        }
        left_s -= work_s;
    }
    return wall_s / 86400;
}

static void expected_days_are_those_of_drawn_failures(void **state)
{
    (void)state;
    static const struct {
        int chips;
        double rate, checkpoint_s, restart_s;
    } rows[] = {{64, 0.01, 30, 600},
                {4096, 0.002, 20, 900},
                {9216, 0.0005, 60, 300},
                {16, 0.05, 5, 60},
                {4096, 0.05, 20, 900}};
    enum { TRAININGS = 4000 };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct adv_training_of of = machine(rows[i].chips);
        const struct adv_goodput goodput = {rows[i].rate, rows[i].checkpoint_s, rows[i].restart_s,
                                            (double)NAN};
        struct adv_training training;
        adv_training_plan(&of, &goodput, &training);
        double days = 0, failures = 0, lost_s = 0;
        for (int n = 0; n < TRAININGS; n++)
            days += simulate(&of, &goodput, training.checkpoint_interval_s, &failures, &lost_s);
        assert_close(training.days, days / TRAININGS, 0.02);
        assert_close(training.failures, failures / TRAININGS, 0.05);
        assert_close(training.tokens_lost, lost_s / TRAININGS / of.step_time_s * of.tokens_per_step, 0.05);
        assert_close(training.goodput_frac, training.productive_days / training.days, 1e-9);
        assert_close(training.usd, training.days * 24 * rows[i].chips * 4, 1e-9);
        assert_true(training.days_low < training.days && training.days < training.days_high);
    }
}

static void no_other_interval_is_better(void **state)
{
    (void)state;
    const struct adv_training_of of = machine(8192);
    struct adv_goodput goodput = {0.001, 25, 700, (double)NAN};
    struct adv_training best, other;
    adv_training_plan(&of, &goodput, &best);
    for (int i = 0; i < 160; i++) {
        goodput.checkpoint_interval_s = 20 * pow(1.05, i);
        adv_training_plan(&of, &goodput, &other);
        assert_true(other.days >= best.days * (1 - 1e-9));
    }
}

static void without_failures_all_time_is_productive(void **state)
{
    (void)state;
    const struct adv_training_of of = machine(256);
    const struct adv_goodput goodput = {0, (double)NAN, (double)NAN, (double)NAN};
    struct adv_training training;
    adv_training_plan(&of, &goodput, &training);
    assert_true(training.ends && training.days == training.productive_days);
    assert_true(training.goodput_frac == 1 && training.failures == 0 && training.checkpoints == 0);
    assert_true(isnan(training.checkpoint_interval_s));
}

static void a_training_that_never_saves_work_says_so(void **state)
{
    (void)state;
    const struct adv_training_of of = machine(9216);
    const struct adv_goodput goodput = {10, 80000, 600000, 8e6};
    struct adv_training training;
    adv_training_plan(&of, &goodput, &training);
    assert_false(training.ends);
}

static void days_give_the_tokens_that_they_allow(void **state)
{
    (void)state;
    struct adv_training_of of = machine(1024);
    struct adv_training whole, within;
    adv_training_plan(&of, &nothing_given, &whole);
    of.days_available = whole.days * 0.5;
    adv_training_plan(&of, &nothing_given, &within);
    assert_false(within.in_time);
    of.tokens = (double)NAN;
    adv_training_plan(&of, &nothing_given, &within);
    assert_true(within.in_time);
    assert_close(within.tokens, whole.tokens * 0.5, 1e-3);
    for (int i = 0; i < ADV_GOODPUT_SOURCES; i++) assert_non_null(whole.sources[i].source);
    assert_close(whole.sources[1].value, 0.5, 1e-9); /* 8 GB over 16 GB/s */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(expected_days_are_those_of_drawn_failures),
                                       cmocka_unit_test(no_other_interval_is_better),
                                       cmocka_unit_test(without_failures_all_time_is_productive),
                                       cmocka_unit_test(a_training_that_never_saves_work_says_so),
                                       cmocka_unit_test(days_give_the_tokens_that_they_allow)};
    return run_group(tests);
}

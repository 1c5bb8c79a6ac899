/* A training log becomes a measurement of the plan that was run. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/calibrate/measured.h"
#include "engine/json/decode_bodies.h"
#include "tests/unit/check.h"

static const struct adv_measured_plan plan = {
    .step_time_s = 2.0, .tokens_per_s_per_chip = 1000.0, .devices = 128, .chips = 64};

static adv_code read_log(const char *log, struct adv_measured *measured, adv_err *err)
{
    adv_err_init(err);
    memset(measured, 0, sizeof *measured);
    return adv_measured_from_log(log, strlen(log), &plan, measured, err);
}

static void the_first_three_steps_are_left_out_and_hosts_may_be_mixed(void **state)
{
    (void)state;
    static adv_err err;
    struct adv_measured measured;
    static const char log[] =
        "host0 completed step: 10, seconds: 99.0, Tokens/s/device: 1\n"
        "host1 completed step: 10, seconds: 98.0, Tokens/s/device: 1\n"
        "completed step: 11, seconds: 0.1, Tokens/s/device: 1\n"
        "completed step: 12, seconds: 3.0, Tokens/s/device: 1\n"
        "completed step: 13, seconds: 2.0, TFLOP/s/device: 7, Tokens/s/device: 500.0, loss: 1\n"
        "completed step: 14, seconds: 4.0, TFLOP/s/device: 7, Tokens/s/device: 250.0, loss: 1\n"
        "completed step: 15, seconds: 2.2, TFLOP/s/device: 7, Tokens/s/device: 454.5, loss: 1";
    assert_int_equal(read_log(log, &measured, &err), ADV_OK);
    assert_int_equal(measured.steps_count, 3);
    assert_true(measured.step_time_s == 2.2);
    assert_true(measured.tokens_per_s_per_chip == 909.0); /* two devices to a chip */
    assert_true(isnan(measured.hbm_bytes_per_device));
    assert_int_equal(adv_measured_check(&measured, &plan, &err), ADV_OK);
}

static size_t beginning_of(const char *log)
{
    static adv_err err;
    struct adv_measured measured;
    assert_int_equal(read_log(log, &measured, &err), ADV_OK);
    return measured.beginning_bytes;
}

static void the_beginning_of_a_log_stays_while_it_grows(void **state)
{
    (void)state;
#define BEGINNING                                                                                            \
    "starting\ncompleted step: 7, seconds: 90\ncompleted step: 8, seconds: 2\ncompleted step: 10, seconds: 2"
    assert_int_equal(beginning_of(BEGINNING), sizeof BEGINNING - 1);
    assert_int_equal(beginning_of(BEGINNING "\ncompleted step: 11, seconds: 2\n"), sizeof BEGINNING - 1);
    assert_int_equal(beginning_of(BEGINNING
                                  "\ncompleted step: 7, seconds: 91\ncompleted step: 8, seconds: 3\n"
                                  "completed step: 10, seconds: 3\n"),
                     sizeof BEGINNING - 1);
    /* the end of one host's log before that of another: nothing in it stays */
    assert_int_equal(beginning_of("completed step: 9, seconds: 2\ncompleted step: 6, seconds: 2\n"
                                  "completed step: 7, seconds: 2\ncompleted step: 8, seconds: 2\n"),
                     0);
#undef BEGINNING
}

/* Two hosts of one job write the same steps; in `mixed` line by line, in `behind` one log after the other. */
static void a_step_of_which_several_hosts_tell_counts_once_as_its_slowest_says(void **state)
{
    (void)state;
    static const char mixed[] = "completed step: 0, seconds: 90, Tokens/s/device: 1\n"
                                "completed step: 0, seconds: 91, Tokens/s/device: 1\n"
                                "completed step: 1, seconds: 2, Tokens/s/device: 500\n"
                                "completed step: 1, seconds: 2, Tokens/s/device: 500\n"
                                "completed step: 2, seconds: 2\ncompleted step: 2, seconds: 2\n"
                                "completed step: 3, seconds: 2.5, Tokens/s/device: 400\n"
                                "completed step: 3, seconds: 2.0, Tokens/s/device: 500\n"
                                "completed step: 4, seconds: 2.0, Tokens/s/device: 500\n"
                                "completed step: 4, seconds: 2.5, Tokens/s/device: 400\n"
                                "completed step: 5, seconds: 4.0\n"
                                "completed step: 5, seconds: 2.0, Tokens/s/device: 250\n";
    static const char behind[] =
        "{\"perf/step_time_seconds\": 90, \"step\": 0.0}\n{\"perf/step_time_seconds\": 2, \"step\": 3.0, "
        "\"perf/per_device_tokens_per_sec\": 500}\n{\"perf/step_time_seconds\": 4, \"step\": 5.0}\n"
        "{\"perf/step_time_seconds\": 2.5, \"step\": 4.0}\n"
        "{\"perf/step_time_seconds\": 91, \"step\": 0.0}\n{\"perf/step_time_seconds\": 9, \"step\": 1.0}\n"
        "{\"perf/step_time_seconds\": 9, \"step\": 2.0}\n{\"perf/step_time_seconds\": 2.5, \"step\": 3.0, "
        "\"perf/per_device_tokens_per_sec\": 400}\n{\"perf/step_time_seconds\": 2, \"step\": 5.0}\n";
    const char *const logs[] = {mixed, behind};
    for (size_t i = 0; i < 2; i++) {
        static adv_err err;
        struct adv_measured measured;
        assert_int_equal(read_log(logs[i], &measured, &err), ADV_OK);
        assert_int_equal(measured.steps_count, 3);
        assert_int_equal(measured.warm_up_steps_count, 3);
        assert_true(measured.step_time_s == 2.5 && measured.step_time_p75_s == 4.0);
        assert_true(measured.tokens_per_s_per_chip == 800.0); /* two devices to a chip */
    }
}

#define LOG_BYTES 4096

/* The lines of one run of a job: from a step to another, each of so many seconds but the three that it begins
 * with. */
static void print_steps(char log[LOG_BYTES], int from, int to, double seconds)
{
    static const double slow[] = {60.0, 0.2, 8.0};
    for (int i = from; i <= to; i++) {
        const size_t used = strlen(log);
        (void)snprintf(log + used, LOG_BYTES - used, "completed step: %d, seconds: %g\n", i,
                       i < from + 3 ? slow[i - from] : seconds);
    }
}

/* A job that dies every few steps and goes on from its last checkpoint: compiling again is no step time. */
static void of_a_step_repeated_after_a_restart_the_last_counts_and_its_warm_up_does_not(void **state)
{
    (void)state;
    static adv_err err;
    char log[LOG_BYTES] = "";
    struct adv_measured measured;
    print_steps(log, 0, 9, 4.0);
    print_steps(log, 5, 14, 2.0);
    print_steps(log, 10, 19, 2.0);
    assert_int_equal(read_log(log, &measured, &err), ADV_OK);
    assert_int_equal(measured.warm_up_steps_count, 3);
    assert_int_equal(measured.steps_count, 17); /* 3 to 19, each once; 3 to 7 are those of the first run */
    assert_true(measured.step_time_s == 2.0 && measured.step_time_p25_s == 2.0);
    assert_true(measured.step_time_p75_s == 4.0 && measured.step_time_mad_s == 0.0);
    /* The log of a second host behind it begins at the first step again: its steps count no more. */
    print_steps(log, 0, 9, 5.0);
    print_steps(log, 5, 14, 3.0);
    print_steps(log, 10, 19, 2.0);
    assert_int_equal(read_log(log, &measured, &err), ADV_OK);
    assert_int_equal(measured.steps_count, 17);
    assert_true(measured.step_time_p25_s == 2.0 && measured.step_time_s == 3.0);
    assert_true(measured.step_time_p75_s == 5.0);
}

/* Lines of hosts come a step or two late: that is no restart. */
static void hosts_that_write_a_little_late_are_hosts(void **state)
{
    (void)state;
    static adv_err err;
    char log[LOG_BYTES] = "";
    struct adv_measured measured;
    for (int i = 0; i < 20; i++) {
        const size_t used = strlen(log);
        (void)snprintf(log + used, sizeof log - used,
                       "completed step: %d, seconds: 2\ncompleted step: %d, seconds: 3\n", i + 2, i);
    }
    assert_int_equal(read_log(log, &measured, &err), ADV_OK);
    assert_int_equal(measured.steps_count, 19);
    assert_true(measured.step_time_s == 3.0);
}

static void a_log_without_rates_still_has_a_time(void **state)
{
    (void)state;
    static adv_err err;
    struct adv_measured measured;
    assert_int_equal(
        read_log("completed step: 0, seconds: 9\ncompleted step: 3, seconds: 2.5\n", &measured, &err),
        ADV_OK);
    assert_true(measured.step_time_s == 2.5);
    assert_true(isnan(measured.tokens_per_s_per_chip));
    assert_int_equal(adv_measured_check(&measured, &plan, &err), ADV_OK);
}

static void a_log_that_tells_nothing_is_refused(void **state)
{
    (void)state;
    static const char *const logs[] = {"",
                                       "\n\n",
                                       "completed step: ",
                                       "completed step: 9, seconds: nan\n",
                                       "completed step: 9, seconds: -1\n",
                                       "completed step: x, seconds: 1\n",
                                       "completed step: 5\nseconds: 2\n",
                                       "completed step: 0, seconds: 2\ncompleted step: 2, seconds: 2"};
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        static adv_err err;
        struct adv_measured measured;
        assert_int_equal(read_log(logs[i], &measured, &err), ADV_E_INVALID);
        assert_non_null(strstr(err.findings[0].hint, "completed step: 9"));
    }
}

static void tokens_of_another_plan_are_refused(void **state)
{
    (void)state;
    static adv_err err;
    adv_err_init(&err);
    struct adv_measured measured = {.step_time_s = 4.0, .tokens_per_s_per_chip = 509.0};
    assert_int_equal(adv_measured_check(&measured, &plan, &err), ADV_OK); /* 1.8 % off: rounded */
    measured.tokens_per_s_per_chip = 1000.0;
    assert_int_equal(adv_measured_check(&measured, &plan, &err), ADV_E_INVALID);
    assert_string_equal(err.findings[0].pointer, "/tokens_per_s_per_chip");
}

static void another_unit_is_refused_and_what_a_machine_may_take_is_not(void **state)
{
    (void)state;
    static const struct {
        double step_time_s, hbm_bytes, predicted_s, predicted_bytes;
        const char *pointer; /* of the refusal; NULL: taken */
    } cases[] = {
        {2000.0, 2e10, 2.0, 2e10, "/step_time_s"},         /* milliseconds */
        {2e-3, 2e10, 2.0, 2e10, "/step_time_s"},           /* kiloseconds, or another plan */
        {2.0, 18.6, 2.0, 2e10, "/hbm_bytes_per_device"},   /* GiB */
        {2.0, 19073., 2.0, 2e10, "/hbm_bytes_per_device"}, /* MiB */
        {2.0, 5e12, 2.0, 2e10, "/hbm_bytes_per_device"},   /* of all 256 devices */
        {60.0, 1.1e9, 2.0, 2e10, NULL},                    /* 30 times slower and 18 times smaller */
        {0.05, 2e10, 2.0, 2e10, NULL},
        {0.15, 9e8, 1e-3, 2e7, NULL}, /* a toy: its host and runtime take more than the plan */
        {1.2, 2e7, 1e-3, 2e7, "/step_time_s"},
        {2.0, (double)NAN, 2.0, 2e10, NULL}, /* not measured */
        {2.0, 2e10, 2.0, (double)NAN, NULL}, /* not predicted */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static adv_err err;
        adv_err_init(&err);
        const struct adv_measured measured = {.step_time_s = cases[i].step_time_s,
                                              .hbm_bytes_per_device = cases[i].hbm_bytes,
                                              .tokens_per_s_per_chip = (double)NAN};
        const struct adv_measured_plan predicted = {.step_time_s = cases[i].predicted_s,
                                                    .hbm_bytes_per_device = cases[i].predicted_bytes};
        const adv_code code = adv_measured_check(&measured, &predicted, &err);
        assert_int_equal(code, cases[i].pointer ? ADV_E_INVALID : ADV_OK);
        if (!cases[i].pointer) continue;
        assert_string_equal(err.findings[0].pointer, cases[i].pointer);
        assert_non_null(strstr(err.findings[0].hint, i == 0 ? "seconds" : "is in"));
    }
}

static void no_device_holds_more_than_it_has(void **state)
{
    (void)state;
    const struct {
        double measured_bytes, limit_bytes;
        adv_code code;
    } cases[] = {{34.3e9, 33.55e9, ADV_OK}, /* a tool counts what the runtime takes, too */
                 {60e9, 33.55e9, ADV_E_INVALID},
                 {60e9, 0.0, ADV_OK}}; /* an old answer: not known */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        adv_err err = adv_err_empty();
        const struct adv_measured measured = {.step_time_s = 2.0,
                                              .hbm_bytes_per_device = cases[i].measured_bytes,
                                              .tokens_per_s_per_chip = (double)NAN};
        const struct adv_measured_plan predicted = {.step_time_s = 2.0,
                                                    .hbm_bytes_per_device = 30e9,
                                                    .hbm_limit_bytes_per_device = cases[i].limit_bytes};
        assert_int_equal(adv_measured_check(&measured, &predicted, &err), cases[i].code);
        if (cases[i].code) assert_string_equal(err.findings[0].pointer, "/hbm_bytes_per_device");
    }
}

static void times_are_told_by_their_looks(void **state)
{
    (void)state;
    static const char *const times[] = {"2026-11-21", "2026-11-21T05:00:00Z", "2026-11-21T05:00:00.25+01:00"};
    static const char *const others[] = {"",          "now", "2026-11", "2026-11-21 05:00", "2026-11-21T",
                                         "21.11.2026"};
    for (size_t i = 0; i < 3; i++) assert_true(adv_looks_like_time(times[i]));
    for (size_t i = 0; i < 6; i++) assert_false(adv_looks_like_time(others[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_three_steps_are_left_out_and_hosts_may_be_mixed),
        cmocka_unit_test(the_beginning_of_a_log_stays_while_it_grows),
        cmocka_unit_test(a_step_of_which_several_hosts_tell_counts_once_as_its_slowest_says),
        cmocka_unit_test(of_a_step_repeated_after_a_restart_the_last_counts_and_its_warm_up_does_not),
        cmocka_unit_test(hosts_that_write_a_little_late_are_hosts),
        cmocka_unit_test(a_log_without_rates_still_has_a_time),
        cmocka_unit_test(a_log_that_tells_nothing_is_refused),
        cmocka_unit_test(tokens_of_another_plan_are_refused),
        cmocka_unit_test(another_unit_is_refused_and_what_a_machine_may_take_is_not),
        cmocka_unit_test(no_device_holds_more_than_it_has),
        cmocka_unit_test(times_are_told_by_their_looks),
    };
    return run_group(tests);
}

#include "engine/calibrate/measured.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/calibrate/measurement.h"

#define TOKENS_APART_FRAC                                                                                    \
    0.02 /* rounding in logs is under 0.1 %, the nearest other batch several percent                         \
          */

/* The number behind `name` on the line, NAN when there is none. */
static double number_after(const char *line, const char *end, const char *name)
{
    const char *at = memmem(line, (size_t)(end - line), name, strlen(name));
    if (!at) return (double)NAN;
    char *stop = NULL;
    at += strlen(name);
    const double value = strtod(at, &stop);
    return stop > at && stop <= end ? value : (double)NAN; /* strtod also passes over line ends */
}

/* The number of a member of a line of JSON, NAN when there is none. MaxText writes Python's NaN, which is no
 * JSON, beside the members that are read here: so the line is searched, not parsed. */
static double number_of_member(const char *line, const char *end, const char *quoted)
{
    const char *at = memmem(line, (size_t)(end - line), quoted, strlen(quoted));
    if (!at) return (double)NAN;
    at += strlen(quoted);
    at += strspn(at, " \t");
    if (*at != ':') return (double)NAN;
    char *stop = NULL;
    const double value = strtod(++at, &stop);
    return stop > at && stop <= end ? value : (double)NAN;
}

struct step {
    double number, seconds, tokens_per_s_per_device; /* NAN where the line has none */
};

/* The numbers of a training step in a line; NAN in the line of an evaluation, or of no step. */
static struct step read_line(const char *line, const char *end)
{
    if (*line == '{')
        return (struct step){number_of_member(line, end, "\"step\""),
                             number_of_member(line, end, "\"perf/step_time_seconds\""),
                             number_of_member(line, end, "\"perf/per_device_tokens_per_sec\"")};
    return (struct step){number_after(line, end, "completed step: "), number_after(line, end, "seconds: "),
                         number_after(line, end, "Tokens/s/device: ")};
}

static const char *end_of_line(const char *line, const char *end)
{
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    return stop ? stop : end;
}

struct log_steps {
    int count, warm_up_count; /* with a usable time; and those of the first steps */
    double *seconds, *tokens; /* NULL: only count */
    int tokens_count;
};

static void read_steps(const char *log, const char *end, struct log_steps *steps)
{
    double first = (double)NAN;
    steps->count = steps->warm_up_count = steps->tokens_count = 0;
    for (const char *line = log; line < end; line = end_of_line(line, end) + 1) {
        const char *stop = end_of_line(line, end);
        const struct step step = read_line(line, stop);
        const double seconds = step.seconds, tokens = step.tokens_per_s_per_device;
        if (!isfinite(step.number) || !isfinite(seconds) || seconds <= 0.0) continue;
        if (isnan(first) || step.number < first) first = step.number;
        if (step.number < first + ADV_LOG_WARM_UP_STEPS) {
            steps->warm_up_count++;
            continue;
        }
        if (steps->seconds) steps->seconds[steps->count] = seconds;
        steps->count++;
        if (!isfinite(tokens) || tokens <= 0.0) continue;
        if (steps->tokens) steps->tokens[steps->tokens_count] = tokens;
        steps->tokens_count++;
    }
}

/* Median and scatter of the steps; `seconds` is left as distances from the median. */
static void take_spread(double *seconds, int count, struct adv_measured *measured)
{
    measured->step_time_s = adv_quantile(seconds, count, 0.5);
    measured->step_time_p25_s = adv_quantile(seconds, count, 0.25);
    measured->step_time_p75_s = adv_quantile(seconds, count, 0.75);
    for (int i = 0; i < count; i++) seconds[i] = fabs(seconds[i] - measured->step_time_s);
    measured->step_time_mad_s = adv_quantile(seconds, count, 0.5);
}

adv_code adv_measured_from_log(const char *log, size_t log_bytes, const struct adv_measured_plan *plan,
                               struct adv_measured *measured, adv_err *err)
{
    static const char wanted[] = "the log of a run of at least 5 steps, with lines like \"completed step: 9, "
                                 "seconds: 5.667, TFLOP/s/device: 134.9, Tokens/s/device: 8672.8, ...\", or "
                                 "MaxText's metrics_file";
    struct log_steps steps = {0};
    read_steps(log, log + log_bytes, &steps);
    if (steps.count < 1)
        return adv_err_add(
            err, ADV_E_INVALID, "", wanted,
            steps.warm_up_count
                ? "the log has only the first steps, which compile and warm up"
                : "the log has no \"completed step:\" line with a time, and no \"perf/step_time_seconds\"");
    steps.seconds = malloc(2 * (size_t)steps.count * sizeof *steps.seconds);
    if (!steps.seconds) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the log");
    steps.tokens = steps.seconds + steps.count;
    read_steps(log, log + log_bytes, &steps);
    measured->steps_count = steps.count;
    measured->warm_up_steps_count = steps.warm_up_count;
    take_spread(steps.seconds, steps.count, measured);
    measured->hbm_bytes_per_device = (double)NAN;
    measured->tokens_per_s_per_chip = (double)NAN;
    if (steps.tokens_count > 0 && plan->chips > 0)
        measured->tokens_per_s_per_chip =
            adv_quantile(steps.tokens, steps.tokens_count, 0.5) * plan->devices / plan->chips;
    free(steps.seconds);
    return ADV_OK;
}

/* Predictions that run are within a third; these are units: ms for s, GiB for bytes. */
static const double times_apart = 50.0, bytes_apart = 20.0;

/* Adds a finding where a measurement cannot be of the plan in the unit that it is said to have. */
static void check_unit(double measured, double predicted, double apart, const char *pointer, const char *unit,
                       adv_err *err)
{
    if (!(measured > 0.0) || !(predicted > 0.0)) return;
    const double ratio = measured / predicted;
    if (ratio <= apart && ratio >= 1.0 / apart) return;
    (void)adv_err_add(err, ADV_E_INVALID, pointer, unit, "%.6g is %.3g times the %.6g that are predicted",
                      measured, ratio, predicted);
}

adv_code adv_measured_check(const struct adv_measured *measured, const struct adv_measured_plan *plan,
                            adv_err *err)
{
    check_unit(measured->step_time_s, plan->step_time_s, times_apart, "/step_time_s",
               "the time of a step is in seconds", err);
    check_unit(measured->hbm_bytes_per_device, plan->hbm_bytes_per_device, bytes_apart,
               "/hbm_bytes_per_device", "memory is in bytes per device", err);
    if (err->code) return err->code;
    const double plan_tokens = plan->tokens_per_s_per_chip * plan->step_time_s;
    const double tokens = measured->tokens_per_s_per_chip * measured->step_time_s;
    if (!isfinite(tokens) || !(plan_tokens > 0.0) || fabs(tokens / plan_tokens - 1.0) <= TOKENS_APART_FRAC)
        return ADV_OK;
    return adv_err_add(err, ADV_E_INVALID, "/tokens_per_s_per_chip",
                       "measure the plan as stored, or store the one that was run",
                       "%.6g tokens in a step on a chip were run, the plan has %.6g: another batch, sequence "
                       "length or number of chips",
                       tokens, plan_tokens);
}

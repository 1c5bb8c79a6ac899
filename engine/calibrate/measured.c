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
        const double step = number_after(line, stop, "completed step: ");
        const double seconds = number_after(line, stop, "seconds: ");
        if (!isfinite(step) || !isfinite(seconds) || seconds <= 0.0) continue;
        if (isnan(first) || step < first) first = step;
        if (step < first + ADV_LOG_WARM_UP_STEPS) {
            steps->warm_up_count++;
            continue;
        }
        const double tokens = number_after(line, stop, "Tokens/s/device: ");
        if (steps->seconds) steps->seconds[steps->count] = seconds;
        steps->count++;
        if (!isfinite(tokens) || tokens <= 0.0) continue;
        if (steps->tokens) steps->tokens[steps->tokens_count] = tokens;
        steps->tokens_count++;
    }
}

adv_code adv_measured_from_log(const char *log, size_t log_bytes, const struct adv_measured_plan *plan,
                               struct adv_measured *measured, adv_err *err)
{
    static const char wanted[] = "the log of a run of at least 5 steps, with lines like \"completed step: 9, "
                                 "seconds: 5.667, TFLOP/s/device: 134.9, Tokens/s/device: 8672.8, ...\"";
    struct log_steps steps = {0};
    read_steps(log, log + log_bytes, &steps);
    if (steps.count < 1)
        return adv_err_add(err, ADV_E_INVALID, "", wanted,
                           steps.warm_up_count ? "the log has only the first steps, which compile and warm up"
                                               : "the log has no \"completed step:\" line with a time");
    steps.seconds = malloc(2 * (size_t)steps.count * sizeof *steps.seconds);
    if (!steps.seconds) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the log");
    steps.tokens = steps.seconds + steps.count;
    read_steps(log, log + log_bytes, &steps);
    measured->steps_count = steps.count;
    measured->step_time_s = adv_quantile(steps.seconds, steps.count, 0.5);
    measured->hbm_bytes_per_device = (double)NAN;
    measured->tokens_per_s_per_chip = (double)NAN;
    if (steps.tokens_count > 0 && plan->chips > 0)
        measured->tokens_per_s_per_chip =
            adv_quantile(steps.tokens, steps.tokens_count, 0.5) * plan->devices / plan->chips;
    free(steps.seconds);
    return ADV_OK;
}

adv_code adv_measured_check(const struct adv_measured *measured, const struct adv_measured_plan *plan,
                            adv_err *err)
{
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

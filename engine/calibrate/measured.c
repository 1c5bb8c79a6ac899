#include "engine/calibrate/measured.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/calibrate/measurement.h"

#define TOKENS_APART_FRAC                                                                                    \
    0.02 /* rounding in logs is under 0.1 %, the nearest other batch several percent                         \
          */

/* How far a line may be behind the one before it when both are of one run of the job: its hosts wait for each
 * other in every step, and their lines are collected within moments. */
#define HOSTS_APART_STEPS 2

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
    int starts;                                      /* of the job before this line, by the log of one host */
};

/* The numbers of a training step in a line; NAN in the line of an evaluation, or of no step. */
static struct step read_line(const char *line, const char *end)
{
    if (*line == '{')
        return (struct step){number_of_member(line, end, "\"step\""),
                             number_of_member(line, end, "\"perf/step_time_seconds\""),
                             number_of_member(line, end, "\"perf/per_device_tokens_per_sec\""), 0};
    return (struct step){number_after(line, end, "completed step: "), number_after(line, end, "seconds: "),
                         number_after(line, end, "Tokens/s/device: "), 0};
}

static const char *end_of_line(const char *line, const char *end)
{
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    return stop ? stop : end;
}

/* The lines of steps with a usable time, in the order of the log; `steps` has room for all, NULL: only
 * counts. */
static int read_steps(const char *log, const char *end, struct step *steps)
{
    int count = 0;
    for (const char *line = log; line < end; line = end_of_line(line, end) + 1) {
        const struct step step = read_line(line, end_of_line(line, end));
        if (!isfinite(step.number) || !isfinite(step.seconds) || step.seconds <= 0.0) continue;
        if (steps) steps[count] = step;
        count++;
    }
    return count;
}

/* How many bytes of the log are its beginning: up to the end of the line of the first step that is warm. What
 * follows may be repeated after a restart, or be said by the hosts in any order; 0: no such line. */
static size_t beginning_of(const char *log, const char *end)
{
    double first = (double)NAN;
    for (const char *line = log; line < end; line = end_of_line(line, end) + 1) {
        const struct step step = read_line(line, end_of_line(line, end));
        if (!isfinite(step.number) || !isfinite(step.seconds) || step.seconds <= 0.0) continue;
        if (isnan(first)) first = step.number;
        if (step.number >= first + ADV_LOG_WARM_UP_STEPS) return (size_t)(end_of_line(line, end) - log);
    }
    return 0;
}

/* Takes out the lines of the steps that a restarted job begins with: it compiles and warms up as the first
 * did. Steps that begin again tell of a restart: from its last checkpoint a job goes back further than the
 * lines of its hosts are apart, but not to the first step of the log, where the log of another host begins.
 * Gives how many lines are left. */
static int leave_out_restarts(struct step *steps, int lines_count)
{
    int count = 0, starts = 0;
    double first = (double)INFINITY, begins = -(double)INFINITY;
    for (int i = 0; i < lines_count; i++) first = fmin(first, steps[i].number);
    for (int i = 0; i < lines_count; i++) {
        struct step step = steps[i];
        if (step.number <= first) {
            starts = 0;
            begins = -(double)INFINITY;
        } else if (i > 0 && step.number < steps[i - 1].number - HOSTS_APART_STEPS) {
            starts++;
            begins = step.number;
        }
        step.starts = starts;
        if (step.number >= begins + ADV_LOG_WARM_UP_STEPS || step.number < begins) steps[count++] = step;
    }
    return count;
}

static int by_number(const void *a, const void *b)
{
    const struct step *left = a, *right = b;
    return (left->number > right->number) - (left->number < right->number);
}

/* Makes one of all lines of a step, in the order of the steps; gives how many steps there are. Of a step that
 * was repeated after a restart the last counts, which the training went on from. Each host of a job writes a
 * line of its own, and all wait for the slowest in the step's collectives: the step lasts as long as the
 * longest line says, and has the rate of the lowest. */
static int join_lines(struct step *steps, int lines_count)
{
    int count = 0;
    qsort(steps, (size_t)lines_count, sizeof *steps, by_number);
    for (int i = 0; i < lines_count; i++) {
        struct step *same = count > 0 ? &steps[count - 1] : NULL;
        if (!same || steps[i].number > same->number) {
            steps[count++] = steps[i];
        } else if (steps[i].starts > same->starts) {
            *same = steps[i];
        } else if (steps[i].starts == same->starts) {
            same->seconds = fmax(same->seconds, steps[i].seconds);
            same->tokens_per_s_per_device =
                fmin(same->tokens_per_s_per_device, steps[i].tokens_per_s_per_device); /* NAN loses */
        }
    }
    return count;
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

/* Fills the numbers from joined steps that are warm. `values` has room for two of each. */
static void take_steps(const struct step *steps, int count, const struct adv_measured_plan *plan,
                       double *values, struct adv_measured *measured)
{
    double *tokens = values + count;
    int tokens_count = 0;
    for (int i = 0; i < count; i++) {
        values[i] = steps[i].seconds;
        if (isfinite(steps[i].tokens_per_s_per_device) && steps[i].tokens_per_s_per_device > 0.0)
            tokens[tokens_count++] = steps[i].tokens_per_s_per_device;
    }
    measured->steps_count = count;
    take_spread(values, count, measured);
    measured->hbm_bytes_per_device = (double)NAN;
    measured->tokens_per_s_per_chip = (double)NAN;
    if (tokens_count > 0 && plan->chips > 0)
        measured->tokens_per_s_per_chip =
            adv_quantile(tokens, tokens_count, 0.5) * plan->devices / plan->chips;
}

adv_code adv_measured_from_log(const char *log, size_t log_bytes, const struct adv_measured_plan *plan,
                               struct adv_measured *measured, adv_err *err)
{
    static const char wanted[] = "the log of a run of at least 5 steps, with lines like \"completed step: 9, "
                                 "seconds: 5.667, TFLOP/s/device: 134.9, Tokens/s/device: 8672.8, ...\", or "
                                 "MaxText's metrics_file";
    const char *end = log + log_bytes;
    const int lines_count = read_steps(log, end, NULL);
    if (lines_count == 0)
        return adv_err_add(
            err, ADV_E_INVALID, "", wanted,
            "the log has no \"completed step:\" line with a time, and no \"perf/step_time_seconds\"");
    struct step *steps = malloc((size_t)lines_count * sizeof *steps);
    double *values = malloc(2 * (size_t)lines_count * sizeof *values);
    adv_code code = ADV_OK;
    if (steps && values) {
        const int count = join_lines(steps, leave_out_restarts(steps, read_steps(log, end, steps)));
        int first = 0;
        while (first < count && steps[first].number < steps[0].number + ADV_LOG_WARM_UP_STEPS) first++;
        measured->first_step = steps[0].number;
        measured->warm_up_steps_count = first;
        measured->beginning_bytes = beginning_of(log, end);
        if (first < count)
            take_steps(steps + first, count - first, plan, values, measured);
        else
            code = adv_err_add(err, ADV_E_INVALID, "", wanted,
                               "the log has only the first steps, which compile and warm up");
    } else
        code = adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the log");
    free(values);
    free(steps);
    return code;
}

/* What tells another unit from a slow machine. Milliseconds are 1,000 times the seconds and GiB a billionth
 * of the bytes, whereas measured steps are within a sixth of their prediction (tests/accuracy/report.md) and
 * compiled plans within twice their memory (tests/compile/report.md): `times` lies between, so far from both
 * that no true measurement reaches it. A step of a toy plan may wait longer for its host than it computes,
 * and its device may hold more of the runtime than of the plan: up to `beyond` more than predicted is taken
 * however many times that is. */
static const struct unit {
    double times, beyond;
    const char *pointer, *name, *hint;
} step_time = {50.0, 0.2, "/step_time_s", "s", "step_time_s is in seconds, not in milliseconds"},
  memory = {20.0, ADV_GIB, "/hbm_bytes_per_device", "bytes",
            "hbm_bytes_per_device is in bytes, not in GiB or MiB, and of one device"};

/* Adds a finding where a measurement cannot be of the plan in the unit that it is said to have. */
static void check_unit(const struct unit *unit, double measured, double predicted, adv_err *err)
{
    if (!(measured > 0.0) || !(predicted > 0.0)) return;
    const double ratio = measured / predicted;
    const bool too_much = ratio > unit->times && measured - predicted > unit->beyond;
    if (!too_much && ratio >= 1.0 / unit->times) return;
    (void)adv_err_add(err, ADV_E_INVALID, unit->pointer, unit->hint,
                      "%.6g %s is %.3g times the %.6g %s that the plan is predicted to take", measured,
                      unit->name, ratio, predicted, unit->name);
}

/* What a program can take of a device is a little less than the device has, which tools report: no device has
 * a tenth more. */
static void check_room(double measured_bytes, double limit_bytes, adv_err *err)
{
    const double most_over_limit = 1.1;
    if (!(limit_bytes > 0.0) || !(measured_bytes > most_over_limit * limit_bytes)) return;
    (void)adv_err_add(
        err, ADV_E_INVALID, memory.pointer, "give the bytes of one device, not of a chip or host",
        "%.6g bytes do not fit into a device, of which a program can take %.6g", measured_bytes, limit_bytes);
}

adv_code adv_measured_check(const struct adv_measured *measured, const struct adv_measured_plan *plan,
                            adv_err *err)
{
    check_unit(&step_time, measured->step_time_s, plan->step_time_s, err);
    check_unit(&memory, measured->hbm_bytes_per_device, plan->hbm_bytes_per_device, err);
    check_room(measured->hbm_bytes_per_device, plan->hbm_limit_bytes_per_device, err);
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

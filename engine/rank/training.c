#include "engine/rank/training.h"

#include <math.h>
#include <stddef.h>

#include "engine/base/units.h"

static const double seconds_per_day = 86400, hours_per_day = 24;

/* No failure rate of TPU chips is published. The default is that of accelerators in the largest training with
 * a published count; the range, a third of it to five times, is a judgement. */
static const struct {
    double value, low, high;
    const char *source;
} failures = {419.0 / 54 / 16384, 419.0 / 54 / 16384 / 3, 419.0 / 54 / 16384 * 5,
              "arXiv 2407.21783: 419 unexpected interruptions of 16,384 accelerators in 54 days; none is "
              "published for a TPU chip"};

static const struct {
    double value, low, high;
    const char *source;
} restarts = {900, 300, 1800,
              "arXiv 2402.15627: most trainings are back where they were within 15 minutes of a failure"};

static const char checkpoint_source[] =
    "asynchronous checkpoint: weights and optimizer state of a device leave HBM over its host link";

/* One choice of rate, step and restart. */
struct trial {
    double mean_s; /* between two failures of the machine; INFINITY: none */
    double checkpoint_s, restart_s, interval_s;
};

/* Time of the devices for one second of work; INFINITY: it never ends. */
static double stretch(const struct trial *trial)
{
    if (isinf(trial->mean_s)) return 1.0;
    const double exponent = (trial->interval_s + trial->checkpoint_s) / trial->mean_s;
    return trial->mean_s * exp(trial->restart_s / trial->mean_s) * expm1(exponent) / trial->interval_s;
}

/* Seconds of work that failures undo until one interval of work is saved: exp((T+d)/M) - 1 attempts fail,
 * each after at most T of work. What fails during a restart undoes no work. */
static double lost_work_s(const struct trial *trial)
{
    const double saved = exp(trial->checkpoint_s / trial->mean_s);
    return adv_max(0, trial->mean_s * saved * expm1(trial->interval_s / trial->mean_s) - trial->interval_s);
}

/* The root of 1 - T/M - e^(-(T+d)/M) between 0 and M: falling in T, by bisection. */
static double best_interval_s(double mean_s, double checkpoint_s)
{
    double low = 0, high = mean_s;
    for (int i = 0; i < 100; i++) {
        const double middle = 0.5 * (low + high);
        if (1 - middle / mean_s - exp(-(middle + checkpoint_s) / mean_s) > 0)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

static double mean_time_s(double failures_per_chip_day, int chips)
{
    const double per_day = failures_per_chip_day * chips;
    return per_day > 0 ? seconds_per_day / per_day : (double)INFINITY;
}

static struct adv_goodput_source pick(const char *name, double given, double value, double low, double high,
                                      const char *source)
{
    if (!isnan(given)) return (struct adv_goodput_source){name, NULL, given, given, given};
    return (struct adv_goodput_source){name, source, value, low, high};
}

static void fill_sources(const struct adv_training_of *of, const struct adv_goodput *goodput,
                         struct adv_goodput_source sources[ADV_GOODPUT_SOURCES])
{
    const double copy_s = of->state_bytes_per_device / of->host_link_bytes_per_s_per_device;
    sources[0] = pick("failures_per_chip_day", goodput->failures_per_chip_day, failures.value, failures.low,
                      failures.high, failures.source);
    sources[1] = pick("checkpoint_s", goodput->checkpoint_s, copy_s, copy_s, copy_s, checkpoint_source);
    sources[2] =
        pick("restart_s", goodput->restart_s, restarts.value, restarts.low, restarts.high, restarts.source);
}

/* The interval in whole steps, no longer than the training. */
static double whole_steps(double interval_s, double step_time_s, double steps)
{
    const double wanted = round(interval_s / step_time_s);
    return adv_max(1, isnan(steps) ? wanted : adv_min(wanted, ceil(steps)));
}

static double days_of(const struct adv_training *training, const struct trial *trial, double step_time_s)
{
    return training->steps * step_time_s * stretch(trial) / seconds_per_day;
}

/* Days, dollars and what is lost, with the interval that was chosen. */
static void fill_bill(const struct adv_training_of *of, const struct trial *likely,
                      struct adv_training *training)
{
    const struct adv_goodput_source *sources = training->sources;
    const double usd_per_day = of->price_usd_per_chip_hour * of->chips * hours_per_day;
    struct trial lucky = *likely, unlucky = *likely;
    lucky.mean_s = mean_time_s(sources[0].low, of->chips);
    lucky.restart_s = sources[2].low;
    unlucky.mean_s = mean_time_s(sources[0].high, of->chips);
    unlucky.restart_s = sources[2].high;
    training->productive_days = training->steps * of->step_time_s / seconds_per_day;
    training->days = days_of(training, likely, of->step_time_s);
    training->days_low = days_of(training, &lucky, of->step_time_low_s);
    training->days_high = days_of(training, &unlucky, of->step_time_high_s);
    training->usd = training->days * usd_per_day;
    training->usd_low = training->days_low * usd_per_day;
    training->usd_high = training->days_high * usd_per_day;
    training->in_time =
        training->ends && (isnan(of->days_available) || training->days <= of->days_available * (1 + 1e-9));
    training->failures = 0;
    training->checkpoints = 0;
    training->tokens_lost = 0;
    if (isinf(likely->mean_s)) return;
    training->checkpoints = floor(training->steps / training->checkpoint_interval_steps);
    training->failures = training->days * seconds_per_day / likely->mean_s;
    const double intervals = training->steps * of->step_time_s / likely->interval_s;
    training->tokens_lost = intervals * lost_work_s(likely) / of->step_time_s * of->tokens_per_step;
}

void adv_training_plan(const struct adv_training_of *of, const struct adv_goodput *goodput,
                       struct adv_training *training)
{
    *training = (struct adv_training){.ends = true, .checkpoint_interval_s = (double)NAN};
    training->checkpoint_interval_steps = (double)NAN;
    fill_sources(of, goodput, training->sources);
    struct trial likely = {.mean_s = mean_time_s(training->sources[0].value, of->chips),
                           .checkpoint_s = training->sources[1].value,
                           .restart_s = training->sources[2].value,
                           .interval_s = 1};
    const double steps = of->tokens / of->tokens_per_step; /* NAN: as many as there is time for */
    if (!isinf(likely.mean_s)) {
        const double wanted_s = isnan(goodput->checkpoint_interval_s)
                                    ? best_interval_s(likely.mean_s, likely.checkpoint_s)
                                    : goodput->checkpoint_interval_s;
        training->checkpoint_interval_steps = whole_steps(wanted_s, of->step_time_s, steps);
        training->checkpoint_interval_s = training->checkpoint_interval_steps * of->step_time_s;
        likely.interval_s = training->checkpoint_interval_s;
    }
    const double stretched = stretch(&likely);
    training->ends = isfinite(stretched);
    training->goodput_frac = 1 / stretched;
    training->steps = isnan(steps)
                          ? floor(of->days_available * seconds_per_day / (of->step_time_s * stretched))
                          : ceil(steps);
    training->tokens = isnan(steps) ? training->steps * of->tokens_per_step : of->tokens;
    fill_bill(of, &likely, training);
}

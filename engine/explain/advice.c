#include "engine/explain/advice.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/base/units.h"
#include "engine/cost/layer_memory.h"
#include "engine/explain/advice_rules.h"
#include "engine/maxtext/changes.h"
#include "engine/maxtext/flags.h"
#include "engine/rank/rank.h"
#include "engine/search/why.h"

enum { REVIEW_ARENA_BYTES = 8 * 1024 * 1024 }; /* configurations of all tried changes take about 1 MiB */

ADV_NAMES(adv_severity_name, enum adv_severity, "info", "warning", "error")

bool adv_review_try(const struct adv_review *review, const struct adv_plan *changed,
                    struct adv_estimate *estimate)
{
    if (adv_plan_newly_broken_rule(review->plan, changed, review->input->model, review->input->cluster, true))
        return false;
    struct adv_estimate_input input = *review->input;
    input.plan = changed;
    if (adv_estimate_plan(&input, estimate, NULL, NULL) != ADV_OK) return false;
    bool smaller = estimate->hbm_bytes_per_device <= review->estimate->hbm_bytes_per_device &&
                   !(estimate->host_bytes_per_host > review->estimate->host_bytes_per_host);
    return smaller || adv_rank_fits(estimate, adv_rank_memory_frac(estimate));
}

static struct adv_advice *next_item(struct adv_review *review)
{
    return review->list->count < ADV_LIMIT_ADVICE ? &review->list->items[review->list->count] : NULL;
}

static bool put_change(struct adv_advice *advice, const char *key, const char *value_json)
{
    if (advice->changes_count >= ADV_ADVICE_CHANGES ||
        strlen(value_json) >= sizeof advice->changes[0].value_json)
        return false;
    struct adv_advice_change *change = &advice->changes[advice->changes_count++];
    (void)snprintf(change->key, sizeof change->key, "%s", key);
    (void)snprintf(change->value_json, sizeof change->value_json, "%s", value_json);
    return true;
}

/* False: no keys turn the configuration into `changed`. */
static bool write_changes(struct adv_review *review, const struct adv_plan *changed,
                          struct adv_advice *advice)
{
    struct adv_config_change keys[ADV_ADVICE_CHANGES];
    struct adv_flag_change flags[ADV_FLAG_CHANGES];
    struct adv_config_changes found = {.items = keys, .capacity = ADV_ADVICE_CHANGES};
    advice->changes_count = 0;
    bool exact = adv_config_changes(review->reread, review->plan, changed, review->input->model,
                                    review->input->cluster, &review->arena, &found, NULL) == ADV_OK &&
                 found.exact;
    for (int i = 0; i < found.count && exact; i++) exact = put_change(advice, keys[i].key, keys[i].to_json);
    const int count = adv_flags_changes(&review->plan->flags, &changed->flags, flags);
    for (int i = 0; i < count && exact; i++) exact = put_change(advice, flags[i].name, flags[i].to);
    if (!exact) advice->changes_count = 0;
    return exact;
}

bool adv_review_offer(struct adv_review *review, enum adv_severity severity, const char *code,
                      const struct adv_plan *changed, double least_gain_frac, const char *format, ...)
{
    struct adv_estimate estimate;
    struct adv_advice *advice = next_item(review);
    if (!advice || !adv_review_try(review, changed, &estimate)) return false;
    double now = adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, review->estimate);
    double gain = 1 - adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &estimate) / now;
    if (!(gain >= least_gain_frac)) return false;
    *advice = (struct adv_advice){.severity = severity, .code = code, .gain_frac = gain};
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(advice->message, sizeof advice->message, format, arguments);
    va_end(arguments);
    adv_append(advice->message, sizeof advice->message,
               ": %.1f %% less time a token (%.3f s a step instead of %.3f s)", 100 * gain,
               review->estimate->step_time_s * (1 - gain), review->estimate->step_time_s);
    if (!write_changes(review, changed, advice)) return false;
    review->list->count++;
    return true;
}

void adv_review_remark(struct adv_review *review, enum adv_severity severity, const char *code,
                       const struct adv_plan *changed, const char *format, ...)
{
    struct adv_advice *advice = next_item(review);
    if (!advice) return;
    *advice = (struct adv_advice){.severity = severity, .code = code, .gain_frac = (double)NAN};
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(advice->message, sizeof advice->message, format, arguments);
    va_end(arguments);
    if (changed) (void)write_changes(review, changed, advice); /* a remark holds without keys, too */
    review->list->count++;
}

/* How bytes that are not surely enough compare with the limit. The probability is rounded down, lest it read
 * as the one that it is below. */
static void say_margin(const struct adv_estimate *estimate, double used, double limit, bool fails, char *text,
                       size_t text_bytes)
{
    const double margin = fabs(limit - used) / ADV_GIB;
    if (used > limit)
        (void)snprintf(text, text_bytes, "%.2f GiB %s", margin,
                       fails ? "too much" : "over, within what the prediction may be off");
    else
        (void)snprintf(text, text_bytes, "%.2f GiB to spare, enough with a probability of %.3f, not of %.2f",
                       margin, floor(1000.0 * estimate->fit_probability) / 1000.0, ADV_FIT_SURE_PROBABILITY);
}

/* The verdict near or beyond a limit, with the cheapest way back. */
static void review_memory(struct adv_review *review)
{
    const struct adv_estimate *estimate = review->estimate;
    if (estimate->fit == ADV_FIT_FITS && adv_rank_fits(estimate, 1)) return;
    struct adv_remedy remedy;
    adv_remedy_find(review->request, review->input->constants, review->plan, &remedy);
    bool host = estimate->host_bytes_per_host > estimate->host_limit_bytes_per_host;
    double used = host ? estimate->host_bytes_per_host : estimate->hbm_bytes_per_device;
    double limit = host ? estimate->host_limit_bytes_per_host : estimate->hbm_limit_bytes_per_device;
    bool fails = estimate->fit == ADV_FIT_NO || host;
    char margin[128];
    say_margin(estimate, used, limit, fails, margin, sizeof margin);
    adv_review_remark(review, fails ? ADV_SEVERITY_ERROR : ADV_SEVERITY_WARNING,
                      fails ? "memory_exceeded" : "memory_tight", remedy.found ? &remedy.plan : NULL,
                      "%.2f of %.2f GiB of %s memory: %s; %s", used / ADV_GIB, limit / ADV_GIB,
                      host ? "host" : "device", margin, remedy.text);
}

/* Logits decide the peak: tiling them is the cheapest memory there is. */
static void review_loss_peak(struct adv_review *review)
{
    const struct adv_estimate *estimate = review->estimate;
    double used = estimate->hbm_bytes_per_device / estimate->hbm_limit_bytes_per_device;
    if (used < 0.85 || estimate->loss_peak_bytes <= estimate->backward_peak_bytes) return;
    struct adv_plan changed = *review->plan;
    struct adv_estimate tiled = *estimate;
    while (changed.num_vocab_tiling < 16) {
        changed.num_vocab_tiling *= 2;
        if (!adv_review_try(review, &changed, &tiled)) return;
        if (tiled.loss_peak_bytes <= tiled.backward_peak_bytes) break;
    }
    if (!(tiled.hbm_bytes_per_device < estimate->hbm_bytes_per_device)) return;
    adv_review_remark(review, ADV_SEVERITY_INFO, "vocab_tiling", &changed,
                      "the logits decide the memory peak; num_vocab_tiling=%d needs %.2f GiB instead of %.2f "
                      "and %.3f s a step instead of %.3f",
                      changed.num_vocab_tiling, tiled.hbm_bytes_per_device / ADV_GIB,
                      estimate->hbm_bytes_per_device / ADV_GIB, tiled.step_time_s, estimate->step_time_s);
}

/* Kept queries and keys that fill no rows of lanes lie unpadded when the kernel reads along the sequence. */
static void review_padded_heads(struct adv_review *review)
{
    const double least_frac = 0.01;
    const struct adv_estimate *estimate = review->estimate;
    struct adv_plan changed = *review->plan;
    struct adv_estimate other;
    const int columns = adv_memory_unpad_heads(review->input->model, &changed);
    if (columns == 0 || !adv_review_try(review, &changed, &other)) return;
    const double on_device = estimate->hbm_bytes_per_device - other.hbm_bytes_per_device;
    const double on_host = (estimate->host_bytes_per_host - other.host_bytes_per_host) /
                           review->input->cluster->devices_per_host;
    const double saved = fmax(on_device, on_host);
    if (saved < least_frac * estimate->hbm_limit_bytes_per_device) return;
    adv_review_remark(
        review, ADV_SEVERITY_INFO, "padded_heads", &changed,
        "kept heads of %d columns take whole rows of %.0f lanes where the attention kernel reads "
        "head_dim along them; read along the sequence they need %.2f GiB less %s, at %.3f s a step "
        "(now %.3f)",
        columns, adv_memory_lanes(1.0), saved / ADV_GIB,
        on_host > on_device ? "of the host for each device" : "a device", other.step_time_s,
        estimate->step_time_s);
}

/* Errors, then whatever saves most. */
static bool before(const struct adv_advice *a, const struct adv_advice *b)
{
    bool a_error = a->severity == ADV_SEVERITY_ERROR, b_error = b->severity == ADV_SEVERITY_ERROR;
    if (a_error != b_error) return a_error;
    double a_gain = isnan(a->gain_frac) ? 0 : a->gain_frac, b_gain = isnan(b->gain_frac) ? 0 : b->gain_frac;
    return a_gain > b_gain;
}

static void sort(struct adv_advice_list *list)
{
    for (int i = 1; i < list->count; i++) {
        struct adv_advice moved = list->items[i];
        int at = i;
        while (at > 0 && before(&moved, &list->items[at - 1])) {
            list->items[at] = list->items[at - 1];
            at--;
        }
        list->items[at] = moved;
    }
}

void adv_advice_find(const struct adv_estimate_input *input, const struct adv_estimate *estimate,
                     const struct adv_ledger *ledger, const struct adv_reread *reread, bool searched,
                     struct adv_advice_list *list)
{
    list->count = 0;
    struct adv_review review = {.input = input,
                                .plan = input->plan,
                                .estimate = estimate,
                                .ledger = ledger,
                                .reread = reread,
                                .searched = searched,
                                .list = list};
    adv_arena_init(&review.arena, REVIEW_ARENA_BYTES);
    review.request = adv_arena_alloc(&review.arena, sizeof *review.request);
    if (review.request) {
        review.request->model = *input->model;
        review.request->cluster = *input->cluster;
        review.request->workload.base = *input->plan;
        review.request->workload.seq_len = input->plan->family.seq_len;
        review.request->memory_frac = 1.0;
        review_memory(&review);
        review_loss_peak(&review);
        review_padded_heads(&review);
        for (int i = 0; adv_advice_time_rules[i]; i++) adv_advice_time_rules[i](&review);
        sort(list);
    }
    adv_arena_free(&review.arena);
}

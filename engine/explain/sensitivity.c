#include "engine/explain/sensitivity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/explain/diff.h"
#include "engine/search/space_choices.h"

enum { FIELDS_MAX = 4 };

static const struct {
    const char *rate;
    const char *fields[FIELDS_MAX]; /* NULL-terminated; the first says whether the chip has the rate */
} rates[ADV_SENSITIVITY_RATES] = {
    {"peak_flops",
     {"peak_bf16_flops_per_s_per_chip", "peak_fp8_flops_per_s_per_chip", "peak_int8_ops_per_s_per_chip"}},
    {"hbm_bandwidth", {"hbm_bytes_per_s_per_chip"}},
    {"ici_link", {"ici_link_bytes_per_s", "ici_link_achieved_bytes_per_s"}},
    {"die_to_die", {"d2d_bytes_per_s"}},
    {"dcn", {"dcn_bytes_per_s_per_chip"}},
    {"pcie", {"pcie_bytes_per_s_per_chip"}},
};

/* The plan under study, and room to change it. */
struct study {
    struct adv_advise_request *request; /* a copy: its cluster is changed */
    const struct adv_cluster *cluster;  /* as given */
    const struct adv_constants *constants;
    const struct adv_plan *plan;
    struct adv_ledger *ledger;
    bool keeps_global_batch; /* on more slices; else the batch per device */
};

const char *const *adv_sensitivity_fields(int index)
{
    return rates[index].fields;
}

/* Estimates `plan` on study->request->cluster, with ledger. */
static bool estimate(struct study *study, const struct adv_plan *plan, struct adv_estimate *out)
{
    if (adv_budget_over(study->request->budget)) return false;
    struct adv_estimate_input input = {&study->request->model, &study->request->cluster, study->constants,
                                       plan, ADV_FLOPS_CAUSAL_HALF};
    return adv_estimate_plan(&input, out, study->ledger, NULL) == ADV_OK;
}

static double with_rate(struct study *study, int rate, double factor)
{
    struct adv_estimate changed;
    struct adv_chip *chip = &study->request->cluster.chip;
    for (int i = 0; i < FIELDS_MAX && rates[rate].fields[i]; i++) {
        const struct adv_chip_field *field = adv_chip_field(rates[rate].fields[i]);
        adv_chip_field_set(chip, field, factor * adv_chip_field_get(chip, field));
    }
    bool done = estimate(study, study->plan, &changed);
    study->request->cluster = *study->cluster;
    return done ? changed.step_time_s : (double)NAN;
}

static void find_rates(struct study *study, struct adv_sensitivities *found)
{
    for (int i = 0; i < ADV_SENSITIVITY_RATES; i++) {
        const struct adv_chip_field *field = adv_chip_field(rates[i].fields[0]);
        struct adv_rate_sensitivity *row = &found->rates[i];
        row->rate = rates[i].rate;
        row->known = !isnan(adv_chip_field_get(&study->cluster->chip, field));
        row->slower_s = row->known ? with_rate(study, i, 1 - ADV_SENSITIVITY_RATE_FRAC) : (double)NAN;
        row->faster_s = row->known ? with_rate(study, i, 1 + ADV_SENSITIVITY_RATE_FRAC) : (double)NAN;
    }
}

static double smaller_batch(double batch)
{
    return batch > 1 ? ceil(batch) - 1 : batch / 2;
}

static double larger_batch(double batch)
{
    return batch >= 1 ? floor(batch) + 1 : batch * 2;
}

/* NULL when it was estimated, else the rule that forbids it. */
static const char *try_plan(struct study *study, const struct adv_plan *plan, struct adv_estimate *out)
{
    const char *rule = adv_plan_broken_rule(plan, &study->request->model, &study->request->cluster);
    if (rule) return rule;
    return estimate(study, plan, out) ? NULL : "unsupported";
}

static const char *at_batch(struct study *study, double batch, struct adv_estimate *out)
{
    struct adv_plan plan = *study->plan;
    plan.family.per_device_batch_size = batch;
    return try_plan(study, &plan, out);
}

static void find_batch_steps(struct study *study, struct adv_sensitivities *found)
{
    double batch = study->plan->family.per_device_batch_size;
    const double sizes[2] = {smaller_batch(batch), larger_batch(batch)};
    for (int i = 0; i < 2; i++) {
        found->batch[i].per_device_batch_size = sizes[i];
        found->batch[i].broken_rule = at_batch(study, sizes[i], &found->batch[i].estimate);
    }
}

/* A question "does it hold at this value?", asked by re-estimation. */
struct probe {
    double value;
    bool legal, holds;
    double share;
    enum adv_fit fit;
};
typedef struct probe probe_at(struct study *study, double value);

static struct probe fsdp_probe(struct study *study, double batch)
{
    struct adv_estimate at;
    struct probe probe = {.value = batch, .legal = at_batch(study, batch, &at) == NULL};
    if (!probe.legal) return probe;
    double exposed_s = adv_diff_group_s(study->ledger, ADV_TERM_GROUP_GATHER | ADV_TERM_GROUP_SCATTER);
    probe.share = exposed_s / at.step_time_s;
    probe.holds = probe.share < ADV_SENSITIVITY_HIDDEN_FRAC;
    probe.fit = at.fit;
    return probe;
}

static void settle(struct adv_break_even *row, const struct probe *probe)
{
    row->reached = true;
    row->value = probe->value;
    row->share_at_value = probe->share;
    row->fit = probe->fit;
}

/* The smallest multiple of `unit`, all counted in it, between one that does not hold and one that does, whole
 * or not; an illegal middle counts as not holding, so that the answer is one that can be run. */
static void bisect(struct study *study, probe_at *ask, double unit, double not_yet, double holds,
                   struct adv_break_even *row)
{
    double low = floor(not_yet), high = ceil(holds);
    while (high - low > 1 && low >= 1) {
        double middle = floor((low + high) / 2);
        struct probe probe = ask(study, middle * unit);
        if (probe.legal && probe.holds) {
            high = middle;
            settle(row, &probe);
        } else {
            low = middle;
        }
    }
}

static void fsdp_sentence(const struct adv_break_even *row, char *text, size_t bytes)
{
    if (!row->reached)
        (void)snprintf(
            text, bytes,
            "not reached in range: at %g sequences per device %.1f %% of the step is still exposed "
            "FSDP traffic",
            row->high, row->share_at_value * 100);
    else
        (void)snprintf(text, bytes,
                       "from %g sequences per device on, FSDP collectives are hidden (%.2f %% of the step is "
                       "exposed); the plan then %s",
                       row->value, row->share_at_value * 100,
                       row->fit == ADV_FIT_FITS    ? "fits as it is"
                       : row->fit == ADV_FIT_TIGHT ? "is tight in memory"
                                                   : "needs more memory than there is");
}

static void find_fsdp(struct study *study, struct adv_break_even *row)
{
    double batch = study->plan->family.per_device_batch_size;
    row->name = "fsdp_hidden_per_device_batch";
    row->value = (double)NAN;
    row->low = row->high = batch;
    struct probe probe = fsdp_probe(study, batch);
    row->applies = adv_diff_group_s(study->ledger, ADV_TERM_GROUP_GATHER) > 0;
    if (!row->applies) {
        (void)snprintf(row->sentence, sizeof row->sentence, "the plan gathers no weights over FSDP");
        return;
    }
    row->share_at_value = probe.share;
    double outside = 0; /* the last batch looked at where it does not hold */
    if (probe.holds) {
        settle(row, &probe);
        while (row->low > 1e-3) {
            struct probe below = fsdp_probe(study, row->low / 2);
            if (!below.legal) break;
            row->low /= 2;
            outside = row->low;
            if (!below.holds) break;
            settle(row, &below);
            outside = 0;
        }
    } else {
        while (!row->reached && row->high * 2 <= ADV_SENSITIVITY_BATCH_MAX) {
            struct probe above = fsdp_probe(study, row->high * 2);
            if (!above.legal) break;
            outside = row->high;
            row->high *= 2;
            row->share_at_value = above.share;
            if (above.holds) settle(row, &above);
        }
    }
    if (row->reached && outside > 0) bisect(study, fsdp_probe, 1, outside, row->value, row);
    fsdp_sentence(row, row->sentence, sizeof row->sentence);
}

/* The plan on `slices` slices of the same shape, the new ones along the data axis. */
static struct probe dcn_probe(struct study *study, double value)
{
    const int slices = (int)value;
    struct adv_cluster *cluster = &study->request->cluster;
    struct adv_plan plan = *study->plan;
    struct adv_estimate at;
    struct probe probe = {.value = value};
    int growth = slices / study->cluster->slices;
    cluster->slices = slices;
    cluster->devices = cluster->devices_per_slice * slices;
    cluster->hosts = study->cluster->hosts / study->cluster->slices * slices;
    plan.family.dcn[ADV_AXIS_DATA] *= growth;
    if (study->keeps_global_batch) { /* fewer accumulation steps first, then fewer sequences per device */
        int fewer = (int)adv_gcd(plan.family.gradient_accumulation_steps, growth);
        plan.family.gradient_accumulation_steps /= fewer;
        plan.family.per_device_batch_size /= (double)growth / fewer;
    }
    adv_choices_finish(&plan);
    probe.legal = try_plan(study, &plan, &at) == NULL;
    *cluster = *study->cluster;
    if (!probe.legal) return probe;
    probe.share = adv_diff_group_s(study->ledger, ADV_TERM_GROUP_SLICES) / at.step_time_s;
    probe.holds = at.bound == ADV_RES_DCN;
    probe.fit = at.fit;
    return probe;
}

static void find_dcn(struct study *study, bool keeps_global_batch, struct adv_break_even *row)
{
    study->keeps_global_batch = keeps_global_batch;
    const char *kept = keeps_global_batch ? "global batch" : "batch per device";
    int slices = study->cluster->slices, growth = 1;
    row->name =
        keeps_global_batch ? "dcn_binds_slices_at_global_batch" : "dcn_binds_slices_at_per_device_batch";
    row->applies = true;
    row->value = (double)NAN;
    row->low = row->high = slices;
    bool cut = false;
    for (; growth * slices <= ADV_CLUSTER_SLICES_MAX; growth *= 2) {
        struct probe probe = dcn_probe(study, growth * slices);
        if (!probe.legal) {
            cut = true;
            break;
        }
        row->high = growth * slices;
        row->share_at_value = probe.share;
        if (!probe.holds) continue;
        settle(row, &probe);
        bisect(study, dcn_probe, slices, growth / 2, growth, row);
        break;
    }
    if (row->reached)
        (void)snprintf(
            row->sentence, sizeof row->sentence,
            "with %g slices of %s and the same %s, the network between slices is busy longest (%.1f %% of "
            "the step is exposed DCN time)",
            row->value, study->cluster->topology, kept, row->share_at_value * 100);
    else
        (void)snprintf(
            row->sentence, sizeof row->sentence,
            "not reached in range: with %g slices of %s and the same %s, %.1f %% of the step is exposed "
            "DCN time%s",
            row->high, study->cluster->topology, kept, row->share_at_value * 100,
            cut ? "; the batch cannot be cut over more" : "");
}

adv_code adv_sensitivity_find(const struct adv_advise_request *request, const struct adv_constants *constants,
                              const struct adv_candidate *candidate, struct adv_arena *arena,
                              struct adv_sensitivities *found, adv_err *err)
{
    memset(found, 0, sizeof *found);
    struct study study = {.cluster = &request->cluster,
                          .constants = constants,
                          .plan = &candidate->plan,
                          .request = adv_arena_alloc(arena, sizeof *study.request),
                          .ledger = adv_arena_alloc(arena, sizeof *study.ledger)};
    if (!study.request || !study.ledger)
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    *study.request = *request;
    found->step_time_s = candidate->estimate.step_time_s;
    find_rates(&study, found);
    find_batch_steps(&study, found);
    find_fsdp(&study, &found->break_evens[0]);
    find_dcn(&study, false, &found->break_evens[1]);
    find_dcn(&study, true, &found->break_evens[2]);
    return adv_budget_over(request->budget) ? adv_budget_refuse(err) : ADV_OK;
}

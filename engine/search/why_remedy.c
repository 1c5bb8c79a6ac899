#include "engine/search/why.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "engine/base/units.h"
#include "engine/rank/rank.h"
#include "engine/search/remat_space.h"

/* Sequences of a microstep on each batch shard, beyond which no smaller batch is looked for. */
static const double sequences_max = 1 << 20;

/* A plan on its way to one that fits. */
struct trial {
    struct adv_estimate_input input;
    const struct adv_plan *base;
    double memory_frac; /* of the limits, that the changed plan may use */
    struct adv_plan plan;
    struct adv_estimate estimate;
};

static bool breaks_more(const struct trial *trial)
{
    return adv_plan_newly_broken_rule(trial->base, &trial->plan, trial->input.model, trial->input.cluster,
                                      false) != NULL;
}

static bool estimated(struct trial *trial)
{
    trial->input.plan = &trial->plan;
    return !breaks_more(trial) && adv_estimate_plan(&trial->input, &trial->estimate, NULL, NULL) == ADV_OK;
}

static bool fits(struct trial *trial)
{
    return estimated(trial) && adv_rank_fits(&trial->estimate, trial->memory_frac);
}

static bool tile_loss(struct trial *trial)
{
    struct adv_plan *plan = &trial->plan;
    if (plan->num_vocab_tiling >= 16) return false;
    plan->num_vocab_tiling = plan->num_vocab_tiling < 4 ? 4 : 16;
    return true;
}

static bool place(struct trial *trial, enum adv_tensor tensor, enum adv_placement placement)
{
    struct adv_plan *plan = &trial->plan;
    if (plan->placements[tensor] == placement) return false;
    if (plan->policy != ADV_POLICY_CUSTOM)
        plan->placements[ADV_TENSOR_DECODER_LAYER_INPUT] = adv_remat_input_stays(trial->input.model);
    plan->policy = ADV_POLICY_CUSTOM;
    plan->placements[tensor] = placement;
    return true;
}

static bool offload_input(struct trial *trial)
{
    return place(trial, ADV_TENSOR_DECODER_LAYER_INPUT, ADV_PLACE_OFFLOAD);
}

static bool offload_saved(struct trial *trial)
{
    bool changed = false;
    for (int i = 0; i < ADV_TENSOR_COUNT; i++)
        if (i != ADV_TENSOR_DECODER_LAYER_INPUT && trial->plan.placements[i] == ADV_PLACE_DEVICE)
            changed = place(trial, (enum adv_tensor)i, ADV_PLACE_OFFLOAD) || changed;
    return changed;
}

static bool full_remat(struct trial *trial)
{
    struct adv_plan *plan = &trial->plan;
    bool changed = false;
    for (int i = 0; i < ADV_TENSOR_COUNT; i++) {
        if (i == ADV_TENSOR_DECODER_LAYER_INPUT || plan->placements[i] == ADV_PLACE_REMAT) continue;
        plan->placements[i] = ADV_PLACE_REMAT;
        changed = true;
    }
    if (changed)
        plan->policy = plan->placements[ADV_TENSOR_DECODER_LAYER_INPUT] == ADV_PLACE_OFFLOAD
                           ? ADV_POLICY_CUSTOM
                           : ADV_POLICY_FULL;
    if (plan->policy == ADV_POLICY_FULL) plan->placements[ADV_TENSOR_DECODER_LAYER_INPUT] = ADV_PLACE_REMAT;
    return changed;
}

/* Whole sequences of a microstep on each batch shard, 0 where there is nothing to take away. */
static long sequences_of(const struct trial *trial)
{
    double sequences = floor(adv_plan_sequences_per_shard(&trial->plan, trial->input.cluster) + 0.5);
    return sequences >= 2 && sequences <= sequences_max ? (long)sequences : 0;
}

/* The same total in the fewest microsteps that fit; one sequence for each shard where none do. */
static bool accumulate(struct trial *trial)
{
    const struct adv_plan before = trial->plan;
    long sequences = sequences_of(trial);
    for (long steps = 2; steps <= sequences; steps++) {
        if (sequences % steps != 0) continue;
        trial->plan.family.per_device_batch_size = before.family.per_device_batch_size / (double)steps;
        trial->plan.family.gradient_accumulation_steps =
            before.family.gradient_accumulation_steps * (int)steps;
        if (fits(trial)) break;
    }
    return sequences > 0;
}

static bool with_sequences(struct trial *trial, const struct adv_plan *before, long sequences, long all)
{
    trial->plan = *before;
    trial->plan.family.per_device_batch_size *= (double)sequences / (double)all;
    return fits(trial);
}

/* The largest batch that fits: halved until it does, then bisected; one sequence for each shard where none
 * does. */
static bool smaller_batch(struct trial *trial)
{
    const struct adv_plan before = trial->plan;
    long all = sequences_of(trial), fitting = all / 2, above = all;
    if (all == 0) return false;
    while (fitting > 1 && !with_sequences(trial, &before, fitting, all)) {
        above = fitting;
        fitting /= 2;
    }
    while (above - fitting > 1) {
        long middle = fitting + (above - fitting) / 2;
        if (with_sequences(trial, &before, middle, all))
            fitting = middle;
        else
            above = middle;
    }
    (void)with_sequences(trial, &before, fitting, all);
    return true;
}

static bool bf16_gradients(struct trial *trial)
{
    bool changed = trial->plan.family.grad_dtype == ADV_FORMAT_F32;
    trial->plan.family.grad_dtype = ADV_FORMAT_BF16;
    return changed;
}

static bool bf16_mean(struct trial *trial)
{
    bool changed = trial->plan.family.mu_dtype == ADV_FORMAT_F32;
    trial->plan.family.mu_dtype = ADV_FORMAT_BF16;
    return changed;
}

static bool host_optimizer(struct trial *trial)
{
    bool changed = !trial->plan.optimizer_host_offload && trial->plan.family.optimizer != ADV_OPT_SGD;
    trial->plan.optimizer_host_offload = true;
    return changed;
}

static bool bf16_weights(struct trial *trial)
{
    bool changed = trial->plan.family.weight_dtype == ADV_FORMAT_F32;
    trial->plan.family.weight_dtype = trial->plan.family.mu_dtype = ADV_FORMAT_BF16;
    return changed;
}

static void name_tiling(const struct trial *trial, char *text, size_t text_bytes)
{
    (void)snprintf(text, text_bytes, "num_vocab_tiling=%d", trial->plan.num_vocab_tiling);
}

static void name_accumulation(const struct trial *trial, char *text, size_t text_bytes)
{
    (void)snprintf(text, text_bytes, "gradient_accumulation_steps=%d with per_device_batch_size=%.10g",
                   trial->plan.family.gradient_accumulation_steps, trial->plan.family.per_device_batch_size);
}

static void name_batch(const struct trial *trial, char *text, size_t text_bytes)
{
    (void)snprintf(text, text_bytes, "a batch of %.10g sequences (per_device_batch_size=%.10g)",
                   adv_plan_global_batch(&trial->plan, trial->input.cluster),
                   trial->plan.family.per_device_batch_size);
}

/* From what costs least to what changes the training: the order in which they add up when no single one is
 * enough. */
static const struct {
    const char *text; /* NULL: its name has numbers */
    bool (*apply)(struct trial *trial);
    bool changes_training; /* number formats, batch: offered only when nothing else is enough */
    void (*name)(const struct trial *trial, char *text, size_t text_bytes);
} changes[] = {
    {NULL, tile_loss, false, name_tiling},
    {"decoder_layer_input=offload", offload_input, false, NULL},
    {"saved tensors on the host", offload_saved, false, NULL},
    {"full remat", full_remat, false, NULL},
    {NULL, accumulate, false, name_accumulation},
    {"grad_dtype=bfloat16", bf16_gradients, true, NULL},
    {"mu_dtype=bfloat16", bf16_mean, true, NULL},
    {"optimizer_memory_host_offload=true", host_optimizer, false, NULL},
    {"weight_dtype=bfloat16", bf16_weights, true, NULL},
    {NULL, smaller_batch, true, name_batch},
};
enum { CHANGES = sizeof changes / sizeof *changes };

/* The fastest single change among those that do (or do not) change the training. */
static unsigned best_single(struct trial *trial, bool changes_training, struct trial *best)
{
    unsigned chosen = 0;
    for (int i = 0; i < CHANGES; i++) {
        trial->plan = *trial->base;
        if (changes[i].changes_training != changes_training || !changes[i].apply(trial) || !fits(trial))
            continue;
        if (chosen && adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &trial->estimate) >=
                          adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &best->estimate))
            continue;
        chosen = 1u << i;
        *best = *trial;
    }
    return chosen;
}

/* How much all peaks together take, and the host where it is short: what a change on the way must lower. */
static double need(const struct adv_estimate *estimate)
{
    double bytes = estimate->loss_peak_bytes + estimate->backward_peak_bytes + estimate->update_peak_bytes;
    bool host_short = estimate->host_bytes_per_host > estimate->host_limit_bytes_per_host;
    return bytes + (host_short ? 4.0 * estimate->host_bytes_per_host : 0);
}

/* The changes of a set on the base, in order. */
static bool fits_with(struct trial *trial, unsigned set)
{
    trial->plan = *trial->base;
    for (int i = 0; i < CHANGES; i++)
        if (set & 1u << i) (void)changes[i].apply(trial);
    return fits(trial);
}

/* All that help in turn, as many as it takes, then without those that turn out to be idle. 0: not enough,
 * and `trial` is what they come to. */
static unsigned several(struct trial *trial)
{
    unsigned set = 0;
    bool found = false;
    trial->plan = *trial->base;
    bool priced = estimated(trial);
    for (int i = 0; i < CHANGES && !found && priced; i++) {
        const struct trial before = *trial;
        if (!changes[i].apply(trial)) continue;
        if (!estimated(trial) || need(&trial->estimate) >= need(&before.estimate)) {
            *trial = before;
            continue;
        }
        set |= 1u << i;
        found = adv_rank_fits(&trial->estimate, trial->memory_frac);
    }
    if (!found) return 0;
    for (int i = CHANGES - 1; i >= 0; i--)
        if (set & 1u << i && fits_with(trial, set & ~(1u << i))) set &= ~(1u << i);
    (void)fits_with(trial, set);
    return set;
}

static void say(const struct trial *trial, unsigned set, struct adv_remedy *remedy)
{
    size_t used = 0;
    bool changes_training = false;
    int count = 0;
    for (int i = 0; i < CHANGES; i++) {
        char name[ADV_LIMIT_NAME];
        if (!(set & 1u << i)) continue;
        if (changes[i].name)
            changes[i].name(trial, name, sizeof name);
        else
            (void)snprintf(name, sizeof name, "%s", changes[i].text);
        int wrote =
            snprintf(remedy->text + used, sizeof remedy->text - used, "%s%s", count++ ? ", " : "", name);
        if (wrote > 0 && used + (size_t)wrote < sizeof remedy->text) used += (size_t)wrote;
        changes_training = changes_training || changes[i].changes_training;
    }
    remedy->tight = !adv_rank_fits(&trial->estimate, adv_rank_memory_frac(&trial->estimate));
    remedy->cost = count + (changes_training ? CHANGES : 0) + (remedy->tight ? 2 * CHANGES : 0);
    (void)snprintf(remedy->text + used, sizeof remedy->text - used,
                   " would %s: %.2f GiB of %.2f, %.3f s a step", remedy->tight ? "be a tight fit" : "fit",
                   trial->estimate.hbm_bytes_per_device / ADV_GIB,
                   trial->estimate.hbm_limit_bytes_per_device / ADV_GIB, trial->estimate.step_time_s);
}

/* Nothing in the table is enough: what is left with all of it, and what would be. */
static void say_hopeless(const struct trial *trial, struct adv_remedy *remedy)
{
    const struct adv_estimate *estimate = &trial->estimate;
    if (estimate->update_peak_bytes > estimate->hbm_limit_bytes_per_device)
        (void)snprintf(remedy->text, sizeof remedy->text,
                       "with every memory saver the %s weights, their gradients%s alone are %.1f GiB on each "
                       "device: more chips or a smaller model",
                       adv_format_name(trial->plan.family.weight_dtype),
                       trial->plan.family.optimizer == ADV_OPT_SGD ? "" : " and the optimizer's moments",
                       estimate->update_peak_bytes / ADV_GIB);
    else
        (void)snprintf(
            remedy->text, sizeof remedy->text,
            "all memory savers together are not enough: more chips, a shorter sequence or a smaller model");
}

void adv_remedy_find(const struct adv_model *model, const struct adv_cluster *cluster,
                     const struct adv_constants *constants, const struct adv_plan *plan,
                     struct adv_remedy *remedy)
{
    struct trial trial = {.input = {model, cluster, constants, NULL, ADV_FLOPS_CAUSAL_HALF},
                          .base = plan,
                          .memory_frac = 1,
                          .plan = *plan};
    struct trial best = trial;
    bool tight_already = fits(&trial);
    unsigned set = 0;
    for (int tight = 0; tight < (tight_already ? 1 : 2) && !set; tight++) {
        best.memory_frac = trial.memory_frac = tight ? 1 : adv_rank_memory_frac(&trial.estimate);
        set = best_single(&trial, false, &best);
        if (!set) set = best_single(&trial, true, &best);
        if (!set) {
            set = several(&trial);
            best = trial;
        }
    }
    *remedy = (struct adv_remedy){.found = set != 0, .cost = INT_MAX};
    if (set)
        say(&best, set, remedy);
    else
        say_hopeless(&best, remedy);
    remedy->plan = best.plan;
    remedy->estimate = best.estimate;
}

#include "engine/search/why.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "engine/base/text.h"
#include "engine/base/units.h"
#include "engine/cost/fit.h"
#include "engine/cost/layer_memory.h"
#include "engine/maxtext/keys.h"
#include "engine/maxtext/names.h"
#include "engine/rank/rank.h"
#include "engine/search/remat_space.h"
#include "engine/search/space_batch.h"
#include "engine/search/space_choices.h"

/* Sequences of a microstep on each batch shard, beyond which no smaller batch is looked for. */
static const double sequences_max = 1 << 20;

/* A plan on its way to one that fits. */
struct trial {
    const struct adv_advise_request *request;
    struct adv_estimate_input input;
    const struct adv_plan *base;
    struct adv_rank_share share; /* of the limits, that the changed plan may use */
    struct adv_plan plan;
    struct adv_estimate estimate;
};

static bool breaks_more(const struct trial *trial)
{
    return adv_plan_newly_broken_rule(trial->base, &trial->plan, trial->input.model, trial->input.cluster,
                                      false) != NULL;
}

/* With the flags that a search gives such a plan: asked with the change pinned, it must find what is
 * promised.
 */
static bool estimated(struct trial *trial)
{
    if (adv_choices_are_finished(trial->base)) adv_choices_finish(&trial->plan);
    trial->input.plan = &trial->plan;
    return !breaks_more(trial) && adv_estimate_plan(&trial->input, &trial->estimate, NULL, NULL) == ADV_OK;
}

static bool fits(struct trial *trial)
{
    return estimated(trial) && adv_rank_fits_share(&trial->estimate, trial->share);
}

/* Of memory that may be used, what fits as surely as the request and the verdict "fits" ask. */
static double sure_frac(const struct trial *trial)
{
    const struct adv_fit_curve curve = adv_estimate_usual_curve(&trial->estimate);
    return adv_fit_limit_frac(&curve, adv_max(trial->request->fit_probability, ADV_FIT_SURE_PROBABILITY));
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

static bool unpad_heads(struct trial *trial)
{
    return adv_memory_unpad_heads(trial->input.model, &trial->plan) > 0;
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

static void name_layouts(const struct trial *trial, char *text, size_t text_bytes)
{
    static const char *const keys[] = {ADV_NAME_SA_Q_LAYOUT, ADV_NAME_SA_K_LAYOUT, ADV_NAME_SA_V_LAYOUT};
    const struct adv_plan_family *now = &trial->plan.family, *before = &trial->base->family;
    const bool changes[] = {now->q_layout != before->q_layout, now->k_layout != before->k_layout,
                            now->v_layout != before->v_layout};
    int count = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (changes[i]) adv_append(text, text_bytes, "%s%s", count++ ? ", " : "", keys[i]);
    adv_append(text, text_bytes, "=SEQ_MINOR");
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
    bool places; /* is said by the places of the tensors */
} changes[] = {
    {NULL, unpad_heads, false, name_layouts, false},
    {NULL, tile_loss, false, name_tiling, false},
    {"decoder_layer_input=offload", offload_input, false, NULL, true},
    {"saved tensors on the host", offload_saved, false, NULL, true},
    {"full remat", full_remat, false, NULL, true},
    {NULL, accumulate, false, name_accumulation, false},
    {"grad_dtype=bfloat16", bf16_gradients, true, NULL, false},
    {"mu_dtype=bfloat16", bf16_mean, true, NULL, false},
    {"optimizer_memory_host_offload=true", host_optimizer, false, NULL, false},
    {"weight_dtype=bfloat16", bf16_weights, true, NULL, false},
    {NULL, smaller_batch, true, name_batch, false},
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
        found = adv_rank_fits_share(&trial->estimate, trial->share);
    }
    if (!found) return 0;
    for (int i = CHANGES - 1; i >= 0; i--)
        if (set & 1u << i && fits_with(trial, set & ~(1u << i))) set &= ~(1u << i);
    (void)fits_with(trial, set);
    return set;
}

/* A named policy ignores the keys of single tensors: whether the plan has to leave it for them. */
static bool leaves_policy(const struct trial *trial)
{
    return trial->base->policy != ADV_POLICY_CUSTOM && trial->plan.policy == ADV_POLICY_CUSTOM;
}

/* "remat_policy=custom with decoder_layer_input=offload and query_proj, out_proj=device": all that is said of
 * the model's tensors where a plan leaves a named policy, but for MaxText's own places of them. */
static void append_places(const struct trial *trial, char *text, size_t text_bytes)
{
    static const enum adv_placement places[] = {ADV_PLACE_OFFLOAD, ADV_PLACE_REMAT, ADV_PLACE_DEVICE};
    const uint32_t named = adv_plan_named_tensors(&trial->plan, trial->input.model);
    enum adv_placement usual[ADV_TENSOR_COUNT];
    int groups = 0;
    adv_policy_placements(ADV_POLICY_CUSTOM, usual);
    adv_append(text, text_bytes, "remat_policy=custom");
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        int count = 0;
        for (int i = 0; i < ADV_TENSOR_COUNT; i++) {
            const bool is_named = i == ADV_TENSOR_DECODER_LAYER_INPUT || (named & 1u << i);
            if (!is_named || trial->plan.placements[i] != places[k] || usual[i] == places[k]) continue;
            adv_append(text, text_bytes, "%s%s",
                       count++    ? ", "
                       : groups++ ? " and "
                                  : " with ",
                       adv_tensor_name((enum adv_tensor)i));
        }
        if (count > 0) adv_append(text, text_bytes, "=%s", adv_placement_name(places[k]));
    }
}

/* Pinned keys that the changed plan has another value for. */
static void append_pins(const struct trial *trial, char *text, size_t text_bytes)
{
    int count = 0;
    for (int i = 0; i < adv_keys_count; i++) {
        const struct adv_key *key = &adv_keys[i];
        if (key->plan_bytes == 0 || !adv_request_pins(trial->request, key->name) ||
            adv_key_says_the_same(key, trial->base, &trial->plan))
            continue;
        adv_append(text, text_bytes, "%s%s", count++ ? ", " : " without the pin of ", key->name);
    }
}

/* The changes of a set; of tensors' places all at once where a named policy is left. Returns how many. */
static int append_changes(const struct trial *trial, unsigned set, char *text, size_t text_bytes)
{
    int count = 0, said = 0;
    bool placed = false;
    for (int i = 0; i < CHANGES; i++) {
        char name[ADV_LIMIT_NAME] = "";
        if (!(set & 1u << i)) continue;
        count++;
        const bool places = changes[i].places && leaves_policy(trial);
        if (places && placed) continue;
        adv_append(text, text_bytes, "%s", said++ ? ", " : "");
        if (places)
            append_places(trial, text, text_bytes);
        else if (changes[i].name)
            changes[i].name(trial, name, sizeof name);
        adv_append(text, text_bytes, "%s", places ? "" : changes[i].name ? name : changes[i].text);
        placed = placed || places;
    }
    return count;
}

static void say(const struct trial *trial, unsigned set, struct adv_remedy *remedy)
{
    const double asked_frac = trial->request->memory_frac;
    const bool beyond = trial->share.asked > asked_frac;
    bool changes_training = false;
    const int count = append_changes(trial, set, remedy->text, sizeof remedy->text);
    for (int i = 0; i < CHANGES; i++)
        changes_training = changes_training || (set & 1u << i && changes[i].changes_training);
    const struct adv_rank_share surely = {trial->share.asked, sure_frac(trial)};
    remedy->tight = !adv_rank_fits_share(&trial->estimate, surely);
    remedy->cost =
        count + (changes_training ? CHANGES : 0) + ((remedy->tight ? 2 : 0) + (beyond ? 4 : 0)) * CHANGES;
    adv_append(remedy->text, sizeof remedy->text, " would %s", remedy->tight ? "be a tight fit" : "fit");
    append_pins(trial, remedy->text, sizeof remedy->text);
    if (beyond) adv_append(remedy->text, sizeof remedy->text, " with search.memory_frac=1");
    adv_append(remedy->text, sizeof remedy->text, ": %.2f GiB of %.2f, %.3f s a step",
               trial->estimate.hbm_bytes_per_device / ADV_GIB,
               trial->share.asked * trial->estimate.hbm_limit_bytes_per_device / ADV_GIB,
               trial->estimate.step_time_s);
}

/* Nothing in the table is enough: what is left with all of it, and what would be. `fits_whole`: the plan as
 * it is fits into all of the memory. */
static void say_hopeless(const struct trial *trial, bool fits_whole, struct adv_remedy *remedy)
{
    const struct adv_estimate *estimate = &trial->estimate;
    if (fits_whole && trial->request->memory_frac < 1)
        (void)snprintf(remedy->text, sizeof remedy->text,
                       "no memory saver makes it fit into that share: more chips, a shorter sequence or a "
                       "larger search.memory_frac");
    else if (estimate->update_peak_bytes > estimate->hbm_limit_bytes_per_device)
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

/* Of one share of the limits; 0: nothing in the table is enough. */
static unsigned best_in(struct trial *trial, struct adv_rank_share share, struct trial *best)
{
    best->share = trial->share = share;
    unsigned set = best_single(trial, false, best);
    if (!set) set = best_single(trial, true, best);
    if (set) return set;
    set = several(trial);
    *best = *trial;
    return set;
}

void adv_remedy_find(const struct adv_advise_request *request, const struct adv_constants *constants,
                     const struct adv_plan *plan, struct adv_remedy *remedy)
{
    const double asked_frac = request->memory_frac;
    struct trial trial = {
        .request = request,
        .input = {&request->model, &request->cluster, constants, NULL, ADV_FLOPS_CAUSAL_HALF},
        .base = plan,
        .share = {1.0, 1.0},
        .plan = *plan};
    struct trial best = trial;
    const bool fits_whole = fits(&trial);
    const double sure = sure_frac(&trial);
    const bool fits_asked =
        fits_whole && adv_rank_fits_share(&trial.estimate, (struct adv_rank_share){asked_frac, 1.0});
    const struct {
        struct adv_rank_share share;
        bool idle; /* the plan itself is as good */
    } steps[] = {{{asked_frac, sure}, false},
                 {{asked_frac, 1.0}, fits_asked},
                 {{1.0, sure}, fits_whole || asked_frac >= 1},
                 {{1.0, 1.0}, fits_whole || asked_frac >= 1}};
    unsigned set = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !set; i++)
        if (!steps[i].idle) set = best_in(&trial, steps[i].share, &best);
    *remedy = (struct adv_remedy){.found = set != 0, .cost = INT_MAX};
    if (set)
        say(&best, set, remedy);
    else
        say_hopeless(&best, fits_whole, remedy);
    remedy->plan = best.plan;
    remedy->estimate = best.estimate;
}

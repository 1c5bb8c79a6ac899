#include "engine/cost/interval.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Half-width of a normal 90 % interval in standard deviations. */
static const double z90 = 1.645;

/* Shorter sequences are published without context parallelism only. */
static const int64_t long_context_tokens = 32768;

/* Features that no published step of this generation uses; each widens the interval by a factor on the
 * spread. The factors are judgement: where nothing was measured there is nothing to learn them from. */
struct gap {
    bool present;
    const char *what;
    double widening;
};

static bool has_linear_attention(const struct adv_model *model)
{
    for (int i = 0; i < model->layer_kinds_count; i++)
        if (model->layers[i].attention == ADV_ATTENTION_LINEAR ||
            model->layers[i].attention == ADV_ATTENTION_COMPRESSED)
            return true;
    return false;
}

static bool picks_keys(const struct adv_cost *cost)
{
    for (int i = 0; i < cost->model->layer_kinds_count; i++)
        if (adv_layer_picks_keys(&cost->model->layers[i], cost->plan->family.seq_len)) return true;
    return false;
}

static bool has_experts(const struct adv_model *model)
{
    for (int i = 0; i < model->layer_kinds_count; i++)
        if (model->layers[i].experts > 0) return true;
    return false;
}

unsigned adv_regimes_of(const struct adv_model *model, const struct adv_plan *plan)
{
    const bool in[ADV_REGIME_COUNT] = {
        [ADV_REGIME_EXPERTS] = has_experts(model),
        [ADV_REGIME_LONG_CONTEXT] = plan->family.seq_len >= long_context_tokens,
        [ADV_REGIME_EIGHT_BIT] = plan->family.quantization != ADV_QUANT_NONE,
    };
    unsigned regimes = 0;
    for (int r = 0; r < ADV_REGIME_COUNT; r++) regimes |= (unsigned)in[r] << r;
    return regimes;
}

/* The spread of the chip times those of the regimes. */
static double spread_of_regimes(const struct adv_constants *constants, unsigned regimes)
{
#define RATIO(name, constant, models, words) constants->constant,
    const double ratios[] = {ADV_REGIMES(RATIO)};
#undef RATIO
    double log_sd = constants->interval_log_sd;
    for (int r = 0; r < ADV_REGIME_COUNT; r++)
        if (regimes & 1u << r) log_sd *= ratios[r];
    return log_sd;
}

static void name_regimes(unsigned regimes, char *words, size_t words_bytes)
{
#define WORDS(name, constant, models, words) words,
    static const char *const names[] = {ADV_REGIMES(WORDS)};
#undef WORDS
    size_t used = 0;
    words[0] = '\0';
    for (int r = 0; r < ADV_REGIME_COUNT; r++) {
        if (!(regimes & 1u << r)) continue;
        int length = snprintf(words + used, words_bytes - used, "%s%s", used ? ", " : " with ", names[r]);
        if (length > 0 && (size_t)length < words_bytes - used) used += (size_t)length;
    }
}

enum { GAPS = 20 + ADV_REGIME_COUNT };

static void list_gaps(const struct adv_cost *cost, struct gap gaps[GAPS])
{
    const struct adv_plan *plan = cost->plan;
    bool is_3d = cost->chip->ici_axes > 2.5;
    bool newest = cost->chip->devices_per_chip > 1.5;
    int contexts = cost->cp_ring * cost->ulysses;
    unsigned regimes = adv_regimes_of(cost->model, plan);
#define UNSEEN(name, constant, models, words)                                                                \
    {(regimes >> ADV_REGIME_##name & 1u) && cost->constants->models < 1.0,                                   \
     "no published step of this chip with " words, 1.3},
    const struct gap all[GAPS] = {
        ADV_REGIMES(UNSEEN){cost->cluster->has_overrides, "the hardware is not the published one", 1.3},
        {plan->family.dtype == ADV_FORMAT_F32, "float32 activations are priced and counted as bfloat16", 2.0},
        {cost->constants->steps_extrapolated, "no whole-step measurement of this chip", 2.0},
        {!cost->model->confident, cost->model->caveat, 1.5},
        {has_linear_attention(cost->model), "linear or compressed attention has no measurement", 1.5},
        {picks_keys(cost), "the sparse-attention indexer has no measured step", 2.5},
        {cost->model->attention_soft_cap > 0.0, "attention with a soft cap has no measurement", 1.3},
        {cost->plan->family.moe == ADV_MOE_RAGGED_DOT && has_experts(cost->model),
         "XLA's ragged dot has no measured step", 1.3},
        {cost->stages > 1, "pipeline parallelism has no measured step", 1.6},
        {cost->ep > 1, "expert parallelism has no judged step", 1.6},
        {cost->tp > 1 && (!is_3d || newest) && cost->chip->mxu_rows > 200.0,
         "tensor parallelism has no measured step on this chip", 1.4},
        {cost->offload_assumed && (cost->dense_group.devices > 1 || cost->expert_group.devices > 1),
         "what these flags of SparseCore offload hide is assumed: no published step of this chip separates it",
         1.6},
        {cost->width_shards > 1 && !newest, "fsdp_transpose beside fsdp has no published step of this chip",
         1.4},
        {contexts > 1 && plan->family.seq_len < long_context_tokens,
         "context parallelism at a short sequence has no measured step", 1.3},
        {plan->optimizer_host_offload || plan->parameter_host_offload,
         "weights or optimizer state on the host have no measured step", 1.3},
        {cost->offloads && plan->flags.host_transfer_pipelining == 0,
         "host transfers that are not pipelined have no measured step", 1.6},
        {plan->family.gradient_accumulation_steps > 1, "gradient accumulation has no measured step", 1.3},
        {plan->family.dcn[ADV_AXIS_FSDP] * plan->family.dcn[ADV_AXIS_FSDP_TRANSPOSE] > 1,
         "FSDP over DCN has no measured step", 1.6},
        {plan->family.dcn[ADV_AXIS_CONTEXT] * plan->family.dcn[ADV_AXIS_TENSOR] *
                 plan->family.dcn[ADV_AXIS_TENSOR_SEQUENCE] * plan->family.dcn[ADV_AXIS_EXPERT] >
             1,
         "activations over DCN have no measured step", 1.6},
        {cost->quantizes_dense && cost->lowp_speedup <= 1.0, "this number format is not native on this chip",
         1.5},
    };
#undef UNSEEN
    memcpy(gaps, all, sizeof all);
}

void adv_interval_apply_numbers(const struct adv_cost *cost, struct adv_estimate *estimate)
{
    struct gap gaps[GAPS];
    list_gaps(cost, gaps);
    double log_sd = spread_of_regimes(cost->constants, adv_regimes_of(cost->model, cost->plan));
    estimate->confidence = ADV_CONFIDENCE_CALIBRATED;
    for (int i = 0; i < GAPS; i++) {
        if (!gaps[i].present) continue;
        log_sd *= gaps[i].widening;
        estimate->confidence = ADV_CONFIDENCE_EXTRAPOLATED;
    }
    double half = z90 * log_sd;
    estimate->step_time_low_s = estimate->step_time_s * exp(-half);
    estimate->step_time_high_s = estimate->step_time_s * exp(half);
}

void adv_interval_apply(const struct adv_cost *cost, struct adv_estimate *estimate)
{
    struct gap gaps[GAPS];
    char *why = estimate->confidence_why;
    size_t room = sizeof estimate->confidence_why;
    size_t used = 0;
    adv_interval_apply_numbers(cost, estimate);
    if (estimate->confidence == ADV_CONFIDENCE_CALIBRATED) {
        char regimes[96];
        unsigned in = adv_regimes_of(cost->model, cost->plan);
        name_regimes(in, regimes, sizeof regimes);
        (void)snprintf(why, room, "fitted on published steps of %s, leave-one-family-out spread%s %.1f %%",
                       cost->chip->name, regimes, 100.0 * spread_of_regimes(cost->constants, in));
        return;
    }
    list_gaps(cost, gaps);
    for (int i = 0; i < GAPS; i++) {
        if (!gaps[i].present) continue;
        int length = snprintf(why + used, room - used, "%s%s", used ? "; " : "", gaps[i].what);
        if (length > 0) used = (size_t)length < room - used ? used + (size_t)length : room - 1;
    }
}

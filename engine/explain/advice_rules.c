#include "engine/explain/advice_rules.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/base/units.h"
#include "engine/cost/context.h"
#include "engine/cost/over_vmem.h"
#include "engine/cost/scratch.h"
#include "engine/hardware/roofline.h"
#include "engine/maxtext/keys.h"
#include "engine/rank/rank.h"
#include "engine/search/space_choices.h"
#include "engine/search/remat_space.h"
#include "engine/search/space_tiles.h"

/* Below these shares of a step an advice is noise: of a change of tiles or flags, and of a change of the
 * plan. */
static const double small_gain_frac = 0.003, plain_gain_frac = 0.01;
enum { LONG_SEQUENCE = 32768 };

static const struct adv_model *model_of(const struct adv_review *review)
{
    return review->input->model;
}

static const struct adv_chip *chip_of(const struct adv_review *review)
{
    return &review->input->cluster->chip;
}

static bool is_flash(const struct adv_review *review)
{
    return review->plan->family.attention == ADV_ATTENTION_IMPL_FLASH;
}

static bool tuned(struct adv_review *review, struct adv_plan *plan)
{
    struct adv_tile_memo *memo = adv_tile_memo_create(model_of(review), review->input->cluster,
                                                      review->input->constants, NULL, &review->arena);
    if (memo) (void)adv_tile_memo_apply(memo, plan);
    return memo != NULL;
}

/* "; sa_block_kv=512 alone costs 4.1 %": the block whose change to the best one gains most by itself; "" when
 * none does. */
static void worst_block(const struct adv_review *review, const struct adv_plan *best, char *text,
                        size_t text_bytes)
{
    double now = adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, review->estimate), most = small_gain_frac;
    text[0] = '\0';
    for (int i = 0; i < adv_keys_count; i++) {
        struct adv_plan changed = *review->plan;
        struct adv_estimate estimate;
        size_t at = adv_keys[i].plan_at;
        int was = 0;
        if (adv_keys[i].tries != ADV_TRIES_UP_TO_SEQ) continue;
        memcpy(&was, (const char *)&changed + at, sizeof was);
        for (int local = 0; local < 2; local++, at += sizeof changed.family.blocks[0])
            memcpy((char *)&changed + at, (const char *)best + at, sizeof was);
        if (!adv_review_try(review, &changed, &estimate)) continue;
        double gain = 1 - adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &estimate) / now;
        if (gain <= most) continue;
        most = gain;
        (void)snprintf(text, text_bytes, "; %s=%d alone costs %.1f %%", adv_keys[i].name, was, 100 * gain);
    }
}

static void append_tiles(char *text, size_t text_bytes, const char *pass, const int now[3], const int best[3])
{
    if (memcmp(now, best, 3 * sizeof *now) == 0) return;
    adv_append(text, text_bytes, "%s%s %d/%d/%d to %d/%d/%d", text[0] ? "; " : "", pass, now[0], now[1],
               now[2], best[0], best[1], best[2]);
}

/* Which tiles of which pass are to be others, and whether layouts are. */
static void name_tiles(const struct adv_plan *plan, const struct adv_plan *changed, char *text,
                       size_t text_bytes)
{
    static const char *const names[2][2] = {{"forward", "backward"}, {"local forward", "local backward"}};
    bool layouts = plan->family.q_layout != changed->family.q_layout ||
                   plan->family.k_layout != changed->family.k_layout ||
                   plan->family.v_layout != changed->family.v_layout;
    (void)snprintf(text, text_bytes, "%s", layouts ? "other layouts" : "");
    for (int local = 0; local < 2; local++) {
        const struct adv_splash_blocks *now = &plan->family.blocks[local],
                                       *best = &changed->family.blocks[local];
        bool follows = local && memcmp(&plan->family.blocks[0], now, sizeof *now) == 0 &&
                       memcmp(&changed->family.blocks[0], best, sizeof *best) == 0;
        if (follows) break; /* said already */
        append_tiles(text, text_bytes, names[local][0],
                     (int[3]){now->block_q, now->block_kv, now->block_kv_compute},
                     (int[3]){best->block_q, best->block_kv, best->block_kv_compute});
        append_tiles(text, text_bytes, names[local][1],
                     (int[3]){now->block_q_dkv, now->block_kv_dkv, now->block_kv_dkv_compute},
                     (int[3]){best->block_q_dkv, best->block_kv_dkv, best->block_kv_dkv_compute});
    }
}

static void attention_tiles(struct adv_review *review)
{
    struct adv_plan changed = *review->plan;
    struct adv_estimate estimate;
    char tiles[ADV_LIMIT_DETAIL * 3 / 4], worst[ADV_LIMIT_NAME];
    if (review->searched || !is_flash(review) || !tuned(review, &changed)) return;
    memcpy(changed.family.gmm_blocks, review->plan->family.gmm_blocks, sizeof changed.family.gmm_blocks);
    if (!adv_review_try(review, &changed, &estimate) ||
        adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &estimate) >
            (1 - plain_gain_frac) * adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, review->estimate))
        return;
    worst_block(review, &changed, worst, sizeof worst);
    name_tiles(review->plan, &changed, tiles, sizeof tiles);
    /* which block costs most is worth saying where all that changes leaves room for it */
    if (strlen(tiles) + strlen(worst) > ADV_LIMIT_DETAIL / 2) worst[0] = '\0';
    (void)adv_review_offer(review, ADV_SEVERITY_WARNING, "attention_tiles", &changed, plain_gain_frac,
                           "attention tiles are far from the best under this VMEM limit (better: %s)%s",
                           tiles[0] ? tiles : "those of the backward kernel for queries", worst);
}

static void expert_tiles(struct adv_review *review)
{
    struct adv_plan changed = *review->plan;
    if (review->searched || !adv_model_has_experts(model_of(review)) || !tuned(review, &changed)) return;
    struct adv_plan only = *review->plan;
    memcpy(only.family.gmm_blocks, changed.family.gmm_blocks, sizeof only.family.gmm_blocks);
    (void)adv_review_offer(review, ADV_SEVERITY_WARNING, "expert_tiles", &only, plain_gain_frac,
                           "grouped-matmul tiles are far from the best under this VMEM limit");
}

static void fused_backward(struct adv_review *review)
{
    if (!is_flash(review) || review->plan->family.use_fused_bwd || review->plan->family.use_tokamax_splash)
        return;
    struct adv_plan changed = *review->plan;
    changed.family.use_fused_bwd = true;
    (void)adv_review_offer(review, ADV_SEVERITY_WARNING, "fused_backward", &changed, small_gain_frac,
                           "the attention backward pass runs as two kernels and computes the scores twice");
}

static void tokamax_gmm(struct adv_review *review)
{
    if (!adv_model_has_experts(model_of(review)) || review->plan->family.moe != ADV_MOE_MEGABLOX) return;
    struct adv_plan changed = *review->plan;
    changed.family.moe = ADV_MOE_TOKAMAX;
    (void)adv_review_offer(review, ADV_SEVERITY_INFO, "tokamax_gmm", &changed, plain_gain_frac,
                           "Tokamax's grouped matmul picks better tiles than the configured ones");
}

static void ragged_dot(struct adv_review *review)
{
    struct adv_plan changed = *review->plan;
    if (!adv_model_has_experts(model_of(review)) || changed.family.moe != ADV_MOE_RAGGED_DOT) return;
    changed.family.moe = ADV_MOE_MEGABLOX;
    if (!tuned(review, &changed)) return;
    (void)adv_review_offer(review, ADV_SEVERITY_WARNING, "ragged_dot", &changed, plain_gain_frac,
                           "XLA's own grouped matmul is slower than the megablox kernel with tuned tiles");
}

/* Offload of what the compiler of the request offloads on the chip; false: of nothing. */
static bool set_offload(const struct adv_flags *ignored, struct adv_flags *flags)
{
    struct {
        signed char ignored, *offload, *fusion;
    } of[] = {{ignored->sc_all_gather, &flags->sc_all_gather, &flags->cf_all_gather},
              {ignored->sc_reduce_scatter, &flags->sc_reduce_scatter, &flags->cf_reduce_scatter},
              {ignored->sc_all_reduce, &flags->sc_all_reduce, &flags->cf_all_reduce}};
    bool any = false;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        if (of[i].ignored == ADV_FLAG_IGNORED) continue;
        *of[i].offload = 1;
        *of[i].fusion = 0;
        any = true;
    }
    if (ignored->sc_all_gather != ADV_FLAG_IGNORED) flags->async_all_gather = 1;
    if (ignored->sc_all_gather == ADV_FLAG_IGNORED_ALONE)
        flags->sc_2d_all_gather = flags->sc_3d_all_gather = 1;
    return any;
}

static void sparsecore_offload(struct adv_review *review)
{
    const struct adv_flags *flags = &review->plan->flags;
    bool by_default = chip_of(review)->offloads_collectives;
    bool off = flags->sc_all_gather == 0 || flags->sc_reduce_scatter == 0 || flags->sc_all_reduce == 0;
    bool unset = flags->sc_all_gather < 0 && flags->sc_reduce_scatter < 0;
    if (!(chip_of(review)->sparsecores_per_chip > 0) || !(off || (!by_default && unset))) return;
    struct adv_plan changed = *review->plan;
    if (!set_offload(&chip_of(review)->ignored_flags, &changed.flags)) return;
    /* of gathers no published step says it but where offload is the default */
    const bool assumed =
        review->input->constants->overlap_offload_assumed || changed.flags.sc_all_gather == 1;
    (void)adv_review_offer(
        review, by_default ? ADV_SEVERITY_WARNING : ADV_SEVERITY_INFO, "sparsecore_offload", &changed,
        small_gain_frac,
        by_default ? "collectives run on the TensorCore because SparseCore offload is switched off"
        : assumed  ? "collectives would leave the TensorCore with SparseCore offload; how much that hides is "
                     "assumed: no published step of this chip has it"
                   : "collectives would leave the TensorCore with SparseCore offload");
}

static void collective_fusion(struct adv_review *review)
{
    const struct adv_flags *flags = &review->plan->flags;
    bool offloaded = flags->sc_all_gather == 1 && chip_of(review)->sparsecores_per_chip > 0;
    const bool refused = chip_of(review)->recipe.flags.cf_all_gather == 0; /* by the libtpu of the request */
    if (chip_of(review)->offloads_collectives || flags->cf_all_gather == 1 || offloaded || refused) return;
    struct adv_plan changed = *review->plan;
    changed.flags.cf_all_gather = changed.flags.cf_reduce_scatter = changed.flags.cf_all_reduce =
        changed.flags.async_all_gather = 1;
    (void)adv_review_offer(review, ADV_SEVERITY_WARNING, "collective_fusion", &changed, small_gain_frac,
                           "weight gathers are not overlapped: async collective fusion is off");
}

static bool offloads_anything(const struct adv_plan *plan)
{
    bool any = false;
    for (int i = 0; i < ADV_TENSOR_COUNT; i++) any |= plan->placements[i] == ADV_PLACE_OFFLOAD;
    return any;
}

/* The best placements for this very mesh and batch. */
static void better_remat(struct adv_review *review)
{
    if (review->searched) return;
    struct adv_pricer *pricer = adv_arena_alloc(&review->arena, sizeof *pricer);
    struct adv_candidate *front = adv_arena_array(&review->arena, 4, sizeof *front);
    struct adv_cost_scratch *scratch = adv_arena_bare(&review->arena, sizeof *scratch);
    if (!pricer || !front || !scratch) return;
    scratch->valid = false;
    pricer->scratch = scratch;
    pricer->request = review->request;
    pricer->constants = review->input->constants;
    pricer->share = (struct adv_rank_share){1.0, adv_rank_memory_frac(review->estimate)};
    pricer->budget = 4000; /* best tensors first: what is found later gains little more */
    pricer->front.capacity = 4;
    pricer->front.items = front;
    struct adv_remat_space space;
    adv_remat_space_build(review->request, review->input->constants, &space);
    /* the first tensor on the host would want a schedule of its own, which is more than this one change */
    space.device_only = !offloads_anything(review->plan);
    space.input_may_offload = space.input_may_offload && !space.device_only;
    adv_remat_space_order(&space, pricer, review->plan);
    struct adv_plan changed = *review->plan;
    struct adv_estimate estimate;
    double worth = adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, review->estimate) * (1 - plain_gain_frac);
    if (adv_remat_solve(&space, pricer, worth, &changed, &estimate) != ADV_REMAT_SOLVED) return;
    int tiling = changed.num_vocab_tiling;
    if (memcmp(changed.placements, review->plan->placements, sizeof changed.placements) == 0) {
        (void)adv_review_offer(review, ADV_SEVERITY_WARNING, "vocab_tiling", &changed, plain_gain_frac,
                               "memory allows num_vocab_tiling=%d instead of %d", tiling,
                               review->plan->num_vocab_tiling);
        return;
    }
    char tiled[ADV_LIMIT_NAME] = "";
    if (tiling != review->plan->num_vocab_tiling)
        (void)snprintf(tiled, sizeof tiled, ", with num_vocab_tiling=%d", tiling);
    (void)adv_review_offer(review, ADV_SEVERITY_WARNING, "remat", &changed, plain_gain_frac,
                           "memory allows to keep other tensors than %s does%s",
                           adv_policy_name(review->plan->policy), tiled);
}

/* All devices of `axis` moved to fsdp. */
static bool to_fsdp(const struct adv_review *review, enum adv_axis axis, struct adv_plan *changed)
{
    *changed = *review->plan;
    if (changed->family.ici[axis] == 1) return false;
    changed->family.ici[ADV_AXIS_FSDP] *= changed->family.ici[axis];
    changed->family.ici[axis] = 1;
    if (axis == ADV_AXIS_CONTEXT && changed->family.cp_strategy != ADV_CP_ALL_GATHER)
        changed->family.cp_strategy = ADV_CP_ALL_GATHER;
    if (axis == ADV_AXIS_EXPERT)
        changed->family.use_ring_of_experts = changed->family.use_ragged_sort =
            changed->family.use_random_routing = false;
    if (axis == ADV_AXIS_EXPERT) changed->family.ragged_buffer_factor = -1;
    return true;
}

static int64_t widest_mlp(const struct adv_model *model)
{
    int64_t width = 0;
    for (int i = 0; i < model->layer_kinds_count; i++)
        width = adv_max_i(width, adv_max_i(model->layers[i].mlp_dim, model->layers[i].moe_mlp_dim));
    return width;
}

static void tensor_parallelism(struct adv_review *review)
{
    struct adv_plan changed;
    int degree = review->plan->family.ici[ADV_AXIS_TENSOR];
    if (!to_fsdp(review, ADV_AXIS_TENSOR, &changed)) return;
    int64_t width = widest_mlp(model_of(review));
    (void)adv_review_offer(review, ADV_SEVERITY_WARNING, "tensor_parallelism", &changed, small_gain_frac,
                           "tensor=%d leaves %lld columns a device (%.0f hide its collectives on one torus "
                           "axis when nothing else does); fsdp=%d instead",
                           degree, (long long)(width / degree),
                           adv_roofline_ici_intensity(chip_of(review), 1, false),
                           changed.family.ici[ADV_AXIS_FSDP]);
}

static void transposed_width(struct adv_review *review)
{
    struct adv_plan changed;
    const int tensor = adv_plan_degree(review->plan, ADV_AXIS_TENSOR) *
                       adv_plan_degree(review->plan, ADV_AXIS_TENSOR_SEQUENCE);
    bool dense = false;
    for (int i = 0; i < model_of(review)->layer_kinds_count; i++)
        dense |= model_of(review)->layers[i].mlp_dim > 0;
    if (!dense || !adv_cost_plan_meets_width(review->input->constants, review->plan) ||
        !to_fsdp(review, ADV_AXIS_FSDP_TRANSPOSE, &changed))
        return;
    (void)adv_review_offer(review, ADV_SEVERITY_WARNING, "transposed_width", &changed, small_gain_frac,
                           "%s=%d beside tensor=%d: XLA brings the feed-forward's activations together over "
                           "tensor before it multiplies for the weights' gradients; fsdp=%d instead",
                           adv_axis_key(ADV_AXIS_FSDP_TRANSPOSE),
                           review->plan->family.ici[ADV_AXIS_FSDP_TRANSPOSE], tensor,
                           changed.family.ici[ADV_AXIS_FSDP]);
}

static void other_axes(struct adv_review *review)
{
    static const struct {
        enum adv_axis axis;
        const char *code;
    } axes[] = {{ADV_AXIS_CONTEXT, "context_parallelism"},
                {ADV_AXIS_EXPERT, "expert_parallelism"},
                {ADV_AXIS_DATA, "data_parallelism"},
                {ADV_AXIS_STAGE, "pipeline_parallelism"}};
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        struct adv_plan changed;
        if (!to_fsdp(review, axes[i].axis, &changed)) continue;
        (void)adv_review_offer(review, ADV_SEVERITY_WARNING, axes[i].code, &changed, small_gain_frac,
                               "%s=%d costs more than it brings; fsdp=%d instead", adv_axis_key(axes[i].axis),
                               review->plan->family.ici[axes[i].axis], changed.family.ici[ADV_AXIS_FSDP]);
    }
}

static void accumulation(struct adv_review *review)
{
    int steps = review->plan->family.gradient_accumulation_steps;
    struct adv_plan changed = *review->plan;
    for (int factor = steps; factor > 1; factor--) {
        if (steps % factor != 0) continue;
        changed.family.gradient_accumulation_steps = steps / factor;
        changed.family.per_device_batch_size = review->plan->family.per_device_batch_size * factor;
        if (adv_review_offer(review, ADV_SEVERITY_INFO, "gradient_accumulation", &changed, plain_gain_frac,
                             "weights are gathered %d times a step; per_device_batch_size %g fits with %d "
                             "accumulation steps",
                             steps, changed.family.per_device_batch_size,
                             changed.family.gradient_accumulation_steps))
            return;
    }
}

static void number_formats(struct adv_review *review)
{
    const struct adv_chip *chip = chip_of(review);
    enum adv_quantization format = review->plan->family.quantization;
    struct adv_plan changed = *review->plan;
    bool fp8 = format == ADV_QUANT_FP8 || format == ADV_QUANT_FP8_FULL;
    if (!adv_quantization_pays(format, chip)) {
        changed.family.quantization = ADV_QUANT_NONE;
        changed.family.use_qwix = changed.family.quantization_static = false;
        if (!adv_review_offer(review, ADV_SEVERITY_WARNING, "quantization_not_native", &changed, -1,
                              "%s has no native %s matmuls, so quantising only adds work", chip->title,
                              fp8 ? "fp8" : "int8"))
            adv_review_remark(review, ADV_SEVERITY_WARNING, "quantization_not_native", &changed,
                              "%s has no native %s matmuls", chip->title, fp8 ? "fp8" : "int8");
    }
    if (format != ADV_QUANT_NONE) return;
    bool has_fp8 = adv_quantization_pays(ADV_QUANT_FP8_FULL, chip),
         has_int8 = adv_quantization_pays(ADV_QUANT_INT8, chip);
    if (!has_fp8 && !has_int8) return;
    changed.family.quantization = has_fp8 ? ADV_QUANT_FP8_FULL : ADV_QUANT_INT8;
    changed.family.use_qwix = true;
    (void)adv_review_offer(review, ADV_SEVERITY_INFO, "native_quantization", &changed, plain_gain_frac,
                           "%s matmuls are native to this chip; they change the numerics",
                           adv_quantization_name(changed.family.quantization));
}

static void head_size(struct adv_review *review)
{
    const struct adv_chip *chip = chip_of(review);
    for (int i = 0; i < model_of(review)->layer_kinds_count; i++) {
        const struct adv_layer *layer = &model_of(review)->layers[i];
        if (layer->attention == ADV_ATTENTION_LINEAR || layer->head_dim_qk >= chip->mxu_rows) continue;
        adv_review_remark(review, ADV_SEVERITY_INFO, "head_dim", NULL,
                          "a head of %d fills %.0f %% of the %.0f rows of a matrix unit in the score "
                          "product; this is the model's shape, not the plan's",
                          layer->head_dim_qk, 100 * adv_roofline_mxu_utilisation(chip, layer->head_dim_qk),
                          chip->mxu_rows);
        return;
    }
}

static void long_context(struct adv_review *review)
{
    if (!is_flash(review) || review->plan->family.seq_len < LONG_SEQUENCE) return;
    struct adv_plan changed = *review->plan;
    if (review->plan->family.max_logit_estimate <= 0) {
        changed.family.max_logit_estimate = 30;
        (void)adv_review_offer(
            review, ADV_SEVERITY_INFO, "max_logit_estimate", &changed, small_gain_frac,
            "a constant maximum spares the running one; safe only while attention logits stay below it");
    }
    changed = *review->plan;
    if (review->plan->family.dq_reduction_steps == 0) {
        changed.family.dq_reduction_steps = 3;
        (void)adv_review_offer(review, ADV_SEVERITY_INFO, "dq_reduction_steps", &changed, small_gain_frac,
                               "query gradients are reduced from one partial result per key block");
    }
}

static void context_strategy(struct adv_review *review)
{
    if (adv_plan_degree(review->plan, ADV_AXIS_CONTEXT) == 1) return;
    struct adv_plan changed = *review->plan;
    if (!changed.family.cp_load_balance && changed.family.cp_strategy != ADV_CP_ULYSSES) {
        changed.family.cp_load_balance = true;
        (void)adv_review_offer(review, ADV_SEVERITY_WARNING, "context_load_balance", &changed,
                               small_gain_frac,
                               "without load balancing the last context shard has most of the causal work");
    }
    static const enum adv_cp_strategy strategies[] = {ADV_CP_ALL_GATHER, ADV_CP_RING, ADV_CP_ULYSSES};
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        if (review->plan->family.cp_strategy == strategies[i] ||
            review->plan->family.cp_strategy == ADV_CP_USP)
            continue;
        changed = *review->plan;
        changed.family.cp_strategy = strategies[i];
        changed.family.cp_load_balance = strategies[i] != ADV_CP_ULYSSES;
        (void)adv_review_offer(review, ADV_SEVERITY_INFO, "context_strategy", &changed, plain_gain_frac,
                               "context_parallel_strategy=%s suits this shape better",
                               adv_cp_strategy_name(strategies[i]));
    }
}

static void small_switches(struct adv_review *review)
{
    struct adv_plan changed = *review->plan;
    if (adv_model_has_experts(model_of(review)) && changed.family.float32_weight_sum) {
        changed.family.float32_weight_sum = false;
        (void)adv_review_offer(review, ADV_SEVERITY_INFO, "float32_weight_sum", &changed, small_gain_frac,
                               "expert outputs are summed in float32; bfloat16 halves that traffic");
    }
    changed = *review->plan;
    changed.family.use_iota_embed = true;
    (void)adv_review_offer(
        review, ADV_SEVERITY_INFO, "iota_embed", &changed, small_gain_frac,
        "embedding by gather and scatter-add is slower than a one-hot matmul for this vocabulary");
}

static double weight_wait_s(const struct adv_ledger *ledger)
{
    double exposed_s = 0;
    for (int i = 0; i < ledger->terms_count; i++)
        if (!strncmp(ledger->terms[i].name, "fsdp_", 5)) exposed_s += ledger->terms[i].exposed_seconds;
    return exposed_s;
}

/* Whether a step of twice the batch waits less for its weights than one of this batch. */
static bool batch_hides(const struct adv_review *review, double exposed_s)
{
    struct adv_plan doubled = *review->plan;
    struct adv_estimate estimate;
    struct adv_ledger ledger;
    struct adv_estimate_input input = *review->input;
    doubled.family.per_device_batch_size *= 2;
    input.plan = &doubled;
    return adv_estimate_plan(&input, &estimate, &ledger, NULL) == ADV_OK &&
           weight_wait_s(&ledger) < exposed_s * (1 - plain_gain_frac);
}

/* Exposed weight traffic that no other rule removes: what would hide it, or that tokens enough are there. A
 * token does matmuls with its active parameters, and all are gathered. */
static void exposed_weights(struct adv_review *review)
{
    const double exposed_s = review->ledger ? weight_wait_s(review->ledger) : 0;
    double share = exposed_s / review->estimate->step_time_s;
    if (share < 0.05) return;
    const struct adv_model_params params = adv_model_params(model_of(review));
    const double tokens = adv_plan_tokens(review->plan) * chip_of(review)->devices_per_chip;
    const double hiding = adv_roofline_ici_intensity(chip_of(review), 1, true) * params.total / params.active;
    adv_review_remark(
        review, ADV_SEVERITY_INFO, "exposed_weight_gathers", NULL,
        "%.3f s (%.0f %%) of the step wait for weights: %.0f tokens per chip and microstep, where "
        "%.0f hide a gather over one torus axis; %s",
        exposed_s, 100 * share, tokens, hiding,
        tokens >= hiding ? "what is left are transfers that XLA does not overlap, and a larger batch spreads "
                           "them over more tokens"
        : batch_hides(review, exposed_s)
            ? "a larger batch per device would"
            : "but XLA leaves a share of these transfers without overlap at any batch: a larger one spreads "
              "them over more tokens");
}

/* A kernel over the VMEM limit: the limit raised, or tiles that fit. */
static void over_vmem(struct adv_review *review)
{
    struct adv_over_vmem found;
    if (!adv_over_vmem_find(review->ledger, chip_of(review), &review->plan->flags, &found)) return;
    struct adv_plan changed = *review->plan;
    if (found.can_raise)
        changed.flags.scoped_vmem_limit_kib = (int)found.needed_kib;
    else if (!tuned(review, &changed))
        return;
    adv_review_remark(review, ADV_SEVERITY_ERROR, "kernel_over_vmem", &changed, "%s; %s", found.detail,
                      found.remedy);
}

adv_advice_rule *const adv_advice_time_rules[] = {
    attention_tiles,   expert_tiles,    fused_backward,     tokamax_gmm,      sparsecore_offload,
    collective_fusion, better_remat,    tensor_parallelism, transposed_width, other_axes,
    accumulation,      number_formats,  head_size,          long_context,     context_strategy,
    small_switches,    exposed_weights, over_vmem,          ragged_dot,       NULL,
};

/* plan_rules_kernel.c: the rules of kernels, context strategies, number formats and XLA flags. */
#include "engine/spec/plan_rules.h"

#include <stdio.h>

#include "engine/base/units.h"
#include "engine/spec/local_mask.h"

static bool is_flash(const struct adv_rule_facts *facts)
{
    return facts->plan->family.attention == ADV_ATTENTION_IMPL_FLASH;
}

bool adv_rule_dq_reduction(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    int steps = facts->plan->family.dq_reduction_steps;
    if (steps == 0 || steps == 3) return false;
    return adv_rule_broken(report, "/config/dq_reduction_steps", "0 or 3",
                           "dq_reduction_steps %d is not supported", steps);
}

bool adv_rule_sparse_attention_kernel(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    bool is_sparse = facts->model->decoder == ADV_DECODER_DEEPSEEK4;
    for (int i = 0; i < facts->model->layer_kinds_count; i++)
        is_sparse |= facts->model->layers[i].indexer_topk > 0;
    if (!is_sparse || !is_flash(facts) || facts->plan->family.use_tokamax_splash) return false;
    return adv_rule_broken(report, "/config/use_tokamax_splash",
                           "set use_tokamax_splash true, or attention dot_product",
                           "sparse attention runs with the tokamax splash kernel or dot_product only");
}

/* Of the kernels only tokamax's gives the largest scores, and only where each device has the whole sequence
 * of keys: attention_op.py:2582 and 2588, types.py:3992, 5243 and 5296 of MaxText 0.2.5. */
bool adv_rule_qk_clip_kernel(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_plan *plan = facts->plan;
    if (!plan->family.use_qk_clip || !facts->has_latent) return false;
    if (plan->family.cp_strategy != ADV_CP_ALL_GATHER)
        return adv_rule_broken(report, "/config/use_qk_clip",
                               "use the all_gather strategy, or set it to false",
                               "the %s strategy does not give the scores that QK-Clip needs",
                               adv_cp_strategy_name(plan->family.cp_strategy));
    if (!is_flash(facts) || plan->family.use_tokamax_splash) return false;
    return adv_rule_broken(
        report, "/config/use_qk_clip",
        "set use_tokamax_splash true, or attention dot_product, or use_qk_clip false",
        "QK-Clip needs the largest scores, which jax's splash kernel does not give: MaxText 0.2.5 "
        "compiles it with the tokamax splash kernel or dot_product only");
}

/* qk_clip_utils.py rescales the kernels named wq_b and wkv_b; queries that are projected directly have
 * another name (attention_mla.py:663). */
bool adv_rule_qk_clip_queries(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (!facts->plan->family.use_qk_clip || !facts->has_latent) return false;
    for (int i = 0; i < facts->model->layer_kinds_count; i++)
        if (facts->model->layers[i].q_lora_rank > 0) return false;
    return adv_rule_broken(
        report, "/config/use_qk_clip",
        "a lower qk_clip_threshold: scores shrink by the root of "
        "what is asked for",
        "%s projects queries directly, and MaxText's QK-Clip leaves that weight alone: it clips "
        "those of keys only",
        facts->model->name);
}

bool adv_rule_load_balance(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    int context = facts->sequence_shards;
    const char *at =
        facts->context > 1 ? "/config/ici_context_parallelism" : "/config/ici_expert_parallelism";
    if (context == 1) return false;
    int64_t sequence = facts->plan->family.seq_len;
    int64_t parts = (int64_t)context * facts->ulysses * (facts->plan->family.cp_load_balance ? 2 : 1);
    if (facts->plan->family.cp_load_balance && context % 2 != 0) {
        return adv_rule_broken(report, at, "use an even degree or context_parallel_load_balance false",
                               "load balancing swaps chunks between pairs of shards, but context is %d",
                               context);
    }
    if (sequence % parts == 0) return false;
    return adv_rule_broken(
        report, "/config/max_target_length", adv_rule_hint(report, "a multiple of %lld", (long long)parts),
        "%lld tokens do not split into %lld context chunks", (long long)sequence, (long long)parts);
}

/* Of every strategy but all_gather: types.py:5216 to 5236, 5268 to 5287 and 3956 to 3982 of MaxText 0.2.5. */
static bool lacks_kernel(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const char *strategy = adv_cp_strategy_name(facts->plan->family.cp_strategy);
    if (!is_flash(facts) || !facts->plan->family.use_tokamax_splash) {
        return adv_rule_broken(report, "/config/context_parallel_strategy",
                               "set attention flash and use_tokamax_splash true",
                               "the %s strategy runs with the tokamax splash kernel only", strategy);
    }
    for (int i = 0; i < facts->model->layer_kinds_count; i++) {
        if (facts->model->layers[i].has_sink)
            return adv_rule_broken(report, "/config/context_parallel_strategy", "use all_gather",
                                   "the %s strategy takes no attention sinks", strategy);
    }
    return false;
}

bool adv_rule_ring(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_plan *plan = facts->plan;
    if (plan->family.cp_strategy != ADV_CP_RING) return false;
    if (facts->context == 1) {
        return adv_rule_broken(report, "/config/context_parallel_strategy",
                               "set ici_context_parallelism above 1",
                               "the ring strategy needs context parallelism, which is 1");
    }
    if (lacks_kernel(facts, report)) return true;
    for (int i = 0; plan->family.packing && i < facts->model->layer_kinds_count; i++) {
        if (facts->model->layers[i].kv_lora_rank > 0)
            return adv_rule_broken(
                report, "/config/packing", "set packing false, or use all_gather",
                "the ring strategy with multi-head latent attention takes no packed sequences");
    }
    int64_t square = (int64_t)facts->context * facts->context;
    if (plan->family.seq_len % square == 0) return false;
    return adv_rule_broken(report, "/config/max_target_length",
                           adv_rule_hint(report, "a multiple of %lld", (long long)square),
                           "%lld tokens are not a multiple of context %d squared",
                           (long long)plan->family.seq_len, facts->context);
}

/* Heads of every layer kind divisible by `shards`; more than one key-value head. */
static bool heads_divide(const struct adv_rule_facts *facts, int shards)
{
    for (int i = 0; i < facts->model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &facts->model->layers[i];
        if (layer->attention == ADV_ATTENTION_LINEAR) continue;
        if (layer->kv_heads < 2 || layer->kv_heads % shards != 0 || layer->q_heads % shards != 0)
            return false;
    }
    return true;
}

bool adv_rule_ulysses(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_plan *plan = facts->plan;
    if (plan->family.cp_strategy != ADV_CP_ULYSSES) return false;
    if (plan->family.cp_load_balance) {
        return adv_rule_broken(report, "/config/context_parallel_load_balance", "set it to false",
                               "the ulysses strategy does not take load balancing");
    }
    if (facts->context == 1) {
        return adv_rule_broken(report, "/config/context_parallel_strategy",
                               "set ici_context_parallelism above 1",
                               "the ulysses strategy needs context parallelism, which is 1");
    }
    if (lacks_kernel(facts, report)) return true;
    if (facts->has_local || facts->has_latent) {
        return adv_rule_broken(report, "/config/context_parallel_strategy", "use all_gather",
                               "the ulysses strategy takes global attention only; this model has %s",
                               facts->has_local ? "window or chunk layers" : "multi-head latent attention");
    }
    if (plan->family.dcn[ADV_AXIS_CONTEXT] > 1) {
        return adv_rule_broken(report, "/config/dcn_context_parallelism", "set it to 1",
                               "the ulysses strategy stays inside a slice");
    }
    if (heads_divide(facts, facts->context)) return false;
    return adv_rule_broken(
        report, "/config/ici_context_parallelism", "use a degree that divides the heads, or all_gather",
        "the ulysses strategy splits heads: context %d does not divide them", facts->context);
}

bool adv_rule_usp(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_plan *plan = facts->plan;
    if (plan->family.cp_strategy != ADV_CP_USP) {
        if (facts->ulysses == 1) return false;
        return adv_rule_broken(report, "/config/ici_context_usp_ulysses_parallelism",
                               "set context_parallel_strategy usp",
                               "the axis has degree %d, but the strategy is %s", facts->ulysses,
                               adv_cp_strategy_name(plan->family.cp_strategy));
    }
    if (facts->context == 1 || facts->ulysses == 1) {
        return adv_rule_broken(report, "/config/context_parallel_strategy",
                               "set both axes above 1, or use ring or ulysses",
                               "usp needs ring and ulysses parts: context is %d, context_usp_ulysses is %d",
                               facts->context, facts->ulysses);
    }
    if (lacks_kernel(facts, report)) return true;
    if (facts->has_latent) {
        return adv_rule_broken(report, "/config/context_parallel_strategy", "use all_gather",
                               "the usp strategy takes no multi-head latent attention");
    }
    if (plan->family.dcn[ADV_AXIS_CONTEXT] > 1 || plan->family.dcn[ADV_AXIS_ULYSSES] > 1) {
        return adv_rule_broken(report, "/config/dcn_context_parallelism", "set it to 1",
                               "the usp strategy stays inside a slice");
    }
    int64_t square = (int64_t)facts->context * facts->context;
    if (plan->family.seq_len % square != 0) {
        return adv_rule_broken(report, "/config/max_target_length",
                               adv_rule_hint(report, "a multiple of %lld", (long long)square),
                               "%lld tokens are not a multiple of context %d squared",
                               (long long)plan->family.seq_len, facts->context);
    }
    if (heads_divide(facts, facts->ulysses)) return false;
    return adv_rule_broken(report, "/config/ici_context_usp_ulysses_parallelism",
                           "use a degree that divides query and key-value heads",
                           "ulysses degree %d does not divide the heads", facts->ulysses);
}

bool adv_rule_local_under_ring(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (!adv_plan_circulates_keys(facts->plan) || !facts->has_local) return false;
    return adv_rule_broken(
        report, "/config/context_parallel_strategy", "use all_gather",
        "window or chunk layers under the ring strategy pass validation but are not supported by the kernel");
}

static struct adv_local_mask mask_of(const struct adv_plan *plan, const struct adv_layer *layer)
{
    return (struct adv_local_mask){
        .seq_len = plan->family.seq_len,
        .window_tokens = layer->window_tokens,
        .chunked = layer->attention == ADV_ATTENTION_CHUNKED,
        .context = adv_plan_sequence_shards(plan),
        .load_balanced = plan->family.cp_load_balance,
    };
}

bool adv_plan_shards_masks(const struct adv_plan *plan, const struct adv_layer *layer)
{
    return plan->family.use_tokamax_splash && plan->family.cp_strategy == ADV_CP_ALL_GATHER &&
           adv_plan_sequence_shards(plan) > 1 &&
           (layer->attention == ADV_ATTENTION_WINDOW || layer->attention == ADV_ATTENTION_CHUNKED);
}

int adv_plan_odd_masks(const struct adv_plan *plan, const struct adv_layer *layer, int block_q, int block_kv)
{
    const struct adv_local_mask mask = mask_of(plan, layer);
    const int blocks =
        adv_local_mask_blocks(&mask, adv_min_i(block_q, mask.seq_len), adv_min_i(block_kv, mask.seq_len));
    return blocks % mask.context == 0 ? 0 : blocks;
}

bool adv_plan_masks_divide(const struct adv_plan *plan, const struct adv_model *model)
{
    const int64_t queries = plan->family.seq_len / adv_plan_sequence_shards(plan);
    const int block = (int)adv_min_i(512, queries); /* base.yml's; a smaller square has as many contents */
    for (int i = 0; i < model->layer_kinds_count; i++)
        if (adv_plan_shards_masks(plan, &model->layers[i]) &&
            adv_plan_odd_masks(plan, &model->layers[i], block, block) > 0)
            return false;
    return true;
}

bool adv_rule_local_masks(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (!is_flash(facts)) return false;
    for (int i = 0; i < facts->model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &facts->model->layers[i];
        if (!adv_plan_shards_masks(facts->plan, layer)) continue;
        const struct adv_splash_blocks *b = &facts->plan->family.blocks[adv_layer_has_local_tiles(layer)];
        const int tiles[][2] = {{b->block_q, b->block_kv}, {b->block_q_dkv, b->block_kv_dkv}};
        for (int t = 0; t < 2; t++) {
            const int odd = adv_plan_odd_masks(facts->plan, layer, tiles[t][0], tiles[t][1]);
            if (odd == 0) continue;
            return adv_rule_broken(
                report, "/config/use_tokamax_splash",
                adv_plan_masks_divide(facts->plan, facts->model)
                    ? "give tiles as many keys as queries, or set use_tokamax_splash false"
                    : "set use_tokamax_splash false",
                "MaxText shards the masks of local layers over context %d, but tokamax's kernel has %d "
                "of them: %s tiles of %d queries x %d keys are masked in part in %d %s",
                facts->sequence_shards, odd, t == 0 ? "forward" : "backward", tiles[t][0], tiles[t][1], odd,
                odd == 1 ? "way" : "ways");
        }
    }
    return false;
}

bool adv_rule_fp8_full(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (facts->plan->family.quantization != ADV_QUANT_FP8_FULL || facts->plan->family.use_qwix) return false;
    return adv_rule_broken(
        report, "/config/use_qwix_quantization", "set use_qwix_quantization true",
        "quantization fp8_full passes validation but fails when the model is built without qwix");
}

bool adv_rule_fp8_accumulation(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    int steps = facts->plan->family.gradient_accumulation_steps;
    if (facts->plan->family.quantization != ADV_QUANT_FP8 || steps == 1) return false; /* types.py:4977 */
    return adv_rule_broken(report, "/config/gradient_accumulation_steps", "use 1, or quantization fp8_full",
                           "quantization fp8 does not work with %d accumulation steps", steps);
}

bool adv_rule_native_format(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_chip *chip = &facts->cluster->chip;
    enum adv_quantization quantization = facts->plan->family.quantization;
    if (adv_quantization_pays(quantization, chip)) return false;
    return adv_rule_broken(report, "/config/quantization",
                           "leave it out: int8 suits v5e, v5p and v6e, fp8_full suits tpu7x",
                           "%s has no faster matmul rate for %s: quantisation only adds work", chip->name,
                           adv_quantization_name(quantization));
}

bool adv_rule_muon(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (facts->plan->family.optimizer != ADV_OPT_MUON) return false;
    enum adv_decoder decoder = facts->model->decoder;
    if (decoder == ADV_DECODER_DEEPSEEK || decoder == ADV_DECODER_DEEPSEEK4 || decoder == ADV_DECODER_QWEN3 ||
        decoder == ADV_DECODER_GEMMA3 || decoder == ADV_DECODER_LLAMA2) {
        return false;
    }
    return adv_rule_broken(report, "/config/opt_type", "use adamw",
                           "muon is not available for decoder_block %s", adv_decoder_name(decoder));
}

bool adv_rule_vmem_limit(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    double limit = facts->plan->flags.scoped_vmem_limit_kib * ADV_KIB;
    /* Published v5p runs set more than one core has, and no more than both: the flag is taken, though kernels
     * have one core's (kernel/vmem.h). */
    const struct adv_chip *chip = &facts->cluster->chip;
    double capacity = chip->vmem_bytes_per_core * chip->cores_per_chip / chip->devices_per_chip;
    if (!(limit > capacity)) return false; /* also when the capacity is unknown */
    return adv_rule_broken(
        report, "/xla_flags", adv_rule_hint(report, "at most %.0f", capacity / ADV_KIB),
        "xla_tpu_scoped_vmem_limit_kib %d is more than the %.0f KiB of VMEM of a %s device",
        facts->plan->flags.scoped_vmem_limit_kib, capacity / ADV_KIB, chip->name);
}

bool adv_rule_fusion_and_offload(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_flags *flags = &facts->plan->flags;
    const char *what = flags->sc_all_gather == 1 && flags->cf_all_gather == 1           ? "all-gather"
                       : flags->sc_reduce_scatter == 1 && flags->cf_reduce_scatter == 1 ? "reduce-scatter"
                       : flags->sc_all_reduce == 1 && flags->cf_all_reduce == 1         ? "all-reduce"
                                                                                        : NULL;
    if (!what || facts->cluster->chip.sparsecores_per_chip <= 0)
        return false; /* nothing is offloaded there */
    return adv_rule_broken(report, "/xla_flags",
                           "set the async_collective_fusion flag of that collective to false",
                           "SparseCore offload and TensorCore fusion of the %s exclude each other", what);
}

bool adv_rule_no_sparsecores(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_flags *flags = &facts->plan->flags;
    const struct adv_chip *chip = &facts->cluster->chip;
    const char *what = flags->sc_all_gather == 1       ? "all-gather"
                       : flags->sc_reduce_scatter == 1 ? "reduce-scatter"
                       : flags->sc_all_reduce == 1     ? "all-reduce"
                                                       : NULL;
    if (!what || !(chip->sparsecores_per_chip <= 0)) return false; /* also when the number is unknown */
    return adv_rule_broken(report, "/xla_flags",
                           "leave the sparse_core_collective_offload flags out; async collective fusion "
                           "overlaps collectives on such chips",
                           "%s has no SparseCores: offload of the %s to them has no effect", chip->name,
                           what);
}

bool adv_plan_context_is_strided(const struct adv_plan *plan, const struct adv_model *model,
                                 const struct adv_cluster *cluster)
{
    enum { TILE_ROWS = 8 };
    if (!cluster->chip.whole_host_copies || !plan->family.scan_layers ||
        adv_plan_sequences_per_shard(plan, cluster) >= 2.0)
        return false;
    const int shards =
        adv_plan_degree(plan, ADV_AXIS_TENSOR) * adv_plan_degree(plan, ADV_AXIS_TENSOR_SEQUENCE);
    for (int i = 0; i < model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &model->layers[i];
        if (layer->attention != ADV_ATTENTION_LINEAR && (layer->q_heads / shards) % TILE_ROWS != 0)
            return true;
    }
    return false;
}

bool adv_rule_strided_context(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (facts->plan->placements[ADV_TENSOR_CONTEXT] != ADV_PLACE_OFFLOAD ||
        !adv_plan_context_is_strided(facts->plan, facts->model, facts->cluster))
        return false;
    return adv_rule_broken(
        report, "/config/context", "keep it on the device, recompute it, or give a batch shard two sequences",
        "libtpu 0.0.50.1 aborts (\"Strided host DMA is not supported\") where %s sends the context of one "
        "sequence to the host and the heads of a tensor shard are no multiple of 8",
        facts->cluster->chip.name);
}

bool adv_rule_offload_unclipped(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (!facts->plan->optimizer_host_offload || facts->plan->family.gradient_clipping_threshold <= 0)
        return false;
    return adv_rule_broken(
        report, "/config/gradient_clipping_threshold", "set it to 0",
        "clipping needs the global norm before the first optimizer state can be brought back from the host");
}

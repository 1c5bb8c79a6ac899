#include "engine/spec/plan_rules.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

bool adv_rule_broken(struct adv_rule_report *report, const char *pointer, const char *hint,
                     const char *format, ...)
{
    if (!report) return true;
    char detail[ADV_LIMIT_DETAIL];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    (void)adv_err_add_rule(report->err, report->code, report->rule, pointer, hint, "%s", detail);
    return true;
}

const char *adv_rule_hint(struct adv_rule_report *report, const char *format, ...)
{
    if (!report) return NULL;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(report->hint, sizeof report->hint, format, args);
    va_end(args);
    return report->hint;
}

static int product_of(const int degrees[ADV_AXIS_COUNT])
{
    int product = 1;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) product *= degrees[i];
    return product;
}

static bool rule_ici_product(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const int *ici = facts->plan->family.ici;
    int devices = facts->cluster->devices_per_slice;
    int product = product_of(ici);
    if (product == devices) return false;
    if (!report) return true;
    char text[ADV_LIMIT_DETAIL];
    adv_plan_axes_text(ici, "all axes 1", text, sizeof text);
    int others = product / ici[ADV_AXIS_FSDP];
    const char *hint =
        devices % others == 0
            ? adv_rule_hint(report, "ici_fsdp_parallelism would have to be %d", devices / others)
            : adv_rule_hint(report,
                            "the axes other than fsdp multiply to %d, which does not divide %d devices",
                            others, devices);
    return adv_rule_broken(report, "/config/ici_fsdp_parallelism", hint, "%d devices per slice != %s = %d",
                           devices, text, product);
}

static bool rule_dcn_product(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const int *dcn = facts->plan->family.dcn;
    int product = product_of(dcn);
    if (product == facts->cluster->slices) return false;
    if (!report) return true;
    char text[ADV_LIMIT_DETAIL];
    adv_plan_axes_text(dcn, "all axes 1", text, sizeof text);
    return adv_rule_broken(report, "/config/dcn_data_parallelism",
                           adv_rule_hint(report, "the dcn axes must multiply to the number of slices, %d",
                                         facts->cluster->slices),
                           "%d slice(s) != %s = %d", facts->cluster->slices, text, product);
}

/* Bit set of the axes a custom rule's mesh has; 0 = all but sequence. */
static unsigned mesh_axes_of(enum adv_mesh_rule rule)
{
#define AXIS(axis) (1u << ADV_AXIS_##axis)
    switch (rule) {
    case ADV_RULE_PURE_FSDP:
        return AXIS(FSDP);
    case ADV_RULE_EP_AS_CP:
        return AXIS(DATA) | AXIS(STAGE) | AXIS(FSDP) | AXIS(EXPERT);
    case ADV_RULE_CP_AS_EP:
        return AXIS(DATA) | AXIS(STAGE) | AXIS(FSDP) | AXIS(EXPERT) | AXIS(CONTEXT);
    case ADV_RULE_DEFAULT:
    case ADV_RULE_EP_AS_DP:
    case ADV_RULE_SHARD_EXP_ON_FSDP:
    case ADV_RULE_PIPELINE_LARGE_MOE:
        break;
    }
    return ((1u << ADV_AXIS_COUNT) - 1u) & ~AXIS(SEQUENCE);
#undef AXIS
}

bool adv_plan_axis_in_mesh(enum adv_mesh_rule rule, const struct adv_model *model, enum adv_axis axis)
{
    const unsigned own = rule == ADV_RULE_DEFAULT ? model->mesh_axes : 0;
    return ((own ? own : mesh_axes_of(rule)) >> axis) & 1u;
}

static bool rule_axis_in_mesh(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    bool any = false;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        if (adv_plan_axis_in_mesh(facts->plan->family.rule, facts->model, (enum adv_axis)i)) continue;
        int degree = adv_plan_degree(facts->plan, (enum adv_axis)i);
        if (degree == 1) continue;
        if (!report) return true;
        char pointer[ADV_LIMIT_POINTER];
        (void)snprintf(pointer, sizeof pointer, "/config/ici_%s_parallelism", adv_axis_key((enum adv_axis)i));
        any = adv_rule_broken(report, pointer, "set it to 1, or choose other mesh rules",
                              "axis %s has degree %d but is not in the mesh: MaxText would ignore it",
                              adv_axis_key((enum adv_axis)i), degree);
    }
    return any;
}

static bool rule_inference_axes(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    int degree = adv_plan_degree(facts->plan, ADV_AXIS_CONTEXT_AUTOREGRESSIVE);
    if (degree == 1) return false;
    return adv_rule_broken(
        report, "/config/ici_context_autoregressive_parallelism", "use ici_context_parallelism for training",
        "context_autoregressive %d leaves attention weights unsharded, beyond sharding_tolerance", degree);
}

/* Sequences of one microstep on each batch shard, for a whole one: rounding of fractions is forgiven. */
static const double batch_rounding_frac = 1e-6;

int adv_plan_batch_shards(const struct adv_plan *plan)
{
    int experts = plan->family.rule == ADV_RULE_EP_AS_CP ? 1 : adv_plan_degree(plan, ADV_AXIS_EXPERT);
    return adv_plan_degree(plan, ADV_AXIS_DATA) * adv_plan_degree(plan, ADV_AXIS_DILOCO) *
           adv_plan_degree(plan, ADV_AXIS_FSDP) * adv_plan_degree(plan, ADV_AXIS_FSDP_TRANSPOSE) * experts;
}

double adv_plan_sequences_per_shard(const struct adv_plan *plan, const struct adv_cluster *cluster)
{
    return plan->family.per_device_batch_size * cluster->devices / adv_plan_batch_shards(plan);
}

static bool rule_batch_whole(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    double sequences = facts->sequences_per_shard;
    if (sequences >= 1 - batch_rounding_frac &&
        fabs(sequences - round(sequences)) <= batch_rounding_frac * sequences)
        return false;
    if (!report) return true;
    double batch = facts->plan->family.per_device_batch_size;
    double unit = (double)facts->batch_shards / facts->cluster->devices; /* one sequence per shard */
    double nearest = fmax(1, round(sequences)) * unit;
    const char *hint =
        unit > 0.999999
            ? adv_rule_hint(report, "it must be a multiple of %.6g; the nearest is %.10g", unit, nearest)
            : adv_rule_hint(report, "it must be a multiple of 1/%.6g; the nearest is %.10g", 1 / unit,
                            nearest);
    if (facts->cluster->chip.name[0] == '\0') /* the machine is not known */
        return adv_rule_broken(
            report, "/config/per_device_batch_size", hint,
            "%.10g sequences per device leave %.6g sequences on each batch shard, however many "
            "devices there are: not a whole number >= 1",
            batch, sequences);
    return adv_rule_broken(
        report, "/config/per_device_batch_size", hint,
        "%.10g sequences per device x %d devices over %d batch shards leaves %.6g sequences per shard, not a "
        "whole number >= 1",
        batch, facts->cluster->devices, facts->batch_shards, sequences);
}

static bool rule_vocab_tiling(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    double tokens = adv_plan_tokens(facts->plan);
    int tiles = facts->plan->num_vocab_tiling;
    double per_tile = tokens / tiles;
    if (rule_batch_whole(facts, NULL)) return false; /* that is what is wrong, and told */
    if (fabs(per_tile - round(per_tile)) <= 1e-9 * per_tile) return false;
    return adv_rule_broken(report, "/config/num_vocab_tiling",
                           "choose a power of two that divides per_device_batch_size x max_target_length",
                           "%.10g tokens per device do not split into %d equal tiles", tokens, tiles);
}

bool adv_plan_may_tile_vocab(const struct adv_model *model)
{
    return model->decoder != ADV_DECODER_GPT_OSS;
}

static bool rule_vocab_tiling_with_sinks(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (facts->plan->num_vocab_tiling == 1 || adv_plan_may_tile_vocab(facts->model)) return false;
    return adv_rule_broken(
        report, "/config/num_vocab_tiling", "set it to 1",
        "MaxText's tiled loss refuses the attention sinks of %s: their gradient is bfloat16",
        facts->model->name);
}

static bool rule_heads(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    int shards = facts->head_shards;
    const bool by_context =
        facts->plan->family.cp_strategy == ADV_CP_ULYSSES && facts->context > facts->head_shards;
    if (facts->plan->family.cp_strategy == ADV_CP_ULYSSES) shards *= facts->context;
    if (shards == 1) return false;
    for (int i = 0; i < facts->model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &facts->model->layers[i];
        if (layer->attention == ADV_ATTENTION_LINEAR) continue;
        int heads = layer->kv_lora_rank > 0 ? layer->q_heads : layer->kv_heads;
        if (heads % shards == 0 && layer->q_heads % shards == 0) continue;
        return adv_rule_broken(
            report, by_context ? "/config/ici_context_parallelism" : "/config/ici_tensor_parallelism",
            adv_rule_hint(report, "the axes over heads must multiply to a divisor of %d", heads),
            "%d key-value heads (%d query heads) cannot be split over %d shards", heads, layer->q_heads,
            shards);
    }
    return false;
}

static bool rule_embedding(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    int64_t width = facts->model->emb_dim;
    if (width % facts->embed_shards == 0) return false;
    return adv_rule_broken(
        report, "/config/ici_fsdp_parallelism",
        "move devices to an axis that does not shard this dimension: data, or tensor when the heads allow it",
        "the model dimension %lld is not divisible by the %d shards of its weights", (long long)width,
        facts->embed_shards);
}

static bool rule_mlp(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    int shards = facts->mlp_shards;
    for (int i = 0; shards > 1 && i < facts->model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &facts->model->layers[i];
        int64_t width = layer->mlp_dim % shards != 0 ? layer->mlp_dim
                        : layer->experts > 0         ? layer->moe_mlp_dim
                                                     : 0;
        if (width % shards == 0) continue;
        return adv_rule_broken(
            report, "/config/ici_tensor_parallelism", "the axes over the feed-forward width must divide it",
            "a feed-forward width of %lld is not divisible by fsdp_transpose %d x tensor %d x "
            "tensor_sequence %d = %d",
            (long long)width, facts->fsdp_transpose, facts->tensor, facts->tensor_sequence, shards);
    }
    return false;
}

static bool rule_vocab(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    int64_t vocab = facts->model->vocab_size;
    if (vocab % facts->head_shards == 0) return false;
    return adv_rule_broken(
        report, "/config/ici_tensor_parallelism", "pad the vocabulary or use fewer tensor shards",
        "a vocabulary of %lld is not divisible by %d tensor shards", (long long)vocab, facts->head_shards);
}

static bool rule_latent_ranks(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (!facts->has_latent) return false;
    int shards = facts->embed_shards;
    if (facts->plan->family.rule == ADV_RULE_PIPELINE_LARGE_MOE ||
        facts->plan->family.rule == ADV_RULE_EP_AS_CP)
        shards /= facts->expert;
    for (int i = 0; i < facts->model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &facts->model->layers[i];
        int rank = layer->q_lora_rank % shards != 0 ? layer->q_lora_rank : layer->kv_lora_rank;
        if (rank % shards == 0) continue;
        return adv_rule_broken(
            report, "/config/ici_fsdp_parallelism",
            "fewer fsdp x context x expert shards, or custom_mesh_and_rule ep-as-dp or pipeline-large-moe",
            "a latent rank of %d is not divisible by %d weight shards", rank, shards);
    }
    return false;
}

static bool rule_positions(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_model *model = facts->model;
    if (!model->has_learned_positions || facts->plan->family.seq_len <= model->position_rows) return false;
    return adv_rule_broken(report, "/config/max_target_length",
                           adv_rule_hint(report, "at most %lld", (long long)model->position_rows),
                           "%lld tokens, but the model learned %lld positions",
                           (long long)facts->plan->family.seq_len, (long long)model->position_rows);
}

static bool rule_experts(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (!facts->has_experts) return false;
    int shards = facts->expert;
    if (facts->plan->family.rule == ADV_RULE_CP_AS_EP) shards *= facts->context;
    if (facts->plan->family.rule == ADV_RULE_SHARD_EXP_ON_FSDP) shards *= facts->fsdp;
    if (facts->plan->family.shard_exp_on_fsdp || facts->plan->family.use_2d_fsdp_sharding)
        shards *= facts->fsdp * facts->context * facts->ulysses;
    for (int i = 0; i < facts->model->layer_kinds_count; i++) {
        int experts = facts->model->layers[i].experts;
        if (experts % shards == 0) continue;
        return adv_rule_broken(
            report, "/config/ici_expert_parallelism",
            adv_rule_hint(report, "the axes over experts must multiply to a divisor of %d", experts),
            "%d experts cannot be split over %d shards", experts, shards);
    }
    return false;
}

static bool rule_expert_axis_unused(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (!facts->has_experts || !facts->plan->family.shard_exp_on_fsdp || facts->expert == 1 ||
        facts->plan->family.rule != ADV_RULE_DEFAULT)
        return false;
    return adv_rule_broken(report, "/config/shard_exp_on_fsdp",
                           "use custom_mesh_and_rule shard-exp-on-fsdp, or ici_expert_parallelism 1",
                           "experts would be unsharded on the expert axis of %d, beyond sharding_tolerance",
                           facts->expert);
}

static bool rule_expert_options(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_plan *plan = facts->plan;
    if (facts->expert > 1) return false;
    const struct {
        const char *key;
        bool set;
    } options[] = {{"use_random_routing", plan->family.use_random_routing},
                   {"use_ragged_sort", plan->family.use_ragged_sort},
                   {"ragged_buffer_factor", plan->family.ragged_buffer_factor > 0},
                   {"use_ring_of_experts", plan->family.use_ring_of_experts}};
    bool any = false;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (!options[i].set) continue;
        if (!report) return true;
        any = adv_rule_broken(report, ADV_AT("/config", options[i].key), "leave it at its default",
                              "MaxText refuses %s while expert parallelism is 1%s", options[i].key,
                              facts->has_experts ? "" : ", and the model has no experts");
    }
    return any;
}

static bool rule_ring_of_experts(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_plan *plan = facts->plan;
    if (!plan->family.use_ring_of_experts || plan->family.ragged_buffer_factor <= 0 ||
        plan->family.use_ragged_sort)
        return false;
    return adv_rule_broken(report, "/config/ragged_buffer_factor", "set use_ragged_sort true",
                           "ragged_buffer_factor %.6g with use_ring_of_experts needs use_ragged_sort",
                           plan->family.ragged_buffer_factor);
}

static bool rule_dropping(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_plan *plan = facts->plan;
    enum adv_decoder decoder = facts->model->decoder;
    if (plan->family.capacity_factor <= 0 || plan->family.moe != ADV_MOE_DENSE) return false;
    if (decoder != ADV_DECODER_LLAMA4 && decoder != ADV_DECODER_GPT_OSS) return false;
    return adv_rule_broken(report, "/config/capacity_factor", "set it to -1",
                           "capacity_factor %.6g: %s has no token dropping", plan->family.capacity_factor,
                           adv_decoder_name(decoder));
}

static bool rule_capacity_unused(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_plan *plan = facts->plan;
    if (!facts->has_experts || plan->family.capacity_factor <= 0 || plan->family.moe == ADV_MOE_DENSE)
        return false;
    return adv_rule_broken(report, "/config/capacity_factor", "set sparse_matmul false to drop tokens",
                           "capacity_factor %.6g has no effect with sparse_matmul",
                           plan->family.capacity_factor);
}

static bool rule_scan(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_model *model = facts->model;
    if (!facts->plan->family.scan_layers) return false;
    if (model->cannot_scan)
        return adv_rule_broken(report, "/config/scan_layers", "set it to false", "%s cannot scan its layers",
                               model->name);
    if (model->has_deepstack && facts->plan->family.use_multimodal)
        return adv_rule_broken(report, "/config/scan_layers",
                               "set it to false, or use_multimodal to false to train on text alone",
                               "%s takes pictures into single layers, which cannot be scanned", model->name);
    if (model->decoder != ADV_DECODER_GPT_OSS && model->decoder != ADV_DECODER_LLAMA4 &&
        model->decoder != ADV_DECODER_OLMO3) {
        return false; /* gemma's blocks and, since MaxText 0.2.5, qwen3-next's have one for the rest */
    }
    int cycle = model->layers[0].scan_block;
    if (cycle <= 1 || model->layers_count % cycle == 0) return false;
    return adv_rule_broken(report, "/config/scan_layers",
                           "set scan_layers false, or change the number of layers",
                           "%d layers do not divide into scan steps of %d: the rest would be dropped",
                           model->layers_count, cycle);
}

const char *adv_plan_batch_too_small(const struct adv_plan *plan, const struct adv_cluster *cluster)
{
    if (adv_plan_sequences_per_shard(plan, cluster) < 1 - batch_rounding_frac) return "batch-by-shards";
    if (adv_plan_degree(plan, ADV_AXIS_STAGE) == 1) return NULL;
    return adv_rule_sequences_per_microbatch(plan, cluster) < 1 ? "pipeline" : NULL;
}

enum severity { ILLEGAL, REFUSED, WASTE };
/* adv_plan_broken_rule_among: BATCH rules read the batch, the number format or the expert exchange, MESH
 * rules none of them. */
enum reads { MESH, BATCH };

/* ILLEGAL: MaxText or XLA fails. REFUSED: MaxText's validation refuses it today, earlier releases ran it (or
 * it passes and the kernels do not support it), so the engine predicts it with a warning and never proposes
 * it. WASTE: runs, but not as the writer expects. */
static const struct {
    const char *name;
    enum severity severity;
    enum reads reads;
    adv_rule *check;
} rules[] = {
    {"ici-product", ILLEGAL, MESH, rule_ici_product},
    {"dcn-product", ILLEGAL, MESH, rule_dcn_product},
    {"axis-not-in-mesh", ILLEGAL, MESH, rule_axis_in_mesh},
    {"inference-axis", ILLEGAL, MESH, rule_inference_axes},
    {"custom-mesh", ILLEGAL, MESH, adv_rule_custom_mesh},
    {"custom-mesh-unused", WASTE, MESH, adv_rule_custom_mesh_unused},
    {"optimizer-over-data", REFUSED, MESH, adv_rule_optimizer_over_data},
    {"batch-by-shards", ILLEGAL, BATCH, rule_batch_whole},
    {"vocab-tiling", ILLEGAL, BATCH, rule_vocab_tiling},
    {"vocab-tiling-with-sinks", ILLEGAL, MESH, rule_vocab_tiling_with_sinks},
    {"heads-by-tensor", ILLEGAL, MESH, rule_heads},
    {"embedding-by-shards", ILLEGAL, MESH, rule_embedding},
    {"mlp-by-shards", ILLEGAL, MESH, rule_mlp},
    {"vocab-by-tensor", ILLEGAL, MESH, rule_vocab},
    {"latent-ranks-by-shards", ILLEGAL, MESH, rule_latent_ranks},
    {"learned-positions", ILLEGAL, MESH, rule_positions},
    {"experts-by-shards", ILLEGAL, MESH, rule_experts},
    {"one-expert-sharding", ILLEGAL, MESH, adv_rule_one_expert_sharding},
    {"expert-axis-unused", ILLEGAL, MESH, rule_expert_axis_unused},
    {"expert-options-without-experts-axis", REFUSED, BATCH, rule_expert_options},
    {"ring-of-experts", ILLEGAL, BATCH, rule_ring_of_experts},
    {"no-dropping", ILLEGAL, MESH, rule_dropping},
    {"capacity-factor-ignored", WASTE, MESH, rule_capacity_unused},
    {"scan-cycle", ILLEGAL, MESH, rule_scan},
    {"pipeline", ILLEGAL, MESH, adv_rule_pipeline_layers},
    {"pipeline-cycle", ILLEGAL, MESH, adv_rule_pipeline_cycle},
    {"pipeline-experts", ILLEGAL, BATCH, adv_rule_pipeline_experts},
    {"pipeline-routed-bias", ILLEGAL, MESH, adv_rule_pipeline_bias},
    {"pipeline-positions", ILLEGAL, MESH, adv_rule_pipeline_positions},
    {"pipeline-explicit-sharding", ILLEGAL, MESH, adv_rule_pipeline_sharding},
    {"pipeline", ILLEGAL, MESH, adv_rule_pipeline_microbatches},
    {"pipeline", ILLEGAL, BATCH, adv_rule_pipeline_batch},
    {"pipeline-one-hot", REFUSED, BATCH, adv_rule_pipeline_one_hot},
    {"pipeline-experts-over-fsdp", REFUSED, BATCH, adv_rule_pipeline_routed_shards},
    {"context-load-balance", ILLEGAL, MESH, adv_rule_load_balance},
    {"linear-context", ILLEGAL, MESH, adv_rule_linear_context},
    {"predicted-tokens-in-order", REFUSED, MESH, adv_rule_predicted_tokens},
    {"compressed-context", ILLEGAL, MESH, adv_rule_compressed_context},
    {"vision-models", ILLEGAL, MESH, adv_rule_vision_models},
    {"multimodal-context", ILLEGAL, MESH, adv_rule_multimodal_context},
    {"hash-routing", ILLEGAL, BATCH, adv_rule_hash_routing},
    {"batch-split-format", ILLEGAL, BATCH, adv_rule_batch_split_format},
    {"batch-split-mesh", ILLEGAL, MESH, adv_rule_batch_split_mesh},
    {"batch-split-context", ILLEGAL, MESH, adv_rule_batch_split_context},
    {"batch-split-halves", ILLEGAL, BATCH, adv_rule_batch_split_halves},
    {"context-ring", ILLEGAL, MESH, adv_rule_ring},
    {"context-ulysses", ILLEGAL, MESH, adv_rule_ulysses},
    {"context-usp", ILLEGAL, MESH, adv_rule_usp},
    {"local-layers-under-ring", REFUSED, MESH, adv_rule_local_under_ring},
    {"local-masks-by-context", REFUSED, MESH, adv_rule_local_masks},
    {"block-q", ILLEGAL, MESH, adv_rule_block_q},
    {"block-kv", ILLEGAL, MESH, adv_rule_block_kv},
    {"block-compute", ILLEGAL, MESH, adv_rule_block_compute},
    {"dq-reduction-steps", ILLEGAL, MESH, adv_rule_dq_reduction},
    {"sparse-attention-kernel", ILLEGAL, MESH, adv_rule_sparse_attention_kernel},
    {"qk-clip-kernel", ILLEGAL, MESH, adv_rule_qk_clip_kernel},
    {"qk-clip-queries", WASTE, MESH, adv_rule_qk_clip_queries},
    {"fp8-full-needs-qwix", ILLEGAL, BATCH, adv_rule_fp8_full},
    {"fp8-with-accumulation", ILLEGAL, BATCH, adv_rule_fp8_accumulation},
    {"format-not-native", WASTE, BATCH, adv_rule_native_format},
    {"muon-decoder", ILLEGAL, MESH, adv_rule_muon},
    {"vmem-limit", WASTE, MESH, adv_rule_vmem_limit},
    {"fusion-and-offload", WASTE, MESH, adv_rule_fusion_and_offload},
    {"no-sparsecores", WASTE, MESH, adv_rule_no_sparsecores},
    {"expert-tile-lanes", ILLEGAL, BATCH, adv_rule_tile_lanes},
    {"expert-tile-rows", ILLEGAL, BATCH, adv_rule_tile_rows},
    {"expert-tile-tails", WASTE, BATCH, adv_rule_tile_tails},
    {"strided-host-copy", REFUSED, BATCH, adv_rule_strided_context},
    {"nested-host-copy", REFUSED, MESH, adv_rule_nested_feed_forward},
    {"offload-with-clipping", WASTE, MESH, adv_rule_offload_unclipped},
};
enum { RULES_COUNT = sizeof rules / sizeof *rules };

static int embed_shards(const struct adv_rule_facts *facts)
{
    switch (facts->plan->family.rule) {
    case ADV_RULE_PURE_FSDP:
        return facts->fsdp;
    case ADV_RULE_EP_AS_DP:
        return facts->fsdp * facts->fsdp_transpose * facts->context * facts->ulysses;
    case ADV_RULE_DEFAULT:
    case ADV_RULE_EP_AS_CP:
    case ADV_RULE_CP_AS_EP:
    case ADV_RULE_SHARD_EXP_ON_FSDP:
    case ADV_RULE_PIPELINE_LARGE_MOE:
        break;
    }
    return facts->fsdp * facts->fsdp_transpose * facts->context * facts->ulysses * facts->expert;
}

static struct adv_rule_facts facts_of(const struct adv_plan *plan, const struct adv_model *model,
                                      const struct adv_cluster *cluster)
{
    struct adv_rule_facts facts = {
        .plan = plan,
        .model = model,
        .cluster = cluster,
        .data = adv_plan_degree(plan, ADV_AXIS_DATA) * adv_plan_degree(plan, ADV_AXIS_DILOCO),
        .stage = adv_plan_degree(plan, ADV_AXIS_STAGE),
        .fsdp = adv_plan_degree(plan, ADV_AXIS_FSDP),
        .fsdp_transpose = adv_plan_degree(plan, ADV_AXIS_FSDP_TRANSPOSE),
        .context = adv_plan_degree(plan, ADV_AXIS_CONTEXT),
        .ulysses = adv_plan_degree(plan, ADV_AXIS_ULYSSES),
        .tensor = adv_plan_degree(plan, ADV_AXIS_TENSOR),
        .tensor_sequence = adv_plan_degree(plan, ADV_AXIS_TENSOR_SEQUENCE),
        .expert = adv_plan_degree(plan, ADV_AXIS_EXPERT),
        .autoregressive = adv_plan_degree(plan, ADV_AXIS_AUTOREGRESSIVE),
    };
    facts.sequence_shards = adv_plan_sequence_shards(plan);
    facts.head_shards = facts.tensor * facts.tensor_sequence * facts.autoregressive;
    facts.mlp_shards = facts.head_shards * facts.fsdp_transpose;
    facts.embed_shards = embed_shards(&facts);
    facts.batch_shards = adv_plan_batch_shards(plan);
    facts.sequences_per_shard = adv_plan_sequences_per_shard(plan, cluster);
    for (int i = 0; i < model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &model->layers[i];
        facts.has_experts |= layer->experts > 0;
        facts.has_latent |= layer->kv_lora_rank > 0;
        facts.has_local |=
            layer->attention == ADV_ATTENTION_WINDOW || layer->attention == ADV_ATTENTION_CHUNKED;
        facts.has_local_tiles |= adv_layer_has_local_tiles(layer);
    }
    return facts;
}

adv_code adv_plan_check(const struct adv_plan *plan, const struct adv_model *model,
                        const struct adv_cluster *cluster, adv_err *err, adv_err *warnings)
{
    struct adv_rule_facts facts = facts_of(plan, model, cluster);
    bool illegal = false;
    for (int i = 0; i < RULES_COUNT; i++) {
        bool is_illegal = rules[i].severity == ILLEGAL;
        struct adv_rule_report report = {.err = is_illegal ? err : warnings,
                                         .code = rules[i].severity == WASTE ? ADV_OK : ADV_E_ILLEGAL,
                                         .rule = rules[i].name};
        bool is_broken = rules[i].check(&facts, report.err ? &report : NULL);
        illegal |= is_broken && is_illegal;
    }
    return illegal ? ADV_E_ILLEGAL : ADV_OK;
}

void adv_plan_list_rules(enum adv_rules which, struct adv_rule_list *list)
{
    _Static_assert((int)RULES_COUNT <= (int)ADV_RULES_MOST, "a list has room for all rules");
    list->count = 0;
    for (int i = 0; i < RULES_COUNT; i++) {
        const bool left_out = (which == ADV_RULES_OF_MESH && rules[i].reads != MESH) ||
                              (which == ADV_RULES_OF_BATCH && rules[i].reads != BATCH);
        if (rules[i].severity != WASTE && !left_out) list->rules[list->count++] = (unsigned char)i;
    }
}

const char *adv_plan_broken_rule_of(const struct adv_rule_list *list, const struct adv_plan *plan,
                                    const struct adv_model *model, const struct adv_cluster *cluster)
{
    const struct adv_rule_facts facts = facts_of(plan, model, cluster);
    for (int i = 0; i < list->count; i++)
        if (rules[list->rules[i]].check(&facts, NULL)) return rules[list->rules[i]].name;
    return NULL;
}

const char *adv_plan_broken_rule_among(const struct adv_plan *plan, const struct adv_model *model,
                                       const struct adv_cluster *cluster, enum adv_rules which)
{
    struct adv_rule_list list;
    adv_plan_list_rules(which, &list);
    return adv_plan_broken_rule_of(&list, plan, model, cluster);
}

const char *adv_plan_broken_rule(const struct adv_plan *plan, const struct adv_model *model,
                                 const struct adv_cluster *cluster)
{
    return adv_plan_broken_rule_among(plan, model, cluster, ADV_RULES_ALL);
}

const char *adv_plan_newly_broken_rule(const struct adv_plan *plan, const struct adv_plan *changed,
                                       const struct adv_model *model, const struct adv_cluster *cluster,
                                       bool wasteful)
{
    struct adv_rule_facts before = facts_of(plan, model, cluster);
    struct adv_rule_facts after = facts_of(changed, model, cluster);
    for (int i = 0; i < RULES_COUNT; i++) {
        if (rules[i].severity == WASTE && !wasteful) continue;
        if (rules[i].check(&after, NULL) && !rules[i].check(&before, NULL)) return rules[i].name;
    }
    return NULL;
}

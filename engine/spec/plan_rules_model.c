/* plan_rules_model.c: what MaxText refuses of single models' blocks. */
#include <math.h>
#include <stdio.h>

#include "engine/spec/plan.h"
#include "engine/spec/plan_rules.h"

static bool has_linear_layers(const struct adv_model *model)
{
    bool any = false;
    for (int i = 0; i < model->layer_kinds_count; i++)
        any |= model->layers[i].attention == ADV_ATTENTION_LINEAR;
    return any;
}

bool adv_plan_keeps_order(const struct adv_plan *plan, const struct adv_model *model)
{
    return plan->family.cp_strategy == ADV_CP_ULYSSES || plan->family.mtp_layers > 0 ||
           has_linear_layers(model);
}

/* types.py:5377 of MaxText 0.2.5 */
bool adv_rule_linear_context(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (facts->context == 1 || !facts->plan->family.cp_load_balance || !has_linear_layers(facts->model))
        return false;
    return adv_rule_broken(
        report, "/config/context_parallel_load_balance", "set it to false",
        "gated delta net layers carry a state along the sequence, which load balancing reorders");
}

/* multi_token_prediction.py:504 and 514; earlier releases ran it. */
bool adv_rule_predicted_tokens(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_plan *plan = facts->plan;
    if (facts->sequence_shards == 1 || plan->family.mtp_layers == 0) return false;
    if (plan->family.cp_load_balance)
        return adv_rule_broken(
            report, "/config/context_parallel_load_balance", "set it to false",
            "mtp_num_layers %d takes the next token of every one, which load balancing moves elsewhere",
            plan->family.mtp_layers);
    if (!plan->family.packing || plan->family.mtp_layers == 1) return false;
    return adv_rule_broken(
        report, "/config/packing", "set packing false, or mtp_num_layers to 1",
        "context parallelism with packed sequences predicts one more token, mtp_num_layers is %d",
        plan->family.mtp_layers);
}

/* types.py:5177 */
bool adv_rule_compressed_context(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    bool compresses = false;
    for (int i = 0; i < facts->model->layer_kinds_count; i++)
        compresses |= facts->model->layers[i].compress_ratio > 0;
    if (facts->sequence_shards * facts->ulysses == 1 || !compresses) return false;
    return adv_rule_broken(report, "/config/ici_context_parallelism", "set it to 1",
                           "compressed attention takes no context parallelism, which is %d",
                           facts->sequence_shards * facts->ulysses);
}

/* types.py:5035 */
bool adv_rule_hash_routing(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (!facts->plan->family.use_ring_of_experts || facts->model->decoder != ADV_DECODER_DEEPSEEK4)
        return false;
    return adv_rule_broken(report, "/config/use_ring_of_experts", "set it to false",
                           "the hash routing of DeepSeek V4 does not run with a ring of experts");
}

/* types.py:5066, 5086 */
bool adv_rule_vision_models(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (!facts->plan->family.use_multimodal || !facts->model->text_only) return false;
    return adv_rule_broken(report, "/config/use_multimodal", "set it to false",
                           "%s takes text alone: MaxText refuses pictures and speech for it",
                           facts->model->name);
}

/* types.py:3987, 5242, 5291 */
bool adv_rule_multimodal_context(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (!facts->plan->family.use_multimodal || facts->plan->family.cp_strategy == ADV_CP_ALL_GATHER)
        return false;
    return adv_rule_broken(report, "/config/context_parallel_strategy",
                           "use all_gather, or set use_multimodal to false to train on text alone",
                           "%s is multimodal, which only all_gather takes", facts->model->name);
}

/* types.py:5456 */
bool adv_rule_batch_split_format(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const enum adv_quantization quantization = facts->plan->family.quantization;
    if (!facts->model->splits_batch || quantization == ADV_QUANT_NONE || quantization == ADV_QUANT_FP8_FULL)
        return false;
    return adv_rule_broken(report, "/config/quantization", "set fp8_full, or leave it out",
                           "the batch-split schedule of %s takes no %s", facts->model->name,
                           adv_quantization_name(quantization));
}

/* deepseek_batchsplit.py: each device's sequences are halved, and experts are exchanged between the halves.
 */
bool adv_rule_batch_split_mesh(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (!facts->model->splits_batch || facts->expert > 1) return false;
    return adv_rule_broken(report, "/config/ici_expert_parallelism", "an expert axis of 2 or more",
                           "MaxText 0.2.5 compiles the batch-split schedule of %s over an expert axis only",
                           facts->model->name);
}

/* The rules of the model's file shard the batch over the context axis and nothing else: no sequence and no
 * weight. */
bool adv_rule_batch_split_context(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (!facts->model->splits_batch || facts->context == 1) return false;
    return adv_rule_broken(
        report, "/config/ici_context_parallelism",
        "the fsdp axis for these devices, or the data axis to hold the weights as often",
        "the sharding rules of %s divide only the batch over the context axis: each of its "
        "%d devices holds whole weights and whole sequences",
        facts->model->name, facts->context);
}

bool adv_rule_batch_split_halves(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (!facts->model->splits_batch || fmod(facts->sequences_per_shard, 2.0) == 0.0) return false;
    return adv_rule_broken(report, "/config/per_device_batch_size",
                           "an even number of sequences for each batch shard",
                           "the batch-split schedule of %s halves the %.6g sequences of a batch shard",
                           facts->model->name, facts->sequences_per_shard);
}

static bool nests_feed_forward(const struct adv_plan *plan, const struct adv_model *model,
                               enum adv_tensor tensor)
{
    static const enum adv_tensor feed_forward[] = {
        ADV_TENSOR_MLPWI,       ADV_TENSOR_MLPWI_0,     ADV_TENSOR_MLPWI_1,  ADV_TENSOR_MLPWO,
        ADV_TENSOR_MOE_MLPWI_0, ADV_TENSOR_MOE_MLPWI_1, ADV_TENSOR_MOE_MLPWO};
    if (model->decoder != ADV_DECODER_QWEN3_NEXT || !plan->family.scan_layers) return false;
    for (size_t i = 0; i < sizeof feed_forward / sizeof *feed_forward; i++)
        if (feed_forward[i] == tensor) return true;
    return false;
}

bool adv_plan_host_refuses(const struct adv_plan *plan, const struct adv_model *model,
                           const struct adv_cluster *cluster, enum adv_tensor tensor)
{
    return tensor == ADV_TENSOR_CONTEXT ? adv_plan_context_is_strided(plan, model, cluster)
                                        : nests_feed_forward(plan, model, tensor);
}

bool adv_rule_nested_feed_forward(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    for (int tensor = 0; tensor < ADV_TENSOR_COUNT; tensor++) {
        if (facts->plan->placements[tensor] != ADV_PLACE_OFFLOAD ||
            !nests_feed_forward(facts->plan, facts->model, (enum adv_tensor)tensor))
            continue;
        char pointer[64];
        (void)snprintf(pointer, sizeof pointer, "/config/%s", adv_tensor_name((enum adv_tensor)tensor));
        return adv_rule_broken(
            report, pointer, "keep it on the device or recompute it",
            "libtpu 0.0.50.1 refuses %s on the host (\"expects the shape of operand 0 to match "
            "the async shape\"): layers of qwen3_next loop inside the scan over blocks",
            adv_tensor_name((enum adv_tensor)tensor));
    }
    return false;
}

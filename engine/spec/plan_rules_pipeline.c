/* Legality of pipelines: what MaxText's pipeline needs of layers, microbatches and the batch. */
#include <math.h>
#include <string.h>

#include "engine/spec/plan_rules.h"

static int microbatches(const struct adv_plan *plan)
{
    if (plan->family.pipeline_microbatches > 0) return plan->family.pipeline_microbatches;
    return adv_plan_degree(plan, ADV_AXIS_STAGE) *
           (plan->family.pipeline_delay_activation_forwarding ? 2 : 1);
}

bool adv_rule_pipeline_layers(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_plan *plan = facts->plan;
    int stages = facts->stage;
    if (stages == 1) return false;
    int layers = adv_plan_pipelined_layers(plan, facts->model);
    int per_pass = stages * plan->family.layers_per_stage;
    if (layers % per_pass == 0) return false;
    return adv_rule_broken(report, "/config/pipeline_parallel_layers",
                           adv_rule_hint(report, "pipeline %d of the layers; the others run on every stage",
                                         layers / per_pass * per_pass),
                           "%d pipelined layers are not a multiple of %d stages x %d layers", layers, stages,
                           plan->family.layers_per_stage);
}

/* Of Gemma 4 a layer of a pipeline is a whole block where layers are scanned and always the same kind of
 * layer where they are not; of its small models MaxText refuses any (nnx_decoders.py:513, 1234). DeepSeek's
 * dense layers stay outside. */
bool adv_rule_pipeline_cycle(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_model *model = facts->model;
    int cycle = model->layers[0].scan_block;
    if (facts->stage == 1) return false;
    if (cycle <= 1 && model->layer_kinds_count > 1 && model->decoder != ADV_DECODER_DEEPSEEK)
        return adv_rule_broken(report, "/config/ici_pipeline_parallelism", "use no pipeline for this model",
                               "a MaxText pipeline does not tell the %d kinds of layers of %s apart",
                               model->layer_kinds_count, model->name);
    if (cycle <= 1) return false;
    return adv_rule_broken(report, "/config/ici_pipeline_parallelism", "use no pipeline for this model",
                           "each layer of a MaxText pipeline would be a cycle of %d: another model", cycle);
}

/* MaxText 0.2.5 counts tokens over capacity around grouped matmuls (`moe_has_overflow`), and a pipeline that
 * passes its stages more than once does not expect that variable: "pytree structure error". */
bool adv_rule_pipeline_experts(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_plan *plan = facts->plan;
    if (facts->stage == 1 || !facts->has_experts || plan->family.moe == ADV_MOE_DENSE) return false;
    const double rounds = adv_plan_pipeline_rounds(plan, facts->model);
    if (rounds <= 1.0) return false;
    return adv_rule_broken(
        report, "/config/num_layers_per_pipeline_stage",
        adv_rule_hint(report, "%.0f layers a stage, sparse_matmul false, or no pipeline",
                      rounds * plan->family.layers_per_stage),
        "grouped matmuls of experts in a pipeline that is passed %.0f times: MaxText 0.2.5 "
        "does not compile it",
        rounds);
}

/* moe.py:640: these models keep the routing bias in a variable of a kind that pipeline.py does not expect
 * ("Non-RngState variable found"). */
bool adv_rule_pipeline_bias(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_model *model = facts->model;
    if (facts->stage == 1 || !model->keeps_bias_apart) return false;
    bool has_bias = false;
    for (int i = 0; i < model->layer_kinds_count; i++) has_bias |= model->layers[i].has_routed_bias;
    if (!has_bias) return false;
    return adv_rule_broken(report, "/config/ici_pipeline_parallelism", "use no pipeline for this model",
                           "%s keeps its routing bias apart: MaxText 0.2.5 does not compile it in a pipeline",
                           model->name);
}

/* pipeline.py splits positions as one number a token. */
bool adv_rule_pipeline_positions(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (facts->stage == 1 || !facts->model->has_mrope || !facts->plan->family.use_multimodal) return false;
    return adv_rule_broken(report, "/config/ici_pipeline_parallelism",
                           "use no pipeline, or set use_multimodal to false to train on text alone",
                           "%s has three positions a token, which no pipeline of MaxText splits",
                           facts->model->name);
}

/* pipeline.py:358 gathers the positions of each stage under jax.vmap, which does not hand the stated sharding
 * on: ShardingTypeError while MaxText 0.2.5 traces the step. */
bool adv_rule_pipeline_sharding(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (facts->stage == 1 || facts->plan->family.shard_mode != ADV_SHARD_EXPLICIT) return false;
    return adv_rule_broken(
        report, "/config/shard_mode", "set it to auto, or use no pipeline",
        "MaxText 0.2.5 does not compile a pipeline, here of %d stages, with explicit sharding", facts->stage);
}

bool adv_rule_pipeline_microbatches(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (facts->stage == 1 || microbatches(facts->plan) % facts->stage == 0) return false;
    return adv_rule_broken(
        report, "/config/num_pipeline_microbatches", adv_rule_hint(report, "a multiple of %d", facts->stage),
        "%d microbatches are not a multiple of %d stages", microbatches(facts->plan), facts->stage);
}

double adv_rule_sequences_per_microbatch(const struct adv_plan *plan, const struct adv_cluster *cluster)
{
    double batch = adv_plan_global_batch(plan, cluster) / plan->family.gradient_accumulation_steps;
    return batch / ((double)microbatches(plan) * adv_plan_batch_shards(plan));
}

bool adv_rule_pipeline_batch(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_plan *plan = facts->plan;
    if (facts->stage == 1) return false;
    double sequences = adv_rule_sequences_per_microbatch(plan, facts->cluster);
    if (sequences >= 1 && fabs(sequences - round(sequences)) < 1e-9) return false;
    if (!report) return true;
    int unit = microbatches(plan) * facts->batch_shards;
    return adv_rule_broken(report, "/config/num_pipeline_microbatches",
                           adv_rule_hint(report, "the batch must be a multiple of %d sequences", unit),
                           "%.6g sequences do not split into %d microbatches over %d batch shards",
                           adv_plan_global_batch(plan, facts->cluster) /
                               plan->family.gradient_accumulation_steps,
                           microbatches(plan), facts->batch_shards);
}

bool adv_rule_pipeline_one_hot(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (!adv_plan_one_hot_is_whole(facts->plan)) return false;
    return adv_rule_broken(
        report, "/config/use_iota_embed",
        adv_rule_hint(report, "set it to false, or num_pipeline_microbatches to %d", facts->stage),
        "with %d microbatches in %d stages each device builds the one-hot of the "
        "embedding for all %d fsdp shards",
        microbatches(facts->plan), facts->stage, facts->fsdp * facts->fsdp_transpose);
}

/* Of five such steps that were compiled two hold the gradient of the embedding for all shards, twice; of
 * those with as many microbatches as stages, and of dense models, none does. */
bool adv_rule_pipeline_routed_shards(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_plan *plan = facts->plan;
    const int shards = facts->fsdp * facts->fsdp_transpose;
    if (!facts->has_experts || facts->stage == 1 || shards == 1 || microbatches(plan) <= facts->stage)
        return false;
    const double bytes = 4.0 * adv_plan_tokens(plan) * shards * (double)facts->model->emb_dim;
    return adv_rule_broken(report, "/config/num_pipeline_microbatches",
                           adv_rule_hint(report, "use %d, or verify the plan", facts->stage),
                           "with experts and %d microbatches in %d stages XLA may hold the gradient of the "
                           "embedding of all %d fsdp shards on each device: %.3g GB that are not counted",
                           microbatches(plan), facts->stage, shards, bytes / 1e9);
}

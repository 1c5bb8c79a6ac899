#include "engine/spec/model.h"

/* Projections of plain attention: queries, keys, values, output. */
static double plain_attention_params(const struct adv_model *model, const struct adv_layer *layer)
{
    double emb = (double)model->emb_dim;
    double q = (double)layer->q_heads * layer->head_dim_qk;
    double k = (double)layer->kv_heads * layer->head_dim_qk;
    double v = (double)layer->kv_heads * layer->head_dim_v;
    double o = (double)layer->q_heads * layer->head_dim_v;
    double out = (double)layer->attention_output_dim;
    double params = emb * q * (layer->has_output_gate ? 2 : 1) + o * out;
    if (!layer->reuses_kv) params += emb * k + (layer->shares_kv ? 0 : emb * v);
    if (out != emb) params += out * emb; /* back to the residual stream */
    if (layer->has_attention_bias) params += q + k + v;
    if (layer->has_attention_out_bias) params += out;
    if (layer->has_sink) params += layer->q_heads;
    if (layer->has_qk_norm) {
        bool spans_heads = model->decoder == ADV_DECODER_OLMO3;
        params += spans_heads ? q : layer->head_dim_qk;
        if (!layer->reuses_kv) params += spans_heads ? k : layer->head_dim_qk;
    }
    return params;
}

static double mla_params(const struct adv_model *model, const struct adv_layer *layer)
{
    double emb = (double)model->emb_dim;
    double q_heads = layer->q_heads;
    double q_width = q_heads * layer->head_dim_qk;
    double params = layer->q_lora_rank > 0
                        ? emb * layer->q_lora_rank + layer->q_lora_rank + layer->q_lora_rank * q_width
                        : emb * q_width;
    params += emb * (layer->kv_lora_rank + layer->qk_rope_head_dim) + layer->kv_lora_rank;
    params += layer->kv_lora_rank * q_heads * (layer->qk_nope_head_dim + layer->head_dim_v);
    params += q_heads * layer->head_dim_v * emb;
    if (layer->indexer_topk > 0) {
        double index_width = (double)layer->indexer_heads * layer->indexer_head_dim;
        double q_input = layer->q_lora_rank > 0 ? layer->q_lora_rank : emb;
        params += q_input * index_width + emb * layer->indexer_head_dim + 2.0 * layer->indexer_head_dim +
                  emb * layer->indexer_heads;
    }
    return params;
}

/* A key compressor: two projections per compressed width, a position table and a norm; ratio 4 overlaps its
 * windows. */
static double compressor_params(double emb, int ratio, double width)
{
    double overlap = ratio <= 4 ? 2 : 1;
    return 2 * emb * overlap * width + ratio * overlap * width + width;
}

static double grouped_output_params(const struct adv_layer *layer)
{
    return (double)layer->q_heads * layer->head_dim_qk * layer->output_lora_rank;
}

static double compressed_attention_params(const struct adv_model *model, const struct adv_layer *layer)
{
    double emb = (double)model->emb_dim;
    double width = (double)layer->q_heads * layer->head_dim_qk;
    double rank = layer->q_lora_rank;
    double params = emb * rank + rank + rank * width;        /* queries, low rank */
    params += emb * layer->head_dim_qk + layer->head_dim_qk; /* one key-value stream */
    params += grouped_output_params(layer);                  /* output: grouped, then joined */
    params += (double)layer->output_groups * layer->output_lora_rank * emb;
    params += layer->q_heads; /* sinks */
    if (layer->compress_ratio > 0)
        params += compressor_params(emb, layer->compress_ratio, layer->head_dim_qk);
    if (layer->indexer_topk > 0)
        params += rank * layer->indexer_heads * layer->indexer_head_dim + emb * layer->indexer_heads +
                  compressor_params(emb, layer->compress_ratio, layer->indexer_head_dim);
    return params;
}

static double linear_attention_params(const struct adv_model *model, const struct adv_layer *layer)
{
    double emb = (double)model->emb_dim;
    double keys = (double)layer->linear_key_heads * layer->linear_key_head_dim;
    double values = (double)layer->linear_value_heads * layer->linear_value_head_dim;
    double params = emb * (2 * keys + 2 * values); /* query, key, value, gate */
    params += emb * 2 * layer->linear_value_heads; /* decay and write strength */
    params += (2 * keys + values) * layer->linear_conv_kernel;
    params += 2.0 * layer->linear_value_heads + layer->linear_value_head_dim;
    return params + values * emb;
}

static double attention_params(const struct adv_model *model, const struct adv_layer *layer)
{
    if (layer->attention == ADV_ATTENTION_LINEAR) return linear_attention_params(model, layer);
    if (layer->attention == ADV_ATTENTION_COMPRESSED) return compressed_attention_params(model, layer);
    if (layer->kv_lora_rank > 0) return mla_params(model, layer);
    return plain_attention_params(model, layer);
}

static double ffn_params(double input, double width, int inputs, bool has_bias)
{
    return (inputs + 1) * input * width + (has_bias ? inputs * width + input : 0);
}

/* Manifold hyper-connections: two mixers per layer over n residual streams (n^2 + 2n outputs each). */
static double hyper_connection_params(const struct adv_model *model)
{
    if (model->decoder != ADV_DECODER_DEEPSEEK4 || model->hyper_connections <= 1) return 0;
    double n = model->hyper_connections;
    double streams = n * (double)model->emb_dim;
    double outputs = n * n + 2 * n;
    return 2 * (streams * outputs + outputs + 3 + streams);
}

struct adv_layer_params adv_model_layer_params(const struct adv_model *model, const struct adv_layer *layer)
{
    double emb = (double)model->emb_dim;
    struct adv_layer_params params = {.attention = attention_params(model, layer)};
    if (layer->mlp_dim > 0)
        params.dense_ffn = ffn_params(emb, (double)layer->mlp_dim, layer->mlp_inputs, layer->has_mlp_bias);
    if (layer->experts > 0) {
        double input = (double)layer->moe_input_dim;
        params.router = input * layer->experts + (layer->has_routed_bias ? layer->experts : 0);
        params.routed_experts = layer->experts * ffn_params(input, (double)layer->moe_mlp_dim,
                                                            layer->mlp_inputs, layer->has_mlp_bias);
        if (layer->shared_mlp_dim > 0)
            params.shared_experts = ffn_params(emb, (double)layer->shared_mlp_dim, layer->mlp_inputs, false);
        if (layer->has_shared_gate) params.shared_experts += emb;
        if (layer->has_expert_scale) params.other += layer->experts;
    }
    params.norms = layer->norms * emb;
    if (model->decoder == ADV_DECODER_GPT3) params.norms *= 2; /* scale and offset */
    if (layer->per_layer_embedding_dim > 0) {
        /* gate and projection in the layer, this layer's slice of the model-wide projection */
        params.other += 3 * emb * (double)layer->per_layer_embedding_dim;
        params.norms += emb;
    }
    params.other += hyper_connection_params(model);
    return params;
}

double adv_layer_params_total(const struct adv_layer_params *params)
{
    return params->attention + params->dense_ffn + params->router + params->routed_experts +
           params->shared_experts + params->norms + params->other;
}

/* Multi-token prediction: the last layer again, a projection from two embeddings to one, three norms. */
static void add_mtp(const struct adv_model *model, struct adv_model_params *sum, double *active_experts)
{
    const struct adv_layer *last = &model->layers[model->layer_kinds_count - 1];
    struct adv_layer_params layer = adv_model_layer_params(model, last);
    double emb = (double)model->emb_dim;
    sum->other += model->mtp_layers *
                  (adv_layer_params_total(&layer) - layer.norms - layer.routed_experts + 2 * emb * emb);
    sum->norms += model->mtp_layers * (layer.norms + 3 * emb);
    sum->routed_experts += model->mtp_layers * layer.routed_experts;
    if (last->experts > 0)
        *active_experts += model->mtp_layers * layer.routed_experts * last->experts_per_token / last->experts;
}

struct adv_model_params adv_model_params(const struct adv_model *model)
{
    double emb = (double)model->emb_dim;
    double vocabulary = (double)model->vocab_size * emb;
    struct adv_model_params sum = {
        .embedding = vocabulary + model->per_layer_embedding_params,
        .unembedding = model->ties_embedding ? 0 : vocabulary,
        .positions = (double)model->position_rows * emb,
        .norms = model->decoder == ADV_DECODER_GPT3 ? 2 * emb : emb,
    };
    double active_experts = 0;
    for (int i = 0; i < model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &model->layers[i];
        struct adv_layer_params params = adv_model_layer_params(model, layer);
        double count = layer->count;
        sum.attention += count * params.attention;
        sum.dense_ffn += count * params.dense_ffn;
        sum.router += count * params.router;
        sum.routed_experts += count * params.routed_experts;
        sum.shared_experts += count * params.shared_experts;
        sum.norms += count * params.norms;
        sum.other += count * params.other;
        sum.hyper_connections += count * hyper_connection_params(model);
        if (layer->attention == ADV_ATTENTION_COMPRESSED)
            sum.grouped_outputs += count * grouped_output_params(layer);
        if (layer->experts > 0)
            active_experts += count * params.routed_experts * layer->experts_per_token / layer->experts;
        double total = adv_layer_params_total(&params);
        if (total > sum.largest_layer) sum.largest_layer = total;
    }
    if (model->mtp_layers > 0) add_mtp(model, &sum, &active_experts);
    double shared = sum.attention + sum.dense_ffn + sum.router + sum.shared_experts + sum.other;
    double tables = sum.embedding + sum.unembedding + sum.positions;
    sum.total = tables + sum.norms + shared + sum.routed_experts;
    sum.active = tables + sum.norms + shared + active_experts;
    sum.active_matmul_per_token = vocabulary + shared - sum.hyper_connections + active_experts;
    return sum;
}

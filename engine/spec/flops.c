/* MaxText's own count (calculate_tflops_training_per_device at commit e591f30c), rebuilt from the layer table
 * and checked against it for every catalog model. Where MaxText's count differs from what the block computes,
 * the count wins, because published TFLOP/s and MFU use it; each such place says so. */
#include <math.h>

#include "engine/spec/model.h"

/* Of one layer and token unless said otherwise. A multiply-add is two FLOPs. */
struct layer_flops {
    double weight_macs; /* in weight matrices */
    double score_flops; /* attention over one whole sequence, causal */
    double
        index_flops; /* projections MaxText books under attention (DeepSeek4's indexer), one whole sequence */
};

static double linear_macs(double emb, const struct adv_layer *layer)
{
    double keys = (double)layer->linear_key_heads * layer->linear_key_head_dim;
    double values = (double)layer->linear_value_heads * layer->linear_value_head_dim;
    return emb * (2 * keys + 2 * values + 2.0 * layer->linear_value_heads) +
           (2 * keys + values) * layer->linear_conv_kernel + values * emb;
}

static double mla_macs(double emb, const struct adv_layer *layer)
{
    double heads = layer->q_heads;
    double rank = layer->q_lora_rank;
    double q = heads * layer->head_dim_qk;
    double queries = rank > 0 ? emb * rank + rank * q : emb * q;
    double keys_values = emb * (layer->kv_lora_rank + layer->qk_rope_head_dim) +
                         layer->kv_lora_rank * heads * (layer->qk_nope_head_dim + layer->head_dim_v);
    return queries + keys_values + heads * layer->head_dim_v * emb;
}

static double compressed_macs(double emb, const struct adv_layer *layer)
{
    double width = (double)layer->q_heads * layer->head_dim_qk;
    double rank = layer->q_lora_rank;
    double macs = emb * rank + rank * width + emb * layer->head_dim_qk + width * layer->output_lora_rank +
                  (double)layer->output_groups * layer->output_lora_rank * emb;
    double overlap = layer->compress_ratio <= 4 ? 2 : 1;
    return macs + (layer->compress_ratio > 0 ? 2 * emb * overlap * layer->head_dim_qk : 0);
}

/* MaxText leaves the gate of qwen3-next's full attention out. */
static double plain_macs(double emb, const struct adv_layer *layer)
{
    double k = (double)layer->kv_heads * layer->head_dim_qk;
    double v = (double)layer->kv_heads * layer->head_dim_v;
    double out = (double)layer->attention_output_dim;
    double keys_values = layer->reuses_kv ? 0 : layer->shares_kv ? emb * k : emb * (k + v);
    double back = out != emb ? out * emb : 0;
    return emb * layer->q_heads * layer->head_dim_qk + keys_values +
           (double)layer->q_heads * layer->head_dim_v * out + back;
}

static double projection_macs(const struct adv_model *model, const struct adv_layer *layer)
{
    double emb = (double)model->emb_dim;
    if (layer->attention == ADV_ATTENTION_LINEAR) return linear_macs(emb, layer);
    if (layer->attention == ADV_ATTENTION_COMPRESSED) return compressed_macs(emb, layer);
    return layer->kv_lora_rank > 0 ? mla_macs(emb, layer) : plain_macs(emb, layer);
}

static double ffn_macs(const struct adv_model *model, const struct adv_layer *layer)
{
    double emb = (double)model->emb_dim;
    double matrices = layer->mlp_inputs + 1;
    double macs = matrices * emb * (double)layer->mlp_dim;
    if (layer->experts > 0) {
        double input = (double)layer->moe_input_dim;
        macs +=
            input * layer->experts + layer->experts_per_token * matrices * input * (double)layer->moe_mlp_dim;
        macs += matrices * emb * (double)layer->shared_mlp_dim;
        /* MaxText counts envy's router in the dense layers too. */
        if (model->decoder == ADV_DECODER_ENVY)
            macs += input * layer->experts * (model->layer_kinds_count - 1);
    }
    if (layer->per_layer_embedding_dim > 0) macs += 3 * emb * (double)layer->per_layer_embedding_dim;
    return macs;
}

/* DeepSeek4's residual streams: two sites per layer mix n streams (weights) and combine them (pre, residual,
 * post). */
static double hyper_connection_macs(const struct adv_model *model)
{
    if (model->decoder != ADV_DECODER_DEEPSEEK4 || model->hyper_connections <= 1) return 0;
    double n = model->hyper_connections;
    double emb = (double)model->emb_dim;
    return 2 * (n * emb * (n * n + 2 * n) + (n + n * n + n / 2) * emb);
}

/* Lightning indexer: every query scores every earlier key and the heads are summed. */
static double index_score_flops(const struct adv_layer *layer, double seq, double keys)
{
    return seq * keys * layer->indexer_heads * (layer->indexer_head_dim + 1.0);
}

static double causal_pairs(const struct adv_model *model, const struct adv_layer *layer, double seq)
{
    double window = fmin((double)layer->window_tokens, seq);
    if (layer->attention == ADV_ATTENTION_CHUNKED) {
        double chunks = floor(seq / window);
        double rest = seq - chunks * window;
        return (chunks * window * window + rest * rest) / 2;
    }
    /* MaxText counts olmo3's window layers in full. */
    if (layer->attention == ADV_ATTENTION_WINDOW && model->decoder != ADV_DECODER_OLMO3)
        return seq * window - window * window / 2;
    if (layer->indexer_topk > 0 && seq > layer->indexer_topk) {
        double topk = layer->indexer_topk;
        return seq * topk - topk * topk / 2;
    }
    return seq * seq / 2;
}

/* Window, plus compressed keys: the best topk of seq / 4, or all of seq / 128. */
static void add_compressed(double emb, const struct adv_layer *layer, double seq, struct layer_flops *flops)
{
    double window = fmin((double)layer->window_tokens, seq);
    double pairs = seq * window - window * window / 2;
    double ratio = layer->compress_ratio;
    if (ratio > 0 && layer->indexer_topk > 0) {
        double topk = fmin(layer->indexer_topk, seq / ratio);
        pairs += seq * topk - ratio * topk * topk / 2;
        flops->score_flops += index_score_flops(layer, seq, seq / ratio);
        flops->index_flops = 2 * seq *
                             ((double)layer->q_lora_rank * layer->indexer_heads * layer->indexer_head_dim +
                              emb * layer->indexer_heads + 4 * emb * layer->indexer_head_dim);
    } else if (ratio > 0) {
        pairs += seq * seq / ratio / 2;
    }
    flops->score_flops += 4 * pairs * layer->q_heads * layer->head_dim_qk;
}

static struct layer_flops layer_flops(const struct adv_model *model, const struct adv_layer *layer,
                                      double seq)
{
    double emb = (double)model->emb_dim;
    struct layer_flops flops = {
        .weight_macs = projection_macs(model, layer) + ffn_macs(model, layer) + hyper_connection_macs(model),
    };
    if (layer->attention == ADV_ATTENTION_LINEAR) {
        flops.score_flops =
            8.0 * layer->linear_value_heads * layer->linear_key_head_dim * layer->linear_value_head_dim * seq;
        return flops;
    }
    if (layer->attention == ADV_ATTENTION_COMPRESSED) {
        add_compressed(emb, layer, seq, &flops);
        return flops;
    }
    flops.score_flops =
        2 * causal_pairs(model, layer, seq) * layer->q_heads * (layer->head_dim_qk + layer->head_dim_v);
    if (layer->indexer_topk > 0 && seq > layer->indexer_topk) {
        double input = layer->q_lora_rank > 0 ? layer->q_lora_rank : emb;
        flops.weight_macs += input * layer->indexer_heads * layer->indexer_head_dim +
                             emb * layer->indexer_head_dim + emb * layer->indexer_heads;
        flops.score_flops += index_score_flops(layer, seq, seq);
    }
    return flops;
}

static double model_wide_macs(const struct adv_model *model)
{
    double emb = (double)model->emb_dim;
    double streams = model->hyper_connections;
    double engram = (streams + 1) * (double)model->engram_width * emb + model->engram_kernel * streams * emb;
    return emb * (double)model->vocab_size + model->engram_layers * engram;
}

struct adv_model_flops adv_model_flops(const struct adv_model *model, double sequences_per_device,
                                       int64_t seq_len, enum adv_flops_convention convention)
{
    double seq = (double)seq_len;
    double tokens = sequences_per_device * seq;
    struct adv_model_flops result = {0};
    if (convention == ADV_FLOPS_PARAMS_ONLY) {
        struct adv_model_params params = adv_model_params(model);
        result.weights = result.total = 6 * params.active_matmul_per_token * tokens;
        return result;
    }
    double score_factor = convention == ADV_FLOPS_FULL ? 2 : 1;
    double macs = model_wide_macs(model);
    double attention = 0;
    for (int i = 0; i < model->layer_kinds_count; i++) {
        struct layer_flops flops = layer_flops(model, &model->layers[i], seq);
        /* MaxText adds a copy of the last layer per prediction module; its extra projection and head are not
         * counted. */
        double count = model->layers[i].count + (i == model->layer_kinds_count - 1 ? model->mtp_layers : 0);
        macs += count * flops.weight_macs;
        attention += count * (score_factor * flops.score_flops + flops.index_flops);
    }
    result.weights = 3 * 2 * macs * tokens;
    result.attention = 3 * attention * sequences_per_device;
    result.total = result.weights + result.attention;
    return result;
}

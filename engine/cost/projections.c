#include "engine/cost/projections.h"

struct builder {
    struct adv_projection *table;
    int count;
};

#define NAMED(tensor) (UINT32_C(1) << (tensor))

static void add(struct builder *to, double k, double n, enum adv_split split, bool needed, uint32_t names)
{
    if (k <= 0.0 || n <= 0.0) return;
    to->table[to->count++] =
        (struct adv_projection){.k = k, .n = n, .split = split, .names = names, .needed_in_backward = needed};
}

static void add_named(struct builder *to, double k, double n, enum adv_split split, enum adv_tensor name)
{
    add(to, k, n, split, true, NAMED(name));
}

/* Without a name in remat policies, `title` is what people call it. */
static void add_unnamed(struct builder *to, double k, double n, enum adv_split split, const char *title)
{
    const int before = to->count;
    add(to, k, n, split, true, 0);
    if (to->count > before) to->table[before].title = title;
}

static void add_latent_attention(struct builder *to, double emb, const struct adv_layer *layer)
{
    double heads = layer->q_heads;
    double qk = layer->qk_nope_head_dim + layer->qk_rope_head_dim;
    double q_rank = layer->q_lora_rank;
    double kv_rank = layer->kv_lora_rank;
    if (q_rank > 0.0) add_named(to, emb, q_rank, ADV_SPLIT_NONE, ADV_TENSOR_QUERY_WA_PROJ);
    add_named(to, q_rank > 0.0 ? q_rank : emb, heads * qk, ADV_SPLIT_N, ADV_TENSOR_QUERY_PROJ);
    add_named(to, emb, kv_rank + layer->qk_rope_head_dim, ADV_SPLIT_NONE, ADV_TENSOR_KV_WA_PROJ);
    add(to, kv_rank, heads * (layer->qk_nope_head_dim + layer->head_dim_v), ADV_SPLIT_N, true,
        NAMED(ADV_TENSOR_KEY_PROJ) | NAMED(ADV_TENSOR_VALUE_PROJ));
    if (layer->indexer_topk > 0) {
        add_unnamed(to, q_rank > 0.0 ? q_rank : emb, (double)layer->indexer_heads * layer->indexer_head_dim,
                    ADV_SPLIT_NONE, "indexer_query");
        add_unnamed(to, emb, layer->indexer_head_dim + layer->indexer_heads, ADV_SPLIT_NONE, "indexer_key");
    }
    add_named(to, heads * layer->head_dim_v, emb, ADV_SPLIT_K, ADV_TENSOR_OUT_PROJ);
}

/* Gated delta net: fused query-key-value-gate projection, decay and beta, output. None carries a checkpoint
 * name. */
static void add_linear_attention(struct builder *to, double emb, const struct adv_layer *layer)
{
    double key_dim = (double)layer->linear_key_heads * layer->linear_key_head_dim;
    double value_dim = (double)layer->linear_value_heads * layer->linear_value_head_dim;
    add_unnamed(to, emb, 2.0 * key_dim + 2.0 * value_dim, ADV_SPLIT_N, "linear_attention_in");
    add_unnamed(to, emb, 2.0 * layer->linear_value_heads, ADV_SPLIT_N, "linear_attention_decay");
    add_unnamed(to, value_dim, emb, ADV_SPLIT_K, "linear_attention_out");
}

/* Queries, keys or values, which norms may turn into what has the name. */
static void add_normed(struct builder *to, double emb, double width, enum adv_tensor name, bool has_norm)
{
    const int before = to->count;
    add_named(to, emb, width, ADV_SPLIT_N, name);
    if (to->count > before) to->table[before].norm_reads = has_norm;
}

static void add_attention(struct builder *to, double emb, const struct adv_layer *layer)
{
    double q_dim = (double)layer->q_heads * layer->head_dim_qk;
    double k_dim = (double)layer->kv_heads * layer->head_dim_qk;
    double v_dim = (double)layer->kv_heads * layer->head_dim_v;
    add_normed(to, emb, q_dim, ADV_TENSOR_QUERY_PROJ, layer->has_qk_norm);
    if (layer->has_output_gate) add_unnamed(to, emb, q_dim, ADV_SPLIT_N, "output_gate");
    if (!layer->reuses_kv) {
        /* compressed attention makes keys and values in one, under a name of its own */
        add_normed(to, emb, k_dim,
                   layer->attention == ADV_ATTENTION_COMPRESSED ? ADV_TENSOR_KV_PROJ : ADV_TENSOR_KEY_PROJ,
                   layer->has_qk_norm);
        if (!layer->shares_kv) add_normed(to, emb, v_dim, ADV_TENSOR_VALUE_PROJ, layer->has_value_norm);
    }
    double out = (double)layer->attention_output_dim;
    add_named(to, (double)layer->q_heads * layer->head_dim_v, out, ADV_SPLIT_K, ADV_TENSOR_OUT_PROJ);
    if (out != emb) add_unnamed(to, out, emb, ADV_SPLIT_NONE, "layer_up_projection");
}

/* One feed-forward of width `width`; the output is needed again only where a norm follows it or a gate
 * is multiplied with it. */
static void add_feed_forward(struct builder *to, double emb, double width, const struct adv_layer *layer,
                             bool output_needed)
{
    if (layer->mlp_inputs == 2) {
        add_named(to, emb, width, ADV_SPLIT_N, ADV_TENSOR_MLPWI_0);
        add_named(to, emb, width, ADV_SPLIT_N, ADV_TENSOR_MLPWI_1);
    } else {
        add_named(to, emb, width, ADV_SPLIT_N, ADV_TENSOR_MLPWI);
    }
    add(to, width, emb, ADV_SPLIT_K, output_needed, NAMED(ADV_TENSOR_MLPWO));
}

int adv_projections(const struct adv_model *model, const struct adv_layer *layer,
                    struct adv_projection table[ADV_PROJECTIONS_MAX])
{
    struct builder to = {table, 0};
    double emb = (double)model->emb_dim;
    if (layer->attention == ADV_ATTENTION_LINEAR)
        add_linear_attention(&to, emb, layer);
    else if (layer->kv_lora_rank > 0)
        add_latent_attention(&to, emb, layer);
    else
        add_attention(&to, emb, layer);
    if (layer->mlp_dim > 0)
        add_feed_forward(&to, emb, (double)layer->mlp_dim, layer, layer->has_post_ffw_norm);
    if (layer->experts > 0)
        add_unnamed(&to, (double)layer->moe_input_dim, layer->experts, ADV_SPLIT_NONE, "router");
    if (layer->shared_experts > 0)
        add_feed_forward(&to, emb, (double)layer->shared_mlp_dim, layer,
                         layer->has_post_ffw_norm || layer->has_shared_gate);
    if (layer->per_layer_embedding_dim > 0) {
        add_unnamed(&to, emb, (double)layer->per_layer_embedding_dim, ADV_SPLIT_NONE, "per_layer_gate");
        add_unnamed(&to, (double)layer->per_layer_embedding_dim, emb, ADV_SPLIT_NONE, "per_layer_out");
    }
    return to.count;
}

#include "engine/cost/layer_memory.h"
#include "engine/cost/regime.h"

#include <math.h>
#include <stdint.h>

#include "engine/base/units.h"

static const double activation_bytes =
    2.0; /* bf16, also of quantised matmuls: XLA keeps what it casts from */

/* XLA's attention has whole score matrices in HBM: at the least the probabilities and their gradient, bf16.
 */
static double score_bytes(const struct adv_cost *cost, const struct adv_layer *layer)
{
    if (cost->plan->family.attention != ADV_ATTENTION_IMPL_DOT_PRODUCT ||
        layer->attention == ADV_ATTENTION_LINEAR)
        return 0.0;
    return 2.0 * activation_bytes * cost->tokens * (double)cost->plan->family.seq_len * layer->q_heads;
}

/* Of a pair of query and key while a sparse-attention indexer settles ties among scores: two running counts,
 * each as it is made, turned and read, and what they count. And while attention is differentiated: the mask,
 * for the kernels of queries and of keys. Read off a compiled step of 4,096 tokens. */
static const double index_pair_bytes = 26.0, mask_pair_bytes = 2.0;

/* The fused backward kernel writes one query gradient for each block of keys, which XLA then adds up.
 * Tokamax's adds within the kernel, and leaves three. Block sizes that are left to MaxText are 512. */
static double query_partials(const struct adv_cost *cost, const struct adv_layer *layer)
{
    enum { TOKAMAX_PARTIALS = 3, DEFAULT_BLOCK = 512 };
    const struct adv_plan *plan = cost->plan;
    if (plan->family.attention != ADV_ATTENTION_IMPL_FLASH || !plan->family.use_fused_bwd) return 0.0;
    const int given = plan->family.blocks[adv_layer_has_local_tiles(layer)].block_kv_dkv;
    const int block = given > 0 ? given : DEFAULT_BLOCK;
    double blocks = ceil((double)plan->family.seq_len / block);
    return plan->family.use_tokamax_splash ? adv_min(blocks, TOKAMAX_PARTIALS) : blocks;
}

static double ring_steps_unrolled(const struct adv_cost *cost)
{
    if (!adv_plan_circulates_keys(cost->plan)) return 1;
    const int steps = cost->plan->family.ring_scan_unroll;
    return steps == 0 ? cost->cp_ring : adv_min(steps, cost->cp_ring);
}

/* Of each further step of a ring that is compiled as one, XLA keeps the gradients of keys and values twice,
 * as they come in and as they leave, in float32: four times the elements of activations. Counted in a step of
 * 128 shards with 16 steps unrolled: 62 such buffers. */
static const double float32_gradients = 4;

/* Elements per token of all heads together. */
struct widths {
    double query, key_value, mlp;
    double query_partials; /* all query gradients of blocks of keys, as the kernel writes them: a head fills
                              lanes */
    double unrolled_key_value; /* gradients of the steps of a ring that are compiled as one */
};

static struct widths widths_of(const struct adv_cost *cost, const struct adv_layer *layer)
{
    struct widths w = {0};
    w.mlp = (double)layer->mlp_dim + (layer->shared_experts > 0 ? (double)layer->shared_mlp_dim : 0.0);
    if (layer->attention == ADV_ATTENTION_LINEAR) return w; /* see chunks_bytes */
    w.query = (double)layer->q_heads * (layer->head_dim_qk + layer->head_dim_v) / 2.0;
    w.query_partials =
        query_partials(cost, layer) * (double)layer->q_heads * adv_memory_lanes(layer->head_dim_qk);
    /* keys and values of all context shards meet on each device; a ring has its own and those that come in */
    const double own = (double)layer->kv_heads * (layer->head_dim_qk + layer->head_dim_v);
    w.key_value = own * (adv_plan_circulates_keys(cost->plan) ? adv_min(2, cost->cp_ring) : cost->cp_ring);
    w.unrolled_key_value = own * float32_gradients * (ring_steps_unrolled(cost) - 1);
    return w;
}

/* A gated delta net works in chunks of a sequence: its queries, keys and values chunk by chunk, their
 * products inside each chunk, which fill lanes, and a state a chunk, most of it in float32. Counted in
 * compiled steps of qwen3.5 on all generations (tests/compile/truth/options.json, "linear-"). */
static double chunks_bytes(const struct adv_cost *cost, const struct adv_layer *layer)
{
    enum { CHUNK = 64 };
    if (layer->attention != ADV_ATTENTION_LINEAR) return 0.0;
    const double chunk = layer->linear_chunk > 0 ? layer->linear_chunk : CHUNK;
    const double heads = layer->linear_value_heads;
    const double values = heads * layer->linear_value_head_dim, keys = heads * layer->linear_key_head_dim;
    const double mixed = 2.0 * (double)layer->linear_key_heads * layer->linear_key_head_dim + values;
    const double products = heads * adv_memory_lanes(chunk);
    const double states = keys * layer->linear_value_head_dim / chunk;
    const double float32s = 5.0 * values + 3.0 * keys + 5.0 * products + states;
    const double bfloat16s = 4.0 * values + 4.0 * keys + products + 2.0 * mixed;
    return cost->tokens * (2.0 * activation_bytes * float32s + activation_bytes * bfloat16s);
}

/* AQT rounds int8 gradients stochastically, so random bits as large as the tensors lie beside them. Qwix
 * rounds to nearest. Beside routed experts no such bits were seen in compiled steps. */
static double random_bits_bytes(const struct adv_cost *cost, const struct adv_layer *layer, double mlp)
{
    const struct adv_plan *plan = cost->plan;
    if (plan->family.quantization != ADV_QUANT_INT8 || plan->family.use_qwix || layer->experts > 0)
        return 0.0;
    const double elements = cost->tokens * (mlp + (double)cost->model->emb_dim);
    return (double)sizeof(uint32_t) * cost->constants->random_bits_tensors * elements;
}

/* Memory besides routed rows while the feed-forward is differentiated, and while attention is, when
 * values of the feed-forward still wait for its weight gradients. */
struct moments {
    double in_feed_forward_bytes, in_attention_bytes;
    double exchanged_bytes; /* of both: what tensor axes exchange */
    double partial_bytes;   /* of those in attention: query gradients of blocks of keys */
    double in_index_bytes;  /* while a sparse-attention indexer runs again; 0 without */
};

/* Tensor axes shard [tokens, emb] between matmuls; around them, those of the whole group meet. */
static double exchanged_emb_tensors(const struct adv_cost *cost, const struct adv_layer *layer)
{
    const struct adv_constants *k = cost->constants;
    if (cost->tp <= 1) return 0.0;
    if (adv_memory_tensor_windowed(cost, layer))
        return k->tensor_windowed_shards + k->tensor_windowed_emb_tensors * cost->tp;
    return k->tensor_gathered_emb_tensors * cost->tp;
}

/* Of the [tokens, mlp] that a gated feed-forward has, two inputs and their product, what this one has. So
 * counted beside tensor parallelism; elsewhere steps without a gate were compiled that hold as many. */
static double mlp_frac(const struct adv_cost *cost, const struct adv_layer *layer)
{
    const double gated = 3.0;
    return cost->tp > 1 ? (layer->mlp_inputs + 1.0) / gated : 1.0;
}

/* Of the same in full: where fsdp_transpose and tensor axes share the width, XLA gathers each input's
 * gradient over the tensor axes before it multiplies for the weights' gradients (adv_cost_meets_width). */
static double met_mlp_shards(const struct adv_cost *cost, const struct adv_layer *layer)
{
    if (!adv_cost_meets_width(cost)) return 0.0;
    return cost->constants->transposed_mlp_tensors * layer->mlp_inputs * (cost->tp - 1.0);
}

static struct moments moments_of(const struct adv_cost *cost, const struct adv_layer *layer)
{
    const struct adv_constants *k = cost->constants;
    struct widths w = widths_of(cost, layer);
    double exchanged = (double)cost->model->emb_dim * exchanged_emb_tensors(cost, layer);
    double emb = (double)cost->model->emb_dim * k->layer_emb_tensors + exchanged;
    double mlp_tensors = cost->tp > 1 ? k->tensor_mlp_width_tensors : k->mlp_width_tensors;
    double in_mlp = (mlp_frac(cost, layer) * mlp_tensors + met_mlp_shards(cost, layer)) * w.mlp +
                    k->mlp_query_tensors * w.query;
    double partials = k->query_partials_frac * w.query_partials;
    double in_attention = mlp_frac(cost, layer) * k->attention_width_tensors * w.mlp +
                          k->attention_query_tensors * w.query + partials +
                          k->attention_key_value_tensors * w.key_value + w.unrolled_key_value;
    double scores = score_bytes(cost, layer);
    double random_bits = random_bits_bytes(cost, layer, w.mlp);
    double pairs = adv_cost_index_pairs(cost, layer);
    double in_index = w.query + w.key_value; /* wait for the mask */
    return (struct moments){
        activation_bytes * cost->tokens * (emb + in_mlp) + scores + random_bits,
        activation_bytes * cost->tokens * (emb + in_attention) + scores + mask_pair_bytes * pairs,
        activation_bytes * cost->tokens * exchanged, activation_bytes * cost->tokens * partials,
        pairs > 0.0 ? activation_bytes * cost->tokens * (emb + in_index) + index_pair_bytes * pairs : 0.0};
}

/* Of the float32 sum over a token's choices, [tokens, choices, emb]: rows that the choices are filled up with
 * to a power of two or, beyond four, a multiple of eight (a tile of the vector memory); in bf16 tensors of a
 * row. */
static double weight_sum_filling(const struct adv_plan *plan, const struct adv_layer *layer)
{
    const int choices = layer->experts_per_token;
    if (!plan->family.float32_weight_sum || choices < 1) return 0.0;
    int filled = 1;
    while (filled < choices) filled = filled < 8 ? 2 * filled : filled + 8;
    return 2.0 * ((double)filled / choices - 1.0);
}

double adv_memory_routed_elements(const struct adv_constants *constants, const struct adv_layer *layer,
                                  double tensor_shards, double expert_shards)
{
    const bool meets_alone = tensor_shards > 1.0 && expert_shards <= 1.0;
    const double emb = meets_alone ? constants->tensor_routed_emb_tensors : constants->routed_emb_tensors;
    const double biased = layer->has_mlp_bias ? constants->biased_routed_width_tensors : 0.0;
    return emb * (double)layer->moe_input_dim +
           (constants->routed_width_tensors + biased) *
               adv_memory_lanes((double)layer->moe_mlp_dim / tensor_shards);
}

/* Tensor axes shard the expert width, so the tokens of their group meet: more rows, narrower. Of slots so
 * does fsdp_transpose beside fsdp; grouped matmuls gather their weights over it whole (compiled with MaxText
 * 0.2.5). */
static double routed_bytes(const struct adv_cost *cost, const struct adv_layer *layer)
{
    const struct adv_constants *k = cost->constants;
    const struct adv_plan *plan = cost->plan;
    if (layer->experts == 0) return 0.0;
    double rows = cost->tokens * layer->experts_per_token * adv_memory_routed_growth(cost, layer);
    double emb = (double)layer->moe_input_dim, width = (double)layer->moe_mlp_dim;
    if (plan->family.moe != ADV_MOE_DENSE) {
        return activation_bytes * rows * cost->tp *
               (adv_memory_routed_elements(k, layer, cost->tp, cost->ep) +
                weight_sum_filling(plan, layer) * emb);
    }
    if (plan->family.capacity_factor <= 0.0) rows = cost->tokens * layer->experts;
    double slots_per_token =
        plan->family.capacity_factor > 0.0 ? layer->experts_per_token * plan->family.capacity_factor : 0.0;
    double sequence = (double)plan->family.seq_len; /* each token has a mask over the slots of its sequence */
    double mask = k->slot_mask_tensors * cost->tokens * slots_per_token * sequence;
    if (slots_per_token > 0.0) rows = cost->tokens * slots_per_token;
    return activation_bytes *
           (rows * cost->expert_width_shards *
                (k->slot_emb_tensors * emb + k->slot_width_tensors * width / cost->expert_width_shards) +
            mask);
}

/* Weights that several groups of devices hold arrive whole: of the steps with a data axis, whose programs
 * were looked at, none has a windowed einsum. */
static double weights_bytes(const struct adv_cost *cost, struct adv_layer_params params)
{
    const struct adv_constants *k = cost->constants;
    double wide = (double)cost->tp * cost->width_shards;
    double dense = (params.attention + params.router + params.norms + params.other) / cost->tp +
                   (params.dense_ffn + params.shared_experts) / wide;
    double experts_wide = (double)cost->tp * cost->expert_width_shards;
    double copies = 0.0;
    if (cost->dense_group.devices > 1)
        copies +=
            (adv_memory_windowed(cost) ? k->layer_weights_copies : k->gathered_layer_weights_copies) * dense;
    if (cost->expert_group.devices > 1)
        copies += k->expert_weights_copies * params.routed_experts / (cost->ep_kept * experts_wide);
    return adv_format_bytes(cost->plan->family.dtype) * copies;
}

struct adv_working adv_memory_layer_working(const struct adv_cost *cost, const struct adv_layer *layer,
                                            struct adv_layer_params params)
{
    const struct adv_constants *k = cost->constants;
    struct moments moments = moments_of(cost, layer);
    double routed = routed_bytes(cost, layer);
    bool attends = moments.in_attention_bytes + k->attention_routed_frac * routed >
                   moments.in_feed_forward_bytes + routed;
    if (attends) routed *= k->attention_routed_frac;
    double tokens = attends ? moments.in_attention_bytes : moments.in_feed_forward_bytes;
    double scores = score_bytes(cost, layer);
    double turn = moments.exchanged_bytes + (attends ? moments.partial_bytes : 0.0);
    if (moments.in_index_bytes > tokens + routed) { /* ahead of the experts */
        tokens = moments.in_index_bytes;
        routed = scores = turn = 0.0;
    }
    return (struct adv_working){
        tokens, scores, turn, chunks_bytes(cost, layer), routed, weights_bytes(cost, params)};
}

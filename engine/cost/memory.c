#include "engine/cost/memory.h"

#include <string.h>

#include "engine/base/units.h"
#include "engine/cost/projections.h"
#include "engine/cost/scratch.h"

/* Adds one named tensor to where the policy puts it. */
static void place(const struct adv_plan *plan, enum adv_tensor name, double bytes, struct adv_saved *saved)
{
    saved->bytes[plan->placements[name]] += bytes;
}

double adv_memory_routed_growth(const struct adv_cost *cost, const struct adv_layer *layer)
{
    const struct adv_plan *plan = cost->plan;
    if (cost->ep <= 1 || plan->moe == ADV_MOE_DENSE) return 1.0;
    if (plan->ragged_buffer_factor > 0.0) return plan->ragged_buffer_factor;
    if (plan->use_ring_of_experts) return cost->ep;
    return adv_min(cost->ep, adv_max(1.0, (double)layer->experts / layer->experts_per_token));
}

static void save_attention(const struct adv_cost *cost, const struct adv_layer *layer,
                           struct adv_saved *saved)
{
    const struct adv_plan *plan = cost->plan;
    double t = cost->tokens;
    double heads = layer->q_heads;
    double context = t * (2.0 * heads * layer->head_dim_v + 4.0 * heads);
    place(plan, ADV_TENSOR_QUERY_PROJ, t * 2.0 * heads * layer->head_dim_qk, saved);
    place(plan, ADV_TENSOR_CONTEXT, context, saved);
    place(plan, ADV_TENSOR_ATTENTION_OUT, t * 2.0 * heads * layer->head_dim_v, saved);
    place(plan, ADV_TENSOR_OUT_PROJ, t * 2.0 * (double)cost->model->emb_dim, saved);
    if (layer->kv_lora_rank > 0) {
        double qk = layer->qk_nope_head_dim + layer->qk_rope_head_dim;
        place(plan, ADV_TENSOR_QUERY_WA_PROJ, t * 2.0 * layer->q_lora_rank, saved);
        place(plan, ADV_TENSOR_MLA_Q, t * 2.0 * layer->q_lora_rank, saved);
        place(plan, ADV_TENSOR_KV_WA_PROJ, t * 2.0 * (layer->kv_lora_rank + layer->qk_rope_head_dim), saved);
        place(plan, ADV_TENSOR_MLA_KV, t * 2.0 * layer->kv_lora_rank, saved);
        place(plan, ADV_TENSOR_KEY_PROJ, t * 2.0 * heads * qk, saved);
        place(plan, ADV_TENSOR_VALUE_PROJ, t * 2.0 * heads * layer->head_dim_v, saved);
        return;
    }
    if (layer->reuses_kv) return;
    place(plan, ADV_TENSOR_KEY_PROJ, t * 2.0 * layer->kv_heads * layer->head_dim_qk, saved);
    place(plan, ADV_TENSOR_VALUE_PROJ, t * 2.0 * layer->kv_heads * layer->head_dim_v, saved);
}

static void save_dense(const struct adv_cost *cost, const struct adv_layer *layer, double width,
                       struct adv_saved *saved)
{
    const struct adv_plan *plan = cost->plan;
    double bytes = 2.0 * width * cost->tokens;
    if (layer->mlp_inputs == 2) {
        place(plan, ADV_TENSOR_MLPWI_0, bytes, saved);
        place(plan, ADV_TENSOR_MLPWI_1, bytes, saved);
    } else {
        place(plan, ADV_TENSOR_MLPWI, bytes, saved);
    }
    if (layer->has_post_ffw_norm)
        place(plan, ADV_TENSOR_MLPWO, 2.0 * (double)cost->model->emb_dim * cost->tokens, saved);
}

/* A tensor that goes by two names is where either keeps it. */
static enum adv_tensor kept_name(const struct adv_plan *plan, enum adv_tensor first, enum adv_tensor second)
{
    return adv_remat_keeps(plan, first) ? first : second;
}

static void save_experts(const struct adv_cost *cost, const struct adv_layer *layer, struct adv_saved *saved)
{
    const struct adv_plan *plan = cost->plan;
    bool grouped = plan->moe != ADV_MOE_DENSE;
    double rows = cost->tokens * layer->experts_per_token * adv_memory_routed_growth(cost, layer);
    if (!grouped)
        rows = plan->capacity_factor > 0.0 ? rows * plan->capacity_factor : cost->tokens * layer->experts;
    double wide = 2.0 * (double)layer->moe_mlp_dim * rows;
    /* every tensor of the einsums carries both names; of the grouped matmuls only the gate's output does */
    place(plan, kept_name(plan, ADV_TENSOR_MOE_MLPWI_0, ADV_TENSOR_MLPWI_0), wide, saved);
    place(plan,
          grouped ? ADV_TENSOR_MOE_MLPWI_1 : kept_name(plan, ADV_TENSOR_MOE_MLPWI_1, ADV_TENSOR_MLPWI_1),
          wide, saved);
    place(plan, grouped ? ADV_TENSOR_MOE_MLPWO : kept_name(plan, ADV_TENSOR_MOE_MLPWO, ADV_TENSOR_MLPWO),
          2.0 * (double)cost->model->emb_dim * rows, saved);
}

static struct adv_saved layer_saved(const struct adv_cost *cost, const struct adv_layer *layer)
{
    struct adv_saved saved = {{0.0}};
    double input = 2.0 * (double)cost->model->emb_dim * cost->tokens / adv_max(1.0, layer->scan_block);
    bool offloads = cost->plan->placements[ADV_TENSOR_DECODER_LAYER_INPUT] == ADV_PLACE_OFFLOAD;
    saved.bytes[offloads ? ADV_PLACE_OFFLOAD : ADV_PLACE_DEVICE] += input;
    if (layer->attention == ADV_ATTENTION_LINEAR) return saved; /* its tensors carry no names */
    save_attention(cost, layer, &saved);
    if (layer->mlp_dim > 0) save_dense(cost, layer, (double)layer->mlp_dim, &saved);
    if (layer->shared_experts > 0) save_dense(cost, layer, (double)layer->shared_mlp_dim, &saved);
    if (layer->experts > 0) save_experts(cost, layer, &saved);
    return saved;
}

struct adv_saved adv_memory_layer_saved(const struct adv_cost *cost, const struct adv_layer *layer)
{
    struct adv_cost_scratch *scratch = cost->scratch;
    int kind = adv_cost_kind(cost, layer);
    if (!scratch) return layer_saved(cost, layer);
    if (!scratch->saved_known[kind]) scratch->saved[kind] = layer_saved(cost, layer);
    scratch->saved_known[kind] = true;
    return scratch->saved[kind];
}

/* The experts' backward pass has two moments, and they do not coincide. Around the activation the wide
 * tensors live (every input, their product, one gradient) beside the permuted inputs and part of the gradient
 * that arrives; around the permutation the narrow ones do: permuted inputs, expert outputs, their unpermuted
 * copies, the gradients of all three, and both data gradients until they are added. The einsums of the
 * capacity path keep no permuted copies. How many narrow tensors that makes are constants set on the
 * published reports, not derived: step_constants.json. */

/* What the experts keep alive. fsdp_transpose beside fsdp shards the expert width, so the tokens of its group
 * meet: more rows, narrower (reported: the same model needs 2 MB per token with it and 1.1 to 1.4 without).
 * Tensor axes do the same. */
static double routed_working_bytes(const struct adv_cost *cost, const struct adv_layer *layer)
{
    const struct adv_constants *k = cost->constants;
    const struct adv_plan *plan = cost->plan;
    double rows = cost->tokens * layer->experts_per_token * adv_memory_routed_growth(cost, layer);
    if (plan->moe == ADV_MOE_DENSE && plan->capacity_factor > 0.0) rows *= plan->capacity_factor;
    double meet = plan->moe == ADV_MOE_DENSE ? cost->width_shards : (double)cost->width_shards * cost->tp;
    rows *= meet;
    double emb = (double)cost->model->emb_dim;
    double width = (double)layer->moe_mlp_dim / meet;
    double wide_tensors = layer->mlp_inputs + 2.0;
    if (plan->moe == ADV_MOE_DENSE)
        return 2.0 * rows * (k->dense_expert_emb_tensors * emb + wide_tensors * width);
    return 2.0 * rows *
           adv_max(k->routed_wide_emb_tensors * emb + wide_tensors * width,
                   k->routed_narrow_emb_tensors * emb + k->routed_narrow_width_tensors * width);
}

/* XLA's attention has whole score matrices in HBM: at the least the probabilities and their gradient, bf16.
 */
static double score_bytes(const struct adv_cost *cost, const struct adv_layer *layer)
{
    if (cost->plan->attention != ADV_ATTENTION_IMPL_DOT_PRODUCT || layer->attention == ADV_ATTENTION_LINEAR)
        return 0.0;
    return 2.0 * 2.0 * cost->tokens * (double)cost->plan->seq_len * layer->q_heads;
}

/* Live bytes while one layer is recomputed and differentiated: each tensor of the layer once, the gradients
 * of the widest neighbours, and for routed experts the permuted inputs and outputs. */
static double layer_working_bytes(const struct adv_cost *cost, const struct adv_layer *layer)
{
    double emb = (double)cost->model->emb_dim;
    double q = (double)layer->q_heads * layer->head_dim_qk;
    double kv = (double)layer->kv_heads * (layer->head_dim_qk + layer->head_dim_v);
    double out = (double)layer->q_heads * layer->head_dim_v;
    if (layer->attention == ADV_ATTENTION_LINEAR) {
        q = 2.0 * (double)layer->linear_key_heads * layer->linear_key_head_dim;
        kv = 0.0;
        out = 3.0 * (double)layer->linear_value_heads * layer->linear_value_head_dim;
    }
    double attention = 2.0 * (q + kv) + 2.0 * out; /* values and their gradients */
    double width = (double)layer->mlp_dim + (layer->shared_experts > 0 ? (double)layer->shared_mlp_dim : 0.0);
    double dense = width * (layer->mlp_inputs + 2.0); /* inputs, product, one gradient */
    double bytes = 2.0 * cost->tokens * (4.0 * emb + adv_max(attention, dense)) + score_bytes(cost, layer);
    if (layer->experts > 0) {
        /* while the experts are differentiated, attention has its forward values only */
        double beside = 2.0 * cost->tokens * (3.0 * emb + adv_max(0.5 * attention, dense)) +
                        routed_working_bytes(cost, layer);
        bytes = adv_max(bytes, beside);
    }
    double blocks = cost->plan->scan_layers ? adv_min(2.0, layer->scan_block) : 1.0;
    return bytes * blocks;
}

static double working_bytes(const struct adv_cost *cost, const struct adv_layer *layer)
{
    struct adv_cost_scratch *scratch = cost->scratch;
    int kind = adv_cost_kind(cost, layer);
    if (!scratch) return layer_working_bytes(cost, layer);
    if (!scratch->working_known[kind]) scratch->working_bytes[kind] = layer_working_bytes(cost, layer);
    scratch->working_known[kind] = true;
    return scratch->working_bytes[kind];
}

/* HBM left for the compiler's own temporaries when nothing is recomputed. */
static const double everything_frac = 0.85;

bool adv_memory_keeps_everything(const struct adv_cost *cost, const struct adv_model_params *params)
{
    if (cost->plan->scan_layers || cost->model->decoder != ADV_DECODER_GEMMA4_SMALL) return false;
    double bytes = 16.0 * (params->total - params->routed_experts) / cost->weight_shards +
                   16.0 * params->routed_experts / cost->expert_shards;
    for (int i = 0; i < cost->model->layer_kinds_count; i++)
        bytes += working_bytes(cost, &cost->model->layers[i]) * cost->model->layers[i].count;
    return bytes <= everything_frac * cost->chip->hbm_usable_bytes_per_device;
}

/* Forward values of a layer that recomputes nothing, beside its named input. */
static double unrecomputed_bytes(const struct adv_cost *cost, const struct adv_layer *layer)
{
    double emb = (double)cost->model->emb_dim;
    double attention = (double)layer->q_heads * (layer->head_dim_qk + layer->head_dim_v);
    if (!layer->reuses_kv) attention += (double)layer->kv_heads * (layer->head_dim_qk + layer->head_dim_v);
    double dense = (double)layer->mlp_dim * (layer->mlp_inputs + 1.0);
    return 2.0 * cost->tokens * ((1.0 + layer->norms) * emb + attention + dense);
}

static void part(struct adv_ledger *ledger, const char *name, double bytes, enum adv_memory_at at)
{
    if (!ledger || bytes <= 0.0 || ledger->memory_count == ADV_LIMIT_MEMORY_PARTS) return;
    ledger->memory[ledger->memory_count++] = (struct adv_memory_part){name, bytes, at};
}

/* Persistent bytes per parameter of the optimizer's moments. */
static double moment_bytes(const struct adv_plan *plan)
{
    double w = adv_format_bytes(plan->weight_dtype);
    double mu = adv_format_bytes(plan->mu_dtype);
    if (plan->optimizer == ADV_OPT_SGD) return 0.0;
    if (plan->optimizer == ADV_OPT_MUON) return mu;
    if (plan->optimizer == ADV_OPT_ADAM_PAX) return 2.0 * w;
    return mu + w;
}

struct layer_sums {
    double saved_device, saved_host, working, gathered;
};

static struct layer_sums sum_layers(const struct adv_cost *cost)
{
    struct layer_sums sums = {0.0, 0.0, 0.0, 0.0};
    const struct adv_model *model = cost->model;
    /* a stage holds its own layers for every microbatch in flight */
    double in_flight = cost->stages > 1 ? cost->microbatches : 1.0;
    for (int i = 0; i < model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &model->layers[i];
        struct adv_saved saved = adv_memory_layer_saved(cost, layer);
        double count = (double)layer->count / cost->stages * in_flight;
        if (cost->recompute_elided) saved.bytes[ADV_PLACE_DEVICE] += unrecomputed_bytes(cost, layer);
        sums.saved_device += saved.bytes[ADV_PLACE_DEVICE] * count;
        sums.saved_host += saved.bytes[ADV_PLACE_OFFLOAD] * count;
        sums.working = adv_max(sums.working, working_bytes(cost, layer));
        struct adv_layer_params p = cost->layer_params[i];
        double wide = (double)cost->tp * cost->width_shards;
        double dense =
            (p.attention + p.router + p.norms + p.other) / cost->tp + (p.dense_ffn + p.shared_experts) / wide;
        double gathered = 0.0;
        if (cost->dense_group.devices > 1) gathered += dense;
        if (cost->expert_group.devices > 1) gathered += p.routed_experts / (cost->ep * wide);
        sums.gathered = adv_max(sums.gathered, adv_format_bytes(cost->plan->dtype) * gathered);
    }
    return sums;
}

void adv_memory_plan(const struct adv_cost *cost, const struct adv_model_params *params,
                     struct adv_memory *memory, struct adv_ledger *ledger)
{
    const struct adv_plan *plan = cost->plan;
    double shard_params = (params->total - params->routed_experts) / cost->weight_shards +
                          params->routed_experts / cost->expert_shards;
    double state_shards = plan->shard_optimizer_over_data ? (double)cost->dp * plan->dcn[ADV_AXIS_DATA] : 1.0;
    double weights = adv_format_bytes(plan->weight_dtype) * shard_params;
    double moments = moment_bytes(plan) * shard_params / state_shards;
    /* the backward pass makes gradients in the weights' format; grad_dtype only casts what the optimizer
     * reads */
    double gradients = adv_format_bytes(plan->weight_dtype) * shard_params;
    if (plan->gradient_accumulation_steps > 1) gradients *= 2.0;
    /* Gradients cross slices out of one buffer into another, both in the weights' format though grad_dtype is
     * what is sent: with two slices DeepSeek (grad_dtype bfloat16) is reported to need 8 GiB and more over
     * the same shards on one slice. With the data-parallel overlap flags the reduction is pipelined through
     * the layers' loop instead, a layer at a time: published steps on many slices ran where whole buffers
     * would not have fitted. */
    bool whole_buffers = plan->dcn[ADV_AXIS_DATA] > 1 && plan->flags.data_parallel_overlap != 1;
    double between_slices = whole_buffers ? 2.0 * adv_format_bytes(plan->weight_dtype) * shard_params : 0.0;
    struct layer_sums sums = sum_layers(cost);
    /* float32 logits are fused away; what stays live is bf16 */
    double logits = 2.0 * adv_plan_tokens(plan) * (double)cost->model->vocab_size /
                    ((double)cost->tp * plan->num_vocab_tiling);
    double device_moments = plan->optimizer_host_offload ? 0.0 : moments;
    double device_weights = plan->parameter_host_offload ? 0.0 : weights;
    double state = device_weights + device_moments;
    memory->loss_peak_bytes = state + sums.saved_device + logits;
    memory->backward_peak_bytes =
        state + sums.saved_device + gradients + between_slices + sums.gathered + sums.working;
    memory->update_peak_bytes = weights + moments + gradients;
    double per_host = cost->cluster->devices_per_host;
    double host = sums.saved_host + (plan->optimizer_host_offload ? moments : 0.0) +
                  (plan->parameter_host_offload ? weights : 0.0);
    memory->host_bytes_per_host = host * per_host;
    part(ledger, "weights", device_weights, ADV_AT_ALWAYS);
    part(ledger, "optimizer_state", device_moments, ADV_AT_ALWAYS);
    part(ledger, "saved_activations", sums.saved_device, ADV_AT_LOSS); /* gone when the optimizer updates */
    part(ledger, "saved_activations", sums.saved_device, ADV_AT_BACKWARD);
    part(ledger, "logits", logits, ADV_AT_LOSS);
    part(ledger, "gradients", gradients, ADV_AT_BACKWARD);
    part(ledger, "gradients_between_slices", between_slices, ADV_AT_BACKWARD);
    part(ledger, "gathered_weights", sums.gathered, ADV_AT_BACKWARD);
    part(ledger, "layer_working_set", sums.working, ADV_AT_BACKWARD);
    if (plan->parameter_host_offload) part(ledger, "weights", weights, ADV_AT_UPDATE);
    if (plan->optimizer_host_offload) part(ledger, "optimizer_state", moments, ADV_AT_UPDATE);
    part(ledger, "gradients", gradients, ADV_AT_UPDATE);
}

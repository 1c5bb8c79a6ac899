#include "engine/cost/head_memory.h"

#include <math.h>

#include "engine/base/units.h"
#include "engine/cost/regime.h"

/* Whether the gradient of the logits is a tensor though the head is gathered whole: where they are a matrix,
 * of one sequence a device or of a tile of the vocabulary's loop, with fewer rows than the vocabulary and not
 * too few beside emb. Under a cap it is the other way round: a matrix has none. */
static bool has_loss_gradient(const struct adv_cost *cost)
{
    const struct adv_constants *k = cost->constants;
    const double emb = (double)cost->model->emb_dim, tiles = adv_max(1.0, cost->plan->num_vocab_tiling);
    const double rows = adv_plan_tokens(cost->plan) / tiles;
    const bool is_matrix = tiles > 1.0 || rows <= (double)cost->plan->family.seq_len;
    if (cost->model->logits_soft_cap > 0.0)
        return !is_matrix && rows >= k->capped_loss_tokens_per_emb_least * emb;
    return is_matrix && rows < (double)cost->model->vocab_size &&
           rows >= k->single_loss_tokens_per_emb_least * emb;
}

/* The mask of the targets' logits, one byte each, that XLA makes for their gradient and keeps as long as
 * that; of all tokens, also where the vocabulary is tiled, but not where tiles are cut across context shards.
 */
static double mask_bytes(const struct adv_cost *cost)
{
    const double tokens = adv_plan_tokens(cost->plan);
    if (adv_plan_tiles_gather(cost->plan, cost->plan->num_vocab_tiling)) return 0.0;
    const double most = cost->constants->masked_loss_tokens_per_emb_most * (double)cost->model->emb_dim;
    return adv_memory_windowed(cost) || tokens > most ? 0.0 : tokens * (double)cost->model->vocab_size;
}

/* The vocabulary's weights [emb, vocab] with room for whole tiles of eight rows a device, as a gather of rows
 * that fill no whole tiles has them until they are packed; 0: the rows fill tiles. */
static double padded_gather_bytes(const struct adv_cost *cost)
{
    const double emb = (double)cost->model->emb_dim, tile = 8.0;
    const double rows = emb * cost->tp * cost->stages / cost->weight_shards;
    const double padded = ceil(rows / tile - 1e-9) * tile;
    if (padded - rows < 1e-9) return 0.0;
    return padded / rows * adv_format_bytes(cost->plan->family.dtype) * emb *
           (double)cost->model->vocab_size / cost->tp;
}

/* What is left of a place when the next buffer that is to live long comes: nothing smaller fills the rest. */
static double left_of(double place, double next)
{
    return next <= place ? place - next : place;
}

/* Places at the loss that are free and that the logits are too large for. A padded gather of the head leaves
 * its place below what it was packed into. Where a mask is kept, the tokens' lookup made one, too, and had
 * the table gathered: of a table that is the head the kept mask lies above that of the lookup; of another,
 * it takes the place of the table's padded gather. Seen without transfers, which change what lives when. */
static double loss_holes(const struct adv_cost *cost)
{
    const struct adv_plan *plan = cost->plan;
    if (adv_memory_windowed(cost) || adv_memory_peels_loops(cost) || plan->num_vocab_tiling > 1) return 0.0;
    const double mask = mask_bytes(cost), padded = padded_gather_bytes(cost);
    const double logits = 2.0 * adv_plan_tokens(plan) * (double)cost->model->vocab_size / cost->tp;
    if (mask > 0.0 && cost->model->ties_embedding) return mask + padded;
    return left_of(padded, logits) + (mask > 0.0 ? left_of(padded, mask) : 0.0);
}

/* How many logits are alive at the loss: they and their gradient. Where the head is gathered whole, some
 * generations make the gradient inside the matmuls that read it. */
static double loss_logits(const struct adv_cost *cost)
{
    const struct adv_constants *k = cost->constants;
    const struct adv_plan *plan = cost->plan;
    const bool windowed = adv_memory_windowed(cost);
    if (plan->num_vocab_tiling > 1)
        return windowed || has_loss_gradient(cost) ? k->tiled_logits_tensors
                                                   : k->gathered_tiled_logits_tensors;
    if (windowed) return k->loss_logits_tensors;
    if (has_loss_gradient(cost)) return k->loss_logits_tensors;
    return plan->family.gradient_accumulation_steps > 1 ? k->accumulated_loss_logits_tensors
                                                        : k->gathered_loss_logits_tensors;
}

/* Copies of the head at the loss, and those that are kept through the layers for its gradient. */
static double loss_heads(const struct adv_cost *cost)
{
    const struct adv_constants *k = cost->constants;
    if (adv_memory_windowed(cost)) return k->loss_head_copies;
    if (has_loss_gradient(cost)) return k->single_loss_head_copies;
    if (cost->plan->num_vocab_tiling > 1) return k->gathered_tiled_head_copies;
    return cost->plan->family.gradient_accumulation_steps > 1 ? k->accumulated_loss_head_copies
                                                              : k->gathered_loss_head_copies;
}

/* Beside a data axis the head's gradient is scattered as it is added up, but not with experts. */
static double late_heads(const struct adv_cost *cost)
{
    const struct adv_constants *k = cost->constants;
    const bool scatters = cost->dp > 1 && !adv_model_has_experts(cost->model);
    if (adv_memory_windowed(cost) || scatters) return k->late_head_copies;
    return cost->plan->num_vocab_tiling > 1 ? k->gathered_late_tiled_head_copies
                                            : k->gathered_late_head_copies;
}

/* Whether JAX lays the mesh over parts of all three physical axes, and over so many devices that XLA adds the
 * hidden gradients of all of them up in float32, where it gathers them in bf16 elsewhere (compiled: 64
 * devices and more; not 32, nor on a slice of two axes, nor along whole axes). */
static bool adds_up_hidden_gradients(const struct adv_cost *cost)
{
    static const int devices_least = 64;
    const int *dims = cost->cluster->dims;
    return cost->mesh->needs_split && cost->cluster->devices_per_slice >= devices_least && dims[0] > 1 &&
           dims[1] > 1 && dims[2] > 1;
}

/* The gradient of the hidden states behind the loop over tiles, where it is that of all devices; the tile's
 * logits have gone by then. Below tokamax's attention it is turned where a shard's sequence is shorter than
 * emb, so that both orders live at once (not beside transfers). Seen in 60 compiled steps
 * (tests/compile/truth/head.json). */
static double whole_hidden_gradient(const struct adv_cost *cost)
{
    const struct adv_constants *k = cost->constants;
    const struct adv_plan *plan = cost->plan;
    if (!adv_memory_tiles_gather(k, plan, plan->num_vocab_tiling)) return 0.0;
    const double seq = (double)plan->family.seq_len, emb = (double)cost->model->emb_dim;
    const double sequences =
        adv_plan_global_batch(plan, cost->cluster) / plan->family.gradient_accumulation_steps;
    const bool is_short = seq / (double)adv_plan_degree(plan, ADV_AXIS_CONTEXT) < emb;
    const bool turns = plan->family.use_tokamax_splash && is_short && !adv_memory_peels_loops(cost);
    double bytes = 2.0 * (k->gathered_tiles_copies + (turns ? k->turned_gathered_tiles_copies : 0.0));
    if (adds_up_hidden_gradients(cost)) bytes = 4.0 + 2.0;
    return bytes * sequences * seq * emb / cost->tp;
}

/* How many logits outlive the loss: their gradient, when the head's own gradient is computed after the
 * layers. The experimental scheduler may compute it before them, except beside routed experts, inside the
 * loop over microbatches, and beside transfers; without it, dense models keep them beside transfers. Windowed
 * einsums of few devices may do so for a large vocabulary; beside tensor parallelism the head is split
 * otherwise, and one that is the embedding table keeps more, most where the derivative of a cap reads the
 * logits, too. */
static double late_logits(const struct adv_cost *cost)
{
    static const int few_devices_most = 8;
    static const int64_t large_vocab_least = 65536; /* compiled: 50,304 entries are kept, 100,278 are not */
    const struct adv_constants *k = cost->constants;
    const bool routed = adv_model_has_experts(cost->model);
    if (adv_memory_crosses_slices(cost) && !cost->plan->family.use_multimodal)
        return k->sliced_late_logits_tensors;
    const bool loops = cost->plan->family.gradient_accumulation_steps > 1;
    const bool tensor_tied = cost->tp > 1 && cost->model->ties_embedding;
    if (tensor_tied && (loops || adv_memory_peels_loops(cost)))
        return k->tensor_tied_busy_late_logits_tensors;
    if (!routed && loops) return k->accumulated_late_logits_tensors;
    bool scheduled = cost->plan->flags.host_offload_scheduling == 1 && !routed;
    if (scheduled && adv_memory_peels_loops(cost))
        return adv_memory_windowed(cost) ? k->windowed_peeled_late_logits_tensors
                                         : k->peeled_late_logits_tensors;
    if (!routed && adv_memory_peels_loops(cost)) return k->unscheduled_peeled_late_logits_tensors;
    const bool windowed = adv_memory_windowed(cost);
    if (!windowed && routed && adv_memory_peels_loops(cost)) return k->routed_peeled_late_logits_tensors;
    if (!windowed) return k->gathered_late_logits_tensors;
    if (loops) return k->routed_accumulated_late_logits_tensors;
    if (scheduled) return k->scheduled_late_logits_tensors;
    if (tensor_tied && cost->model->logits_soft_cap > 0.0) return k->tensor_capped_late_logits_tensors;
    if (tensor_tied) return k->tensor_tied_late_logits_tensors;
    if (cost->tp > 1) return k->tensor_late_logits_tensors;
    const bool few = cost->dense_group.devices <= few_devices_most &&
                     cost->model->vocab_size >= large_vocab_least && cost->plan->family.scan_layers;
    return few ? k->few_late_logits_tensors : k->late_logits_tensors;
}

/* The same of tiles: the loop over microbatches keeps what windowed einsums have in the loop over tiles. */
static double late_tiles(const struct adv_cost *cost)
{
    const bool kept = adv_memory_windowed(cost) && cost->plan->family.gradient_accumulation_steps > 1;
    return kept ? cost->constants->accumulated_late_tiles : 0.0;
}

static double logits_bytes(const struct adv_cost *cost)
{
    return 2.0 * adv_plan_tokens(cost->plan) * (double)cost->model->vocab_size / cost->plan->num_vocab_tiling;
}

static double weights_bytes(const struct adv_cost *cost)
{
    return adv_format_bytes(cost->plan->family.dtype) * (double)cost->model->emb_dim *
           (double)cost->model->vocab_size / cost->tp;
}

static double hidden_bytes(const struct adv_cost *cost)
{
    return 2.0 * adv_plan_tokens(cost->plan) * (double)cost->model->emb_dim;
}

/* Logits in bf16 (float32 ones are fused away) and their gradient, a tile at a time. */
struct adv_head_memory adv_head_memory_at_loss(const struct adv_cost *cost)
{
    struct adv_head_memory head = {
        .logits_bytes = loss_logits(cost) * logits_bytes(cost) + mask_bytes(cost),
        .weights_bytes = loss_heads(cost) * weights_bytes(cost),
        .hidden_bytes = cost->constants->loss_emb_tensors * hidden_bytes(cost),
        .holes_bytes = loss_holes(cost),
    };
    /* behind the tiles the place of the head's weights stays free beside the gradient of all devices */
    const double whole = whole_hidden_gradient(cost), place = weights_bytes(cost);
    if (whole <= 0.0 || whole + place <= head.logits_bytes + head.weights_bytes + head.holes_bytes)
        return head;
    return (struct adv_head_memory){.hidden_bytes = head.hidden_bytes + whole, .holes_bytes = place};
}

struct adv_head_memory adv_head_memory_behind_loss(const struct adv_cost *cost)
{
    const struct adv_constants *k = cost->constants;
    const double late = cost->plan->num_vocab_tiling == 1 ? late_logits(cost) : late_tiles(cost);
    return (struct adv_head_memory){
        .logits_bytes = late * logits_bytes(cost) + mask_bytes(cost),
        .weights_bytes = late_heads(cost) * weights_bytes(cost),
        .hidden_bytes = (adv_memory_windowed(cost) ? k->late_emb_tensors : k->gathered_late_emb_tensors) *
                        hidden_bytes(cost),
    };
}

struct adv_head_memory adv_head_memory_at_update(const struct adv_cost *cost)
{
    const double late = cost->plan->num_vocab_tiling == 1 ? late_logits(cost) : 0.0;
    return (struct adv_head_memory){.logits_bytes = late * logits_bytes(cost),
                                    .weights_bytes = weights_bytes(cost)};
}

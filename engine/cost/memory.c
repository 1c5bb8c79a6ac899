#include "engine/cost/memory.h"

#include <math.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/cost/heap.h"
#include "engine/cost/scratch.h"
#include "engine/cost/state.h"

/* Where a stage comes round before its microbatches do, their hidden states wait in a store of all. */
static double circular_storage_bytes(const struct adv_cost *cost)
{
    const struct adv_plan *plan = cost->plan;
    double delay = plan->family.pipeline_delay_activation_forwarding ? 2.0 : 1.0;
    if (cost->stages <= 1 || adv_plan_pipeline_rounds(plan, cost->model) <= 1.0 ||
        cost->microbatches <= cost->stages * delay)
        return 0.0;
    return 2.0 * cost->tokens * (double)cost->model->emb_dim * cost->microbatches;
}

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
 * that; of all tokens, also where the vocabulary is tiled. */
static double mask_bytes(const struct adv_cost *cost)
{
    const double tokens = adv_plan_tokens(cost->plan);
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

static double late_heads(const struct adv_cost *cost)
{
    const struct adv_constants *k = cost->constants;
    if (adv_memory_windowed(cost)) return k->late_head_copies;
    return cost->plan->num_vocab_tiling > 1 ? k->gathered_late_tiled_head_copies
                                            : k->gathered_late_head_copies;
}

/* What lies in the heap at the loss, and at the start of the backward pass, in the order it is added up. */
enum {
    LOSS_SAVED,
    LOSS_COPIES,
    LOSS_ACCUMULATED,
    LOSS_LOGITS,
    LOSS_HEAD,
    LOSS_HIDDEN,
    LOSS_STAGING,
    LOSS_PARTS
};
enum {
    BACKWARD_SAVED,
    BACKWARD_COPIES,
    BACKWARD_GRADIENTS,
    BACKWARD_BETWEEN,
    BACKWARD_LOGITS,
    BACKWARD_HEAD,
    BACKWARD_HIDDEN,
    BACKWARD_GATHERED,
    BACKWARD_WORKING,
    BACKWARD_ROUTED,
    BACKWARD_STAGING,
    BACKWARD_TURNED,
    BACKWARD_EARLY,
    BACKWARD_PARTS
};
_Static_assert((int)LOSS_SAVED == ADV_HEAP_SAVED && (int)BACKWARD_SAVED == ADV_HEAP_SAVED, "first");
_Static_assert((int)LOSS_PARTS <= (int)ADV_MOMENT_PARTS && (int)BACKWARD_PARTS <= (int)ADV_MOMENT_PARTS,
               "room for all parts");
static const char *const loss_names[LOSS_PARTS] = {
    "saved_activations", "weight_copies", "accumulated_gradients", "logits",
    "head_weights",      "hidden_states", "host_staging"};
static const char *const backward_names[BACKWARD_PARTS] = {"saved_activations",
                                                           "weight_copies",
                                                           "gradients",
                                                           "gradients_between_slices",
                                                           "logits",
                                                           "head_weights",
                                                           "hidden_states",
                                                           "gathered_weights",
                                                           "layer_working_set",
                                                           "routed_working_set",
                                                           "host_staging",
                                                           "turned_activations",
                                                           "early_recomputation"};

/* The gradient of the hidden states behind the loop over tiles, where it is that of all devices (seen: 16
 * compiled steps of llama3.3-70b and llama3-8b, tests/compile/truth/head.json); the tile's logits have gone
 * by then. Few shards of the batch are gathered in bf16, before and behind a product, of which the scheduler
 * of host transfers keeps one; many are added up in float32, which takes both formats (layers without a scan
 * were not seen). */
static double whole_hidden_gradient(const struct adv_cost *cost)
{
    static const double many_shards_least = 32.0;
    const struct adv_plan *plan = cost->plan;
    if (!adv_plan_tiles_gather(plan, plan->num_vocab_tiling)) return 0.0;
    const double seq = (double)plan->family.seq_len, emb = (double)cost->model->emb_dim;
    const double sequences =
        adv_plan_global_batch(plan, cost->cluster) / plan->family.gradient_accumulation_steps;
    const double own = adv_plan_tokens(plan) * (double)adv_plan_degree(plan, ADV_AXIS_CONTEXT) / seq;
    double bytes = adv_memory_peels_loops(cost) ? 2.0 : 2.0 + 2.0;
    if (plan->family.scan_layers && sequences / own >= many_shards_least) bytes = 4.0 + 2.0;
    return bytes * sequences * seq * emb;
}

/* The head at the loss: logits in bf16 (float32 ones are fused away) and their gradient, a tile at a time. */
static void frame_loss(const struct adv_cost *cost, const struct adv_state *state, double *bytes)
{
    const struct adv_constants *k = cost->constants;
    const struct adv_plan *plan = cost->plan;
    double tokens = adv_plan_tokens(plan), emb = (double)cost->model->emb_dim,
           vocab = (double)cost->model->vocab_size;
    bytes[LOSS_COPIES] = state->copies;
    bytes[LOSS_ACCUMULATED] = state->accumulated;
    bytes[LOSS_LOGITS] = loss_logits(cost) * 2.0 * tokens * vocab / plan->num_vocab_tiling + mask_bytes(cost);
    bytes[LOSS_HEAD] = loss_heads(cost) * adv_format_bytes(plan->family.dtype) * emb * vocab / cost->tp;
    bytes[LOSS_HIDDEN] = k->loss_emb_tensors * 2.0 * tokens * emb;
    const double whole = whole_hidden_gradient(cost);
    if (whole <= bytes[LOSS_LOGITS]) return;
    bytes[LOSS_HIDDEN] += whole;
    bytes[LOSS_LOGITS] = 0.0;
}

static bool has_query_key_norms(const struct adv_model *model)
{
    bool has = false;
    for (int i = 0; i < model->layer_kinds_count; i++) has |= model->layers[i].has_qk_norm;
    return has;
}

/* Whether stacks of [tokens, emb] are written in the layout in which the iteration that is taken out of the
 * backward loop does not read them: see set_turned_copies. */
static bool turns_emb(const struct adv_cost *cost)
{
    const double seq = (double)cost->plan->family.seq_len, emb = (double)cost->model->emb_dim;
    if (adv_memory_windowed(cost)) return seq >= cost->constants->windowed_turned_seq_per_emb_least * emb;
    return (seq >= emb) != has_query_key_norms(cost->model);
}

/* How many logits outlive the loss: their gradient, when the head's own gradient is computed after the
 * layers. The experimental scheduler may compute it before them, except beside routed experts, inside the
 * loop over microbatches, and beside transfers. Windowed einsums of few devices may do so for a large
 * vocabulary; beside tensor parallelism the head is split otherwise, and one that is the embedding table
 * keeps more. */
static double late_logits(const struct adv_cost *cost)
{
    static const int few_devices_most = 8;
    static const int64_t large_vocab_least = 65536; /* compiled: 50,304 entries are kept, 100,278 are not */
    const struct adv_constants *k = cost->constants;
    bool routed = false;
    for (int i = 0; i < cost->model->layer_kinds_count; i++) routed |= cost->model->layers[i].experts > 0;
    const bool loops = cost->plan->family.gradient_accumulation_steps > 1;
    const bool tensor_tied = cost->tp > 1 && cost->model->ties_embedding;
    if (tensor_tied && (loops || adv_memory_peels_loops(cost)))
        return k->tensor_tied_busy_late_logits_tensors;
    if (!routed && loops) return k->accumulated_late_logits_tensors;
    bool scheduled = cost->plan->flags.host_offload_scheduling == 1 && !routed;
    if (scheduled && adv_memory_peels_loops(cost)) {
        if (adv_memory_windowed(cost)) return k->windowed_peeled_late_logits_tensors;
        return turns_emb(cost) ? k->turned_late_logits_tensors : k->peeled_late_logits_tensors;
    }
    const bool windowed = adv_memory_windowed(cost);
    if (!windowed && routed && adv_memory_peels_loops(cost)) return k->routed_peeled_late_logits_tensors;
    if (!windowed) return k->gathered_late_logits_tensors;
    if (loops) return k->routed_accumulated_late_logits_tensors;
    if (scheduled) return k->scheduled_late_logits_tensors;
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

/* Where blocks have loops of their own, gradients of a block come when its turn does. By then what was saved
 * of the blocks behind it and the copies of their weights have gone. */
static double coming_gradients(const struct adv_cost *cost, const struct adv_model_params *params,
                               const struct adv_state *state)
{
    const double heads = (params->embedding + params->unembedding) / params->total;
    return (state->gradients - state->accumulated) * (1.0 - heads) *
           (1.0 - 1.0 / adv_memory_blocks_in_turn(cost));
}

static void frame_backward(const struct adv_cost *cost, const struct adv_state *state, double *bytes)
{
    const struct adv_constants *k = cost->constants;
    const struct adv_plan *plan = cost->plan;
    double tokens = adv_plan_tokens(plan), emb = (double)cost->model->emb_dim,
           vocab = (double)cost->model->vocab_size;
    bytes[BACKWARD_COPIES] = state->copies;
    bytes[BACKWARD_BETWEEN] = state->between_slices;
    bytes[BACKWARD_LOGITS] = (plan->num_vocab_tiling == 1 ? late_logits(cost) : late_tiles(cost)) * 2.0 *
                                 tokens * vocab / plan->num_vocab_tiling +
                             mask_bytes(cost);
    bytes[BACKWARD_HEAD] = late_heads(cost) * adv_format_bytes(plan->family.dtype) * emb * vocab / cost->tp;
    bytes[BACKWARD_HIDDEN] =
        (adv_memory_windowed(cost) ? k->late_emb_tensors : k->gathered_late_emb_tensors) * 2.0 * tokens *
            emb +
        circular_storage_bytes(cost);
}

static void part(struct adv_ledger *ledger, const char *name, double bytes, enum adv_memory_at at)
{
    if (!ledger || bytes <= 0.0 || ledger->memory_count == ADV_LIMIT_MEMORY_PARTS) return;
    ledger->memory[ledger->memory_count++] = (struct adv_memory_part){name, bytes, at};
}

static void list(const struct adv_heap *heap, struct adv_ledger *ledger, enum adv_memory_at at,
                 const char *const *names, const double *bytes, int count)
{
    for (int i = 0; ledger && i < count; i++) part(ledger, names[i], bytes[i], at);
    part(ledger, "fragmentation", adv_heap_lost_bytes(heap, bytes, count), at);
}

/* The optimizer's step. What the last backward pass left is alive with it, except behind a loop over
 * microbatches: that ends with the sums of their gradients alone. Where the one-hot of all tokens is built,
 * its moment in that loop is fuller. */
static double update_peak(const struct adv_cost *cost, const struct adv_state *state,
                          struct adv_ledger *ledger)
{
    enum { GRADIENTS, LOGITS, HEAD, ONE_HOT, PARTS };
    static const char *const names[PARTS] = {"gradients", "logits", "head_weights", "one_hot"};
    const struct adv_plan *plan = cost->plan;
    const bool has_one_hot = adv_plan_one_hot_is_whole(plan),
               loops = plan->family.gradient_accumulation_steps > 1 && !has_one_hot;
    double tokens = adv_plan_tokens(plan), emb = (double)cost->model->emb_dim,
           vocab = (double)cost->model->vocab_size;
    const struct adv_heap heap =
        adv_heap_at(cost, state->weights + state->moments, adv_memory_peels_loops(cost), ADV_AT_UPDATE);
    const double bytes[PARTS] = {
        [GRADIENTS] = (loops ? state->accumulated : state->gradients) + state->whole_experts,
        [LOGITS] = plan->num_vocab_tiling == 1 && !loops ? late_logits(cost) * 2.0 * tokens * vocab : 0.0,
        [HEAD] = loops ? 0.0 : adv_format_bytes(plan->family.dtype) * emb * vocab / cost->tp,
        [ONE_HOT] = has_one_hot ? tokens * vocab * cost->weight_shards / (cost->tp * cost->stages) : 0.0};
    if (plan->parameter_host_offload) part(ledger, "weights", state->weights, ADV_AT_UPDATE);
    if (plan->optimizer_host_offload) part(ledger, "optimizer_state", state->moments, ADV_AT_UPDATE);
    list(&heap, ledger, ADV_AT_UPDATE, names, bytes, PARTS);
    return adv_heap_peak(&heap, bytes, PARTS);
}

/* The iteration that is taken out of the backward loop reads its share of each stack outside the loop, in a
 * layout of its own. Where the forward loop wrote the stack in another layout, XLA copies the whole stack
 * first. Whether it did depends on how weights arrive, on which of tokens and emb is the longer dimension,
 * and on the generation; the copies of compiled steps that differ in one of these only are in
 * tests/compile/truth/peeled.json. */
static void set_turned_copies(const struct adv_cost *cost, struct adv_memory_frame *frame)
{
    const struct adv_constants *k = cost->constants;
    frame->emb_copies = frame->mlp_copies = 0.0;
    if (!frame->peels) return;
    const bool windowed = adv_memory_windowed(cost);
    frame->mlp_copies = windowed ? k->windowed_turned_mlp_copies : k->turned_mlp_copies;
    frame->emb_copies = !turns_emb(cost) ? k->turned_other_emb_copies
                        : windowed       ? k->windowed_turned_emb_copies
                                         : k->turned_emb_copies;
}

/* Whether few compiled steps show how XLA lays out steps of this kind: layers other than those of most
 * models, or loops. */
static bool is_unusual(const struct adv_cost *cost)
{
    const struct adv_model *model = cost->model;
    if (cost->plan->family.use_multimodal) return true;
    if (model->mesh_axes || model->splits_batch || model->hyper_connections > 1) return true;
    for (int i = 0; i < model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &model->layers[i];
        if (layer->attention == ADV_ATTENTION_LINEAR || layer->attention == ADV_ATTENTION_COMPRESSED ||
            layer->indexer_topk > 0 || layer->loops_alone)
            return true;
    }
    return false;
}

/* Whether a step of the scan holds more than one dense layer: XLA schedules it in more ways. */
static bool is_mixed(const struct adv_model *model)
{
    bool is = false;
    for (int i = 0; i < model->layer_kinds_count; i++)
        is |= model->layers[i].experts > 0 || model->layers[i].scan_block > 1;
    return is;
}

static void make_frame(const struct adv_cost *cost, const struct adv_model_params *params,
                       const struct adv_state *state, struct adv_memory_frame *frame)
{
    const struct adv_constants *k = cost->constants;
    const struct adv_plan *plan = cost->plan;
    frame->peels = adv_memory_peels_loops(cost);
    frame->unusual = is_unusual(cost) || adv_plan_tiles_gather(plan, plan->num_vocab_tiling) ||
                     state->whole_experts > 0.0 || plan->optimizer_host_offload;
    frame->arguments = state->device_weights + state->device_moments;
    frame_loss(cost, state, frame->loss);
    frame_backward(cost, state, frame->backward);
    frame->gradients = state->gradients;
    frame->blocks = adv_memory_blocks_in_turn(cost);
    frame->coming_gradients = coming_gradients(cost, params, state);
    frame->update_peak_bytes = update_peak(cost, state, NULL);
    frame->host_moments = plan->optimizer_host_offload ? state->moments : 0.0;
    /* moments on their way back already; into the loop over microbatches none come */
    frame->early_moments =
        plan->family.gradient_accumulation_steps > 1 ? 0.0 : k->early_moments_frac * frame->host_moments;
    frame->host_weights = plan->parameter_host_offload ? state->weights : 0.0;
    /* of thirteen compiled steps on several slices without a tensor axis all copy the stack of layer inputs,
     * of seven with one none does */
    const bool copies = plan->family.dcn[ADV_AXIS_DATA] > 1 && cost->tp == 1;
    frame->stack_copies = copies ? k->sliced_stack_copies : 0.0;
    frame->late_logits = frame->backward[BACKWARD_LOGITS];
    set_turned_copies(cost, frame);
}

/* XLA recomputes layers that are not scanned ahead of their turn as far as memory goes. */
static double early_bytes(const struct adv_heap *heap, double filled_bytes, double wanted, double *parts)
{
    parts[BACKWARD_EARLY] = 0.0;
    if (wanted <= 0.0) return 0.0;
    const double room = filled_bytes - adv_heap_peak(heap, parts, BACKWARD_PARTS);
    return adv_max(0.0, adv_min(wanted, room / (1.0 + heap->frac + heap->more_frac)));
}

/* Fills in what where tensors are kept decides. Returns the peak of the backward pass. Copies of stacks, and
 * logits kept for the head's gradient, wait until the loop is over where they have no room (pressed_frac). */
static double fill_in(const struct adv_cost *cost, const struct adv_layer_sums *sums,
                      struct adv_memory_frame *frame)
{
    const struct adv_constants *k = cost->constants;
    const double copies = frame->emb_copies * sums->emb_stacks + frame->mlp_copies * sums->mlp_stack;
    frame->loss[LOSS_SAVED] = frame->backward[BACKWARD_SAVED] = sums->saved_device;
    const double goes = (sums->saved_device + frame->backward[BACKWARD_COPIES]) * (1.0 - 1.0 / frame->blocks);
    frame->backward[BACKWARD_GRADIENTS] = frame->gradients - adv_min(frame->coming_gradients, goes);
    frame->loss[LOSS_STAGING] = frame->peels ? k->loss_staging_tensors * sums->staged_step : 0.0;
    frame->backward[BACKWARD_GATHERED] = sums->top.weights_bytes;
    frame->backward[BACKWARD_WORKING] = sums->top.tokens_bytes;
    frame->backward[BACKWARD_ROUTED] = sums->top.routed_bytes;
    frame->backward[BACKWARD_STAGING] = k->offload_staging_tensors * sums->staged + frame->early_moments;
    frame->backward[BACKWARD_LOGITS] = frame->late_logits;
    frame->backward[BACKWARD_TURNED] = adv_max(copies, frame->stack_copies * sums->inputs);
    struct adv_heap heap = adv_heap_at(cost, frame->arguments, frame->peels, ADV_AT_BACKWARD);
    heap.shared = frame->shared_bytes = sums->shared_bytes;
    const double filled_frac = frame->peels ? k->peeled_early_filled_frac : k->early_filled_frac;
    frame->backward[BACKWARD_EARLY] = early_bytes(
        &heap, filled_frac * cost->chip->hbm_usable_bytes_per_device, sums->early_bytes, frame->backward);
    const double waits = frame->late_logits + frame->backward[BACKWARD_TURNED];
    double all = adv_heap_peak(&heap, frame->backward, BACKWARD_PARTS), over = all - heap.limit;
    if (over > 0.0 && sums->waiting_bytes > 0.0) {
        const double waiting = adv_min(over, sums->waiting_bytes);
        frame->backward[BACKWARD_ROUTED] -= waiting;
        heap.shared = frame->shared_bytes -= waiting;
        all = adv_heap_peak(&heap, frame->backward, BACKWARD_PARTS);
        over = all - heap.limit;
    }
    if (waits <= 0.0 || over <= 0.0) return all;
    const double stays_frac = adv_max(k->pressed_frac, 1.0 - over / waits);
    frame->backward[BACKWARD_LOGITS] *= stays_frac;
    frame->backward[BACKWARD_TURNED] *= stays_frac;
    return adv_heap_peak(&heap, frame->backward, BACKWARD_PARTS);
}

/* The plan's frame; remembered in the scratch, or else written to `fresh`. */
static struct adv_memory_frame *frame_of(const struct adv_cost *cost, const struct adv_model_params *params,
                                         struct adv_memory_frame *fresh)
{
    struct adv_memory_frame *frame = fresh;
    if (cost->scratch && cost->scratch->placed) frame = adv_scratch_frame(cost->scratch);
    if (frame != fresh && frame->known) return frame;
    const struct adv_state state = adv_state_of(cost, params);
    make_frame(cost, params, &state, frame);
    frame->known = true;
    return frame;
}

static void write_parts(const struct adv_cost *cost, const struct adv_model_params *params,
                        const struct adv_memory_frame *frame, struct adv_ledger *ledger)
{
    struct adv_heap loss = adv_heap_at(cost, frame->arguments, frame->peels, ADV_AT_LOSS);
    loss.holes = loss_holes(cost);
    struct adv_heap backward = adv_heap_at(cost, frame->arguments, frame->peels, ADV_AT_BACKWARD);
    backward.shared = frame->shared_bytes;
    const struct adv_state state = adv_state_of(cost, params);
    part(ledger, "weights", state.device_weights, ADV_AT_ALWAYS);
    part(ledger, "optimizer_state", state.device_moments, ADV_AT_ALWAYS);
    list(&loss, ledger, ADV_AT_LOSS, loss_names, frame->loss, LOSS_PARTS);
    list(&backward, ledger, ADV_AT_BACKWARD, backward_names, frame->backward, BACKWARD_PARTS);
    (void)update_peak(cost, &state, ledger);
}

void adv_memory_plan(const struct adv_cost *cost, const struct adv_model_params *params,
                     struct adv_memory *memory, struct adv_ledger *ledger)
{
    const struct adv_constants *k = cost->constants;
    struct adv_memory_frame fresh, *frame = frame_of(cost, params, &fresh);
    struct adv_layer_sums fresh_sums;
    const struct adv_layer_sums *sums = adv_memory_layer_sums(cost, &fresh_sums);
    memory->backward_peak_bytes = fill_in(cost, sums, frame);
    if (ledger) write_parts(cost, params, frame, ledger);
    struct adv_heap loss = adv_heap_at(cost, frame->arguments, frame->peels, ADV_AT_LOSS);
    loss.holes = loss_holes(cost);
    memory->loss_peak_bytes = adv_heap_peak(&loss, frame->loss, LOSS_PARTS);
    memory->update_peak_bytes = frame->update_peak_bytes;
    memory->host_bytes_per_host =
        (sums->saved_host + frame->host_moments + frame->host_weights) * cost->cluster->devices_per_host;
    memory->log_sd = frame->peels            ? k->peeled_memory_log_sd
                     : is_mixed(cost->model) ? k->mixed_memory_log_sd
                                             : k->memory_log_sd;
    if (frame->unusual) memory->log_sd = adv_max(memory->log_sd, k->unusual_memory_log_sd);
    if (cost->plan->family.scan_layers) return;
    /* What is uncertain is how much is recomputed early; of what is too big without it, nothing is. */
    const double bytes =
        adv_max(memory->loss_peak_bytes, adv_max(memory->backward_peak_bytes, memory->update_peak_bytes));
    const bool fits = bytes <= cost->chip->hbm_usable_bytes_per_device;
    memory->log_sd = adv_max(memory->log_sd, fits ? k->unscanned_memory_log_sd : k->unusual_memory_log_sd);
}

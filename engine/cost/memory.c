#include "engine/cost/memory.h"

#include <math.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/cost/head_memory.h"
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

/* What lies in the heap at the loss, and at the start of the backward pass, in the order it is added up. */
enum {
    LOSS_SAVED,
    LOSS_COPIES,
    LOSS_ACCUMULATED,
    LOSS_GRADIENTS,
    LOSS_LOGITS,
    LOSS_HEAD,
    LOSS_HIDDEN,
    LOSS_STAGING,
    LOSS_TURNED,
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
    "saved_activations", "weight_copies", "accumulated_gradients", "gradients",         "logits",
    "head_weights",      "hidden_states", "host_staging",          "turned_activations"};
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

/* A pipeline's loop sums up gradients of its stage's layers. XLA makes their zeros before the loss, unless
 * the logits are large beside them: of 39 compiled steps those up to 0.43 of them have the zeros at the loss,
 * those from 0.48 have not. */
static double zeroed_gradients(const struct adv_cost *cost, const struct adv_model_params *params,
                               const struct adv_state *state, const struct adv_head_memory *head)
{
    static const double small_logits_frac = 0.45;
    const double passing = head->logits_bytes - adv_head_memory_behind_loss(cost).logits_bytes;
    if (cost->stages <= 1 || passing > small_logits_frac * state->gradients) return 0.0;
    const double heads = params->embedding + params->unembedding;
    const double of_stage = (params->total - heads) / cost->stages;
    return (state->gradients - state->accumulated) * of_stage / (of_stage + heads);
}

static void frame_loss(const struct adv_cost *cost, const struct adv_model_params *params,
                       const struct adv_state *state, struct adv_memory_frame *frame)
{
    const struct adv_head_memory head = adv_head_memory_at_loss(cost);
    frame->loss[LOSS_GRADIENTS] = zeroed_gradients(cost, params, state, &head);
    frame->loss[LOSS_COPIES] = state->copies;
    frame->loss[LOSS_ACCUMULATED] = state->accumulated;
    frame->loss[LOSS_LOGITS] = head.logits_bytes;
    frame->loss[LOSS_HEAD] = head.weights_bytes;
    frame->loss[LOSS_HIDDEN] = head.hidden_bytes;
    frame->loss_holes_bytes = head.holes_bytes;
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
    const struct adv_head_memory head = adv_head_memory_behind_loss(cost);
    bytes[BACKWARD_COPIES] = state->copies;
    bytes[BACKWARD_BETWEEN] = state->between_slices;
    bytes[BACKWARD_LOGITS] = head.logits_bytes;
    bytes[BACKWARD_HEAD] = head.weights_bytes;
    bytes[BACKWARD_HIDDEN] = head.hidden_bytes + circular_storage_bytes(cost);
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
    const double tokens = adv_plan_tokens(plan), vocab = (double)cost->model->vocab_size;
    const struct adv_head_memory head = adv_head_memory_at_update(cost);
    const struct adv_heap heap =
        adv_heap_at(cost, state->weights + state->moments, adv_memory_peels_loops(cost), ADV_AT_UPDATE);
    const double bytes[PARTS] = {
        [GRADIENTS] = (loops ? state->accumulated : state->gradients) + state->whole_experts,
        [LOGITS] = loops ? 0.0 : head.logits_bytes,
        [HEAD] = loops ? 0.0 : head.weights_bytes,
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
 * tests/compile/truth/peeled.json. Where the iteration is taken out for gradients that go to other slices, it
 * is the other way round for tokens and emb, beside transfers and without; those copies are there at the loss
 * already, but a tiled vocabulary leaves them until there is room (tests/compile/truth/slices.json). */
static void set_turned_copies(const struct adv_cost *cost, struct adv_memory_frame *frame)
{
    const struct adv_constants *k = cost->constants;
    const bool windowed = adv_memory_windowed(cost);
    frame->emb_copies = frame->mlp_copies = frame->early_mlp_frac = 0.0;
    frame->early_emb_frac = windowed ? k->early_emb_frac : 0.0;
    if (adv_memory_crosses_slices(cost)) {
        const bool turns =
            cost->plan->num_vocab_tiling == 1 && cost->tp == 1 && adv_memory_turns_sliced_emb(cost);
        frame->emb_copies = turns ? k->sliced_stack_copies : 0.0;
        frame->mlp_copies = frame->peels ? k->turned_mlp_copies : 0.0;
        frame->early_emb_frac = 1.0;
        return;
    }
    if (!frame->peels) return;
    frame->early_mlp_frac = k->early_mlp_frac;
    frame->mlp_copies = windowed ? k->windowed_turned_mlp_copies : k->turned_mlp_copies;
    const bool routed = adv_model_has_experts(cost->model);
    frame->emb_copies = routed && !windowed                     ? k->routed_turned_emb_copies
                        : routed || !adv_memory_turns_emb(cost) ? k->turned_other_emb_copies
                        : windowed                              ? k->windowed_turned_emb_copies
                                                                : k->turned_emb_copies;
}

/* Whether a step of the scan holds more than one dense layer: XLA schedules it in more ways. */
static bool is_mixed(const struct adv_model *model)
{
    bool is = false;
    for (int i = 0; i < model->layer_kinds_count; i++)
        is |= model->layers[i].experts > 0 || model->layers[i].remat_block > 1;
    return is;
}

/* Whether few compiled steps show how XLA lays out steps of this kind: layers other than those of most
 * models, loops, several slices (bytes of 104 compiled steps spread by 6 %, those of plain ones by 3), tensor
 * axes (around which XLA exchanges activations in several ways), or layers in blocks or with experts whose
 * sequences several devices share. */
static bool is_unusual(const struct adv_cost *cost)
{
    const struct adv_model *model = cost->model;
    if (cost->plan->family.use_multimodal || cost->cluster->slices > 1) return true;
    const bool splits_sequences = cost->cp_ring > 1 || cost->ulysses > 1;
    if (cost->tp > 1 || (splits_sequences && is_mixed(model))) return true;
    if (model->mesh_axes || model->splits_batch || model->hyper_connections > 1) return true;
    for (int i = 0; i < model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &model->layers[i];
        if (layer->attention == ADV_ATTENTION_LINEAR || layer->attention == ADV_ATTENTION_COMPRESSED ||
            layer->indexer_topk > 0 || layer->loops_alone)
            return true;
    }
    return false;
}

static void make_frame(const struct adv_cost *cost, const struct adv_model_params *params,
                       const struct adv_state *state, struct adv_memory_frame *frame)
{
    const struct adv_constants *k = cost->constants;
    const struct adv_plan *plan = cost->plan;
    frame->peels = adv_memory_peels_loops(cost);
    frame->begins_twice = adv_memory_begins_twice(cost);
    frame->unusual = is_unusual(cost) || adv_plan_tiles_gather(plan, plan->num_vocab_tiling) ||
                     state->whole_experts > 0.0 || plan->optimizer_host_offload;
    frame->arguments = state->device_weights + state->device_moments;
    frame_loss(cost, params, state, frame);
    frame_backward(cost, state, frame->backward);
    frame->gradients = state->gradients;
    frame->blocks = adv_memory_blocks_in_turn(cost);
    frame->coming_gradients = coming_gradients(cost, params, state);
    frame->update_peak_bytes = update_peak(cost, state, NULL);
    frame->host_moments = plan->optimizer_host_offload ? state->moments : 0.0;
    /* moments on their way back already; into the loop over microbatches none come */
    frame->early_moments =
        plan->family.gradient_accumulation_steps > 1 ? 0.0 : k->early_moments_frac * frame->host_moments;
    /* of experts even while the tiles of a vocabulary go by */
    const bool tiles = plan->num_vocab_tiling > 1 && adv_model_has_experts(cost->model);
    frame->loss_moments = tiles && plan->family.gradient_accumulation_steps == 1
                              ? k->tiled_early_moments_frac * frame->host_moments
                              : 0.0;
    frame->host_weights = plan->parameter_host_offload ? state->weights : 0.0;
    frame->sliced = adv_memory_crosses_slices(cost);
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

/* Of the layers behind the scan in the backward loop: their weights' gradients wait until it is over. Beside
 * transfers they are recomputed while the iteration that is taken out of the loop begins: then what they need
 * beyond what that needs later, when they are through. */
static double behind_bytes(const struct adv_constants *k, const struct adv_layer_sums *sums, bool peels)
{
    if (!peels) return k->behind_frac * sums->behind_bytes;
    return adv_max(0.0, k->peeled_behind_frac * sums->behind_bytes -
                            (1.0 - k->peeled_begun_frac) * sums->top.tokens_bytes);
}

/* Fills in what where tensors are kept decides. Returns the peak of the backward pass. Copies of stacks, and
 * logits kept for the head's gradient, wait until the loop is over where they have no room (pressed_frac). */
static double fill_in(const struct adv_cost *cost, const struct adv_layer_sums *sums,
                      struct adv_memory_frame *frame)
{
    const struct adv_constants *k = cost->constants;
    const double emb_copies = frame->emb_copies * sums->emb_stacks;
    const double behind = sums->behind_bytes * (frame->peels ? k->peeled_behind_loss_frac : 1.0);
    const double alone = sums->alone_bytes * (frame->peels ? k->peeled_alone_frac : k->alone_frac);
    frame->backward[BACKWARD_SAVED] = sums->saved_device + alone;
    frame->loss[LOSS_SAVED] = sums->saved_device + behind + alone;
    const double mlp_copies = frame->mlp_copies * sums->mlp_stack;
    frame->loss[LOSS_TURNED] = frame->early_emb_frac * emb_copies + frame->early_mlp_frac * mlp_copies;
    const double goes = (sums->saved_device + frame->backward[BACKWARD_COPIES]) * (1.0 - 1.0 / frame->blocks);
    /* of this microbatch's gradients, what does not come block by block comes with the backward loop, when
     * copies that were made before the loss have been read */
    const double gradients = frame->gradients - adv_min(frame->coming_gradients, goes);
    const double own = gradients - frame->loss[LOSS_ACCUMULATED];
    const double read = frame->sliced ? frame->loss[LOSS_TURNED] : 0.0;
    frame->backward[BACKWARD_GRADIENTS] = gradients - adv_min(adv_max(0.0, own), read);
    frame->loss[LOSS_STAGING] =
        (frame->peels ? k->loss_staging_tensors * sums->staged_step : 0.0) + frame->loss_moments;
    frame->backward[BACKWARD_GATHERED] = sums->top.weights_bytes;
    frame->backward[BACKWARD_WORKING] = sums->top.tokens_bytes;
    frame->backward[BACKWARD_ROUTED] = sums->top.routed_bytes;
    frame->backward[BACKWARD_STAGING] =
        (frame->begins_twice ? k->sliced_staging_tensors : k->offload_staging_tensors) * sums->staged +
        frame->early_moments;
    frame->backward[BACKWARD_LOGITS] = frame->late_logits;
    frame->backward[BACKWARD_TURNED] = emb_copies + mlp_copies;
    struct adv_heap heap = adv_heap_at(cost, frame->arguments, frame->peels, ADV_AT_BACKWARD);
    heap.shared = frame->shared_bytes = sums->shared_bytes;
    heap.copies = frame->loss[LOSS_TURNED];
    const double filled_frac = frame->peels ? k->peeled_early_filled_frac : k->early_filled_frac;
    frame->backward[BACKWARD_EARLY] = early_bytes(
        &heap, filled_frac * cost->chip->hbm_usable_bytes_per_device, sums->early_bytes, frame->backward);
    frame->backward[BACKWARD_EARLY] += behind_bytes(k, sums, frame->peels);
    const double lies = frame->loss[LOSS_TURNED]; /* copies that are made before the loss do not wait */
    const double waits = frame->late_logits + frame->backward[BACKWARD_TURNED] - lies;
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
    frame->backward[BACKWARD_TURNED] = lies + stays_frac * (frame->backward[BACKWARD_TURNED] - lies);
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

static struct adv_heap heap_at_loss(const struct adv_cost *cost, const struct adv_memory_frame *frame)
{
    struct adv_heap heap = adv_heap_at(cost, frame->arguments, frame->peels, ADV_AT_LOSS);
    heap.holes = frame->loss_holes_bytes;
    heap.copies = frame->loss[LOSS_TURNED];
    return heap;
}

static void write_parts(const struct adv_cost *cost, const struct adv_model_params *params,
                        const struct adv_memory_frame *frame, struct adv_ledger *ledger)
{
    const struct adv_heap loss = heap_at_loss(cost, frame);
    struct adv_heap backward = adv_heap_at(cost, frame->arguments, frame->peels, ADV_AT_BACKWARD);
    backward.shared = frame->shared_bytes;
    backward.copies = frame->loss[LOSS_TURNED];
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
    const struct adv_heap loss = heap_at_loss(cost, frame);
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

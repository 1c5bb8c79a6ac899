#include <math.h>

#include "engine/base/units.h"
#include "engine/cost/layer_memory.h"
#include "engine/cost/regime.h"
#include "engine/cost/scratch.h"

static struct adv_working known_working(const struct adv_cost *cost, const struct adv_layer *layer)
{
    struct adv_cost_scratch *scratch = cost->scratch;
    int kind = adv_cost_kind(cost, layer);
    if (!scratch) return adv_memory_layer_working(cost, layer, cost->layer_params[kind]);
    if (!scratch->working_known[kind])
        scratch->working[kind] = adv_memory_layer_working(cost, layer, cost->layer_params[kind]);
    scratch->working_known[kind] = true;
    return scratch->working[kind];
}

/* The experimental scheduler orders a layer's operations so that less lives at once. It goes with where
 * tensors are kept, not with the family, so it is not remembered. */
static struct adv_working working(const struct adv_cost *cost, const struct adv_layer *layer)
{
    struct adv_working w = known_working(cost, layer);
    double frac = 1.0;
    if (cost->plan->flags.host_offload_scheduling == 1) frac *= cost->constants->scheduled_layer_frac;
    if (!adv_memory_windowed(cost) && !adv_memory_begins_twice(cost))
        frac *= cost->constants->gathered_layer_frac;
    w.tokens_bytes = frac * (w.tokens_bytes - w.scores_bytes) + w.scores_bytes;
    w.turn_bytes *= frac;
    return w;
}

static double total(struct adv_working w)
{
    return w.tokens_bytes + w.routed_bytes + w.weights_bytes;
}

/* HBM left for the compiler's own temporaries when nothing is recomputed. */
static const double everything_frac = 0.85;

/* What a generation recomputes early at the least that recomputes layers early at all: those that do have all
 * of them, the others none (gathered_early_frac). */
static const double some_early_frac = 0.5;

bool adv_memory_keeps_everything(const struct adv_cost *cost, const struct adv_model_params *params)
{
    if (cost->plan->family.scan_layers || cost->model->decoder != ADV_DECODER_GEMMA4_SMALL) return false;
    if (!adv_memory_windowed(cost) && cost->constants->gathered_early_frac < some_early_frac) return false;
    double bytes = 16.0 * (params->total - params->routed_experts) / cost->weight_shards +
                   16.0 * params->routed_experts / cost->expert_shards;
    for (int i = 0; i < cost->model->layer_kinds_count; i++)
        bytes += total(working(cost, &cost->model->layers[i])) * cost->model->layers[i].count;
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

/* What a layer computes again that was not saved; `frac` of what is dense. */
static double recomputed_bytes(const struct adv_cost *cost, const struct adv_layer *layer,
                               const struct adv_saved *saved, double frac)
{
    const double input = 2.0 * (double)cost->model->emb_dim * cost->tokens;
    double rows = layer->experts > 0
                      ? cost->tokens * layer->experts_per_token * adv_memory_routed_growth(cost, layer)
                      : 0.0;
    double routed =
        2.0 * rows *
        ((double)layer->moe_mlp_dim * (layer->mlp_inputs + 1.0) + 2.0 * (double)layer->moe_input_dim);
    double kept = saved->bytes[ADV_PLACE_DEVICE] - input;
    double dense = adv_max(0.0, unrecomputed_bytes(cost, layer) - (kept - saved->routed_device_bytes));
    return frac * dense + adv_max(0.0, routed - saved->routed_device_bytes);
}

/* The stack of one tensor of a layer, where it stays on the device. */
static double kept_bytes(const struct adv_cost *cost, enum adv_tensor tensor, double width)
{
    return adv_remat_place(cost->places, tensor) == ADV_PLACE_DEVICE ? 2.0 * cost->tokens * width : 0.0;
}

/* Steps of a pipeline whose tensors a stage holds, for each of its layers: a stage that comes round again
 * with its next layers (circular) holds what fills and drains the pipeline once, not once a round. */
static double steps_in_flight(const struct adv_cost *cost)
{
    return cost->stages > 1
               ? cost->microbatches + (cost->stages - 1.0) / adv_plan_pipeline_rounds(cost->plan, cost->model)
               : 1.0;
}

/* Layers of the scan steps that hold more than one. */
struct blocks {
    double layers, block;    /* all of them, and of one step */
    struct adv_working left; /* what all leave, see without_kept */
    double chunks_bytes;     /* of all their gated delta nets */
    bool parted;             /* each is recomputed from its own input */
};

/* Where one step of the scan holds a block of layers, all of them are recomputed before the last is
 * differentiated: beside the layer that needs most, the others of its block, whatever their kinds, leave a
 * part of what they need; a few of them only where a policy keeps the input of each. A layer that needs most
 * and is not in every block counts whole. `top_left`: what it would leave. Beside gated delta nets, all of
 * which are there, the routed rows of the other layers are recomputed later where they have no room. */
static struct adv_working in_block(const struct adv_constants *k, const struct blocks *in,
                                   struct adv_working top, struct adv_working top_left, double *waiting)
{
    if (in->layers <= 0.0) return top;
    const double mean = in->block / in->layers;
    const double further = adv_max(1.0, in->block - 1.0);
    const double frac = in->parted ? adv_min(1.0, k->block_kept_layers / further) : k->block_layers_frac;
    top.tokens_bytes += frac * adv_max(0.0, in->left.tokens_bytes * mean - top_left.tokens_bytes);
    const double routed = frac * adv_max(0.0, in->left.routed_bytes * mean - top_left.routed_bytes);
    top.tokens_bytes += in->chunks_bytes * mean;
    top.routed_bytes += routed;
    *waiting = in->chunks_bytes > 0.0 ? routed : 0.0;
    top.weights_bytes += frac * adv_max(0.0, in->left.weights_bytes * mean - top_left.weights_bytes);
    return top;
}

/* What a layer of a block leaves while another is differentiated: nothing of its own turn, and tensors that
 * are kept on the device are read from their stacks when it comes. */
static struct adv_working without_kept(const struct adv_cost *cost, const struct adv_layer *layer,
                                       struct adv_working working, const struct adv_saved *saved)
{
    const struct adv_saved_input input = adv_memory_saved_input(cost, layer);
    const double kept =
        saved->bytes[ADV_PLACE_DEVICE] - saved->routed_device_bytes - (input.on_host ? 0.0 : input.bytes);
    working.tokens_bytes -= working.turn_bytes + kept;
    working.routed_bytes -= saved->routed_device_bytes;
    return working;
}

/* Adds the stacks of `count` layers that the iteration taken out of the backward loop may read in another
 * layout. A step of the scan that holds a block of layers reads them as they lie,
 * but for its own input where layers have norms on both sides and of queries and keys (gemma3; not gemma2,
 * olmo3). Output projections are turned only beside the inputs (of 89 compiled steps without these, three
 * turn one), but where gradients go to other slices. Where weights arrive by windowed einsums, stacks of the
 * feed-forward are turned only if both its products are saved: else the one that is computed again leads; and
 * only where shards fill whole lanes; where gradients go to other slices, only if there are two. */
static void add_stacks(const struct adv_cost *cost, const struct adv_layer *layer, double count,
                       struct adv_layer_sums *sums)
{
    const double emb = (double)cost->model->emb_dim, mlp = (double)layer->mlp_dim;
    const bool in_blocks = layer->remat_block > 1;
    const struct adv_saved_input input = adv_memory_saved_input(cost, layer);
    const double inputs = input.on_host ? 0.0 : input.bytes * count;
    if (in_blocks) {
        const double first = input.on_host ? 0.0 : 2.0 * emb * cost->tokens * count / layer->remat_block;
        if (layer->norms > 2 && layer->has_qk_norm) sums->emb_stacks += first;
        return;
    }
    if (inputs > 0.0 || adv_memory_crosses_slices(cost))
        sums->emb_stacks += inputs + kept_bytes(cost, ADV_TENSOR_OUT_PROJ, emb) * count;
    const double only = adv_memory_crosses_slices(cost) ? 0.0 : kept_bytes(cost, ADV_TENSOR_MLPWI, mlp);
    const double first = (only + kept_bytes(cost, ADV_TENSOR_MLPWI_0, mlp)) * count;
    const double second = kept_bytes(cost, ADV_TENSOR_MLPWI_1, mlp) * count;
    const bool saved =
        !adv_memory_windowed(cost) || (adv_remat_place(cost->places, ADV_TENSOR_MLPWI_0) != ADV_PLACE_REMAT &&
                                       adv_remat_place(cost->places, ADV_TENSOR_MLPWI_1) != ADV_PLACE_REMAT);
    if (saved && adv_memory_fills_lanes(cost)) sums->mlp_stack += adv_max(first, second);
}

static double unscanned_frac(const struct adv_cost *cost)
{
    const double frac = adv_memory_windowed(cost) ? cost->constants->unscanned_early_frac
                                                  : cost->constants->gathered_early_frac;
    return cost->recompute_elided ? adv_max(1.0, frac) : frac;
}

/* What XLA may compute again ahead of its turn: where no scan keeps it from that, all layers but the one
 * whose turn it is; of blocks with loops of their own the iteration that is taken out of the loop for
 * transfers. */
static double early_bytes_of(const struct adv_cost *cost, const struct adv_layer *layer,
                             const struct adv_saved *saved, double count)
{
    if (!cost->plan->family.scan_layers)
        return recomputed_bytes(cost, layer, saved, unscanned_frac(cost)) * adv_max(0.0, count - 1.0);
    if (layer->loops_alone || !adv_memory_peels_loops(cost)) return 0.0;
    return recomputed_bytes(cost, layer, saved, 1.0) * (adv_memory_blocks_in_turn(cost) - 1.0);
}

double adv_memory_layers_behind(const struct adv_cost *cost, const struct adv_layer *layer)
{
    const struct adv_model *model = cost->model;
    int64_t in_blocks = 0, most = 0;
    if (layer->scan_block <= 1 || !cost->plan->family.scan_layers) return 0.0;
    for (int i = 0; i < model->layer_kinds_count; i++) {
        if (model->layers[i].scan_block <= 1) continue;
        in_blocks += model->layers[i].count;
        if (model->layers[i].count > most) most = model->layers[i].count;
    }
    const bool leads = layer->count == most && in_blocks > layer->scan_block;
    return leads ? (double)(in_blocks % layer->scan_block) : 0.0;
}

/* A kind of one layer, whose loop XLA takes apart (the first layer of deepseek2). */
static bool is_alone(const struct adv_cost *cost, const struct adv_layer *layer)
{
    return cost->plan->family.scan_layers && layer->count == 1 && !adv_memory_in_block(cost, layer) &&
           !layer->loops_alone;
}

/* Adds what layers outside of all loops hold: XLA takes their forward values for the recompute, so all are
 * there, wherever tensors are kept. Returns how many of the kind are outside. */
static double add_outside(const struct adv_cost *cost, const struct adv_layer *layer,
                          struct adv_layer_sums *sums)
{
    const double behind = adv_memory_layers_behind(cost, layer);
    const double alone = is_alone(cost, layer) ? 1.0 : 0.0;
    if (behind + alone <= 0.0) return 0.0;
    const double bytes = unrecomputed_bytes(cost, layer) / cost->stages;
    sums->behind_bytes += behind * bytes;
    sums->alone_bytes += alone * bytes;
    return behind + alone;
}

/* The loop over microbatches is begun outside, too, where gradients go to other slices. Of two microbatches
 * nothing is left to loop over, and XLA takes both forward before it takes one back (compiled: all eight such
 * steps, none of those with three or more, none on one slice). */
static double microbatches_at_once(const struct adv_cost *cost)
{
    const struct adv_plan *plan = cost->plan;
    const bool both = plan->family.gradient_accumulation_steps == 2 && plan->family.scan_layers;
    return both && adv_memory_crosses_slices(cost) ? 2.0 : 1.0;
}

static struct adv_layer_sums sum_layers(const struct adv_cost *cost)
{
    struct adv_layer_sums sums = {0};
    const struct adv_model *model = cost->model;
    double in_flight = steps_in_flight(cost) * microbatches_at_once(cost);
    struct blocks in = {0};
    struct adv_working top_left = {0};
    bool has_blocks = false;
    double rest_weights = 0.0; /* of layers behind a scan over loops: those of all are gathered at once */
    for (int i = 0; i < model->layer_kinds_count; i++)
        has_blocks = has_blocks || adv_memory_in_block(cost, &model->layers[i]);
    for (int i = 0; i < model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &model->layers[i];
        struct adv_saved saved = adv_memory_layer_saved(cost, layer);
        const double all = (double)layer->count, in_loops = all - add_outside(cost, layer, &sums);
        double count = in_loops / cost->stages * in_flight;
        sums.early_bytes += early_bytes_of(cost, layer, &saved, count);
        sums.saved_device += saved.bytes[ADV_PLACE_DEVICE] * count;
        sums.saved_host += saved.bytes[ADV_PLACE_OFFLOAD] * all / cost->stages * in_flight;
        add_stacks(cost, layer, count, &sums);
        sums.staged = adv_max(sums.staged, saved.bytes[ADV_PLACE_OFFLOAD]);
        const double layers_a_step = adv_memory_in_block(cost, layer) ? layer->remat_block : 1.0;
        sums.staged_step = adv_max(sums.staged_step, layers_a_step * saved.bytes[ADV_PLACE_OFFLOAD]);
        struct adv_working w = working(cost, layer);
        if (!adv_memory_in_block(cost, layer)) w.tokens_bytes += w.chunks_bytes;
        const struct adv_working left = has_blocks ? without_kept(cost, layer, w, &saved) : top_left;
        if (total(w) > total(sums.top)) {
            sums.top = w;
            top_left = left;
        }
        if (layer->remat_block < layer->scan_block)
            rest_weights += adv_memory_layers_behind(cost, layer) * w.weights_bytes;
        if (!adv_memory_in_block(cost, layer)) continue;
        in.left.tokens_bytes += left.tokens_bytes * layer->count;
        in.left.routed_bytes += left.routed_bytes * layer->count;
        in.left.weights_bytes += left.weights_bytes * layer->count;
        in.chunks_bytes += w.chunks_bytes * layer->count;
        in.layers += layer->count;
        in.block = layer->remat_block;
        in.parted = layer->input_names == ADV_INPUTS_NAMED_EACH &&
                    adv_remat_place(cost->places, ADV_TENSOR_DECODER_LAYER_INPUT) == ADV_PLACE_DEVICE;
    }
    const double alone = total(sums.top);
    sums.top = in_block(cost->constants, &in, sums.top, top_left, &sums.waiting_bytes);
    sums.shared_bytes = total(sums.top) - alone;
    sums.top.weights_bytes += rest_weights;
    return sums;
}

const struct adv_layer_sums *adv_memory_layer_sums(const struct adv_cost *cost, struct adv_layer_sums *fresh)
{
    struct adv_cost_placed *placed = cost->scratch ? cost->scratch->placed : NULL;
    struct adv_layer_sums *sums = placed ? &placed->sums : fresh;
    if (!placed || !placed->sums_known) *sums = sum_layers(cost);
    if (placed) placed->sums_known = true;
    return sums;
}

#include "engine/explain/operations.h"

#include "engine/base/text.h"
#include "engine/base/units.h"
#include "engine/cost/layer.h"

ADV_NAMES(adv_pass_name, enum adv_pass, "forward", "recompute", "backward")

/* A layer's operations in the making. */
struct listing {
    const struct adv_cost *cost;
    const struct adv_layer *layer;
    const struct adv_layer_trace *trace;
    struct adv_operations *to;
    struct adv_projection table[ADV_PROJECTIONS_MAX];
    int count, out; /* projections; which of them the attention's output goes through */
};

static void add(struct listing *listing, struct adv_operation operation)
{
    if (operation.seconds <= 0.0 || listing->to->count == ADV_OPERATIONS_MAX) return;
    listing->to->list[listing->to->count++] = operation;
}

static const char *name_of(const struct adv_projection *p)
{
    for (int t = 0; t < ADV_TENSOR_COUNT; t++)
        if (p->names >> t & 1u) return adv_tensor_name((enum adv_tensor)t);
    return p->title ? p->title : "projection";
}

/* `copies` matmuls of the projection's size: two in the backward pass, for inputs and for weights. */
static void add_projection(struct listing *listing, const struct adv_projection *p, enum adv_pass pass)
{
    const struct adv_cost *cost = listing->cost;
    const double tp = p->split == ADV_SPLIT_NONE ? 1.0 : cost->tp, rows = cost->tokens * tp;
    const double k = p->split == ADV_SPLIT_K ? p->k / tp : p->k;
    const double n = p->split == ADV_SPLIT_N ? p->n / tp : p->n;
    const double copies = pass == ADV_PASS_BWD ? 2.0 : adv_cost_pass_share(&listing->trace->time, pass);
    const double operand_bytes = cost->quantizes_dense ? 1.0 : 2.0;
    const double bytes = operand_bytes * (rows * k + k * n) + 2.0 * rows * n;
    const double flops = 2.0 * cost->tokens * p->k * p->n;
    const double seconds = adv_cost_projection_s(cost, p, pass);
    const double corrected = 1.0 + cost->constants->step_time_correction_frac; /* as the trace's slots are */
    const double stream_s = copies * (adv_cost_stream_s(cost, bytes) + cost->constants->step_matmul_launch_s);
    add(listing, (struct adv_operation){.name = name_of(p),
                                        .pass = pass,
                                        .bound = stream_s < seconds ? ADV_RES_MXU : ADV_RES_HBM,
                                        .seconds = corrected * seconds,
                                        .flops_per_device = copies * flops,
                                        .bytes_per_device = copies * bytes});
}

static bool runs(const struct listing *listing, const struct adv_projection *p, enum adv_pass pass)
{
    if (pass != ADV_PASS_RECOMPUTE) return true;
    return listing->trace->time.again_frac > 0.0 && p->needed_in_backward &&
           !adv_projection_kept(listing->cost->kept, p);
}

static void add_projections(struct listing *listing, enum adv_pass pass, int first, int end)
{
    for (int i = first; i < end; i++)
        if (runs(listing, &listing->table[i], pass)) add_projection(listing, &listing->table[i], pass);
}

/* Queries, keys, values and outputs of one layer's attention, each once. */
static double attention_bytes(const struct listing *listing)
{
    const struct adv_layer *layer = listing->layer;
    if (layer->attention == ADV_ATTENTION_LINEAR) return 0.0;
    const double q = (double)layer->q_heads * (layer->head_dim_qk + layer->head_dim_v);
    const double kv = (double)layer->kv_heads * (layer->head_dim_qk + layer->head_dim_v);
    return 2.0 * listing->cost->tokens * (q + kv * listing->cost->cp_ring);
}

/* Lists the account's time under `id` as one operation; `share` of it where an id is of all passes. */
static void add_slot(struct listing *listing, enum adv_term_id id, const char *name, enum adv_pass pass,
                     enum adv_resource bound, double share, double least_bytes)
{
    const struct adv_slot *slot = &listing->trace->slots[id];
    const bool least = slot->bytes <= 0.0 && least_bytes > 0.0;
    add(listing, (struct adv_operation){.name = name,
                                        .pass = pass,
                                        .bound = bound,
                                        .seconds = share * slot->seconds,
                                        .flops_per_device = share * slot->flops,
                                        .bytes_per_device = least ? least_bytes : share * slot->bytes,
                                        .bytes_are_least = least});
}

static const struct {
    enum adv_term_id attention, gmm, route, elementwise;
} ids[ADV_PASS_COUNT] = {
    {ADV_TERM_ATTENTION_FWD, ADV_TERM_GMM_FWD, ADV_TERM_ROUTE_FWD, ADV_TERM_ELEMENTWISE_FWD},
    {ADV_TERM_ATTENTION_RECOMPUTE, ADV_TERM_GMM_RECOMPUTE, ADV_TERM_ROUTE_RECOMPUTE,
     ADV_TERM_ELEMENTWISE_RECOMPUTE},
    {ADV_TERM_ATTENTION_BWD, ADV_TERM_GMM_BWD, ADV_TERM_ROUTE_BWD, ADV_TERM_ELEMENTWISE_BWD},
};

static void add_attention(struct listing *listing, enum adv_pass pass)
{
    const double least_bytes = attention_bytes(listing) * (pass == ADV_PASS_BWD ? 2.0 : 1.0);
    add_slot(listing, ids[pass].attention, "attention", pass, ADV_RES_VPU, 1.0, least_bytes);
    if (pass != ADV_PASS_BWD)
        add_slot(listing, pass == ADV_PASS_FWD ? ADV_TERM_INDEX_FWD : ADV_TERM_INDEX_RECOMPUTE,
                 "sparse_index", pass, ADV_RES_VPU, 1.0, 0.0);
}

/* Weights, inputs and outputs of the products of a pass, each once: those of the forward pass give the rows.
 */
static double expert_bytes(const struct listing *listing, enum adv_pass pass)
{
    const struct adv_cost *cost = listing->cost;
    const struct adv_layer *layer = listing->layer;
    const double emb = (double)layer->moe_input_dim, width = (double)layer->moe_mlp_dim / cost->tp;
    const double forward = listing->trace->slots[ids[ADV_PASS_FWD].gmm].flops;
    const double rows = forward / (2.0 * emb * width * (layer->mlp_inputs + 1.0));
    if (!(rows > 0.0)) return 0.0;
    const double products = listing->trace->slots[ids[pass].gmm].flops / (2.0 * rows * emb * width);
    const double groups = adv_max(1.0, (double)layer->experts / cost->ep);
    return products * 2.0 * (groups * emb * width + rows * (emb + width));
}

static void add_experts(struct listing *listing, enum adv_pass pass)
{
    add_slot(listing, ids[pass].route, "expert_routing", pass, ADV_RES_HBM, 1.0, 0.0);
    add_slot(listing, ids[pass].gmm, "expert_matmuls", pass, ADV_RES_MXU, 1.0, expert_bytes(listing, pass));
}

static void add_pass(struct listing *listing, enum adv_pass pass)
{
    const struct adv_layer_time *time = &listing->trace->time;
    const double share = adv_cost_pass_share(time, pass) / (2.0 + time->again_frac);
    add_slot(listing, ADV_TERM_QUANTIZE_WEIGHTS, "quantize_weights", pass, ADV_RES_HBM, share, 0.0);
    add_slot(listing, ADV_TERM_QUANTIZE_ACTIVATIONS, "quantize_activations", pass, ADV_RES_HBM, share, 0.0);
    add_slot(listing, ids[pass].elementwise, "elementwise", pass, ADV_RES_HBM, 1.0, 0.0);
    if (pass == ADV_PASS_BWD) { /* from the output to the input */
        add_experts(listing, pass);
        add_projections(listing, pass, listing->out, listing->count);
        add_attention(listing, pass);
        add_projections(listing, pass, 0, listing->out);
        return;
    }
    add_projections(listing, pass, 0, listing->out);
    add_attention(listing, pass);
    add_projections(listing, pass, listing->out, listing->count);
    add_experts(listing, pass);
}

void adv_operations_list(const struct adv_step_trace *trace, int kind, struct adv_operations *operations)
{
    struct listing listing = {.cost = &trace->cost,
                              .layer = &trace->cost.model->layers[kind],
                              .trace = &trace->layers[kind],
                              .to = operations};
    operations->count = 0;
    listing.count = adv_projections(trace->cost.model, listing.layer, listing.table);
    while (listing.out < listing.count && !(listing.table[listing.out].names >> ADV_TENSOR_OUT_PROJ & 1u))
        listing.out++;
    for (int pass = 0; pass < ADV_PASS_COUNT; pass++) add_pass(&listing, (enum adv_pass)pass);
}

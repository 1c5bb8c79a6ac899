#include "engine/explain/step_view.h"

#include <string.h>

#include "engine/base/text.h"
#include "engine/base/units.h"
#include "engine/cost/projections.h"

ADV_NAMES(adv_view_lane_name, enum adv_view_lane, "tensorcore", "ici_fsdp", "ici_tensor", "ici_context",
          "ici_expert", "pcie", "dcn")
ADV_NAMES(adv_view_lane_title, enum adv_view_lane, "TensorCore", "ICI: FSDP", "ICI: tensor", "ICI: context",
          "ICI: expert", "PCIe (host)", "DCN (slices)")

#define ADV_TERM_NAME(id, name, resource, formula, group, source) {name, ADV_RES_##resource},
static const struct {
    const char *name;
    enum adv_resource resource;
} terms[ADV_TERM_COUNT] = {ADV_TERM_TABLE(ADV_TERM_NAME)};
#undef ADV_TERM_NAME

/* Seconds of one term in each pass of one layer, and what of them shows. */
struct spread {
    double seconds[ADV_PASS_COUNT], exposed_s[ADV_PASS_COUNT];
};

/* By the number of collectives in each pass, as the schedule counts them. */
static struct spread by_counts(const struct adv_slot *slot, double forward, double again, double backward)
{
    const double counts[ADV_PASS_COUNT] = {forward, again, backward}, all = forward + again + backward;
    struct spread spread;
    for (int p = 0; p < ADV_PASS_COUNT; p++) {
        spread.seconds[p] = slot->seconds * counts[p] / all;
        spread.exposed_s[p] = slot->exposed_seconds * counts[p] / all;
    }
    return spread;
}

/* The spread of one term of a layer. */
typedef struct spread spread_fn(const struct adv_cost *cost, const struct adv_layer_trace *layer);

static struct spread gather_spread(const struct adv_cost *cost, const struct adv_layer_trace *layer)
{
    (void)cost;
    const struct adv_slot *gather = &layer->slots[ADV_TERM_FSDP_GATHER];
    const double forward_s = layer->time.weights_forward_exposed_s;
    return (struct spread){{gather->seconds / 2, 0.0, gather->seconds / 2},
                           {forward_s, 0.0, adv_max(0.0, gather->exposed_seconds - forward_s)}};
}

/* Out in the forward pass, back in the backward pass; each hides behind its own. */
static struct spread offload_spread(const struct adv_cost *cost, const struct adv_layer_trace *layer)
{
    (void)cost;
    const struct adv_slot *slot = &layer->slots[ADV_TERM_HOST_OFFLOAD];
    const double half_s = slot->seconds / 2;
    const double out_s =
        adv_min(slot->exposed_seconds, adv_max(0.0, half_s - layer->time.pass_s[ADV_PASS_FWD]));
    return (struct spread){{half_s, 0.0, half_s}, {out_s, 0.0, slot->exposed_seconds - out_s}};
}

static struct spread tensor_spread(const struct adv_cost *cost, const struct adv_layer_trace *layer)
{
    const double again = adv_remat_keeps(cost->plan, ADV_TENSOR_OUT_PROJ) ? 0.0 : 1.0;
    return by_counts(&layer->slots[ADV_TERM_TENSOR], 4.0, again, 6.0);
}

static double again_unless(const struct adv_plan *plan, enum adv_tensor a, enum adv_tensor b)
{
    return adv_remat_keeps(plan, a) && adv_remat_keeps(plan, b) ? 0.0 : 1.0;
}

static struct spread context_spread(const struct adv_cost *cost, const struct adv_layer_trace *layer)
{
    const struct adv_plan *plan = cost->plan;
    const struct adv_slot *slot = &layer->slots[ADV_TERM_CONTEXT];
    if (cost->cp_ring > 1 && adv_plan_circulates_keys(plan))
        return by_counts(slot, 1.0, again_unless(plan, ADV_TENSOR_CONTEXT, ADV_TENSOR_CONTEXT), 3.0);
    return by_counts(slot, 1.0, 1.0, 1.0);
}

static struct spread merge_spread(const struct adv_cost *cost, const struct adv_layer_trace *layer)
{
    return by_counts(&layer->slots[ADV_TERM_RING_MERGE], 1.0,
                     again_unless(cost->plan, ADV_TENSOR_CONTEXT, ADV_TENSOR_CONTEXT), 1.0);
}

static struct spread expert_spread(const struct adv_cost *cost, const struct adv_layer_trace *layer)
{
    const struct adv_slot *slot = &layer->slots[ADV_TERM_EXPERT];
    if (cost->plan->family.moe == ADV_MOE_DENSE && cost->plan->family.capacity_factor > 0.0)
        return by_counts(slot, 2.0, 1.0, 2.0);
    return by_counts(slot, 1.0, adv_remat_keeps_rows(cost->kept) ? 0.0 : 1.0, 1.0);
}

static const struct {
    enum adv_term_id id;
    enum adv_view_lane lane;
    spread_fn *spread; /* NULL: by the same counts in every layer */
    double forward, backward;
} sent[] = {
    {ADV_TERM_FSDP_GATHER, ADV_LANE_ICI_FSDP, gather_spread, 0, 0},
    {ADV_TERM_FSDP_SCATTER, ADV_LANE_ICI_FSDP, NULL, 0, 1},
    {ADV_TERM_TENSOR, ADV_LANE_ICI_TENSOR, tensor_spread, 0, 0},
    {ADV_TERM_TRANSPOSE, ADV_LANE_ICI_TENSOR, NULL, 2, 3},
    {ADV_TERM_CONTEXT, ADV_LANE_ICI_CONTEXT, context_spread, 0, 0},
    {ADV_TERM_RING_MERGE, ADV_LANE_ICI_CONTEXT, merge_spread, 0, 0},
    {ADV_TERM_EXPERT, ADV_LANE_ICI_EXPERT, expert_spread, 0, 0},
    {ADV_TERM_HOST_OFFLOAD, ADV_LANE_PCIE, offload_spread, 0, 0},
    {ADV_TERM_DCN_ACTIVATIONS, ADV_LANE_DCN, NULL, 1, 1}, /* of several axes: half of them each way */
};
enum { SENT = sizeof sent / sizeof *sent };

enum adv_view_lane adv_view_lane_of(const char *term, const char *resource)
{
    static const struct {
        enum adv_resource resource;
        enum adv_view_lane lane;
    } rows[] = {{ADV_RES_ICI, ADV_LANE_COUNT}, {ADV_RES_PCIE, ADV_LANE_PCIE}, {ADV_RES_DCN, ADV_LANE_DCN}};
    for (int i = 0; i < SENT; i++)
        if (strcmp(term, terms[sent[i].id].name) == 0) return sent[i].lane;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(resource, adv_resource_name(rows[i].resource)) == 0) return rows[i].lane;
    return ADV_LANE_TENSORCORE;
}

/* A layer's view in the making. */
struct laying {
    struct adv_layer_view *view;
    double cursor_s;                    /* of the step: what the TensorCore computes or waits for */
    double lane_free_s[ADV_LANE_COUNT]; /* until when each lane is taken by what hides */
};

static void put(struct laying *laying, struct adv_view_block block)
{
    if (block.seconds <= 0.0 || laying->view->blocks_count == ADV_VIEW_BLOCKS) return;
    laying->view->blocks[laying->view->blocks_count++] = block;
}

static void put_compute(struct laying *laying, const struct adv_operations *operations, enum adv_pass pass)
{
    for (int i = 0; i < operations->count; i++) {
        const struct adv_operation *operation = &operations->list[i];
        if (operation->pass != pass) continue;
        put(laying, (struct adv_view_block){operation->name, ADV_LANE_TENSORCORE, pass, operation->bound,
                                            laying->cursor_s, operation->seconds, true});
        laying->cursor_s += operation->seconds;
    }
}

/* Weights of the backward pass hide behind the recompute too: they start with it. */
static void put_hidden(struct laying *laying, const struct spread spreads[SENT], enum adv_pass pass,
                       double start_s, double backward_start_s)
{
    for (int i = 0; i < SENT; i++) {
        const enum adv_view_lane lane = sent[i].lane;
        const bool early = pass == ADV_PASS_BWD && (lane == ADV_LANE_ICI_FSDP || lane == ADV_LANE_PCIE);
        const double from_s = adv_max(early ? backward_start_s : start_s, laying->lane_free_s[lane]);
        const double hidden_s = spreads[i].seconds[pass] - spreads[i].exposed_s[pass];
        const double least_s = 1e-12; /* rounding */
        if (hidden_s < least_s) continue;
        put(laying, (struct adv_view_block){terms[sent[i].id].name, lane, pass, terms[sent[i].id].resource,
                                            from_s, hidden_s, false});
        laying->lane_free_s[lane] = from_s + hidden_s;
    }
}

static void put_exposed(struct laying *laying, const struct spread spreads[SENT], enum adv_pass pass)
{
    for (int i = 0; i < SENT; i++) {
        const double exposed_s = spreads[i].exposed_s[pass];
        put(laying, (struct adv_view_block){terms[sent[i].id].name, sent[i].lane, pass,
                                            terms[sent[i].id].resource, laying->cursor_s, exposed_s, true});
        laying->cursor_s += exposed_s;
    }
}

static void lay_layer(const struct adv_step_trace *trace, int kind, struct adv_layer_view *view)
{
    const struct adv_layer_trace *layer = &trace->layers[kind];
    struct adv_operations operations;
    struct laying laying = {.view = view};
    struct spread spreads[SENT];
    double backward_start_s = 0.0;
    view->times = layer->times;
    adv_operations_list(trace, kind, &operations);
    for (int i = 0; i < SENT; i++)
        spreads[i] = sent[i].spread
                         ? sent[i].spread(&trace->cost, layer)
                         : by_counts(&layer->slots[sent[i].id], sent[i].forward, 0.0, sent[i].backward);
    for (int pass = 0; pass < ADV_PASS_COUNT; pass++) {
        const double start_s = laying.cursor_s;
        if (pass == ADV_PASS_RECOMPUTE) backward_start_s = start_s;
        put_compute(&laying, &operations, (enum adv_pass)pass);
        put_hidden(&laying, spreads, (enum adv_pass)pass, start_s, backward_start_s);
        put_exposed(&laying, spreads, (enum adv_pass)pass);
        view->pass_s[pass] = laying.cursor_s - start_s;
    }
}

void adv_step_view_lay(const struct adv_step_trace *trace, struct adv_step_view *view)
{
    memset(view, 0, sizeof *view);
    view->layers_count = trace->cost.model->layer_kinds_count;
    view->step_time_s = adv_account_total_s(&trace->account);
    for (int i = 0; i < view->layers_count; i++) lay_layer(trace, i, &view->layers[i]);
    for (int id = 0; id < ADV_TERM_COUNT; id++) {
        struct adv_outside rest = {terms[id].name, terms[id].resource, trace->account.slots[id].seconds,
                                   trace->account.slots[id].exposed_seconds};
        for (int i = 0; i < view->layers_count; i++) {
            rest.seconds -= trace->layers[i].times * trace->layers[i].slots[id].seconds;
            rest.exposed_seconds -= trace->layers[i].times * trace->layers[i].slots[id].exposed_seconds;
        }
        const double least_s = 1e-9 * view->step_time_s; /* rounding */
        if (rest.seconds > least_s || rest.exposed_seconds > least_s)
            view->outside[view->outside_count++] = rest;
    }
}

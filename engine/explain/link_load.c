#include "engine/explain/link_load.h"

#include <math.h>
#include <string.h>

#include "engine/cost/projections.h"

const char *adv_link_name(int link)
{
    if (link == ADV_LINK_DCN) return "dcn";
    return link == ADV_LINK_PCIE ? "pcie" : adv_physical_name(link);
}

static void add_flow(struct adv_link_load *link, const char *term, double bytes)
{
    if (bytes <= 0.0) return;
    link->used = true;
    link->bytes_per_chip += bytes;
    for (int i = 0; i < link->flows_count; i++) {
        if (strcmp(link->flows[i].term, term) != 0) continue;
        link->flows[i].bytes_per_chip += bytes;
        return;
    }
    if (link->flows_count < ADV_LINK_FLOWS)
        link->flows[link->flows_count++] = (struct adv_link_flow){term, bytes};
}

/* One exchange over a group, on its way to the links. */
struct exchange {
    const struct adv_cost *cost;
    const struct adv_group *group;
    const char *term;
    enum adv_collective collective;
    double bytes; /* of one device and step, as collective.h counts them */
};

static double rate_of(const struct exchange *e, const struct adv_ring *ring)
{
    return adv_ring_bytes_per_s(e->cost->chip, ring);
}

/* Bytes that a chip takes in over all torus axes, and what each ring has of them. */
static void add_gathered(const struct exchange *e, struct adv_link_loads *loads)
{
    double chips = 1.0, all_rates = 0.0, cores = 1.0;
    for (int i = 0; i < e->group->rings_count; i++) {
        const struct adv_ring *ring = &e->group->rings[i];
        if (ring->physical == ADV_PHYSICAL_CORE) {
            cores = ring->size;
            continue;
        }
        chips *= ring->size;
        all_rates += rate_of(e, ring);
    }
    const double shared = e->group->other_core_too ? e->cost->chip->devices_per_chip : 1.0;
    const double twice = e->collective == ADV_COLLECTIVE_ALL_REDUCE ? 2.0 : 1.0;
    const double torus_bytes = twice * shared * e->bytes * (chips - 1.0) / chips;
    for (int i = 0; i < e->group->rings_count; i++) {
        const struct adv_ring *ring = &e->group->rings[i];
        if (ring->physical == ADV_PHYSICAL_CORE)
            add_flow(&loads->links[ADV_PHYSICAL_CORE], e->term, twice * e->bytes * (cores - 1.0) / cores);
        else
            add_flow(&loads->links[ring->physical], e->term, torus_bytes * rate_of(e, ring) / all_rates);
    }
}

/* Each ring carries what crosses its worst cut. */
static void add_traded(const struct exchange *e, struct adv_link_loads *loads)
{
    double cores = 1.0;
    for (int i = 0; i < e->group->rings_count; i++)
        if (e->group->rings[i].physical == ADV_PHYSICAL_CORE) cores = e->group->rings[i].size;
    const double shared = e->group->other_core_too ? e->cost->chip->devices_per_chip : 1.0;
    for (int i = 0; i < e->group->rings_count; i++) {
        const struct adv_ring *ring = &e->group->rings[i];
        const int low = ring->size / 2, high = ring->size - low;
        double bytes = e->bytes * shared * cores * (double)low * high / ring->size;
        if (ring->physical == ADV_PHYSICAL_CORE) bytes = e->bytes * (cores - 1.0) / cores;
        add_flow(&loads->links[ring->physical], e->term, bytes);
    }
}

/* A ring's order goes over one axis at nearly every step: the first of the group. */
static void add_permuted(const struct exchange *e, struct adv_link_loads *loads)
{
    const double shared = e->group->other_core_too ? e->cost->chip->devices_per_chip : 1.0;
    for (int i = 0; i < e->group->rings_count; i++) {
        const struct adv_ring *ring = &e->group->rings[i];
        const bool core = ring->physical == ADV_PHYSICAL_CORE;
        if (core && e->group->rings_count > 1) continue;
        add_flow(&loads->links[ring->physical], e->term, core ? e->bytes : e->bytes * shared);
        return;
    }
}

static void add_exchange(struct adv_link_loads *loads, const struct adv_cost *cost,
                         const struct adv_group *group, const char *term, enum adv_collective collective,
                         double bytes)
{
    const struct exchange e = {cost, group, term, collective, bytes};
    if (group->devices <= 1 || bytes <= 0.0) return;
    if (collective == ADV_COLLECTIVE_ALL_TO_ALL)
        add_traded(&e, loads);
    else if (collective == ADV_COLLECTIVE_PERMUTE)
        add_permuted(&e, loads);
    else
        add_gathered(&e, loads);
}

/* Tokens to their experts and back, of all passes of one layer. */
static void add_experts(struct adv_link_loads *loads, const struct adv_cost *cost,
                        const struct adv_layer *layer, double times)
{
    if (layer->experts == 0 || cost->ep <= 1) return;
    const struct adv_plan *plan = cost->plan;
    const bool dense = plan->family.moe == ADV_MOE_DENSE, slots = dense && plan->family.capacity_factor > 0.0;
    const double token_bytes = 2.0 * (double)layer->moe_input_dim * cost->tokens;
    const bool kept = adv_remat_keeps_rows(cost->kept);
    const double exchanges = slots ? 5.0 : kept ? 4.0 : 6.0;
    const char *term = "expert_collectives";
    if (!slots && (plan->family.use_ring_of_experts || dense))
        add_exchange(loads, cost, &cost->ep_group, term, ADV_COLLECTIVE_ALL_GATHER,
                     times * exchanges * token_bytes * cost->ep);
    else
        add_exchange(loads, cost, &cost->ep_group, term, ADV_COLLECTIVE_ALL_TO_ALL,
                     times * exchanges * token_bytes * layer->experts_per_token *
                         (slots ? plan->family.capacity_factor : 1.0));
}

static void add_context(struct adv_link_loads *loads, const struct adv_cost *cost,
                        const struct adv_layer_trace *layer)
{
    const char *term = "context_collectives";
    const double bytes = layer->times * layer->slots[ADV_TERM_CONTEXT].bytes;
    if (cost->cp_ring > 1)
        add_exchange(
            loads, cost, &cost->context_group, term,
            adv_plan_circulates_keys(cost->plan) ? ADV_COLLECTIVE_PERMUTE : ADV_COLLECTIVE_ALL_GATHER, bytes);
    else
        add_exchange(loads, cost, &cost->ulysses_group, term, ADV_COLLECTIVE_ALL_TO_ALL, bytes);
}

/* The bytes that a slot's terms send, those outside the layers too. */
static double all_bytes(const struct adv_step_trace *trace, enum adv_term_id id)
{
    return trace->account.slots[id].bytes;
}

static void add_terms(struct adv_link_loads *loads, const struct adv_step_trace *trace)
{
    const struct adv_cost *cost = &trace->cost;
    add_exchange(loads, cost, &cost->dense_group, "fsdp_all_gather", ADV_COLLECTIVE_ALL_GATHER,
                 all_bytes(trace, ADV_TERM_FSDP_GATHER));
    add_exchange(loads, cost, &cost->dense_group, "fsdp_reduce_scatter", ADV_COLLECTIVE_REDUCE_SCATTER,
                 all_bytes(trace, ADV_TERM_FSDP_SCATTER));
    add_exchange(loads, cost, &cost->data_group, "data_all_reduce", ADV_COLLECTIVE_ALL_REDUCE,
                 all_bytes(trace, ADV_TERM_DATA_REDUCE));
    add_exchange(loads, cost, &cost->tensor_group, "tensor_collectives", ADV_COLLECTIVE_ALL_GATHER,
                 all_bytes(trace, ADV_TERM_TENSOR));
    add_exchange(loads, cost, &cost->transpose_group, "fsdp_transpose_collectives", ADV_COLLECTIVE_ALL_GATHER,
                 all_bytes(trace, ADV_TERM_TRANSPOSE));
    add_exchange(loads, cost, &cost->stage_group, "pipeline_permute", ADV_COLLECTIVE_PERMUTE,
                 all_bytes(trace, ADV_TERM_PIPELINE_PERMUTE));
    for (int i = 0; i < cost->model->layer_kinds_count; i++) {
        add_context(loads, cost, &trace->layers[i]);
        add_experts(loads, cost, &cost->model->layers[i], trace->layers[i].times);
    }
}

/* Network and host link have a rate each; what is sent is what the terms say. */
static void add_outer(struct adv_link_loads *loads, const struct adv_step_trace *trace)
{
    const struct adv_chip *chip = trace->cost.chip;
    const double devices = chip->devices_per_chip, slices = trace->cost.cluster->slices;
    const double others = slices > 1.0 ? (slices - 1.0) / slices : 0.0;
    struct adv_link_load *dcn = &loads->links[ADV_LINK_DCN], *pcie = &loads->links[ADV_LINK_PCIE];
    add_flow(dcn, "dcn_gradient_reduce", 2.0 * others * devices * all_bytes(trace, ADV_TERM_DCN_REDUCE));
    add_flow(dcn, "dcn_weight_gather", others * devices * all_bytes(trace, ADV_TERM_DCN_WEIGHTS));
    add_flow(dcn, "dcn_activations", others * devices * all_bytes(trace, ADV_TERM_DCN_ACTIVATIONS));
    add_flow(pcie, "host_offload", devices * all_bytes(trace, ADV_TERM_HOST_OFFLOAD));
    add_flow(pcie, "optimizer_offload", devices * all_bytes(trace, ADV_TERM_OPTIMIZER_OFFLOAD));
    dcn->size = trace->cost.cluster->slices;
    pcie->size = 1;
    dcn->bytes_per_s_per_chip = chip->dcn_bytes_per_s_per_chip * trace->cost.constants->dcn_achieved_frac;
    pcie->bytes_per_s_per_chip = devices * trace->cost.pcie_bytes_per_s;
}

void adv_link_loads_find(const struct adv_step_trace *trace, struct adv_link_loads *loads)
{
    const struct adv_cluster *cluster = trace->cost.cluster;
    memset(loads, 0, sizeof *loads);
    loads->step_time_s = adv_account_total_s(&trace->account);
    for (int axis = 0; axis < ADV_PHYSICAL_COUNT; axis++) {
        struct adv_link_load *link = &loads->links[axis];
        const bool core = axis == ADV_PHYSICAL_CORE;
        link->size = core ? (int)cluster->chip.devices_per_chip : cluster->dims[axis];
        link->wraps = !core && link->size > 1 && cluster->wraps[axis];
        const struct adv_ring ring = {axis, link->size, link->size, 1, link->wraps};
        link->bytes_per_s_per_chip =
            link->size > 1 ? adv_ring_bytes_per_s(&cluster->chip, &ring) : (double)NAN;
    }
    add_terms(loads, trace);
    add_outer(loads, trace);
    for (int i = 0; i < ADV_LINK_COUNT; i++) {
        struct adv_link_load *link = &loads->links[i];
        link->known = isfinite(link->bytes_per_s_per_chip) && link->bytes_per_s_per_chip > 0.0;
        link->busy_frac = link->known ? link->bytes_per_chip / link->bytes_per_s_per_chip / loads->step_time_s
                                      : (double)NAN;
    }
}

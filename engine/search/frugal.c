#include "engine/search/frugal.h"

#include <string.h>

#include "engine/base/list.h"
#include "engine/base/units.h"
#include "engine/cost/fit.h"
#include "engine/cost/layer_memory.h"
#include "engine/maxtext/names.h"
#include "engine/rank/rank.h"
#include "engine/search/space_batch.h"
#include "engine/search/bounds.h"

/* Elements per token that routed experts keep alive, counted like engine/cost/memory.c does. */
static double routed_elements(const struct adv_space *space, const struct adv_layer *layer,
                              const struct adv_family *family)
{
    const short *ici = family->ici;
    double expert = ici[ADV_AXIS_EXPERT], meet = (double)ici[ADV_AXIS_TENSOR] * ici[ADV_AXIS_TENSOR_SEQUENCE];
    const bool is_dense = space->base.family.moe == ADV_MOE_DENSE;
    if (is_dense && ici[ADV_AXIS_FSDP] > 1 && !family->two_stage_gather) meet *= ici[ADV_AXIS_FSDP_TRANSPOSE];
    double grows = expert;
    if (!family->ring_of_experts)
        grows = adv_min(expert, adv_max(1, (double)layer->experts / layer->experts_per_token));
    return grows * meet * layer->experts_per_token *
           adv_memory_routed_elements(space->constants, layer, meet, expert);
}

/* Memory that a layer keeps alive per token while it is differentiated, in elements of 2 bytes: a handful of
 * tensors of the residual stream, the widest feed-forward with its gradients, and routed rows. */
static double elements_per_token(const struct adv_space *space, const struct adv_family *family)
{
    const struct adv_model *model = &space->request->model;
    double widest = 0;
    for (int i = 0; i < model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &model->layers[i];
        double elements = 4.0 * (double)(layer->mlp_dim + layer->shared_mlp_dim);
        if (layer->experts > 0) elements += routed_elements(space, layer, family);
        widest = adv_max(widest, elements);
    }
    return 8.0 * (double)model->emb_dim + widest;
}

/* The measures of a space that all its families share. */
struct measuring {
    const struct adv_space *space;
    struct adv_model_params params;
    struct adv_layer_params kinds[ADV_LIMIT_LAYER_KINDS];
    double limit_bytes; /* of HBM that plans may be counted to need */
    double trusted_frac;
    struct adv_plan plan;          /* a copy of the base to write meshes to */
    const struct adv_family *last; /* measured; families of one mesh lie side by side */
    double state_bytes, weights_bytes, elements_per_token, gathered_bytes; /* of its mesh */
    int axes;
};

/* The widest layer's weights, gathered to be computed with. */
static double gathered_bytes(const struct measuring *measuring, const struct adv_family *family)
{
    double most = 0, tensor = (double)family->ici[ADV_AXIS_TENSOR] * family->ici[ADV_AXIS_TENSOR_SEQUENCE];
    for (int i = 0; i < measuring->space->request->model.layer_kinds_count; i++) {
        const struct adv_layer_params *p = &measuring->kinds[i];
        double dense = p->attention + p->dense_ffn + p->shared_experts + p->router + p->norms + p->other;
        most = adv_max(most, dense + p->routed_experts / family->ici[ADV_AXIS_EXPERT]);
    }
    return 2.0 * most / tensor;
}

static bool same_mesh(const struct adv_family *a, const struct adv_family *b)
{
    return memcmp(a->ici, b->ici, sizeof a->ici) == 0 && memcmp(a->dcn, b->dcn, sizeof a->dcn) == 0 &&
           a->two_stage_gather == b->two_stage_gather && a->ring_of_experts == b->ring_of_experts;
}

static void measure_mesh(struct measuring *measuring, const struct adv_family *family)
{
    struct adv_plan *plan = &measuring->plan;
    const bool same = measuring->last && same_mesh(measuring->last, family);
    measuring->last = family;
    if (same) return;
    measuring->axes = 0;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        plan->family.ici[i] = family->ici[i];
        plan->family.dcn[i] = family->dcn[i];
        measuring->axes += family->ici[i] > 1 && i != ADV_AXIS_FSDP;
    }
    plan->optimizer_host_offload = measuring->space->base.optimizer_host_offload;
    measuring->state_bytes = adv_bound_hbm_bytes_per_device(plan, &measuring->params);
    plan->optimizer_host_offload = true;
    measuring->weights_bytes = adv_bound_hbm_bytes_per_device(plan, &measuring->params);
    measuring->elements_per_token = elements_per_token(measuring->space, family);
    measuring->gathered_bytes = gathered_bytes(measuring, family);
}

static struct adv_frugal measure(struct measuring *measuring, const struct adv_family *family)
{
    const struct adv_space *space = measuring->space;
    const struct adv_advise_request *request = space->request;
    const struct adv_plan *base = &space->base;
    measure_mesh(measuring, family);
    const double state = measuring->state_bytes, weights = measuring->weights_bytes;
    double gradients = (family->gradient_accumulation_steps > 1 ? 2.0 : 1.0) * weights;
    double tokens = family->per_device_batch_size * (double)request->workload.seq_len;
    double live = 2.0 * tokens * measuring->elements_per_token + measuring->gathered_bytes;
    bool needs_offload = state + gradients + live > measuring->limit_bytes;
    bool offloads = needs_offload && base->family.optimizer != ADV_OPT_SGD &&
                    !adv_request_pins(request, ADV_NAME_OPTIMIZER_MEMORY_HOST_OFFLOAD);
    struct adv_frugal frugal = {.family = family,
                                .axes = measuring->axes,
                                .offloads_optimizer = offloads || base->optimizer_host_offload};
    frugal.bytes = (offloads ? weights : state) + gradients + live;
    frugal.fits = frugal.bytes <= measuring->trusted_frac * measuring->limit_bytes;
    return frugal;
}

/* Of what fits, the simplest mesh with the fewest steps of accumulation; of the rest, what misses least. */
static bool before(const struct adv_frugal *a, const struct adv_frugal *b)
{
    int a_steps = a->family->gradient_accumulation_steps, b_steps = b->family->gradient_accumulation_steps;
    if (a->fits != b->fits) return a->fits;
    if (!a->fits) return a->bytes < b->bytes;
    if (a->offloads_optimizer != b->offloads_optimizer) return b->offloads_optimizer;
    return a->axes != b->axes ? a->axes < b->axes : a_steps < b_steps;
}

int adv_frugal_families(const struct adv_space *space, double trusted_frac,
                        struct adv_frugal frugal[ADV_FRUGAL_PLANS])
{
    const struct adv_model *model = &space->request->model;
    const struct adv_fit_curve curve = adv_fit_curve(space->constants, space->constants->memory_log_sd);
    struct measuring measuring = {
        .space = space,
        .params = adv_model_params(model),
        .limit_bytes = adv_fit_limit_frac(&curve, ADV_FIT_SURE_PROBABILITY) *
                       space->request->cluster.chip.hbm_usable_bytes_per_device,
        .trusted_frac = trusted_frac,
        .plan = space->base,
    };
    for (int i = 0; i < model->layer_kinds_count; i++)
        measuring.kinds[i] = adv_model_layer_params(model, &model->layers[i]);
    int count = 0;
    for (int i = 0; i < space->families_count; i++) {
        struct adv_frugal next = measure(&measuring, &space->families[i]);
        int at = count;
        while (at > 0 && before(&next, &frugal[at - 1])) at--;
        if (at == ADV_FRUGAL_PLANS) continue;
        (void)adv_list_open(frugal, sizeof *frugal, &count, ADV_FRUGAL_PLANS, at);
        frugal[at] = next;
    }
    return count;
}

void adv_frugal_plan(const struct adv_space *space, const struct adv_remat_space *open,
                     const struct adv_frugal *frugal, struct adv_plan *plan)
{
    adv_space_plan(space, frugal->family, plan);
    adv_remat_set_all(open, plan, ADV_PLACE_REMAT);
    if (open->input_may_offload) adv_remat_set_input(open, plan, ADV_PLACE_OFFLOAD);
    for (int t = 0; t < open->tilings_count; t++)
        if (adv_remat_may_tile(open, plan, open->tilings[t])) plan->num_vocab_tiling = open->tilings[t];
    plan->optimizer_host_offload = frugal->offloads_optimizer;
}

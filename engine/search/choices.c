#include "engine/search/choices.h"

#include <string.h>

#include "engine/search/batch.h"

bool adv_model_has_experts(const struct adv_model *model)
{
    for (int i = 0; i < model->layer_kinds_count; i++)
        if (model->layers[i].experts > 0) return true;
    return false;
}

static bool is_chip(const struct adv_advise_request *request, const char *name)
{
    return !strcmp(request->cluster.chip.name, name);
}

static bool always(const struct adv_advise_request *request)
{
    (void)request;
    return true;
}

/* Tokamax's kernels are published and tuned for the generations with 256-wide MXUs and v5p; sparse attention
 * (DeepSeek 3.2 and 4) has no other flash kernel. */
static bool has_tokamax(const struct adv_advise_request *request)
{
    for (int i = 0; i < request->model.layer_kinds_count; i++) {
        const struct adv_layer *layer = &request->model.layers[i];
        if (layer->indexer_topk > 0 || layer->attention == ADV_ATTENTION_COMPRESSED) return true;
    }
    return is_chip(request, "tpu7x") || is_chip(request, "v6e") || is_chip(request, "v5p");
}

/* Blocks that share keys or embeddings between layers, or take a picture into single ones. */
static bool cannot_scan(const struct adv_advise_request *request)
{
    return request->model.cannot_scan;
}

static void unrolled(struct adv_plan *plan)
{
    plan->scan_layers = false;
}
static void tokamax_splash(struct adv_plan *plan)
{
    plan->use_tokamax_splash = true;
}
static void fused_backward(struct adv_plan *plan)
{
    plan->use_fused_bwd = true;
}
/* From 32768 tokens on there are more than four partial query gradients of the widest key blocks. */
static bool is_long(const struct adv_advise_request *request)
{
    return request->workload.base.seq_len >= 32768;
}
static void three_partials(struct adv_plan *plan)
{
    if (plan->use_tokamax_splash) plan->dq_reduction_steps = 3;
}
/* fp8 with fixed scales, as six of the seven published fp8 recipes: no pass for the maxima. */
static bool has_fp8(const struct adv_advise_request *request)
{
    return is_chip(request, "tpu7x");
}
static void fixed_scales(struct adv_plan *plan)
{
    plan->quantization_static = true;
}
static void iota_embed(struct adv_plan *plan)
{
    plan->use_iota_embed = true;
}

/* Key, when it suits, what it sets. Grouped matmuls in bf16 stay with megablox, MaxText's default, whose
 * tiles are searched: published steps through tokamax take longer (step_tokamax_factor), and without
 * quantisation it ignores the tiles. */
static const struct {
    const char *key;
    bool (*suits)(const struct adv_advise_request *request);
    void (*set)(struct adv_plan *plan);
} choices[] = {
    {"use_tokamax_splash", has_tokamax,
     tokamax_splash}, /* fused backward, layouts; ring attention needs it */
    {"sa_use_fused_bwd_kernel", always, fused_backward}, /* 5 matmuls instead of 7 in the backward pass */
    {"dq_reduction_steps", is_long, three_partials}, /* query gradients summed in place, as long recipes do */
    {"use_iota_embed", always, iota_embed},          /* no gather and no scatter-add of the embedding */
    {"scan_layers", cannot_scan, unrolled},
    {"weight_quantization_calibration_method", has_fp8,
     fixed_scales}, /* counts under quantization fp8_full */
};

/* Flags by generation; -1 leaves a switch at the compiler's default. Sources: published recipes and MaxText's
 * bundle library. tpu7x offloads collectives to SparseCores, v6e those of gradients; v5e, v5p and v6e
 * overlap them by async collective fusion. VMEM limits: tpu7x 61440 KiB (recipes use this or all 65536), v5p
 * and v6e 98304 KiB, with experts 81920 KiB. */
static void generation_flags(const struct adv_advise_request *request, struct adv_flags *flags)
{
    bool experts = adv_model_has_experts(&request->model);
    if (is_chip(request, "tpu7x")) {
        flags->scoped_vmem_limit_kib = 61440;
        flags->sc_all_gather = flags->sc_reduce_scatter = flags->sc_all_reduce = flags->async_all_gather = 1;
        flags->cf_all_gather = 0;
        if (experts) flags->sc_aggregator = flags->latency_hiding_layer_scheduler = 1;
    } else if (is_chip(request, "v6e") || is_chip(request, "v5p")) {
        flags->scoped_vmem_limit_kib = experts ? 81920 : 98304;
        flags->cf_all_gather = flags->async_all_gather = 1;
        if (is_chip(request, "v6e")) { /* gradients by SparseCore, as its later recipes */
            flags->sc_all_reduce = 1;
            flags->cf_all_reduce = 0;
        } else {
            flags->cf_all_reduce = 1;
        }
    } else if (is_chip(request, "v5e")) {
        flags->cf_all_gather = flags->cf_all_reduce = flags->async_all_gather = 1;
    } else if (is_chip(request, "v4")) {
        flags->async_all_gather = 1; /* all that published steps of it set */
    }
}

void adv_choices_apply(const struct adv_advise_request *request, struct adv_plan *plan)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (!adv_request_pins(request, choices[i].key) && choices[i].suits(request)) choices[i].set(plan);
    generation_flags(request, &plan->flags);
    /* the bundle is published for the generations before tpu7x */
    plan->flags.data_parallel_overlap = request->cluster.slices > 1 && !is_chip(request, "tpu7x") ? 1 : -1;
}

/* Keys on which recipes agree, but whose other value may be priced faster. */
enum { FLIP_IOTA, FLIP_FUSED, FLIP_PARTIALS };

/* Generations with published steps that gather their embedding. */
static bool has_lookups(const struct adv_advise_request *request)
{
    return is_chip(request, "v4") || is_chip(request, "v5p") || is_chip(request, "v6e");
}

bool adv_choices_flip(const struct adv_advise_request *request, int which, struct adv_plan *plan)
{
    static const char *const keys[ADV_CHOICES_FLIPS] = {"use_iota_embed", "sa_use_fused_bwd_kernel",
                                                        "dq_reduction_steps"};
    if (adv_request_pins(request, keys[which])) return false;
    if (which == FLIP_IOTA) {
        /* the model's own file asks for it, or no published step of the chip looks its tokens up */
        if (request->workload.base.use_iota_embed || !has_lookups(request)) return false;
        plan->use_iota_embed = !plan->use_iota_embed;
    } else if (which == FLIP_FUSED) {
        if (plan->use_tokamax_splash) return false; /* its backward is always fused */
        plan->use_fused_bwd = !plan->use_fused_bwd;
    } else {
        if (!is_long(request)) return false; /* no recipe of shorter steps sets it */
        plan->dq_reduction_steps = plan->dq_reduction_steps ? 0 : 3;
    }
    return true;
}

void adv_choices_finish(struct adv_plan *plan)
{
    bool offloads = plan->optimizer_host_offload || plan->parameter_host_offload;
    for (int i = 0; i < ADV_TENSOR_COUNT; i++)
        offloads = offloads || plan->placements[i] == ADV_PLACE_OFFLOAD;
    plan->flags.host_offload_scheduling = offloads ? 1 : -1;
}

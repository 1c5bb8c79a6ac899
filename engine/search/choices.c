#include "engine/search/choices.h"

#include "engine/search/batch.h"

bool adv_model_has_experts(const struct adv_model *model)
{
    for (int i = 0; i < model->layer_kinds_count; i++)
        if (model->layers[i].experts > 0) return true;
    return false;
}

static bool always(const struct adv_advise_request *request)
{
    (void)request;
    return true;
}

/* Where tokamax's kernels are tuned for the chip; sparse attention (DeepSeek 3.2 and 4) has no other flash
 * kernel. */
static bool has_tokamax(const struct adv_advise_request *request)
{
    for (int i = 0; i < request->model.layer_kinds_count; i++) {
        const struct adv_layer *layer = &request->model.layers[i];
        if (layer->indexer_topk > 0 || layer->attention == ADV_ATTENTION_COMPRESSED) return true;
    }
    return request->cluster.chip.recipe.tokamax_splash;
}

/* Blocks that share keys or embeddings between layers cannot be scanned. */
static bool cannot_scan(const struct adv_advise_request *request)
{
    return request->model.decoder == ADV_DECODER_GEMMA4_SMALL;
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
static bool has_fixed_scales(const struct adv_advise_request *request)
{
    return request->cluster.chip.recipe.fixed_fp8_scales;
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
    {"weight_quantization_calibration_method", has_fixed_scales,
     fixed_scales}, /* counts under quantization fp8_full */
};

void adv_choices_apply(const struct adv_advise_request *request, struct adv_plan *plan)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (!adv_request_pins(request, choices[i].key) && choices[i].suits(request)) choices[i].set(plan);
    const struct adv_chip_recipe *recipe = &request->cluster.chip.recipe;
    const bool experts = adv_model_has_experts(&request->model);
    adv_flags_overlay(&plan->flags, experts ? &recipe->flags_with_experts : &recipe->flags);
    plan->flags.data_parallel_overlap = request->cluster.slices > 1 && recipe->overlap_gradients ? 1 : -1;
}

/* Keys on which recipes agree, but whose other value may be priced faster. */
enum { FLIP_IOTA, FLIP_FUSED, FLIP_PARTIALS };

bool adv_choices_flip(const struct adv_advise_request *request, int which, struct adv_plan *plan)
{
    static const char *const keys[ADV_CHOICES_FLIPS] = {"use_iota_embed", "sa_use_fused_bwd_kernel",
                                                        "dq_reduction_steps"};
    if (adv_request_pins(request, keys[which])) return false;
    if (which == FLIP_IOTA) {
        /* the model's own file asks for it, or no published step of the chip looks its tokens up */
        if (request->workload.base.use_iota_embed || !request->cluster.chip.recipe.embedding_lookups)
            return false;
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

/* resolve.c: what follows from all keys of a configuration together. */
#include "engine/maxtext/names.h"
#include "engine/maxtext/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static void warn_axis(const struct adv_config_reader *reader, bool is_dcn, enum adv_axis axis, int degree,
                      const char *why)
{
    const char *member = adv_key_of_axis(is_dcn, axis);
    (void)adv_err_add_rule(reader->warnings, ADV_OK, "ignored-axis", ADV_AT(reader->source->at, member),
                           axis == ADV_AXIS_SEQUENCE ? "sequences are split by ici_context_parallelism today"
                                                     : "leave it out",
                           "%s %d is ignored: %s", member, degree, why);
}

/* Two axes that are -1. One slice: MaxText does not look at the dcn axes; how many there are may not be
 * known.
 */
static void judge_second(const struct adv_config_reader *reader, bool is_dcn, int total, enum adv_axis first,
                         enum adv_axis second)
{
    static const char hint[] =
        "give one of the two a number (ici_fsdp_parallelism and dcn_data_parallelism are -1 by default)";
    const char *member = adv_key_of_axis(is_dcn, second), *other = adv_key_of_axis(is_dcn, first);
    const char *pointer = ADV_AT(reader->source->at, member);
    const bool is_known = reader->source->cluster->chip.name[0] != '\0';
    if (!is_dcn || total > 1)
        (void)adv_err_add(reader->err, ADV_E_ILLEGAL, pointer, hint,
                          "%s and %s are both -1: only one axis can take what is left", member, other);
    else if (!is_known)
        (void)adv_err_add_rule(reader->warnings, ADV_OK, "two-axes-left", pointer, hint,
                               "%s and %s are both -1, which MaxText refuses with more than one slice",
                               member, other);
}

/* Fills the one -1 so that the degrees multiply to `total`. When they cannot, the -1 becomes the nearest
 * whole number below and adv_plan_check says what the product is. */
static void fill_axes(const struct adv_config_reader *reader, bool is_dcn, int degrees[ADV_AXIS_COUNT],
                      int total)
{
    int unfilled = -1;
    double product = 1;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        enum adv_axis axis = (enum adv_axis)i;
        bool is_default = !is_dcn && axis == ADV_AXIS_FSDP && degrees[i] == -1;
        if (!adv_plan_axis_in_mesh(reader->state->plan.family.rule, reader->source->model, axis)) {
            if (degrees[i] != 1 && !is_default && !(is_dcn && degrees[i] == -1)) {
                warn_axis(reader, is_dcn, axis, degrees[i],
                          "the axis is not in the mesh of this configuration");
            }
            degrees[i] = 1;
        } else if (degrees[i] == -1 && unfilled < 0) {
            unfilled = i;
        } else if (degrees[i] == -1) {
            judge_second(reader, is_dcn, total, (enum adv_axis)unfilled, axis);
            degrees[i] = 1;
        } else {
            product *= degrees[i];
        }
    }
    if (product > 1 << 24) {
        (void)adv_err_add(reader->err, ADV_E_RANGE, reader->source->at, NULL,
                          "the %s axes multiply to %.6g devices; there are %d", is_dcn ? "dcn" : "ici",
                          product, total);
        for (int i = 0; i < ADV_AXIS_COUNT; i++) degrees[i] = 1;
        degrees[!is_dcn ? ADV_AXIS_FSDP : ADV_AXIS_DATA] = total;
        return;
    }
    if (unfilled >= 0) degrees[unfilled] = product < total ? (int)(total / product) : 1;
}

/* MaxText checkpoints each layer under the policy "none" too, and keeps nothing, but for the layers of the
 * small Gemma 4 (nnx_decoders.py: _apply_gemma4_small_layers), which then keep all. */
static void judge_remat_none(const struct adv_config_reader *reader)
{
    const struct adv_config_source *source = reader->source;
    const struct adv_value *said = adv_given_find(source->given, source->given_count, "remat_policy");
    const bool keeps_all = source->model->decoder == ADV_DECODER_GEMMA4_SMALL;
    if (!said || (said->kind != ADV_VALUE_NULL &&
                  (said->kind != ADV_VALUE_STRING || strcasecmp(said->string, "none") != 0)))
        return;
    (void)adv_err_add_rule(
        keeps_all ? reader->err : reader->warnings, keeps_all ? ADV_E_UNSUPPORTED : ADV_OK, "remat-none",
        ADV_AT(source->at, "remat_policy"),
        keeps_all ? "say minimal to keep the matmuls' results, or full"
                  : "say full, or a policy that keeps what memory allows",
        keeps_all ? "remat_policy none keeps every activation of %s, which has no model here"
                  : "remat_policy none keeps no activation of %s but the layers' inputs, as full does",
        source->model->name);
}

/* Under the custom policy tensors are where their keys say; else where the preset has them. */
static void resolve_remat(const struct adv_config_reader *reader)
{
    struct adv_config_state *state = reader->state;
    enum adv_placement said[ADV_TENSOR_COUNT];
    judge_remat_none(reader);
    memcpy(said, state->plan.placements, sizeof said);
    adv_policy_placements(state->plan.policy, state->plan.placements);
    for (int k = 0; k < adv_keys_count; k++) {
        if (adv_keys[k].holds != ADV_HOLDS_PLACEMENT || !state->given[k]) continue;
        size_t i = (adv_keys[k].plan_at - offsetof(struct adv_plan, placements)) / sizeof *said;
        const char *name = adv_keys[k].name;
        if (state->plan.policy == ADV_POLICY_CUSTOM) {
            state->plan.placements[i] = said[i];
            continue;
        }
        const bool usual = i == ADV_TENSOR_DECODER_LAYER_INPUT && said[i] == ADV_PLACE_DEVICE;
        if (usual || said[i] == state->plan.placements[i] || said[i] == ADV_PLACE_REMAT) continue;
        bool refused = reader->source->binding;
        adv_err *findings = refused ? reader->err : reader->warnings;
        (void)adv_err_add_rule(findings, refused ? ADV_E_INVALID : ADV_OK, "ignored-placement",
                               ADV_AT(reader->source->at, name),
                               refused ? "remat_policy=custom lets it hold" : "set remat_policy custom",
                               "%s %s is ignored under remat_policy %s", name, adv_placement_name(said[i]),
                               adv_policy_name(state->plan.policy));
    }
}

/* The backward pass of tokamax's attention is always fused: a pin that says otherwise cannot hold. */
static void judge_fused(const struct adv_config_reader *reader)
{
    const struct adv_config_source *source = reader->source;
    const struct adv_value *said =
        adv_given_find(source->given, source->given_count, ADV_NAME_SA_USE_FUSED_BWD_KERNEL);
    if (!source->binding || !reader->state->plan.family.use_tokamax_splash || !said ||
        said->kind != ADV_VALUE_BOOL || said->boolean)
        return;
    (void)adv_err_add(reader->err, ADV_E_INVALID, ADV_AT(source->at, ADV_NAME_SA_USE_FUSED_BWD_KERNEL),
                      "leave it out, or say use_tokamax_splash false",
                      "%s false is ignored under %s true: its backward pass is always fused",
                      ADV_NAME_SA_USE_FUSED_BWD_KERNEL, ADV_NAME_USE_TOKAMAX_SPLASH);
}

/* Tensors that only keys without a price here bring about: one matmul for several. */
static uint32_t named_by_fusion(const struct adv_config_source *source)
{
    static const struct {
        const char *key;
        enum adv_tensor tensor;
    } fused[] = {{"fused_mlp", ADV_TENSOR_MLPWI}, {"fused_qkv", ADV_TENSOR_QKV_PROJ}};
    uint32_t named = 0;
    for (size_t i = 0; i < sizeof fused / sizeof *fused; i++) {
        const struct adv_value *said = adv_given_find(source->given, source->given_count, fused[i].key);
        if (said && said->kind == ADV_VALUE_BOOL && said->boolean) named |= UINT32_C(1) << fused[i].tensor;
    }
    return named;
}

/* Keys that place a tensor which the model does not name, or does not read. */
static void judge_names(const struct adv_config_reader *reader)
{
    const struct adv_config_state *state = reader->state;
    const struct adv_model *model = reader->source->model;
    const uint32_t named = adv_plan_named_tensors(&state->plan, model) | named_by_fusion(reader->source);
    if (state->plan.policy != ADV_POLICY_CUSTOM) return;
    for (int k = 0; k < adv_keys_count; k++) {
        if (adv_keys[k].holds != ADV_HOLDS_PLACEMENT || !state->given[k]) continue;
        const size_t i =
            (adv_keys[k].plan_at - offsetof(struct adv_plan, placements)) / sizeof *state->plan.placements;
        const enum adv_placement said = state->plan.placements[i];
        const bool is_named = named >> i & 1u;
        const bool usual = i == ADV_TENSOR_DECODER_LAYER_INPUT && said == ADV_PLACE_DEVICE;
        if (usual || said == ADV_PLACE_REMAT ||
            (is_named && adv_plan_reads_tensor(model, (enum adv_tensor)i)))
            continue;
        (void)adv_err_add_rule(reader->warnings, ADV_OK, "placement-without-effect",
                               ADV_AT(reader->source->at, adv_keys[k].name), "leave it out",
                               is_named ? "%s %s changes nothing: the backward pass of %s does not read it"
                                        : "%s %s changes nothing: MaxText names no such tensor in %s",
                               adv_keys[k].name, adv_placement_name(said), model->name);
    }
}

/* Blocks of the flash kernel beside attention that runs none. */
static void judge_blocks(const struct adv_config_reader *reader)
{
    const struct adv_config_source *source = reader->source;
    const struct adv_plan_family *family = &reader->state->plan.family;
    const size_t first = offsetof(struct adv_plan, family.blocks);
    if (family->attention != ADV_ATTENTION_IMPL_DOT_PRODUCT) return;
    for (int k = 0; k < adv_keys_count; k++) {
        const struct adv_key *key = &adv_keys[k];
        const bool is_block = key->plan_at >= first && key->plan_at < first + sizeof family->blocks;
        if (!is_block || !adv_given_find(source->given, source->given_count, key->name)) continue;
        (void)adv_err_add_rule(reader->warnings, ADV_OK, "block-unused", ADV_AT(source->at, key->name),
                               "leave it out, or set attention flash",
                               "%s changes nothing: attention dot_product has no blocks", key->name);
    }
}

static void resolve_kernels(struct adv_config_state *state)
{
    enum { FLASH_FROM_TOKENS = 128 }; /* autoselected takes flash from here on */
    struct adv_plan *plan = &state->plan;
    bool is_flash = state->attention == ADV_CHOICE_FLASH ||
                    (state->attention == ADV_CHOICE_AUTO && plan->family.seq_len >= FLASH_FROM_TOKENS);
    plan->family.attention = is_flash ? ADV_ATTENTION_IMPL_FLASH : ADV_ATTENTION_IMPL_DOT_PRODUCT;
    plan->family.use_fused_bwd |= plan->family.use_tokamax_splash; /* the tokamax backward is always fused */
    adv_plan_clamp_blocks(plan);
    plan->family.moe = !state->sparse_matmul                         ? ADV_MOE_DENSE
                       : state->use_tokamax_gmm && state->use_gmm_v2 ? ADV_MOE_GMM_V2
                       : state->use_tokamax_gmm                      ? ADV_MOE_TOKAMAX
                       : state->megablox                             ? ADV_MOE_MEGABLOX
                                                                     : ADV_MOE_RAGGED_DOT;
}

static void resolve_pipeline(struct adv_plan *plan)
{
    int stages = adv_plan_degree(plan, ADV_AXIS_STAGE);
    if (stages == 1) return;
    if (plan->family.pipeline_microbatches < 1)
        plan->family.pipeline_microbatches =
            stages * (plan->family.pipeline_delay_activation_forwarding ? 2 : 1);
}

/* Configurations older than sparse_matmul chose the dropping path by megablox=false and a capacity factor. */
static void resolve_dropping(struct adv_config_reader *reader)
{
    struct adv_config_state *state = reader->state;
    if (!adv_model_has_experts(reader->source->model) || state->megablox ||
        state->plan.family.capacity_factor <= 0.0 || state->says_sparse_matmul)
        return;
    state->sparse_matmul = false;
    (void)adv_err_add(reader->warnings, ADV_E_INVALID, ADV_AT(reader->source->at, "capacity_factor"),
                      "set sparse_matmul=false to say so, or capacity_factor=-1 for dropless",
                      "megablox=false with capacity_factor %g and no sparse_matmul: read as the dropping "
                      "einsum path, as MaxText did "
                      "before sparse_matmul existed; today it would run ragged_dot and ignore the factor",
                      state->plan.family.capacity_factor);
}

static bool tiles(int tile, int64_t dim)
{
    return tile >= 1 && tile <= dim && dim % tile == 0;
}

/* Until April 2026 MaxText read (embed_dim, mlp_dim) of every grouped matmul as (contraction, columns); since
 * then they mean what they say. The two differ for wi dlhs, wo fwd and wo drhs, where configurations of that
 * time carry them the other way round: their tiles divide the dimensions only then. */
static void resolve_tile_order(const struct adv_config_reader *reader)
{
    static const struct {
        int matrix, pass;
        const char *key;
    } turned[] = {{0, ADV_GMM_DLHS, "wi_tile_dlhs_mlp_dim"},
                  {1, ADV_GMM_FWD, "wo_tile_fwd_mlp_dim"},
                  {1, ADV_GMM_DRHS, "wo_tile_drhs_mlp_dim"}};
    enum { TURNED = sizeof turned / sizeof *turned };
    const struct adv_model *model = reader->source->model;
    struct adv_plan *plan = &reader->state->plan;
    int64_t emb = model->emb_dim, mlp = 0;
    for (int i = 0; i < model->layer_kinds_count; i++)
        if (model->layers[i].experts > 0) mlp = model->layers[i].moe_mlp_dim;
    int first = TURNED;
    for (int i = TURNED - 1; i >= 0; i--) {
        const struct adv_gmm_blocks *tile = &plan->family.gmm_blocks[turned[i].matrix][turned[i].pass];
        bool as_named = tiles(tile->embed_dim, emb) && tiles(tile->mlp_dim, mlp);
        bool turned_round = tiles(tile->embed_dim, mlp) && tiles(tile->mlp_dim, emb);
        if (as_named && !turned_round) return;
        if (turned_round && !as_named) first = i;
    }
    if (first == TURNED) return;
    const struct adv_gmm_blocks *tile = &plan->family.gmm_blocks[turned[first].matrix][turned[first].pass];
    (void)adv_err_add_rule(
        reader->warnings, ADV_E_INVALID, "tile-names-permuted", ADV_AT(reader->source->at, turned[first].key),
        "exchange embed_dim and mlp_dim of wi_tile_dlhs, wo_tile_fwd and wo_tile_drhs for MaxText from "
        "April 2026 on",
        "embed_dim %d with mlp_dim %d divides %" PRId64 " x %" PRId64
        " only the other way round: read as (contraction, columns), as MaxText did before April 2026",
        tile->embed_dim, tile->mlp_dim, emb, mlp);
    for (int i = 0; i < TURNED; i++) {
        struct adv_gmm_blocks *swapped = &plan->family.gmm_blocks[turned[i].matrix][turned[i].pass];
        int embed_dim = swapped->embed_dim;
        swapped->embed_dim = swapped->mlp_dim;
        swapped->mlp_dim = embed_dim;
    }
}

/* Only fp8_full reads the calibration; a published run of another format with fixed scales is not known. */
static void resolve_scales(const struct adv_config_reader *reader)
{
    struct adv_plan *plan = &reader->state->plan;
    plan->family.quantization_static =
        reader->state->weight_calibration_fixed && reader->state->act_calibration_fixed;
    if (!plan->family.quantization_static || plan->family.quantization == ADV_QUANT_NONE ||
        adv_plan_scales_are_fixed(plan))
        return;
    (void)adv_err_add_rule(
        reader->warnings, ADV_OK, "ignored-calibration",
        ADV_AT(reader->source->at, "weight_quantization_calibration_method"),
        "use quantization fp8_full, or leave it out",
        "fixed scales count under quantization fp8_full only: this format is priced with a "
        "pass for its maxima");
}

/* Keys that were not given, and take the value of another. */
static void follow(struct adv_config_state *state)
{
    for (int i = 0; i < adv_keys_count; i++) {
        const struct adv_key *key = &adv_keys[i];
        if (key->follows_at == 0 || state->given[i]) continue;
        memcpy((char *)&state->plan + key->plan_at, (const char *)&state->plan + key->follows_at,
               key->plan_bytes);
    }
}

void adv_reader_resolve(struct adv_config_reader *reader)
{
    struct adv_config_state *state = reader->state;
    struct adv_plan *plan = &state->plan;
    fill_axes(reader, false, plan->family.ici, reader->source->cluster->devices_per_slice);
    fill_axes(reader, true, plan->family.dcn, reader->source->cluster->slices);
    follow(state);
    resolve_scales(reader);
    plan->family.two_stage_gather = state->moe_two_stage || state->dense_two_stage;
    resolve_remat(reader);
    resolve_dropping(reader);
    judge_fused(reader);
    resolve_kernels(state);
    judge_blocks(reader);
    judge_names(reader);
    resolve_tile_order(reader);
    resolve_pipeline(plan);
}

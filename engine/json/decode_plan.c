#include "engine/json/decode_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/json/config_state.h"
#include "engine/spec/model_build.h"

struct config_reader {
    const struct adv_decode_config_input *input;
    struct adv_config_state *state;
    adv_err *err, *warnings;
};

bool adv_decode_is_model_key(const char *name)
{
#define ADV_INTEGER_NAME(key, fallback, low, high) #key,
#define ADV_PLAIN_NAME(key)                        #key,
    static const char *const names[] = {
        ADV_MODEL_INTEGER_KEYS(ADV_INTEGER_NAME) ADV_MODEL_BOOL_KEYS(ADV_PLAIN_NAME)
            ADV_MODEL_NUMBER_KEYS(ADV_PLAIN_NAME) "decoder_block",
        "attention_type",
        "mlp_activations",
        "compress_ratios",
        "engram_layers",
    };
#undef ADV_INTEGER_NAME
#undef ADV_PLAIN_NAME
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) == 0) return true;
    }
    return false;
}

static void keep_model_key(const struct adv_catalog *catalog, const char *name, json_t *json, json_t *keys)
{
    const struct adv_catalog_key *key = adv_catalog_key(catalog, name);
    struct adv_value value;
    if (!key || !adv_decode_is_model_key(name) || json_is_null(json) ||
        adv_decode_value(key, json, "", &value, NULL) != ADV_OK)
        return;
    bool is_typed = !json_is_string(json) || value.kind == ADV_VALUE_STRING;
    (void)json_object_set_new(keys, name,
                              is_typed ? json_incref(json) : adv_decode_scalar_text(json_string_value(json)));
}

json_t *adv_decode_config_model(const struct adv_catalog *catalog, const json_t *config)
{
    json_t *keys = json_object();
    const char *name = NULL;
    json_t *json = NULL;
    if (!keys || !json_is_object(config)) return keys;
    /* Old names of dimensions (scale, base_num_heads) are told, not applied: requests that carry them have
     * the dimensions they resulted in as the model. */
    json_object_foreach((json_t *)(uintptr_t)config, name, json) keep_model_key(catalog, name, json, keys);
    return keys;
}

/* Keys whose old spelling also had other values. The rest of the renames are plain: the catalog has them. */
static const struct rewrite {
    const char *old, *current;
    const char *when_true, *when_false; /* value under the current name, NULL = leave the default */
} rewrites[] = {
    {"int8_training", "quantization", "int8", NULL},
    {"use_int8_training", "quantization", "int8", NULL},
    {"enable_profiler", "profiler", "xplane", NULL},
    {"enable_flash_attention", "attention", "flash", "dot_product"},
};

/* Values MaxText once took, and what they are called now. */
static const struct {
    const char *key, *old, *current;
} old_values[] = {
    {"remat_policy", "proj", "save_qkv_proj"},
    {"quantization", "aqt_fp8", "fp8"},
};

/* One old key that now is several. */
static const struct {
    const char *old, *suffix;
} tile_rewrites[] = {
    {"tile_batch_seq", "batch_seq"}, {"tile_embed_dim", "embed_dim"}, {"tile_mlp_dim", "mlp_dim"}};

static void apply_under(struct config_reader *reader, const char *current, const json_t *json,
                        const char *pointer)
{
    const struct adv_catalog_key *key = adv_catalog_key(reader->input->catalog, current);
    bool current_is_given = json_object_get(reader->input->config, current) != NULL;
    struct adv_value value;
    if (!key || current_is_given || adv_decode_is_model_key(current)) return;
    struct adv_config_sink sink = {pointer, reader->err, reader->warnings};
    if (adv_decode_value(key, json, pointer, &value, reader->err) == ADV_OK)
        (void)adv_config_apply(reader->state, key, &value, &sink);
}

static void apply_tile_rewrite(struct config_reader *reader, const char *suffix, const json_t *json,
                               const char *pointer)
{
    static const char *const stems[] = {"wi_tile_fwd_", "wi_tile_dlhs_", "wi_tile_drhs_",
                                        "wo_tile_fwd_", "wo_tile_dlhs_", "wo_tile_drhs_"};
    for (size_t i = 0; i < sizeof stems / sizeof *stems; i++) {
        char name[ADV_LIMIT_NAME];
        (void)snprintf(name, sizeof name, "%s%s", stems[i], suffix);
        apply_under(reader, name, json, pointer);
    }
}

/* Gives an old key its effect; returns the current name to tell, or NULL when there is none. */
static const char *apply_old(struct config_reader *reader, const char *name,
                             const struct adv_catalog_old_key *old, const json_t *json, const char *pointer)
{
    for (size_t i = 0; i < sizeof rewrites / sizeof *rewrites; i++) {
        if (strcmp(rewrites[i].old, name) != 0) continue;
        bool is_true =
            json_is_true(json) || (json_is_string(json) && strcasecmp(json_string_value(json), "true") == 0);
        const char *text = is_true ? rewrites[i].when_true : rewrites[i].when_false;
        json_t *current = text ? json_string(text) : NULL;
        if (current) apply_under(reader, rewrites[i].current, current, pointer);
        json_decref(current);
        return rewrites[i].current;
    }
    for (size_t i = 0; i < sizeof tile_rewrites / sizeof *tile_rewrites; i++) {
        if (strcmp(tile_rewrites[i].old, name) != 0) continue;
        apply_tile_rewrite(reader, tile_rewrites[i].suffix, json, pointer);
        return old && old->current ? old->current : "the wi_tile_* and wo_tile_* keys";
    }
    if (!old || !old->current) return NULL;
    apply_under(reader, old->current, json, pointer);
    return old->current;
}

static void report_unknown(const struct config_reader *reader, const char *name, const char *pointer)
{
    adv_err *into = reader->input->strict ? reader->err : reader->warnings;
    char hint[ADV_LIMIT_DETAIL] = "";
    int count = adv_catalog_keys_count(reader->input->catalog);
    const char **names = NULL;
    if (into && into->count < ADV_LIMIT_FINDINGS) names = calloc((size_t)count, sizeof *names);
    for (int i = 0; names && i < count; i++) names[i] = adv_catalog_key_at(reader->input->catalog, i)->name;
    const char *nearest = names ? adv_text_nearest(name, names, count) : NULL;
    if (nearest) (void)snprintf(hint, sizeof hint, "did you mean %s?", nearest);
    free(names);
    (void)adv_err_add(into, reader->input->strict ? ADV_E_INVALID : ADV_OK, pointer, hint,
                      "%.90s is not a MaxText key", name);
    adv_err_rule(into, "unknown-key");
}

static void read_old_key(struct config_reader *reader, const char *name, const json_t *json,
                         const char *pointer)
{
    const struct adv_catalog_old_key *old = adv_catalog_old_key(reader->input->catalog, name);
    const char *current = apply_old(reader, name, old, json, pointer);
    if (!old && !current) {
        report_unknown(reader, name, pointer);
        return;
    }
    adv_err *into = reader->input->strict ? reader->err : reader->warnings;
    char hint[ADV_LIMIT_DETAIL] = "leave it out";
    if (current) (void)snprintf(hint, sizeof hint, "use %s", current);
    (void)adv_err_add(into, reader->input->strict ? ADV_E_INVALID : ADV_OK, pointer, hint,
                      "MaxText has no key %s%s%s", name, old && *old->why ? ": " : "", old ? old->why : "");
    adv_err_rule(into, current ? "renamed-key" : "dropped-key");
}

/* A key the model's own file sets to something else: MaxText wants override_model_config for that. */
static void check_model_conflict(struct config_reader *reader, const char *name, const json_t *json,
                                 const char *pointer)
{
    const json_t *pinned = json_object_get(reader->input->model_defaults, name);
    if (!pinned || json_is_true(json_object_get(reader->input->config, "override_model_config"))) return;
    if (adv_json_same_value(pinned, json)) return;
    (void)adv_err_add(reader->warnings, ADV_E_ILLEGAL, pointer, "set override_model_config true",
                      "the model's own configuration sets %s to another value", name);
    adv_err_rule(reader->warnings, "model-key-conflict");
}

/* The present name of an old value, with a finding; NULL when the value is none. */
static const char *current_value(const struct config_reader *reader, const char *name, const json_t *json,
                                 const char *pointer)
{
    const char *text = json_string_value(json);
    for (size_t i = 0; text && i < sizeof old_values / sizeof *old_values; i++) {
        if (strcmp(old_values[i].key, name) != 0 || strcmp(old_values[i].old, text) != 0) continue;
        char hint[ADV_LIMIT_DETAIL];
        (void)snprintf(hint, sizeof hint, "use %s", old_values[i].current);
        adv_err *into = reader->input->strict ? reader->err : reader->warnings;
        (void)adv_err_add(into, reader->input->strict ? ADV_E_INVALID : ADV_OK, pointer, hint,
                          "%s no longer takes \"%s\"", name, text);
        adv_err_rule(into, "renamed-value");
        return old_values[i].current;
    }
    return NULL;
}

static void read_key(struct config_reader *reader, const char *name, const json_t *json)
{
    char pointer[ADV_LIMIT_POINTER];
    (void)adv_json_pointer(pointer, reader->input->at, name);
    const struct adv_catalog_key *key = adv_catalog_key(reader->input->catalog, name);
    struct adv_value value;
    if (!key) {
        read_old_key(reader, name, json, pointer);
        return;
    }
    if (key->derived) {
        (void)adv_err_add(reader->warnings, ADV_OK, pointer, "leave it out",
                          "MaxText computes %s itself: the value is overwritten", name);
        adv_err_rule(reader->warnings, "derived-key");
        return;
    }
    check_model_conflict(reader, name, json, pointer);
    const char *renamed = current_value(reader, name, json, pointer);
    json_t *current = renamed ? json_string(renamed) : NULL;
    if (current) json = current;
    struct adv_config_sink sink = {pointer, reader->err, reader->warnings};
    if (adv_decode_value(key, json, pointer, &value, reader->err) == ADV_OK && !adv_decode_is_model_key(name))
        (void)adv_config_apply(reader->state, key, &value, &sink);
    json_decref(current);
}

static void read_model_defaults(struct config_reader *reader)
{
    json_t *defaults = (json_t *)(uintptr_t)reader->input->model_defaults;
    struct adv_config_sink silent = {"", NULL, NULL};
    for (void *at = json_object_iter(defaults); at; at = json_object_iter_next(defaults, at)) {
        const struct adv_catalog_key *key = adv_catalog_key(reader->input->catalog, json_object_iter_key(at));
        struct adv_value value;
        if (!key || adv_decode_is_model_key(key->name)) continue;
        if (adv_decode_value(key, json_object_iter_value(at), "", &value, NULL) != ADV_OK) continue;
        (void)adv_config_apply(reader->state, key, &value, &silent);
    }
}

static void keep_entry(const struct config_reader *reader, struct adv_config *config, const char *name,
                       const json_t *json)
{
    if (!config) return;
    if (config->count == ADV_LIMIT_CONFIG_KEYS) return; /* said once, by adv_decode_config */
    char *text = json_dumps(json, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(12));
    struct adv_config_entry entry = {adv_arena_copy(reader->input->arena, name),
                                     text ? adv_arena_copy(reader->input->arena, text) : NULL};
    free(text);
    if (!entry.key || !entry.value_json) {
        (void)adv_err_add(reader->err, ADV_E_MEMORY, "", NULL, "the request is too large");
        return;
    }
    config->entries[config->count++] = entry;
}

static void warn_axis(const struct config_reader *reader, const char *stem, enum adv_axis axis, int degree,
                      const char *why)
{
    char member[ADV_LIMIT_NAME];
    char pointer[ADV_LIMIT_POINTER];
    (void)snprintf(member, sizeof member, "%s_%s_parallelism", stem, adv_axis_key(axis));
    (void)adv_err_add(reader->warnings, ADV_OK, adv_json_pointer(pointer, reader->input->at, member),
                      axis == ADV_AXIS_SEQUENCE ? "sequences are split by ici_context_parallelism today"
                                                : "leave it out",
                      "%s %d is ignored: %s", member, degree, why);
    adv_err_rule(reader->warnings, "ignored-axis");
}

void adv_decode_explain_batch(adv_err *err, const adv_err *warnings)
{
    for (int i = 0; i < err->count; i++) {
        struct adv_finding *refused = &err->findings[i];
        if (!refused->rule || strcmp(refused->rule, "batch-by-shards") != 0) continue;
        for (int k = 0; k < warnings->count; k++) {
            const struct adv_finding *ignored = &warnings->findings[k];
            size_t used = strlen(refused->hint);
            if (!ignored->rule || strcmp(ignored->rule, "ignored-axis") != 0) continue;
            (void)snprintf(refused->hint + used, sizeof refused->hint - used, "; %s (%s)", ignored->detail,
                           ignored->hint);
        }
    }
}

/* Fills the one -1 so that the degrees multiply to `total`. When they cannot, the -1 becomes the nearest
 * whole number below and adv_plan_check says what the product is. */
static void fill_axes(const struct config_reader *reader, const char *stem, int degrees[ADV_AXIS_COUNT],
                      int total)
{
    int unfilled = -1;
    double product = 1;
    char pointer[ADV_LIMIT_POINTER];
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        enum adv_axis axis = (enum adv_axis)i;
        bool is_default = strcmp(stem, "ici") == 0 && axis == ADV_AXIS_FSDP && degrees[i] == -1;
        if (!adv_plan_axis_in_mesh(reader->state->plan.rule, reader->input->model, axis)) {
            if (degrees[i] != 1 && !is_default && !(strcmp(stem, "dcn") == 0 && degrees[i] == -1)) {
                warn_axis(reader, stem, axis, degrees[i],
                          "the axis is not in the mesh of this configuration");
            }
            degrees[i] = 1;
        } else if (degrees[i] == -1 && unfilled < 0) {
            unfilled = i;
        } else if (degrees[i] == -1 && total == 1) {
            degrees[i] = 1; /* one slice: MaxText does not look at the dcn axes */
        } else if (degrees[i] == -1) {
            char member[ADV_LIMIT_NAME];
            (void)snprintf(member, sizeof member, "%s_%s_parallelism", stem, adv_axis_key(axis));
            (void)adv_err_add(reader->err, ADV_E_ILLEGAL,
                              adv_json_pointer(pointer, reader->input->at, member),
                              "give one of the two a number (ici_fsdp_parallelism and dcn_data_parallelism "
                              "are -1 by default)",
                              "%s and %s_%s_parallelism are both -1: only one axis can take what is left",
                              member, stem, adv_axis_key((enum adv_axis)unfilled));
            degrees[i] = 1;
        } else {
            product *= degrees[i];
        }
    }
    if (product > 1 << 24) {
        (void)adv_err_add(reader->err, ADV_E_RANGE, reader->input->at, NULL,
                          "the %s axes multiply to %.6g devices; there are %d", stem, product, total);
        for (int i = 0; i < ADV_AXIS_COUNT; i++) degrees[i] = 1;
        degrees[strcmp(stem, "ici") == 0 ? ADV_AXIS_FSDP : ADV_AXIS_DATA] = total;
        return;
    }
    if (unfilled >= 0) degrees[unfilled] = product < total ? (int)(total / product) : 1;
}

static void resolve_remat(const struct config_reader *reader)
{
    struct adv_config_state *state = reader->state;
    adv_policy_placements(state->plan.policy, state->plan.placements);
    for (int i = 0; i < ADV_TENSOR_COUNT; i++) {
        if (!state->placement_given[i]) continue;
        if (state->plan.policy == ADV_POLICY_CUSTOM) {
            bool stays = i == ADV_TENSOR_DECODER_LAYER_INPUT && state->placements[i] == ADV_PLACE_REMAT;
            state->plan.placements[i] = stays ? ADV_PLACE_DEVICE : state->placements[i];
            continue;
        }
        if (state->placements[i] == state->plan.placements[i] || state->placements[i] == ADV_PLACE_REMAT)
            continue;
        char pointer[ADV_LIMIT_POINTER];
        const char *name = adv_tensor_name((enum adv_tensor)i);
        bool refused = reader->input->binding;
        adv_err *findings = refused ? reader->err : reader->warnings;
        (void)adv_err_add(findings, refused ? ADV_E_INVALID : ADV_OK,
                          adv_json_pointer(pointer, reader->input->at, name),
                          refused ? "remat_policy=custom lets it hold" : "set remat_policy custom",
                          "%s %s is ignored under remat_policy %s", name,
                          adv_placement_name(state->placements[i]), adv_policy_name(state->plan.policy));
        adv_err_rule(findings, "ignored-placement");
    }
}

static void resolve_kernels(struct adv_config_state *state)
{
    enum { FLASH_FROM_TOKENS = 128 }; /* autoselected takes flash from here on */
    struct adv_plan *plan = &state->plan;
    bool is_flash = state->attention == ADV_CHOICE_FLASH ||
                    (state->attention == ADV_CHOICE_AUTO && plan->seq_len >= FLASH_FROM_TOKENS);
    plan->attention = is_flash ? ADV_ATTENTION_IMPL_FLASH : ADV_ATTENTION_IMPL_DOT_PRODUCT;
    plan->use_fused_bwd |= plan->use_tokamax_splash; /* the tokamax backward is always fused */
    struct adv_splash_blocks *local = &plan->blocks[1];
    *local = plan->blocks[0];
    int *const blocks[8] = {&local->block_q,     &local->block_kv,     &local->block_kv_compute,
                            &local->block_q_dkv, &local->block_kv_dkv, &local->block_kv_dkv_compute,
                            &local->block_q_dq,  &local->block_kv_dq};
    for (int i = 0; i < 8; i++) {
        if (state->local_blocks[i] > 0) *blocks[i] = state->local_blocks[i];
    }
    adv_plan_clamp_blocks(plan);
    plan->moe = !state->sparse_matmul                         ? ADV_MOE_DENSE
                : state->use_tokamax_gmm && state->use_gmm_v2 ? ADV_MOE_GMM_V2
                : state->use_tokamax_gmm                      ? ADV_MOE_TOKAMAX
                : state->megablox                             ? ADV_MOE_MEGABLOX
                                                              : ADV_MOE_RAGGED_DOT;
}

static void resolve_pipeline(struct adv_plan *plan)
{
    int stages = adv_plan_degree(plan, ADV_AXIS_STAGE);
    if (stages == 1) return;
    if (plan->pipeline_microbatches < 1)
        plan->pipeline_microbatches = stages * (plan->pipeline_delay_activation_forwarding ? 2 : 1);
}

/* Configurations older than sparse_matmul chose the dropping path by megablox=false and a capacity factor. */
static void resolve_dropping(struct config_reader *reader)
{
    struct adv_config_state *state = reader->state;
    bool has_experts = false;
    for (int i = 0; i < reader->input->model->layer_kinds_count; i++)
        has_experts |= reader->input->model->layers[i].experts > 0;
    if (!has_experts || state->megablox || state->plan.capacity_factor <= 0.0 || state->sparse_matmul_given)
        return;
    state->sparse_matmul = false;
    char pointer[ADV_LIMIT_POINTER];
    (void)adv_err_add(reader->warnings, ADV_E_INVALID,
                      adv_json_pointer(pointer, reader->input->at, "capacity_factor"),
                      "set sparse_matmul=false to say so, or capacity_factor=-1 for dropless",
                      "megablox=false with capacity_factor %g and no sparse_matmul: read as the dropping "
                      "einsum path, as MaxText did "
                      "before sparse_matmul existed; today it would run ragged_dot and ignore the factor",
                      state->plan.capacity_factor);
}

static bool tiles(int tile, int64_t dim)
{
    return tile >= 1 && tile <= dim && dim % tile == 0;
}

/* Until April 2026 MaxText read (embed_dim, mlp_dim) of every grouped matmul as (contraction, columns); since
 * then they mean what they say. The two differ for wi dlhs, wo fwd and wo drhs, where configurations of that
 * time carry them the other way round: their tiles divide the dimensions only then. */
static void resolve_tile_order(const struct config_reader *reader)
{
    static const struct {
        int matrix, pass;
        const char *key;
    } turned[] = {{0, ADV_GMM_DLHS, "wi_tile_dlhs_mlp_dim"},
                  {1, ADV_GMM_FWD, "wo_tile_fwd_mlp_dim"},
                  {1, ADV_GMM_DRHS, "wo_tile_drhs_mlp_dim"}};
    enum { TURNED = sizeof turned / sizeof *turned };
    const struct adv_model *model = reader->input->model;
    struct adv_plan *plan = &reader->state->plan;
    int64_t emb = model->emb_dim, mlp = 0;
    for (int i = 0; i < model->layer_kinds_count; i++)
        if (model->layers[i].experts > 0) mlp = model->layers[i].moe_mlp_dim;
    int first = TURNED;
    for (int i = TURNED - 1; i >= 0; i--) {
        const struct adv_gmm_blocks *tile = &plan->gmm_blocks[turned[i].matrix][turned[i].pass];
        bool as_named = tiles(tile->embed_dim, emb) && tiles(tile->mlp_dim, mlp);
        bool turned_round = tiles(tile->embed_dim, mlp) && tiles(tile->mlp_dim, emb);
        if (as_named && !turned_round) return;
        if (turned_round && !as_named) first = i;
    }
    if (first == TURNED) return;
    const struct adv_gmm_blocks *tile = &plan->gmm_blocks[turned[first].matrix][turned[first].pass];
    char pointer[ADV_LIMIT_POINTER];
    (void)adv_err_add(
        reader->warnings, ADV_E_INVALID, adv_json_pointer(pointer, reader->input->at, turned[first].key),
        "exchange embed_dim and mlp_dim of wi_tile_dlhs, wo_tile_fwd and wo_tile_drhs for MaxText from "
        "April 2026 on",
        "embed_dim %d with mlp_dim %d divides %" PRId64 " x %" PRId64
        " only the other way round: read as (contraction, columns), as MaxText did before April 2026",
        tile->embed_dim, tile->mlp_dim, emb, mlp);
    adv_err_rule(reader->warnings, "tile-names-permuted");
    for (int i = 0; i < TURNED; i++) {
        struct adv_gmm_blocks *swapped = &plan->gmm_blocks[turned[i].matrix][turned[i].pass];
        int embed_dim = swapped->embed_dim;
        swapped->embed_dim = swapped->mlp_dim;
        swapped->mlp_dim = embed_dim;
    }
}

/* Only fp8_full reads the calibration; a published run of another format with fixed scales is not known. */
static void resolve_scales(const struct config_reader *reader)
{
    struct adv_plan *plan = &reader->state->plan;
    plan->quantization_static =
        reader->state->weight_calibration_fixed && reader->state->act_calibration_fixed;
    if (!plan->quantization_static || plan->quantization == ADV_QUANT_NONE || adv_plan_scales_are_fixed(plan))
        return;
    char pointer[ADV_LIMIT_POINTER];
    (void)adv_err_add(reader->warnings, ADV_OK,
                      adv_json_pointer(pointer, reader->input->at, "weight_quantization_calibration_method"),
                      "use quantization fp8_full, or leave it out",
                      "fixed scales count under quantization fp8_full only: this format is priced with a "
                      "pass for its maxima");
    adv_err_rule(reader->warnings, "ignored-calibration");
}

static void resolve(struct config_reader *reader)
{
    struct adv_config_state *state = reader->state;
    struct adv_plan *plan = &state->plan;
    fill_axes(reader, "ici", plan->ici, reader->input->cluster->devices_per_slice);
    fill_axes(reader, "dcn", plan->dcn, reader->input->cluster->slices);
    if (!state->mu_dtype_given) plan->mu_dtype = plan->weight_dtype;
    resolve_scales(reader);
    plan->two_stage_gather = state->moe_two_stage || state->dense_two_stage;
    resolve_remat(reader);
    resolve_dropping(reader);
    resolve_kernels(state);
    resolve_tile_order(reader);
    resolve_pipeline(plan);
}

static void read_given_key(struct config_reader *reader, const char *name, const json_t *json)
{
    read_key(reader, name, json);
    if (strcmp(name, "sparse_matmul") == 0) reader->state->sparse_matmul_given = true;
}

void adv_decode_config_keys(const struct adv_decode_config_input *input, struct adv_config_state *state)
{
    adv_err findings;
    adv_err_init(&findings);
    struct config_reader reader = {input, state, &findings, &findings};
    adv_config_state_init(state, input->model);
    read_model_defaults(&reader);
    json_t *json = (json_t *)(uintptr_t)input->config;
    for (void *at = json_object_iter(json); at; at = json_object_iter_next(json, at))
        read_given_key(&reader, json_object_iter_key(at), json_object_iter_value(at));
}

adv_code adv_decode_config_over(const struct adv_decode_config_input *input,
                                const struct adv_config_state *state, const struct adv_config_change *changes,
                                int changes_count, struct adv_plan *plan)
{
    struct adv_config_state changed = *state;
    adv_err err, warnings;
    adv_err_init(&err);
    adv_err_init(&warnings);
    struct config_reader reader = {input, &changed, &err, &warnings};
    for (int i = 0; i < changes_count; i++) {
        json_t *value = json_loads(changes[i].to_json, JSON_DECODE_ANY, NULL);
        if (value) read_given_key(&reader, changes[i].key, value);
        json_decref(value);
    }
    resolve(&reader);
    *plan = changed.plan;
    return err.count > 0 ? err.code : ADV_OK;
}

adv_code adv_decode_config(const struct adv_decode_config_input *input, struct adv_plan *plan,
                           struct adv_config *config, adv_err *err, adv_err *warnings)
{
    struct adv_config_state state;
    struct config_reader reader = {input, &state, err, warnings};
    int errors_before = err->count + err->lost_count;
    adv_config_state_init(&state, input->model);
    if (config) config->count = 0;
    read_model_defaults(&reader);
    json_t *json = (json_t *)(uintptr_t)input->config;
    if (json && !json_is_null(json) && !json_is_object(json)) {
        (void)adv_err_add(err, ADV_E_INVALID, input->at, NULL, "must be an object of MaxText keys, not %s",
                          adv_json_type_name(json));
    }
    if (json_object_size(json) > ADV_LIMIT_CONFIG_KEYS) {
        (void)adv_err_add(err, ADV_E_TOO_LARGE, input->at, NULL, "%zu keys; at most %d",
                          json_object_size(json), ADV_LIMIT_CONFIG_KEYS);
    }
    for (void *at = json_object_iter(json); at; at = json_object_iter_next(json, at)) {
        read_given_key(&reader, json_object_iter_key(at), json_object_iter_value(at));
        keep_entry(&reader, config, json_object_iter_key(at), json_object_iter_value(at));
    }
    resolve(&reader);
    *plan = state.plan;
    return err->count + err->lost_count > errors_before ? err->code : ADV_OK;
}

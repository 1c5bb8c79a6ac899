#include "engine/json/encode_kernel.h"

#include <math.h>
#include <stdio.h>

#include "engine/base/units.h"
#include "engine/json/encode_timeline.h"

static json_t *encode_attention_tile(enum adv_kernel kernel, const struct adv_attention_tile *tile)
{
    json_t *object = json_object();
    const struct adv_splash_blocks *blocks = &tile->blocks;
    if (kernel == ADV_KERNEL_SPLASH_FWD || kernel == ADV_KERNEL_SPLASH_FWD_RESIDUALS) {
        adv_encode_set_integer(object, "block_q", blocks->block_q);
        adv_encode_set_integer(object, "block_kv", blocks->block_kv);
        adv_encode_set_integer(object, "block_kv_compute", blocks->block_kv_compute);
    } else if (kernel == ADV_KERNEL_SPLASH_BWD_DQ) {
        adv_encode_set_integer(object, "block_q_dq", blocks->block_q_dq);
        adv_encode_set_integer(object, "block_kv_dq", blocks->block_kv_dq);
    } else {
        adv_encode_set_integer(object, "block_q_dkv", blocks->block_q_dkv);
        adv_encode_set_integer(object, "block_kv_dkv", blocks->block_kv_dkv);
        adv_encode_set_integer(object, "block_kv_dkv_compute", blocks->block_kv_dkv_compute);
    }
    adv_encode_set_string(object, "q_layout", adv_layout_name(tile->q_layout));
    adv_encode_set_string(object, "k_layout", adv_layout_name(tile->k_layout));
    adv_encode_set_string(object, "v_layout", adv_layout_name(tile->v_layout));
    return object;
}

json_t *adv_encode_tile(enum adv_kernel kernel, const struct adv_kernel_choice *choice)
{
    if (adv_kernel_is_attention(kernel)) return encode_attention_tile(kernel, &choice->attention);
    json_t *object = json_object();
    if (adv_kernel_is_gmm(kernel)) {
        adv_encode_set_integer(object, "tile_m", choice->gmm.tile_m);
        adv_encode_set_integer(object, "tile_k", choice->gmm.tile_k);
        adv_encode_set_integer(object, "tile_n", choice->gmm.tile_n);
        adv_encode_set_integer(object, "input_buffer_count", choice->gmm.input_buffer_count);
    } else {
        adv_encode_set_integer(object, "b_block", choice->xent.b_block);
        adv_encode_set_integer(object, "h_block", choice->xent.h_block);
        adv_encode_set_integer(object, "v_block", choice->xent.v_block);
    }
    return object;
}

int adv_kernel_vmem_parts(const struct adv_kernel_request *request,
                          struct adv_vmem_part parts[ADV_VMEM_PARTS])
{
    if (adv_kernel_is_attention(request->kernel))
        return adv_vmem_splash_parts(request->kernel, &request->attention, &request->attention_tile, parts);
    if (adv_kernel_is_gmm(request->kernel))
        return request->gmm.version == 2 ? 0
                                         : adv_vmem_gmm_parts(&request->chip->chip, request->kernel,
                                                              &request->gmm, &request->gmm_tile, parts);
    return adv_kernel_is_xla(request->kernel)
               ? 0
               : adv_vmem_xent_parts(request->kernel, &request->xent_tile, parts);
}

static json_t *encode_vmem_parts(const struct adv_kernel_request *request)
{
    struct adv_vmem_part parts[ADV_VMEM_PARTS];
    const int count = adv_kernel_vmem_parts(request, parts);
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        json_t *part = json_object();
        adv_encode_set_string(part, "name", parts[i].name);
        adv_encode_set_number(part, "bytes", round(parts[i].bytes));
        (void)json_array_append_new(list, part);
    }
    return list;
}

static json_t *encode_warnings(const adv_err *warnings)
{
    return warnings ? adv_encode_findings(warnings) : json_array();
}

/* Null where the kernel has no tiles of the caller's. */
static json_t *encode_simulated_keys(const struct adv_kernel_request *request)
{
    if (adv_kernel_is_gmm(request->kernel) && request->gmm.version == 2) return json_null();
    const struct adv_kernel_choice choice = {.attention = request->attention_tile, .gmm = request->gmm_tile};
    return adv_encode_maxtext_tiles(request, &choice);
}

json_t *adv_encode_simulation(const struct adv_catalog *catalog, const struct adv_kernel_request *request,
                              const struct adv_kernel_time *time, const struct adv_timeline *timeline,
                              const adv_err *warnings)
{
    json_t *object = json_object();
    json_t *parts = json_array();
    for (int i = 0; i < time->parts_count; i++) {
        json_t *part = json_object();
        adv_encode_set_string(part, "name", time->parts[i].name);
        adv_encode_set_number(part, "us", time->parts[i].time_s / ADV_US);
        (void)json_array_append_new(parts, part);
    }
    adv_encode_set_string(object, "chip", request->chip->chip.name);
    adv_encode_set_string(object, "kernel", adv_kernel_name(request->kernel));
    adv_encode_set_number(object, "time_us", time->time_s / ADV_US);
    (void)json_object_set_new(object, "fits_vmem", json_boolean(time->fits_vmem));
    adv_encode_set_number(object, "vmem_bytes", round(time->vmem_bytes));
    adv_encode_set_number(object, "vmem_limit_bytes", round(time->vmem_limit_bytes));
    adv_encode_set_number(
        object, "scoped_vmem_limit_needed_kib",
        time->vmem_bytes > 0.0
            ? adv_vmem_needed_limit_kib(&request->chip->chip, request->kernel, time->vmem_bytes)
            : (double)NAN); /* XLA fits its own operations itself */
    (void)json_object_set_new(object, "vmem_parts", encode_vmem_parts(request));
    adv_encode_set_number(object, "grid_steps", time->grid_steps);
    adv_encode_set_string(object, "bound", adv_resource_name(time->bound));
    adv_encode_set_number(object, "mxu_busy_us", time->mxu_busy_s / ADV_US);
    adv_encode_set_number(object, "hbm_bytes", round(time->hbm_bytes));
    (void)json_object_set_new(object, "parts", parts);
    (void)json_object_set_new(object, "extrapolated", json_boolean(time->extrapolated));
    (void)json_object_set_new(object, "maxtext_keys", encode_simulated_keys(request));
    (void)json_object_set_new(object, "warnings", encode_warnings(warnings));
    if (timeline && request->timeline)
        (void)json_object_set_new(object, "timeline", adv_encode_timeline(timeline, time));
    if (timeline && request->trace)
        (void)json_object_set_new(object, "trace",
                                  adv_encode_kernel_trace(timeline, time, adv_kernel_name(request->kernel)));
    (void)json_object_set_new(object, "engine", adv_encode_engine(catalog));
    return object;
}

static json_t *encode_choice(enum adv_kernel kernel, const struct adv_kernel_choice *choice)
{
    json_t *object = json_object();
    (void)json_object_set_new(object, "tile", adv_encode_tile(kernel, choice));
    adv_encode_set_number(object, "time_us", choice->time.time_s / ADV_US);
    adv_encode_set_number(object, "vmem_bytes", round(choice->time.vmem_bytes));
    (void)json_object_set_new(object, "fits_vmem", json_boolean(choice->time.fits_vmem));
    adv_encode_set_string(object, "bound", adv_resource_name(choice->time.bound));
    return object;
}

static json_t *encode_ranked(enum adv_kernel kernel, const struct adv_kernel_choice *choice)
{
    json_t *object = encode_choice(kernel, choice);
    adv_encode_set_number(object, "chance_frac", choice->chance_frac);
    return object;
}

static json_t *attention_keys(enum adv_kernel kernel, const struct adv_attention_tile *tile)
{
    json_t *keys = json_object(), *blocks = encode_attention_tile(kernel, tile);
    const char *name;
    json_t *value;
    json_object_foreach(blocks, name, value)
    {
        char key[ADV_LIMIT_NAME];
        (void)snprintf(key, sizeof key, "sa_%s", name);
        (void)json_object_set(keys, key, value);
    }
    json_decref(blocks);
    return keys;
}

/* The contraction of wi is the embedding, that of wo the mlp dimension; in the data gradient the other way
 * round. */
static json_t *gmm_keys(const struct adv_kernel_request *request, const struct adv_gmm_tile *tile, bool wi)
{
    const bool dlhs = request->kernel == ADV_KERNEL_GMM && request->gmm.rhs_transposed;
    const char *pass = request->kernel == ADV_KERNEL_TGMM ? "drhs" : dlhs ? "dlhs" : "fwd";
    const bool embed_first = wi != dlhs;
    const struct {
        const char *name;
        int value;
    } axes[] = {{"batch_seq", tile->tile_m},
                {"embed_dim", embed_first ? tile->tile_k : tile->tile_n},
                {"mlp_dim", embed_first ? tile->tile_n : tile->tile_k}};
    json_t *keys = json_object();
    for (int i = 0; i < 3; i++) {
        char key[ADV_LIMIT_NAME];
        (void)snprintf(key, sizeof key, "%s_tile_%s_%s", wi ? "wi" : "wo", pass, axes[i].name);
        adv_encode_set_integer(keys, key, axes[i].value);
    }
    return keys;
}

json_t *adv_encode_maxtext_tiles(const struct adv_kernel_request *request,
                                 const struct adv_kernel_choice *choice)
{
    if (adv_kernel_is_attention(request->kernel))
        return json_pack("{s:o}", "attention", attention_keys(request->kernel, &choice->attention));
    if (!adv_kernel_is_gmm(request->kernel)) return json_null();
    return json_pack("{s:o,s:o}", "wi", gmm_keys(request, &choice->gmm, true), "wo",
                     gmm_keys(request, &choice->gmm, false));
}

static json_t *encode_short_list(const struct adv_kernel_request *request,
                                 const struct adv_kernel_tuning *tuning)
{
    json_t *list = json_array();
    for (int i = 0; i < tuning->short_list_count; i++) {
        const struct adv_kernel_listed *listed = &tuning->short_list[i];
        json_t *entry = encode_choice(request->kernel, &listed->best), *others = json_array();
        for (int k = 0; k < listed->others_count; k++)
            (void)json_array_append_new(others, encode_choice(request->kernel, &listed->others[k]));
        (void)json_object_set_new(entry, "near_equal", others);
        (void)json_array_append_new(list, entry);
    }
    return list;
}

/* Why the ranked tiles have the layouts they have; null where the kernel has none. */
static json_t *encode_layouts(const struct adv_kernel_request *request)
{
    static const char *const simulated =
        "heads that 128 does not divide leave lanes empty when they lie along them: with the sequence along "
        "the lanes fewer bytes move and less VMEM is held";
    static const char *const assumed =
        "heads of whole lanes cost the same in every layout that the model knows: these are the commonest of "
        "published winners (the keys' is a toss-up on tpu7x and v5p, nearly always HEAD_DIM_MINOR on v6e); "
        "simulate takes and prices any";
    static const char *const backward =
        "the backward kernels are priced alike in every layout: MaxText has one set of keys for both "
        "directions, so these are the forward kernel's";
    const enum adv_kernel kernel = request->kernel;
    const struct adv_attention_shape *shape = &request->attention;
    if (!adv_kernel_is_attention(kernel)) return json_null();
    const bool forward = kernel == ADV_KERNEL_SPLASH_FWD || kernel == ADV_KERNEL_SPLASH_FWD_RESIDUALS;
    const bool padded = shape->head_dim_qk % 128 || shape->head_dim_v % 128;
    json_t *object = json_object();
    adv_encode_set_string(object, "decided_by", forward && padded ? "simulation" : "default");
    adv_encode_set_string(object, "why", !forward ? backward : padded ? simulated : assumed);
    return object;
}

static json_t *encode_next(const struct adv_kernel_request *request, const struct adv_kernel_tuning *tuning)
{
    if (!tuning->has_next) return json_null();
    json_t *object = encode_choice(request->kernel, &tuning->next);
    (void)json_object_set_new(object, "fits_vmem", json_true()); /* under that limit */
    adv_encode_set_number(object, "scoped_vmem_limit_kib", tuning->next_limit_kib);
    return object;
}

json_t *adv_encode_tuning(const struct adv_catalog *catalog, const struct adv_kernel_request *request,
                          const struct adv_kernel_tuning *tuning, const adv_err *warnings)
{
    json_t *object = json_object();
    json_t *ranked = json_array();
    json_t *search = json_object();
    for (int i = 0; i < tuning->choices_count; i++)
        (void)json_array_append_new(ranked, encode_ranked(request->kernel, &tuning->choices[i]));
    adv_encode_set_integer(search, "evaluated", tuning->evaluated_count);
    (void)json_object_set_new(search, "exhaustive", json_true());
    adv_encode_set_string(object, "chip", request->chip->chip.name);
    adv_encode_set_string(object, "kernel", adv_kernel_name(request->kernel));
    (void)json_object_set_new(object, "ranked", ranked);
    (void)json_object_set_new(object, "layouts", encode_layouts(request));
    (void)json_object_set_new(object, "default",
                              tuning->has_standard ? encode_choice(request->kernel, &tuning->standard)
                                                   : json_null());
    (void)json_object_set_new(object, "next_better", encode_next(request, tuning));
    (void)json_object_set_new(
        object, "maxtext_keys",
        tuning->choices_count > 0 ? adv_encode_maxtext_tiles(request, &tuning->choices[0]) : json_null());
    (void)json_object_set_new(object, "short_list", encode_short_list(request, tuning));
    (void)json_object_set_new(object, "sweep", adv_encode_sweep(request, tuning));
    (void)json_object_set_new(object, "search", search);
    (void)json_object_set_new(object, "warnings", encode_warnings(warnings));
    (void)json_object_set_new(object, "engine", adv_encode_engine(catalog));
    return object;
}

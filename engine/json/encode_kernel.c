#include "engine/json/encode_kernel.h"

#include <math.h>

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

static json_t *encode_tile(enum adv_kernel kernel, const struct adv_kernel_choice *choice)
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

json_t *adv_encode_simulation(const struct adv_catalog *catalog, const struct adv_kernel_request *request,
                              const struct adv_kernel_time *time, const struct adv_timeline *timeline)
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
    adv_encode_set_number(object, "grid_steps", time->grid_steps);
    adv_encode_set_string(object, "bound", adv_resource_name(time->bound));
    adv_encode_set_number(object, "mxu_busy_us", time->mxu_busy_s / ADV_US);
    adv_encode_set_number(object, "hbm_bytes", round(time->hbm_bytes));
    (void)json_object_set_new(object, "parts", parts);
    (void)json_object_set_new(object, "extrapolated", json_boolean(time->extrapolated));
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
    (void)json_object_set_new(object, "tile", encode_tile(kernel, choice));
    adv_encode_set_number(object, "time_us", choice->time.time_s / ADV_US);
    adv_encode_set_number(object, "vmem_bytes", round(choice->time.vmem_bytes));
    (void)json_object_set_new(object, "fits_vmem", json_boolean(choice->time.fits_vmem));
    adv_encode_set_string(object, "bound", adv_resource_name(choice->time.bound));
    return object;
}

json_t *adv_encode_tuning(const struct adv_catalog *catalog, const struct adv_kernel_request *request,
                          const struct adv_kernel_choice *choices, int choices_count,
                          const struct adv_kernel_choice *standard, long evaluated_count)
{
    json_t *object = json_object();
    json_t *ranked = json_array();
    json_t *search = json_object();
    for (int i = 0; i < choices_count; i++)
        (void)json_array_append_new(ranked, encode_choice(request->kernel, &choices[i]));
    adv_encode_set_integer(search, "evaluated", evaluated_count);
    (void)json_object_set_new(search, "exhaustive", json_true());
    adv_encode_set_string(object, "chip", request->chip->chip.name);
    adv_encode_set_string(object, "kernel", adv_kernel_name(request->kernel));
    (void)json_object_set_new(object, "ranked", ranked);
    (void)json_object_set_new(object, "default",
                              standard ? encode_choice(request->kernel, standard) : json_null());
    (void)json_object_set_new(object, "search", search);
    (void)json_object_set_new(object, "engine", adv_encode_engine(catalog));
    return object;
}

#include "engine/json/encode_estimate.h"
#include "engine/json/json_load.h"
#include "engine/maxtext/names.h"

#include <math.h>

static json_t *encode_time_parts(const struct adv_ledger *ledger)
{
    json_t *list = json_array();
    for (int i = 0; ledger && i < ledger->terms_count; i++) {
        const struct adv_term *term = &ledger->terms[i];
        json_t *row = json_object();
        ADV_SET(row, term, name, seconds);
        adv_encode_set_string(row, "resource", adv_resource_name(term->resource));
        ADV_SET(row, term, exposed_seconds, count);
        if (term->flops_per_device > 0)
            adv_encode_set_number(row, "flops_per_device", term->flops_per_device);
        if (term->bytes_per_device > 0)
            adv_encode_set_number(row, "bytes_per_device", term->bytes_per_device);
        ADV_SET(row, term, formula, source);
        (void)json_array_append_new(list, row);
    }
    return list;
}

static json_t *encode_hbm_parts(const struct adv_ledger *ledger)
{
    json_t *list = json_array();
    for (int i = 0; ledger && i < ledger->memory_count; i++) {
        const struct adv_memory_part *part = &ledger->memory[i];
        json_t *row = json_object();
        adv_encode_set_string(row, "name", part->name);
        adv_encode_set_number(row, "bytes", round(part->bytes_per_device));
        adv_encode_set_string(row, "at", adv_memory_at_name(part->at));
        (void)json_array_append_new(list, row);
    }
    return list;
}

static json_t *encode_mesh(const struct adv_mesh *mesh)
{
    json_t *list = json_array();
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        const struct adv_axis_placement *placement = &mesh->axes[i];
        if (placement->size <= 1) continue;
        json_t *row = json_object();
        json_t *placed = json_array();
        bool wraps = placement->rings_count > 0;
        for (int k = 0; k < placement->rings_count; k++) {
            const struct adv_ring *ring = &placement->rings[k];
            const char *name = adv_physical_name(ring->physical);
            (void)json_array_append_new(placed,
                                        ring->size == ring->whole
                                            ? json_string(name)
                                            : json_sprintf("%s[%d of %d]", name, ring->size, ring->whole));
            wraps &=
                ring->wraps || ring->physical == ADV_PHYSICAL_CORE; /* a pair of cores has no ring to close */
        }
        adv_encode_set_string(row, "axis", adv_axis_mesh((enum adv_axis)i));
        adv_encode_set_integer(row, "size", placement->size);
        (void)json_object_set_new(row, "placed_on", placed);
        adv_encode_set_number(row, "bandwidth_bytes_per_s", placement->bytes_per_s_per_device);
        (void)json_object_set_new(row, "wraps", json_boolean(wraps));
        (void)json_array_append_new(list, row);
    }
    return list;
}

static json_t *encode_kernels(const struct adv_ledger *ledger)
{
    json_t *list = json_array();
    for (int i = 0; ledger && i < ledger->kernels_count; i++) {
        const struct adv_kernel_use *use = &ledger->kernels[i];
        json_t *row = json_object();
        adv_encode_set_string(row, "kernel", adv_kernel_name(use->kernel));
        ADV_SET(row, use, shape, tile, time_us, count);
        adv_encode_set_number(row, "vmem_bytes",
                              use->vmem_bytes > 0.0 ? round(use->vmem_bytes) : (double)NAN);
        (void)json_array_append_new(list, row);
    }
    return list;
}

static json_t *encode_advice(const struct adv_advice_list *advice)
{
    json_t *list = json_array();
    for (int i = 0; advice && i < advice->count; i++) {
        const struct adv_advice *item = &advice->items[i];
        json_t *row = json_object();
        json_t *change = json_object();
        for (int k = 0; k < item->changes_count; k++) {
            json_t *value = adv_json_load_string(item->changes[k].value_json, JSON_DECODE_ANY);
            (void)json_object_set_new(change, item->changes[k].key,
                                      value ? value : json_string(item->changes[k].value_json));
        }
        adv_encode_set_string(row, "severity", adv_severity_name(item->severity));
        ADV_SET(row, item, code, message);
        (void)json_object_set_new(row, "change", change);
        adv_encode_set_number(row, "gain_frac", item->gain_frac);
        (void)json_array_append_new(list, row);
    }
    return list;
}

static void set_time(json_t *object, const struct adv_estimate *estimate)
{
    ADV_SET(object, estimate, step_time_s, step_time_low_s, step_time_high_s, tokens_per_s_per_chip,
            tflops_per_s_per_chip, mfu_frac, hfu_frac, global_batch_sequences, tokens_per_step);
}

static void set_memory(json_t *object, const struct adv_estimate *estimate)
{
    (void)json_object_set_new(object, "fits", json_boolean(estimate->fit != ADV_FIT_NO));
    adv_encode_set_string(object, "fit_verdict", adv_fit_name(estimate->fit));
    adv_encode_set_number(object, "hbm_bytes_per_device", round(estimate->hbm_bytes_per_device));
    adv_encode_set_number(object, "fit_probability", estimate->fit_probability);
    adv_encode_set_number(object, "hbm_low_bytes_per_device", round(estimate->hbm_low_bytes_per_device));
    adv_encode_set_number(object, "hbm_high_bytes_per_device", round(estimate->hbm_high_bytes_per_device));
    adv_encode_set_number(object, "hbm_limit_bytes_per_device", round(estimate->hbm_limit_bytes_per_device));
    adv_encode_set_number(object, "hbm_loss_peak_bytes_per_device", round(estimate->loss_peak_bytes));
    adv_encode_set_number(object, "hbm_backward_peak_bytes_per_device", round(estimate->backward_peak_bytes));
    adv_encode_set_number(object, "hbm_update_peak_bytes_per_device", round(estimate->update_peak_bytes));
    adv_encode_set_number(object, "host_bytes_per_host", round(estimate->host_bytes_per_host));
    adv_encode_set_number(object, "host_limit_bytes_per_host", round(estimate->host_limit_bytes_per_host));
}

json_t *adv_encode_estimate(const struct adv_cluster *cluster, const struct adv_estimate *estimate,
                            const struct adv_ledger *ledger, const struct adv_advice_list *advice,
                            const adv_err *warnings)
{
    json_t *object = json_object();
    set_time(object, estimate);
    set_memory(object, estimate);
    (void)json_object_set_new(object, "hbm_parts", encode_hbm_parts(ledger));
    (void)json_object_set_new(object, "time_parts", encode_time_parts(ledger));
    adv_encode_set_string(object, "bound", adv_resource_name(estimate->bound));
    (void)json_object_set_new(object, "mesh", encode_mesh(&estimate->mesh));
    (void)json_object_set_new(object, "kernels", encode_kernels(ledger));
    adv_encode_set_string(object, "confidence", adv_confidence_name(estimate->confidence));
    adv_encode_set_string(object, "confidence_why", estimate->confidence_why);
    (void)json_object_set_new(object, "advice", encode_advice(advice));
    (void)json_object_set_new(object, "warnings", warnings ? adv_encode_findings(warnings) : json_array());
    bool priced = isfinite(cluster->price_usd_per_chip_hour);
    adv_encode_set_number(object, "usd_per_step", priced ? estimate->usd_per_step : (double)NAN);
    adv_encode_set_number(object, "usd_per_billion_tokens",
                          priced ? estimate->usd_per_billion_tokens : (double)NAN);
    return object;
}

/* The keys that say the model to MaxText: they belong to the configuration, whose keys stand over them. */
static json_t *encode_model_config(const struct adv_estimate_request *request)
{
    json_t *object = json_object();
    if (request->model.maxtext_name[0] != '\0')
        adv_encode_set_string(object, ADV_NAME_MODEL_NAME, request->model.maxtext_name);
    for (int i = 0; i < request->model_keys_count && request->model.maxtext_name[0] == '\0'; i++)
        (void)json_object_set_new(object, request->model_keys[i].key,
                                  adv_json_load_string(request->model_keys[i].value_json, JSON_DECODE_ANY));
    return object;
}

json_t *adv_encode_estimate_answer(const struct adv_catalog *catalog,
                                   const struct adv_estimate_request *request,
                                   const struct adv_estimate *estimate, const struct adv_ledger *ledger,
                                   const struct adv_advice_list *advice, const adv_err *warnings)
{
    static const char *const conventions[] = {"causal_half", "full", "params_only"};
    json_t *object = adv_encode_estimate(&request->cluster, estimate, ledger, advice, warnings);
    if (request->wish.label) adv_encode_set_string(object, "label", request->wish.label);
    adv_encode_set_string(object, "flops_convention", conventions[request->flops_convention]);
    json_t *model = adv_encode_model(&request->model);
    (void)json_object_set_new(model, "config", encode_model_config(request));
    (void)json_object_set_new(object, "model", model);
    (void)json_object_set_new(object, "cluster", adv_encode_cluster(&request->cluster));
    (void)json_object_set_new(object, "config", adv_encode_config(&request->config));
    (void)json_object_set_new(object, "xla_flags", adv_encode_flags(&request->config));
    (void)json_object_set_new(object, "engine", adv_encode_engine(catalog));
    return object;
}

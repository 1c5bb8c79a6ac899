#include "engine/json/encode_estimate.h"
#include "engine/json/json_load.h"
#include "engine/maxtext/names.h"

#include <math.h>

static json_t *encode_term(const struct adv_term *term)
{
    return ADV_OBJECT(ADV_F(term, name), ADV_F(term, seconds),
                      ADV_M("resource", adv_resource_name(term->resource)), ADV_F(term, exposed_seconds),
                      ADV_F(term, count),
                      ADV_M_IF(term->flops_per_device > 0, "flops_per_device", term->flops_per_device),
                      ADV_M_IF(term->bytes_per_device > 0, "bytes_per_device", term->bytes_per_device),
                      ADV_F(term, formula), ADV_F(term, source));
}

static json_t *encode_memory(const struct adv_memory_part *part)
{
    return ADV_OBJECT(ADV_F(part, name), ADV_M("bytes", round(part->bytes_per_device)),
                      ADV_M("at", adv_memory_at_name(part->at)));
}

static json_t *encode_mesh(const struct adv_mesh *mesh)
{
    json_t *list = json_array();
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        const struct adv_axis_placement *placement = &mesh->axes[i];
        if (placement->size <= 1) continue;
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
        json_t *row = ADV_OBJECT(ADV_M("axis", adv_axis_mesh((enum adv_axis)i)), ADV_F(placement, size),
                                 ADV_M("placed_on", placed),
                                 ADV_M("bandwidth_bytes_per_s", placement->bytes_per_s_per_device),
                                 ADV_M("wraps", wraps));
        (void)json_array_append_new(list, row);
    }
    return list;
}

static json_t *encode_kernel(const struct adv_kernel_use *use)
{
    return ADV_OBJECT(ADV_M("kernel", adv_kernel_name(use->kernel)), ADV_F(use, shape), ADV_F(use, tile),
                      ADV_F(use, time_us), ADV_F(use, count),
                      ADV_M("vmem_bytes", use->vmem_bytes > 0.0 ? round(use->vmem_bytes) : (double)NAN));
}

static json_t *encode_advice(const struct adv_advice *item)
{
    json_t *change = json_object();
    for (int k = 0; k < item->changes_count; k++) {
        json_t *value = adv_json_load_string(item->changes[k].value_json, JSON_DECODE_ANY);
        (void)json_object_set_new(change, item->changes[k].key,
                                  value ? value : json_string(item->changes[k].value_json));
    }
    return ADV_OBJECT(ADV_M("severity", adv_severity_name(item->severity)), ADV_F(item, code),
                      ADV_F(item, message), ADV_M("change", change), ADV_F(item, gain_frac));
}

static void set_time(json_t *object, const struct adv_estimate *estimate)
{
    ADV_PUT(object, ADV_F(estimate, step_time_s), ADV_F(estimate, step_time_low_s),
            ADV_F(estimate, step_time_high_s), ADV_F(estimate, tokens_per_s_per_chip),
            ADV_F(estimate, tflops_per_s_per_chip), ADV_F(estimate, mfu_frac), ADV_F(estimate, hfu_frac),
            ADV_F(estimate, global_batch_sequences), ADV_F(estimate, tokens_per_step),
            ADV_M_IF(estimate->expert_capacity_factor > 0.0, "expert_capacity_factor",
                     estimate->expert_capacity_factor));
}

static void set_memory(json_t *object, const struct adv_estimate *estimate)
{
    ADV_PUT(object, ADV_M("fits", json_boolean(estimate->fit != ADV_FIT_NO)),
            ADV_M("fit_verdict", adv_fit_name(estimate->fit)),
            ADV_M("hbm_bytes_per_device", round(estimate->hbm_bytes_per_device)),
            ADV_M("fit_probability", estimate->fit_probability),
            ADV_M("hbm_low_bytes_per_device", round(estimate->hbm_low_bytes_per_device)),
            ADV_M("hbm_high_bytes_per_device", round(estimate->hbm_high_bytes_per_device)),
            ADV_M("hbm_limit_bytes_per_device", round(estimate->hbm_limit_bytes_per_device)),
            ADV_M("hbm_loss_peak_bytes_per_device", round(estimate->loss_peak_bytes)),
            ADV_M("hbm_backward_peak_bytes_per_device", round(estimate->backward_peak_bytes)),
            ADV_M("hbm_update_peak_bytes_per_device", round(estimate->update_peak_bytes)),
            ADV_M("host_bytes_per_host", round(estimate->host_bytes_per_host)),
            ADV_M("host_limit_bytes_per_host", round(estimate->host_limit_bytes_per_host)));
}

json_t *adv_encode_estimate(const struct adv_cluster *cluster, const struct adv_estimate *estimate,
                            const struct adv_ledger *ledger, const struct adv_advice_list *advice,
                            const adv_err *warnings)
{
    json_t *object = json_object();
    const bool priced = isfinite(cluster->price_usd_per_chip_hour);
    ADV_LIST(hbm_parts, i, ledger->memory_count, encode_memory(&ledger->memory[i]));
    ADV_LIST(time_parts, i, ledger->terms_count, encode_term(&ledger->terms[i]));
    ADV_LIST(kernels, i, ledger->kernels_count, encode_kernel(&ledger->kernels[i]));
    ADV_LIST(advised, i, advice ? advice->count : 0, encode_advice(&advice->items[i]));
    set_time(object, estimate);
    set_memory(object, estimate);
    ADV_PUT(object, ADV_M("hbm_parts", hbm_parts), ADV_M("time_parts", time_parts),
            ADV_M("bound", adv_resource_name(estimate->bound)), ADV_M("mesh", encode_mesh(&ledger->mesh)),
            ADV_M("kernels", kernels), ADV_M("confidence", adv_confidence_name(estimate->confidence)),
            ADV_F(estimate, confidence_why), ADV_M("advice", advised),
            ADV_M("warnings", warnings ? adv_encode_findings(warnings) : json_array()),
            ADV_M("usd_per_step", priced ? estimate->usd_per_step : (double)NAN),
            ADV_M("usd_per_billion_tokens", priced ? estimate->usd_per_billion_tokens : (double)NAN));
    return object;
}

/* The keys that say the model to MaxText: they belong to the configuration, whose keys stand over them. */
static json_t *encode_model_config(const struct adv_estimate_request *request)
{
    json_t *object = json_object();
    if (request->model.maxtext_name[0] != '\0')
        ADV_PUT(object, ADV_M(ADV_NAME_MODEL_NAME, request->model.maxtext_name));
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
    ADV_PUT(object, ADV_M_IF(request->wish.label, "label", request->wish.label),
            ADV_M("flops_convention", conventions[request->flops_convention]));
    json_t *model = adv_encode_model(&request->model);
    ADV_PUT(model, ADV_M("config", encode_model_config(request)));
    ADV_PUT(object, ADV_M("model", model), ADV_M("cluster", adv_encode_cluster(&request->cluster)),
            ADV_M("config", adv_encode_config(&request->config)),
            ADV_M("xla_flags", adv_encode_flags(&request->config)),
            ADV_M("software", adv_encode_software(&request->software)),
            ADV_M("engine", adv_encode_engine(catalog)));
    return object;
}

#include "engine/json/encode_pictures.h"

#include <math.h>

/* The kind of a layer in words: "full attention", "window attention, 128 experts". */
static json_t *layer_name(const struct adv_layer *layer)
{
    static const char *const kinds[] = {[ADV_ATTENTION_FULL] = "full",
                                        [ADV_ATTENTION_WINDOW] = "window",
                                        [ADV_ATTENTION_CHUNKED] = "chunked",
                                        [ADV_ATTENTION_LINEAR] = "linear",
                                        [ADV_ATTENTION_COMPRESSED] = "compressed"};
    const char *kind =
        (size_t)layer->attention < sizeof kinds / sizeof *kinds ? kinds[layer->attention] : NULL;
    if (layer->experts > 0)
        return json_sprintf("%s attention, %d experts", kind ? kind : "other", (int)layer->experts);
    return json_sprintf("%s attention, dense", kind ? kind : "other");
}

static json_t *encode_block(const struct adv_view_block *block)
{
    json_t *row = json_object();
    adv_encode_set_string(row, "name", block->name);
    adv_encode_set_string(row, "lane", adv_view_lane_name(block->lane));
    adv_encode_set_string(row, "pass", adv_pass_name(block->pass));
    adv_encode_set_string(row, "resource", adv_resource_name(block->resource));
    ADV_SET(row, block, start_s, seconds, exposed);
    return row;
}

static json_t *encode_layer_view(const struct adv_layer_view *view, const struct adv_layer *layer)
{
    json_t *row = json_object(), *blocks = json_array();
    (void)json_object_set_new(row, "layer", layer_name(layer));
    adv_encode_set_number(row, "times", view->times);
    adv_encode_set_number(row, "forward_s", view->pass_s[ADV_PASS_FWD]);
    adv_encode_set_number(row, "recompute_s", view->pass_s[ADV_PASS_RECOMPUTE]);
    adv_encode_set_number(row, "backward_s", view->pass_s[ADV_PASS_BWD]);
    for (int i = 0; i < view->blocks_count; i++)
        (void)json_array_append_new(blocks, encode_block(&view->blocks[i]));
    (void)json_object_set_new(row, "blocks", blocks);
    return row;
}

json_t *adv_encode_step_view(const struct adv_step_view *view, const struct adv_model *model)
{
    json_t *object = json_object(), *layers = json_array(), *outside = json_array();
    adv_encode_set_number(object, "step_time_s", view->step_time_s);
    for (int i = 0; i < view->layers_count; i++)
        (void)json_array_append_new(layers, encode_layer_view(&view->layers[i], &model->layers[i]));
    for (int i = 0; i < view->outside_count; i++) {
        json_t *row = json_object();
        adv_encode_set_string(row, "name", view->outside[i].name);
        adv_encode_set_string(row, "resource", adv_resource_name(view->outside[i].resource));
        ADV_SET(row, &view->outside[i], seconds, exposed_seconds);
        (void)json_array_append_new(outside, row);
    }
    (void)json_object_set_new(object, "layers", layers);
    (void)json_object_set_new(object, "outside", outside);
    return object;
}

static json_t *encode_operation(const struct adv_operation *operation)
{
    json_t *row = json_object();
    const double flops = operation->flops_per_device, bytes = operation->bytes_per_device;
    adv_encode_set_string(row, "name", operation->name);
    adv_encode_set_string(row, "pass", adv_pass_name(operation->pass));
    adv_encode_set_string(row, "bound", adv_resource_name(operation->bound));
    adv_encode_set_number(row, "seconds", operation->seconds);
    adv_encode_set_number(row, "flops_per_device", flops);
    adv_encode_set_number(row, "bytes_per_device", bytes > 0.0 ? bytes : (double)NAN);
    (void)json_object_set_new(row, "bytes_are_least", json_boolean(operation->bytes_are_least));
    adv_encode_set_number(row, "flops_per_byte", bytes > 0.0 ? flops / bytes : (double)NAN);
    adv_encode_set_number(row, "flops_per_s_per_device", flops / operation->seconds);
    return row;
}

json_t *adv_encode_roofline(const struct adv_step_trace *trace, const struct adv_operations *of_layers)
{
    const struct adv_chip *chip = trace->cost.chip;
    json_t *object = json_object(), *layers = json_array();
    adv_encode_set_number(object, "peak_flops_per_s_per_device",
                          chip->peak_bf16_flops_per_s_per_chip / chip->devices_per_chip);
    adv_encode_set_number(object, "step_flops_per_s_per_device", trace->cost.bf16_flops_per_s);
    adv_encode_set_number(object, "hbm_bytes_per_s_per_device",
                          chip->hbm_bytes_per_s_per_chip / chip->devices_per_chip);
    adv_encode_set_number(object, "step_hbm_bytes_per_s_per_device", trace->cost.hbm_bytes_per_s);
    for (int i = 0; i < trace->cost.model->layer_kinds_count; i++) {
        const struct adv_operations *operations = &of_layers[i];
        json_t *row = json_object(), *list = json_array();
        for (int k = 0; k < operations->count; k++)
            (void)json_array_append_new(list, encode_operation(&operations->list[k]));
        (void)json_object_set_new(row, "layer", layer_name(&trace->cost.model->layers[i]));
        adv_encode_set_number(row, "times", trace->layers[i].times);
        (void)json_object_set_new(row, "operations", list);
        (void)json_array_append_new(layers, row);
    }
    (void)json_object_set_new(object, "layers", layers);
    return object;
}

static json_t *encode_link(int index, const struct adv_link_load *link)
{
    json_t *row = json_object(), *flows = json_array();
    adv_encode_set_string(row, "link", adv_link_name(index));
    ADV_SET(row, link, size, wraps);
    adv_encode_set_number(row, "bytes_per_s_per_chip",
                          link->known ? link->bytes_per_s_per_chip : (double)NAN);
    ADV_SET(row, link, bytes_per_chip, busy_frac);
    for (int i = 0; i < link->flows_count; i++) {
        json_t *flow = json_object();
        ADV_SET(flow, &link->flows[i], term, bytes_per_chip);
        (void)json_array_append_new(flows, flow);
    }
    (void)json_object_set_new(row, "flows", flows);
    return row;
}

/* The factors of each logical axis on the torus, exactly. */
static json_t *encode_axes(const struct adv_mesh *mesh)
{
    json_t *list = json_array();
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        const struct adv_axis_placement *placement = &mesh->axes[i];
        if (placement->size <= 1) continue;
        json_t *row = json_object(), *factors = json_array();
        for (int k = 0; k < placement->rings_count; k++) {
            const struct adv_ring *ring = &placement->rings[k];
            (void)json_array_append_new(factors, json_pack("{s:s,s:i,s:i,s:i,s:b}", "link",
                                                           adv_physical_name(ring->physical), "size",
                                                           ring->size, "whole", ring->whole, "stride",
                                                           ring->stride, "wraps", ring->wraps));
        }
        adv_encode_set_string(row, "axis", adv_axis_mesh((enum adv_axis)i));
        adv_encode_set_integer(row, "size", placement->size);
        (void)json_object_set_new(row, "factors", factors);
        (void)json_array_append_new(list, row);
    }
    return list;
}

json_t *adv_encode_links(const struct adv_step_trace *trace, const struct adv_link_loads *loads)
{
    const struct adv_cluster *cluster = trace->cost.cluster;
    json_t *object = json_object(), *links = json_array(), *dims = json_array();
    for (int i = 0; i < 3; i++) (void)json_array_append_new(dims, json_integer(cluster->dims[i]));
    (void)json_object_set_new(object, "dims", dims);
    adv_encode_set_number(object, "devices_per_chip", cluster->chip.devices_per_chip);
    adv_encode_set_integer(object, "slices", cluster->slices);
    (void)json_object_set_new(object, "axes", encode_axes(&trace->mesh));
    for (int i = 0; i < ADV_LINK_COUNT; i++)
        if (loads->links[i].used || (i < ADV_PHYSICAL_COUNT && loads->links[i].size > 1))
            (void)json_array_append_new(links, encode_link(i, &loads->links[i]));
    (void)json_object_set_new(object, "links", links);
    return object;
}

static json_t *encode_point(const struct adv_scaling_point *point)
{
    const struct adv_estimate *e = &point->estimate;
    const double missing = point->broken_rule ? (double)NAN : 1.0;
    json_t *row = json_object();
    adv_encode_set_number(row, "value", point->value);
    if (point->topology[0]) adv_encode_set_string(row, "topology", point->topology);
    adv_encode_set_string(row, "broken_rule", point->broken_rule);
    adv_encode_set_string(row, "fit_verdict", point->broken_rule ? NULL : adv_fit_name(e->fit));
    adv_encode_set_string(row, "bound", point->broken_rule ? NULL : adv_resource_name(e->bound));
    adv_encode_set_number(row, "step_time_s", missing * e->step_time_s);
    adv_encode_set_number(row, "mfu_frac", missing * e->mfu_frac);
    adv_encode_set_number(row, "tokens_per_s_per_chip", missing * e->tokens_per_s_per_chip);
    adv_encode_set_number(row, "tokens_per_step", missing * e->tokens_per_step);
    adv_encode_set_number(row, "hbm_bytes_per_device", missing * round(e->hbm_bytes_per_device));
    adv_encode_set_number(row, "usd_per_billion_tokens", missing * e->usd_per_billion_tokens);
    return row;
}

json_t *adv_encode_scaling(const struct adv_scaling *scaling)
{
    json_t *list = json_array();
    for (int s = 0; s < ADV_SCALE_COUNT; s++) {
        json_t *row = json_object(), *points = json_array();
        adv_encode_set_string(row, "scale", adv_scale_name((enum adv_scale)s));
        adv_encode_set_number(row, "value", scaling->scales[s].value);
        for (int i = 0; i < scaling->scales[s].count; i++)
            (void)json_array_append_new(points, encode_point(&scaling->scales[s].points[i]));
        (void)json_object_set_new(row, "points", points);
        (void)json_array_append_new(list, row);
    }
    return list;
}

json_t *adv_encode_cloud(const struct adv_cloud *cloud)
{
    json_t *object = json_object(), *cells = json_array();
    for (int t = 0; t < ADV_CLOUD_TIMES; t++)
        for (int b = 0; b < ADV_CLOUD_BYTES; b++)
            if (cloud->counts[t][b] > 0)
                (void)json_array_append_new(cells,
                                            json_pack("[i,i,I]", t, b, (json_int_t)cloud->counts[t][b]));
    ADV_SET(object, cloud, evaluated, beyond);
    adv_encode_set_number(object, "step_time_first_s",
                          cloud->evaluated ? adv_cloud_time_s(cloud, 0) : (double)NAN);
    adv_encode_set_number(object, "step_time_ratio",
                          cloud->evaluated ? adv_cloud_time_s(cloud, 1) / adv_cloud_time_s(cloud, 0)
                                           : (double)NAN);
    adv_encode_set_number(object, "hbm_bytes_per_bin", cloud->evaluated ? cloud->bytes_per_bin : (double)NAN);
    (void)json_object_set_new(object, "cells", cells);
    return object;
}

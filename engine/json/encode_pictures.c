#include "engine/json/encode_pictures.h"

#include <math.h>

/* The kind of a layer in words: "full attention", "window attention, 128 experts". */
static json_t *layer_name(const struct adv_layer *layer)
{
    if (layer->experts > 0)
        return json_sprintf("%s attention, %d experts", adv_encode_attention(layer), (int)layer->experts);
    return json_sprintf("%s attention, dense", adv_encode_attention(layer));
}

static json_t *encode_block(const struct adv_view_block *block)
{
    return ADV_OBJECT(ADV_M("name", block->name), ADV_M("lane", adv_view_lane_name(block->lane)),
                      ADV_M("pass", adv_pass_name(block->pass)),
                      ADV_M("resource", adv_resource_name(block->resource)), ADV_F(block, start_s),
                      ADV_F(block, seconds), ADV_F(block, exposed));
}

static json_t *encode_layer_view(const struct adv_layer_view *view, const struct adv_layer *layer)
{
    ADV_LIST(blocks, i, view->blocks_count, encode_block(&view->blocks[i]));
    return ADV_OBJECT(ADV_M("layer", layer_name(layer)), ADV_F(view, times),
                      ADV_M("forward_s", view->pass_s[ADV_PASS_FWD]),
                      ADV_M("recompute_s", view->pass_s[ADV_PASS_RECOMPUTE]),
                      ADV_M("backward_s", view->pass_s[ADV_PASS_BWD]), ADV_M("blocks", blocks));
}

static json_t *encode_outside(const struct adv_outside *part)
{
    return ADV_OBJECT(ADV_F(part, name), ADV_M("resource", adv_resource_name(part->resource)),
                      ADV_F(part, seconds), ADV_F(part, exposed_seconds));
}

json_t *adv_encode_step_view(const struct adv_step_view *view, const struct adv_model *model)
{
    ADV_LIST(layers, i, view->layers_count, encode_layer_view(&view->layers[i], &model->layers[i]));
    ADV_LIST(outside, i, view->outside_count, encode_outside(&view->outside[i]));
    return ADV_OBJECT(ADV_F(view, step_time_s), ADV_M("layers", layers), ADV_M("outside", outside));
}

static json_t *encode_operation(const struct adv_operation *operation)
{
    const double flops = operation->flops_per_device, bytes = operation->bytes_per_device;
    return ADV_OBJECT(
        ADV_F(operation, name), ADV_M("pass", adv_pass_name(operation->pass)),
        ADV_M("bound", adv_resource_name(operation->bound)), ADV_F(operation, seconds),
        ADV_M("flops_per_device", flops), ADV_M("bytes_per_device", bytes > 0.0 ? bytes : (double)NAN),
        ADV_F(operation, bytes_are_least), ADV_M("flops_per_byte", bytes > 0.0 ? flops / bytes : (double)NAN),
        ADV_M("flops_per_s_per_device", flops / operation->seconds));
}

static json_t *encode_operations(const struct adv_step_trace *trace, int layer,
                                 const struct adv_operations *operations)
{
    ADV_LIST(list, i, operations->count, encode_operation(&operations->list[i]));
    return ADV_OBJECT(ADV_M("layer", layer_name(&trace->cost.model->layers[layer])),
                      ADV_F(&trace->layers[layer], times), ADV_M("operations", list));
}

json_t *adv_encode_roofline(const struct adv_step_trace *trace, const struct adv_operations *of_layers)
{
    const struct adv_chip *chip = trace->cost.chip;
    ADV_LIST(layers, i, trace->cost.model->layer_kinds_count, encode_operations(trace, i, &of_layers[i]));
    return ADV_OBJECT(
        ADV_M("peak_flops_per_s_per_device", chip->peak_bf16_flops_per_s_per_chip / chip->devices_per_chip),
        ADV_M("step_flops_per_s_per_device", trace->cost.bf16_flops_per_s),
        ADV_M("hbm_bytes_per_s_per_device", chip->hbm_bytes_per_s_per_chip / chip->devices_per_chip),
        ADV_M("step_hbm_bytes_per_s_per_device", trace->cost.hbm_bytes_per_s), ADV_M("layers", layers));
}

static json_t *encode_link(int index, const struct adv_link_load *link)
{
    ADV_LIST(flows, i, link->flows_count,
             ADV_OBJECT(ADV_F(&link->flows[i], term), ADV_F(&link->flows[i], bytes_per_chip)));
    return ADV_OBJECT(ADV_M("link", adv_link_name(index)), ADV_F(link, size), ADV_F(link, wraps),
                      ADV_M("bytes_per_s_per_chip", link->known ? link->bytes_per_s_per_chip : (double)NAN),
                      ADV_F(link, bytes_per_chip), ADV_F(link, busy_frac), ADV_M("flows", flows));
}

static json_t *encode_factor(const struct adv_ring *ring)
{
    return ADV_OBJECT(ADV_M("link", adv_physical_name(ring->physical)), ADV_F(ring, size), ADV_F(ring, whole),
                      ADV_F(ring, stride), ADV_F(ring, wraps));
}

/* The factors of each logical axis on the torus, exactly. */
static json_t *encode_axes(const struct adv_mesh *mesh)
{
    json_t *list = json_array();
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        const struct adv_axis_placement *placement = &mesh->axes[i];
        if (placement->size <= 1) continue;
        ADV_LIST(factors, k, placement->rings_count, encode_factor(&placement->rings[k]));
        (void)json_array_append_new(list, ADV_OBJECT(ADV_M("axis", adv_axis_mesh((enum adv_axis)i)),
                                                     ADV_F(placement, size), ADV_M("factors", factors)));
    }
    return list;
}

json_t *adv_encode_links(const struct adv_step_trace *trace, const struct adv_link_loads *loads)
{
    const struct adv_cluster *cluster = trace->cost.cluster;
    json_t *links = json_array();
    ADV_LIST(dims, i, 3, json_integer(cluster->dims[i]));
    for (int i = 0; i < ADV_LINK_COUNT; i++)
        if (loads->links[i].used || (i < ADV_PHYSICAL_COUNT && loads->links[i].size > 1))
            (void)json_array_append_new(links, encode_link(i, &loads->links[i]));
    return ADV_OBJECT(ADV_M("dims", dims), ADV_F(&cluster->chip, devices_per_chip), ADV_F(cluster, slices),
                      ADV_M("axes", encode_axes(&trace->mesh)), ADV_M("links", links));
}

static json_t *encode_point(const struct adv_scaling_point *point)
{
    const struct adv_estimate *e = &point->estimate;
    const double missing = point->broken_rule ? (double)NAN : 1.0;
    return ADV_OBJECT(ADV_M("value", point->value), ADV_M_IF(point->topology[0], "topology", point->topology),
                      ADV_M("broken_rule", point->broken_rule),
                      ADV_M("fit_verdict", point->broken_rule ? NULL : adv_fit_name(e->fit)),
                      ADV_M("bound", point->broken_rule ? NULL : adv_resource_name(e->bound)),
                      ADV_M("step_time_s", missing * e->step_time_s),
                      ADV_M("mfu_frac", missing * e->mfu_frac),
                      ADV_M("tokens_per_s_per_chip", missing * e->tokens_per_s_per_chip),
                      ADV_M("tokens_per_step", missing * e->tokens_per_step),
                      ADV_M("hbm_bytes_per_device", missing * round(e->hbm_bytes_per_device)),
                      ADV_M("usd_per_billion_tokens", missing * e->usd_per_billion_tokens));
}

static json_t *encode_scale(const struct adv_scaling *scaling, enum adv_scale scale)
{
    ADV_LIST(points, i, scaling->scales[scale].count, encode_point(&scaling->scales[scale].points[i]));
    return ADV_OBJECT(ADV_M("scale", adv_scale_name(scale)), ADV_F(&scaling->scales[scale], value),
                      ADV_M("points", points));
}

json_t *adv_encode_scaling(const struct adv_scaling *scaling)
{
    ADV_LIST(list, i, ADV_SCALE_COUNT, encode_scale(scaling, (enum adv_scale)i));
    return list;
}

json_t *adv_encode_cloud(const struct adv_cloud *cloud)
{
    json_t *cells = json_array();
    for (int t = 0; t < ADV_CLOUD_TIMES; t++)
        for (int b = 0; b < ADV_CLOUD_BYTES; b++)
            if (cloud->counts[t][b] > 0)
                (void)json_array_append_new(cells,
                                            json_pack("[i,i,I]", t, b, (json_int_t)cloud->counts[t][b]));
    return ADV_OBJECT(ADV_F(cloud, evaluated), ADV_F(cloud, beyond),
                      ADV_M("step_time_first_s", cloud->evaluated ? adv_cloud_time_s(cloud, 0) : (double)NAN),
                      ADV_M("step_time_ratio", cloud->evaluated
                                                   ? adv_cloud_time_s(cloud, 1) / adv_cloud_time_s(cloud, 0)
                                                   : (double)NAN),
                      ADV_M("hbm_bytes_per_bin", cloud->evaluated ? cloud->bytes_per_bin : (double)NAN),
                      ADV_M("cells", cells));
}

#include "engine/answer/pictures.h"

#include "engine/json/encode_pictures.h"

static adv_code include_scaling(struct adv_answer_job *job, const struct adv_estimate_input *input)
{
    const char *const *shapes = NULL;
    const int shapes_count = adv_catalog_shapes(job->catalog, input->cluster->chip.name, &shapes);
    struct adv_scaling *scaling = adv_arena_alloc(&job->arena, sizeof *scaling);
    if (!scaling) return adv_answer_no_memory(job->err);
    adv_code code =
        adv_scaling_find(input, shapes, shapes_count, job->budget, &job->arena, scaling, job->err);
    if (code == ADV_OK) (void)json_object_set_new(job->result, "scaling", adv_encode_scaling(scaling));
    return code;
}

static adv_code include_roofline(struct adv_answer_job *job, const struct adv_step_trace *trace)
{
    const int kinds = trace->cost.model->layer_kinds_count;
    struct adv_operations *operations = adv_arena_array(&job->arena, (size_t)kinds, sizeof *operations);
    if (!operations) return adv_answer_no_memory(job->err);
    for (int i = 0; i < kinds; i++) adv_operations_list(trace, i, &operations[i]);
    (void)json_object_set_new(job->result, "roofline", adv_encode_roofline(trace, operations));
    return ADV_OK;
}

adv_code adv_answer_include(struct adv_answer_job *job, unsigned include,
                            const struct adv_estimate_input *input)
{
    if (!include) return ADV_OK;
    struct adv_step_trace *trace = adv_arena_alloc(&job->arena, sizeof *trace);
    struct adv_step_view *view = adv_arena_alloc(&job->arena, sizeof *view);
    struct adv_link_loads *loads = adv_arena_alloc(&job->arena, sizeof *loads);
    if (!trace || !view || !loads) return adv_answer_no_memory(job->err);
    adv_code code = adv_trace_step(input, trace, job->err);
    if (code != ADV_OK) return code;
    if (include & ADV_INCLUDE_TIMELINE) {
        adv_step_view_lay(trace, view);
        (void)json_object_set_new(job->result, "timeline", adv_encode_step_view(view, input->model));
    }
    if (include & ADV_INCLUDE_ROOFLINE) code = include_roofline(job, trace);
    if (code != ADV_OK) return code;
    if (include & ADV_INCLUDE_LINKS) {
        adv_link_loads_find(trace, loads);
        (void)json_object_set_new(job->result, "links", adv_encode_links(trace, loads));
    }
    return include & ADV_INCLUDE_SCALING ? include_scaling(job, input) : ADV_OK;
}

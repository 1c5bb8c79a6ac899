#include "engine/explain/scaling.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/maxtext/names.h"
#include "engine/search/space_choices.h"

ADV_NAMES(adv_scale_name, enum adv_scale, "slices", "chips_per_slice", "seq_len",
          ADV_NAME_PER_DEVICE_BATCH_SIZE)

/* The plan under study, and a machine of its own to change. */
struct study {
    const struct adv_estimate_input *input;
    const char *const *shapes;
    int shapes_count;
    struct adv_cluster *cluster;
};

static const char *price(const struct study *study, struct adv_plan *plan, struct adv_estimate *estimate)
{
    const struct adv_estimate_input input = {study->input->model, study->cluster, study->input->constants,
                                             plan, study->input->flops_convention};
    adv_choices_finish(plan);
    const char *rule = adv_plan_broken_rule(plan, input.model, input.cluster);
    if (rule) return rule;
    return adv_estimate_plan(&input, estimate, NULL, NULL) == ADV_OK ? NULL : "unsupported";
}

/* A slice of other dimensions, or more of them. */
static bool rebuild(const struct study *study, const int dims[3], int slices)
{
    *study->cluster = *study->input->cluster;
    memcpy(study->cluster->dims, dims, sizeof study->cluster->dims);
    study->cluster->slices = slices;
    adv_err ignored = adv_err_empty();
    return adv_cluster_build(study->cluster, study->shapes, study->shapes_count, &ignored) == ADV_OK;
}

static const char *at_slices(const struct study *study, double value, struct adv_scaling_point *point)
{
    const struct adv_cluster *given = study->input->cluster;
    struct adv_plan plan = *study->input->plan;
    const double across = plan.family.dcn[ADV_AXIS_DATA] * value / given->slices;
    if (across < 1.0 || across != floor(across)) return "dcn-parallelism";
    if (!rebuild(study, given->dims, (int)value)) return "slices";
    plan.family.dcn[ADV_AXIS_DATA] = (int)across;
    return price(study, &plan, &point->estimate);
}

static const char *at_shape(const struct study *study, const char *shape, struct adv_scaling_point *point)
{
    const struct adv_cluster *given = study->input->cluster;
    struct adv_plan plan = *study->input->plan;
    int dims[3];
    (void)snprintf(point->topology, sizeof point->topology, "%s", shape);
    if (!adv_cluster_parse_shape(shape, given->chip.ici_axes >= 3 ? 3 : 2, dims) ||
        !rebuild(study, dims, given->slices))
        return "topology";
    point->value = study->cluster->chips_per_slice;
    const double fsdp = plan.family.ici[ADV_AXIS_FSDP] * point->value / given->chips_per_slice;
    if (fsdp < 1.0 || fsdp != floor(fsdp)) return "mesh-size";
    plan.family.ici[ADV_AXIS_FSDP] = (int)fsdp;
    plan.family.custom_mesh = ADV_CUSTOM_MESH_NONE;
    return price(study, &plan, &point->estimate);
}

static const char *at_sequence(const struct study *study, double value, struct adv_scaling_point *point)
{
    struct adv_plan plan = *study->input->plan;
    plan.family.per_device_batch_size *= (double)plan.family.seq_len / value;
    plan.family.seq_len = (int64_t)value;
    return price(study, &plan, &point->estimate);
}

static const char *at_batch(const struct study *study, double value, struct adv_scaling_point *point)
{
    struct adv_plan plan = *study->input->plan;
    plan.family.per_device_batch_size = value;
    return price(study, &plan, &point->estimate);
}

typedef const char *scale_at(const struct study *study, double value, struct adv_scaling_point *point);

/* The plan's own value, halved and doubled as far as there is room. */
static void find_doublings(const struct study *study, enum adv_scale scale, double value, scale_at *at,
                           struct adv_scaling *scaling)
{
    const double least = scale == ADV_SCALE_SLICES ? 1.0 : value / 16.0;
    const double most = scale == ADV_SCALE_SLICES ? ADV_CLUSTER_SLICES_MAX : value * 16.0;
    double first = value;
    while (first / 2.0 >= least && (scale != ADV_SCALE_SLICES || fmod(first, 2.0) == 0.0)) first /= 2.0;
    scaling->scales[scale].value = value;
    for (int i = 0; i < ADV_SCALING_POINTS; i++) {
        const double v = ldexp(first, i);
        if (v > most) break;
        struct adv_scaling_point *point = &scaling->scales[scale].points[scaling->scales[scale].count++];
        point->value = v;
        *study->cluster = *study->input->cluster;
        point->broken_rule = at(study, v, point);
    }
}

/* One shape for each size: the given one where it has that size, else the last, which is the squarest. */
static void find_shapes(const struct study *study, struct adv_scaling *scaling)
{
    const struct adv_cluster *given = study->input->cluster;
    const int own = given->chips_per_slice;
    scaling->scales[ADV_SCALE_CHIPS].value = own;
    for (int i = 0; i < study->shapes_count; i++) {
        struct adv_scaling_point point = {.value = 0.0};
        int *count = &scaling->scales[ADV_SCALE_CHIPS].count;
        struct adv_scaling_point *points = scaling->scales[ADV_SCALE_CHIPS].points;
        point.broken_rule = at_shape(study, study->shapes[i], &point);
        const bool doubles = point.value >= own / 16.0 && point.value <= own * 16.0;
        if (!doubles || (point.value == own && strcmp(point.topology, given->topology) != 0)) continue;
        const double halvings = log2(point.value / own);
        if (halvings != floor(halvings)) continue;
        if (*count > 0 && points[*count - 1].value == point.value) --*count;
        if (*count < ADV_SCALING_POINTS) points[(*count)++] = point;
    }
}

adv_code adv_scaling_find(const struct adv_estimate_input *input, const char *const *shapes, int shapes_count,
                          const struct adv_budget *budget, struct adv_arena *arena,
                          struct adv_scaling *scaling, adv_err *err)
{
    struct study study = {input, shapes, shapes_count, adv_arena_alloc(arena, sizeof *study.cluster)};
    if (!study.cluster) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    memset(scaling, 0, sizeof *scaling);
    find_doublings(&study, ADV_SCALE_SLICES, input->cluster->slices, at_slices, scaling);
    find_shapes(&study, scaling);
    find_doublings(&study, ADV_SCALE_SEQ_LEN, (double)input->plan->family.seq_len, at_sequence, scaling);
    find_doublings(&study, ADV_SCALE_BATCH, input->plan->family.per_device_batch_size, at_batch, scaling);
    return adv_budget_over(budget) ? adv_budget_refuse(err) : ADV_OK;
}

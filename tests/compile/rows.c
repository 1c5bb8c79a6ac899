#include "tests/compile/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cost/layer_memory.h"
#include "engine/cost/memory.h"
#include "engine/cost/regime.h"
#include "engine/json/decode_measurements.h"

struct compiled_step {
    struct adv_mesh mesh;
    struct adv_cost cost;
    struct adv_model_params params;
};

static double number(const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static void stop(const char *path, const char *why)
{
    (void)fprintf(stderr, "%s: %s\n", path, why);
    exit(1);
}

static void load_file(const struct adv_catalog *catalog, const char *path, struct compiled_rows *all)
{
    json_error_t problem;
    json_t *list = json_load_file(path, 0, &problem); /* kept: rows point into it */
    if (!json_is_array(list)) stop(path, list ? "no array of rows" : problem.text);
    char *text = json_dumps(list, JSON_COMPACT);
    struct adv_arena *arena = calloc(1, sizeof *arena);
    struct adv_measurement *rows = NULL;
    int count = 0;
    adv_err err;
    adv_err_init(&err);
    if (!text || !arena) stop(path, "out of memory");
    adv_arena_init(arena, (size_t)1 << 30);
    if (adv_decode_measurements(catalog, text, strlen(text), arena, &rows, &count, &err) != ADV_OK)
        stop(path, err.findings[0].detail);
    free(text);
    all->rows = realloc(all->rows, (size_t)(all->count + count) * sizeof *all->rows);
    if (!all->rows) stop(path, "out of memory");
    for (int i = 0; i < count; i++) {
        const json_t *row = json_array_get(list, (size_t)i);
        const json_t *compiled = json_object_get(row, "compiled");
        const char *verdict = json_string_value(json_object_get(compiled, "verdict"));
        all->rows[all->count++] = (struct compiled_row){
            .row = &rows[i],
            .compiled = compiled,
            .drawn = json_object_get(row, "drawn"),
            .need_bytes = number(compiled, "need_bytes_per_device"),
            .argument_bytes = number(compiled, "argument_bytes"),
            .heap_bytes = number(compiled, "heap_bytes"),
            .host_bytes = number(compiled, "host_bytes_per_device"),
            .fits = verdict && strcmp(verdict, "fits") == 0,
        };
    }
}

struct compiled_rows compiled_rows_load(const struct adv_catalog *catalog, char *const *paths,
                                        int paths_count)
{
    struct compiled_rows all = {NULL, 0};
    for (int i = 0; i < paths_count; i++) load_file(catalog, paths[i], &all);
    return all;
}

bool compiled_row_predict(struct compiled_row *row, const struct adv_constants *constants)
{
    adv_err err;
    adv_err_init(&err);
    /* the compiler's verdict is on the devices' memory: it does not know what a host holds */
    row->row->cluster.chip.host_dram_bytes_per_host = (double)NAN;
    row->judged =
        isfinite(row->need_bytes) && row->row->decoded && adv_measurement_predict(row->row, constants, &err);
    row->predicted_bytes = row->judged ? row->row->estimate.hbm_bytes_per_device : (double)NAN;
    row->error_log = row->judged ? log(row->predicted_bytes / row->need_bytes) : (double)NAN;
    return row->judged;
}

static struct compiled_step *prepare(const struct compiled_row *row, const struct adv_constants *constants)
{
    struct compiled_step *step = calloc(1, sizeof *step);
    if (!step) stop(row->row->id, "out of memory");
    const struct adv_estimate_input input = {&row->row->model, &row->row->cluster, constants, &row->row->plan,
                                             row->row->flops_convention};
    adv_err err;
    adv_err_init(&err);
    if (adv_mesh_place(input.cluster, input.plan, &step->mesh, &err) != ADV_OK)
        stop(row->row->id, err.findings[0].detail);
    step->params = adv_model_params(input.model);
    adv_cost_init(&step->cost, &input, &step->mesh, false);
    return step;
}

void compiled_row_weigh(struct compiled_row *row, const struct adv_constants *constants)
{
    if (!row->step) row->step = prepare(row, constants);
    struct compiled_step *step = row->step;
    step->cost.constants = constants;
    step->cost.recompute_elided = adv_memory_keeps_everything(&step->cost, &step->params);
    struct adv_memory memory;
    adv_memory_plan(&step->cost, &step->params, &memory, NULL);
    row->predicted_bytes =
        fmax(memory.loss_peak_bytes, fmax(memory.backward_peak_bytes, memory.update_peak_bytes));
    row->error_log = log(row->predicted_bytes / row->need_bytes);
    row->row->estimate.fit_curve = adv_fit_curve(constants, memory.log_sd);
}

static bool is_plain(const struct adv_cost *cost)
{
    bool plain = adv_memory_peels_loops(cost) && !adv_memory_crosses_slices(cost) && cost->tp == 1 &&
                 cost->stages <= 1 && cost->plan->family.gradient_accumulation_steps == 1 &&
                 !adv_model_has_experts(cost->model);
    for (int i = 0; i < cost->model->layer_kinds_count; i++)
        plain = plain && !adv_memory_in_block(cost, &cost->model->layers[i]);
    return plain;
}

struct compiled_turn compiled_row_turn(struct compiled_row *row, const struct adv_constants *constants)
{
    const json_t *turned = json_object_get(row->compiled, "turned");
    compiled_row_weigh(row, constants);
    const struct adv_cost *cost = &row->step->cost;
    struct adv_layer_sums fresh;
    struct compiled_turn turn = {.shown = json_is_array(turned) && is_plain(cost) &&
                                          adv_memory_layer_sums(cost, &fresh)->emb_stacks > 0.0,
                                 .windowed = adv_memory_windowed(cost),
                                 .says = adv_memory_turns_emb(cost)};
    const double emb = (double)cost->model->emb_dim;
    const double bytes = 2.0 * cost->tokens * emb * (double)cost->model->layers_count;
    char last[32];
    (void)snprintf(last, sizeof last, ",%.0f]", emb);
    size_t i;
    const json_t *copy;
    json_array_foreach(turned, i, copy)
    {
        const char *shape = json_string_value(json_object_get(copy, "shape"));
        turn.does |= fabs(number(copy, "bytes") - bytes) < 1.0 && shape && strstr(shape, last);
    }
    return turn;
}

#include "engine/json/encode_kernel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/kernel/families.h"

/* Microseconds to a tenth of a nanosecond: finer than any bar. */
static double us(double seconds)
{
    return round(seconds / ADV_US * 1e4) / 1e4;
}

static json_t *encode_span(struct adv_span span)
{
    if (!(span.end_s > span.start_s)) return json_null();
    return json_pack("[o,o]", adv_encode_number(us(span.start_s)), adv_encode_number(us(span.end_s)));
}

static json_t *encode_position(const struct adv_timeline *timeline, const struct adv_timeline_step *step)
{
    json_t *object = json_object();
    for (int i = 0; i < ADV_TIMELINE_AXES; i++) /* -1: an empty group has no row tile */
        if (timeline->axes[i] && step->at[i] >= 0)
            adv_encode_set_integer(object, timeline->axes[i], step->at[i]);
    return object;
}

static double last_end_s(const struct adv_timeline *timeline)
{
    return timeline->count > 0 ? timeline->steps[timeline->count - 1].whole.end_s : 0.0;
}

static json_t *encode_omitted(const struct adv_timeline *timeline)
{
    json_t *object = json_object();
    adv_encode_set_number(object, "count", timeline->omitted_count);
    adv_encode_set_number(object, "start_us", us(last_end_s(timeline)));
    adv_encode_set_number(object, "end_us", us(timeline->end_s));
    for (int lane = 0; lane < ADV_LANES; lane++) {
        char member[32];
        (void)snprintf(member, sizeof member, "%s_us", adv_lane_name((enum adv_lane)lane));
        adv_encode_set_number(object, member, us(timeline->omitted_s[lane]));
    }
    return object;
}

/* New reference: {end_us, walked, why_not_walked, representative_groups, steps: [{at, start_us, end_us,
 * dma_in, mxu, vector, dma_out: [start_us, end_us] or null}], omitted, outside_kernel}. */
static json_t *encode_timeline(const struct adv_timeline *timeline, const struct adv_kernel_time *time)
{
    json_t *object = json_object(), *steps = json_array(), *outside = json_array();
    for (int i = 0; i < timeline->count; i++) {
        const struct adv_timeline_step *step = &timeline->steps[i];
        json_t *row = json_object();
        (void)json_object_set_new(row, "at", encode_position(timeline, step));
        adv_encode_set_number(row, "start_us", us(step->whole.start_s));
        adv_encode_set_number(row, "end_us", us(step->whole.end_s));
        for (int lane = 0; lane < ADV_LANES; lane++)
            (void)json_object_set_new(row, adv_lane_name((enum adv_lane)lane),
                                      encode_span(step->lanes[lane]));
        (void)json_array_append_new(steps, row);
    }
    for (int i = 0; i < time->parts_count; i++)
        if (adv_part_is_outside(&time->parts[i]))
            (void)json_array_append_new(outside, json_pack("{s:s,s:o}", "name", time->parts[i].name, "us",
                                                           adv_encode_number(us(time->parts[i].time_s))));
    adv_encode_set_number(object, "end_us", us(timeline->end_s));
    (void)json_object_set_new(object, "walked", json_boolean(timeline->walked));
    (void)json_object_set_new(object, "why_not_walked",
                              timeline->why_not ? json_string(timeline->why_not) : json_null());
    (void)json_object_set_new(object, "representative_groups", json_boolean(timeline->representative));
    (void)json_object_set_new(object, "steps", steps);
    (void)json_object_set_new(object, "omitted", encode_omitted(timeline));
    (void)json_object_set_new(object, "outside_kernel", outside);
    return object;
}

static void add_event(json_t *events, const char *name, int thread, double start_s, double end_s,
                      json_t *args)
{
    json_t *event =
        json_pack("{s:s,s:s,s:i,s:i,s:o,s:o}", "name", name, "ph", "X", "pid", 1, "tid", thread, "ts",
                  adv_encode_number(us(start_s)), "dur", adv_encode_number(us(end_s - start_s)));
    if (args) (void)json_object_set(event, "args", args);
    (void)json_array_append_new(events, event);
}

static void add_thread(json_t *events, const char *name, int thread)
{
    (void)json_array_append_new(events, json_pack("{s:s,s:s,s:i,s:i,s:{s:s}}", "name", "thread_name", "ph",
                                                  "M", "pid", 1, "tid", thread, "args", "name", name));
}

/* New reference: the same as trace events that Perfetto and chrome://tracing read; one thread per unit. */
static json_t *encode_trace(const struct adv_timeline *timeline, const struct adv_kernel_time *time,
                            const char *kernel)
{
    json_t *root = json_object(), *events = json_array();
    (void)json_array_append_new(events, json_pack("{s:s,s:s,s:i,s:{s:s}}", "name", "process_name", "ph", "M",
                                                  "pid", 1, "args", "name", kernel));
    add_thread(events, "grid step", 0);
    for (int lane = 0; lane < ADV_LANES; lane++)
        add_thread(events, adv_lane_name((enum adv_lane)lane), lane + 1);
    for (int i = 0; i < timeline->count; i++) {
        const struct adv_timeline_step *step = &timeline->steps[i];
        json_t *args = encode_position(timeline, step);
        add_event(events, "step", 0, step->whole.start_s, step->whole.end_s, args);
        for (int lane = 0; lane < ADV_LANES; lane++)
            if (step->lanes[lane].end_s > step->lanes[lane].start_s)
                add_event(events, adv_lane_name((enum adv_lane)lane), lane + 1, step->lanes[lane].start_s,
                          step->lanes[lane].end_s, args);
        json_decref(args);
    }
    if (timeline->omitted_count > 0.0) {
        json_t *args = encode_omitted(timeline);
        add_event(events, "further steps", 0, last_end_s(timeline), timeline->end_s, args);
        json_decref(args);
    }
    double now_s = timeline->end_s; /* what surrounds the kernel is drawn after it */
    for (int i = 0; i < time->parts_count; i++) {
        if (!adv_part_is_outside(&time->parts[i])) continue;
        add_event(events, time->parts[i].name, 0, now_s, now_s + time->parts[i].time_s, NULL);
        now_s += time->parts[i].time_s;
    }
    (void)json_object_set_new(root, "displayTimeUnit", json_string("ns"));
    (void)json_object_set_new(root, "traceEvents", events);
    return root;
}

json_t *adv_encode_tile(enum adv_kernel kernel, const struct adv_kernel_choice *choice)
{
    const struct adv_kernel_members *members = &adv_kernel_family_of(kernel)->tile;
    json_t *object = json_object();
    for (int i = 0; i < members->count; i++) {
        const char *text;
        int value;
        if (!adv_kernel_member_is_written(&members->rows[i], kernel)) continue;
        adv_kernel_member_value(&members->rows[i], &choice->tile, &value, &text);
        if (text)
            adv_encode_set_string(object, members->rows[i].name, text);
        else
            adv_encode_set_integer(object, members->rows[i].name, value);
    }
    return object;
}

static json_t *encode_vmem_parts(const struct adv_kernel_request *request)
{
    struct adv_vmem_part parts[ADV_VMEM_PARTS];
    const struct adv_kernel_family *family = adv_kernel_family_of(request->kernel);
    const int count = family->vmem_parts ? family->vmem_parts(request, parts) : 0;
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

/* {use: {MaxText key: value}}; the use says which matmul of the layer the keys mean: "wi" or "wo" for grouped
 * matmuls, "attention". Null for kernels that MaxText has no keys for. */
static json_t *encode_maxtext_tiles(const struct adv_kernel_request *request,
                                    const struct adv_kernel_choice *choice)
{
    const struct adv_kernel_family *family = adv_kernel_family_of(request->kernel);
    struct adv_kernel_key keys[ADV_KERNEL_KEYS];
    if (!family->maxtext_keys) return json_null();
    json_t *uses = json_object(), *use = NULL;
    const int count = family->maxtext_keys(request, &choice->tile, keys);
    for (int i = 0; i < count; i++) {
        if (i == 0 || strcmp(keys[i].use, keys[i - 1].use) != 0)
            (void)json_object_set_new(uses, keys[i].use, use = json_object());
        if (keys[i].text)
            adv_encode_set_string(use, keys[i].name, keys[i].text);
        else
            adv_encode_set_integer(use, keys[i].name, keys[i].value);
    }
    return uses;
}

/* Null where the kernel has no tiles of the caller's. */
static json_t *encode_simulated_keys(const struct adv_kernel_request *request)
{
    const struct adv_kernel_choice choice = {.tile = request->tile};
    return adv_kernel_tiles_itself(request) ? json_null() : encode_maxtext_tiles(request, &choice);
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
        (void)json_object_set_new(object, "timeline", encode_timeline(timeline, time));
    if (timeline && request->trace)
        (void)json_object_set_new(object, "trace",
                                  encode_trace(timeline, time, adv_kernel_name(request->kernel)));
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
    const struct adv_kernel_family *family = adv_kernel_family_of(request->kernel);
    const char *why;
    if (!family->layouts) return json_null();
    json_t *object = json_object();
    adv_encode_set_string(object, "decided_by", family->layouts(request, &why));
    adv_encode_set_string(object, "why", why);
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

static json_t *encode_axis(const struct adv_tile_axis *axis)
{
    json_t *object = json_object(), *values = json_array();
    adv_encode_set_string(object, "name", axis->member->name);
    for (int i = 0; i < axis->count; i++) (void)json_array_append_new(values, json_integer(axis->values[i]));
    (void)json_object_set_new(object, "values", values);
    return object;
}

static json_t *encode_cell(enum adv_kernel kernel, const struct adv_tile_cell *cell)
{
    const struct adv_kernel_choice choice = {.tile = cell->tile, .time = cell->time};
    if (cell->state != ADV_TILE_ILLEGAL) return encode_choice(kernel, &choice);
    json_t *object = json_object();
    adv_encode_set_string(object, "broken_rule", cell->rule);
    return object;
}

static json_t *encode_map(enum adv_kernel kernel, const struct adv_tile_map *map)
{
    json_t *object = json_object(), *cells = json_array();
    for (int row = 0; row < map->rows.count; row++) {
        json_t *line = json_array();
        for (int column = 0; column < map->columns.count; column++)
            (void)json_array_append_new(line, encode_cell(kernel, &map->cells[row][column]));
        (void)json_array_append_new(cells, line);
    }
    (void)json_object_set_new(object, "rows", encode_axis(&map->rows));
    (void)json_object_set_new(object, "columns", encode_axis(&map->columns));
    adv_encode_set_number(object, "vmem_limit_bytes", map->vmem_limit_bytes);
    adv_encode_set_integer(object, "evaluated", map->evaluated_count);
    (void)json_object_set_new(object, "cells", cells);
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
    (void)json_object_set_new(object, "maxtext_keys",
                              tuning->choices_count > 0 ? encode_maxtext_tiles(request, &tuning->choices[0])
                                                        : json_null());
    (void)json_object_set_new(object, "short_list", encode_short_list(request, tuning));
    (void)json_object_set_new(object, "sweep", adv_encode_sweep(request, tuning));
    (void)json_object_set_new(object, "search", search);
    if (tuning->map) (void)json_object_set_new(object, "tile_map", encode_map(request->kernel, tuning->map));
    (void)json_object_set_new(object, "warnings", encode_warnings(warnings));
    (void)json_object_set_new(object, "engine", adv_encode_engine(catalog));
    return object;
}

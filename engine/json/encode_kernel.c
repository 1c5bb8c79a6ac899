#include "engine/json/encode_kernel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/base/units.h"
#include "engine/kernel/family.h"

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
        if (timeline->axes[i] && step->at[i] >= 0) ADV_PUT(object, ADV_M(timeline->axes[i], step->at[i]));
    return object;
}

static double last_end_s(const struct adv_timeline *timeline)
{
    return timeline->count > 0 ? timeline->steps[timeline->count - 1].whole.end_s : 0.0;
}

static json_t *encode_omitted(const struct adv_timeline *timeline)
{
    json_t *object =
        ADV_OBJECT(ADV_M("count", timeline->omitted_count), ADV_M("start_us", us(last_end_s(timeline))),
                   ADV_M("end_us", us(timeline->end_s)));
    for (int lane = 0; lane < ADV_LANES; lane++) {
        char member[32];
        (void)snprintf(member, sizeof member, "%s_us", adv_lane_name((enum adv_lane)lane));
        ADV_PUT(object, ADV_M(member, us(timeline->omitted_s[lane])));
    }
    return object;
}

static json_t *encode_part(const struct adv_kernel_part *part, double time_us)
{
    return ADV_OBJECT(ADV_F(part, name), ADV_M("us", time_us));
}

static json_t *encode_step(const struct adv_timeline *timeline, const struct adv_timeline_step *step)
{
    json_t *row =
        ADV_OBJECT(ADV_M("at", encode_position(timeline, step)), ADV_M("start_us", us(step->whole.start_s)),
                   ADV_M("end_us", us(step->whole.end_s)));
    for (int lane = 0; lane < ADV_LANES; lane++)
        ADV_PUT(row, ADV_M(adv_lane_name((enum adv_lane)lane), encode_span(step->lanes[lane])));
    return row;
}

/* New reference: {end_us, walked, why_not_walked, representative_groups, steps: [{at, start_us, end_us,
 * dma_in, mxu, vector, dma_out: [start_us, end_us] or null}], omitted, outside_kernel}. */
static json_t *encode_timeline(const struct adv_timeline *timeline, const struct adv_kernel_time *time)
{
    json_t *outside = json_array();
    for (int i = 0; i < time->parts_count; i++)
        if (adv_part_is_outside(&time->parts[i]))
            (void)json_array_append_new(outside, encode_part(&time->parts[i], us(time->parts[i].time_s)));
    ADV_LIST(steps, i, timeline->count, encode_step(timeline, &timeline->steps[i]));
    return ADV_OBJECT(ADV_M("end_us", us(timeline->end_s)), ADV_F(timeline, walked),
                      ADV_M("why_not_walked", timeline->why_not),
                      ADV_M("representative_groups", timeline->representative), ADV_M("steps", steps),
                      ADV_M("omitted", encode_omitted(timeline)), ADV_M("outside_kernel", outside));
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
    json_t *events = json_array();
    (void)json_array_append_new(events, json_pack("{s:s,s:s,s:i,s:{s:s}}", "name", "process_name", "ph", "M",
                                                  "pid", 1, "args", "name", kernel));
    add_thread(events, "grid step", 0);
    for (int lane = 0; lane < ADV_LANES; lane++)
        add_thread(events, adv_lane_name((enum adv_lane)lane), lane + 1);
    for (int i = 0; i < timeline->count; i++) {
        const struct adv_timeline_step *step = &timeline->steps[i];
        ADV_JSON_OWN json_t *args = encode_position(timeline, step);
        add_event(events, "step", 0, step->whole.start_s, step->whole.end_s, args);
        for (int lane = 0; lane < ADV_LANES; lane++)
            if (step->lanes[lane].end_s > step->lanes[lane].start_s)
                add_event(events, adv_lane_name((enum adv_lane)lane), lane + 1, step->lanes[lane].start_s,
                          step->lanes[lane].end_s, args);
    }
    if (timeline->omitted_count > 0.0) {
        ADV_JSON_OWN json_t *args = encode_omitted(timeline);
        add_event(events, "further steps", 0, last_end_s(timeline), timeline->end_s, args);
    }
    double now_s = timeline->end_s; /* what surrounds the kernel is drawn after it */
    for (int i = 0; i < time->parts_count; i++) {
        if (!adv_part_is_outside(&time->parts[i])) continue;
        add_event(events, time->parts[i].name, 0, now_s, now_s + time->parts[i].time_s, NULL);
        now_s += time->parts[i].time_s;
    }
    return ADV_OBJECT(ADV_M("displayTimeUnit", "ns"), ADV_M("traceEvents", events));
}

static json_t *encode_tile(enum adv_kernel kernel, const struct adv_kernel_choice *choice)
{
    const struct adv_kernel_members *members = &adv_kernel_family_of(kernel)->tile;
    json_t *object = json_object();
    for (int i = 0; i < members->count; i++) {
        const char *text;
        int value;
        if (!adv_kernel_member_is_written(&members->rows[i], kernel)) continue;
        adv_kernel_member_value(&members->rows[i], &choice->tile, &value, &text);
        ADV_PUT(object, ADV_M(members->rows[i].name, text ? adv_encode_string(text) : json_integer(value)));
    }
    return object;
}

static json_t *encode_vmem_parts(const struct adv_kernel_request *request)
{
    struct adv_vmem_part parts[ADV_VMEM_PARTS];
    const struct adv_kernel_family *family = adv_kernel_family_of(request->kernel);
    const int count = adv_kernel_tiles_itself(request)
                          ? 0
                          : family->vmem_parts(&request->chip->chip, request, &request->tile, parts);
    ADV_LIST(list, i, count, ADV_OBJECT(ADV_F(&parts[i], name), ADV_M("bytes", round(parts[i].bytes))));
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
        ADV_PUT(use, ADV_M(keys[i].name,
                           keys[i].text ? adv_encode_string(keys[i].text) : json_integer(keys[i].value)));
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
    /* XLA fits its own operations itself. */
    const double limit_kib =
        time->vmem_bytes > 0.0
            ? adv_vmem_needed_limit_kib(&request->chip->chip, request->kernel, time->vmem_bytes)
            : (double)NAN;
    ADV_LIST(parts, i, time->parts_count, encode_part(&time->parts[i], time->parts[i].time_s / ADV_US));
    json_t *steps = NULL, *trace = NULL;
    if (timeline && request->timeline) steps = encode_timeline(timeline, time);
    if (timeline && request->trace) trace = encode_trace(timeline, time, adv_kernel_name(request->kernel));
    return ADV_OBJECT(
        ADV_M("chip", request->chip->chip.name), ADV_M("kernel", adv_kernel_name(request->kernel)),
        ADV_M("time_us", time->time_s / ADV_US), ADV_F(time, fits_vmem),
        ADV_M("vmem_bytes", round(time->vmem_bytes)),
        ADV_M("vmem_limit_bytes", round(time->vmem_limit_bytes)),
        ADV_M("scoped_vmem_limit_needed_kib", limit_kib), ADV_M("vmem_parts", encode_vmem_parts(request)),
        ADV_F(time, grid_steps), ADV_M("bound", adv_resource_name(time->bound)),
        ADV_M("mxu_busy_us", time->mxu_busy_s / ADV_US), ADV_M("hbm_bytes", round(time->hbm_bytes)),
        ADV_M("parts", parts), ADV_F(time, extrapolated),
        ADV_M("maxtext_keys", encode_simulated_keys(request)), ADV_M("warnings", encode_warnings(warnings)),
        ADV_M_IF(steps, "timeline", steps), ADV_M_IF(trace, "trace", trace),
        ADV_M("engine", adv_encode_engine(catalog)));
}

static json_t *encode_choice(enum adv_kernel kernel, const struct adv_kernel_choice *choice)
{
    return ADV_OBJECT(ADV_M("tile", encode_tile(kernel, choice)),
                      ADV_M("time_us", choice->time.time_s / ADV_US),
                      ADV_M("vmem_bytes", round(choice->time.vmem_bytes)), ADV_F(&choice->time, fits_vmem),
                      ADV_M("bound", adv_resource_name(choice->time.bound)));
}

static json_t *encode_ranked(enum adv_kernel kernel, const struct adv_kernel_choice *choice)
{
    json_t *object = encode_choice(kernel, choice);
    ADV_PUT(object, ADV_M("chance_frac", choice->chance_frac));
    return object;
}

static json_t *encode_listed(enum adv_kernel kernel, const struct adv_kernel_listed *listed)
{
    json_t *entry = encode_choice(kernel, &listed->best);
    ADV_LIST(others, i, listed->others_count, encode_choice(kernel, &listed->others[i]));
    ADV_PUT(entry, ADV_M("near_equal", others));
    return entry;
}

/* Why the ranked tiles have the layouts they have; null where the kernel has none. */
static json_t *encode_layouts(const struct adv_kernel_request *request)
{
    const struct adv_kernel_family *family = adv_kernel_family_of(request->kernel);
    const char *why;
    if (!family->layouts) return json_null();
    const char *decided_by = family->layouts(request, &why);
    return ADV_OBJECT(ADV_M("decided_by", decided_by), ADV_M("why", why));
}

static json_t *encode_next(const struct adv_kernel_request *request, const struct adv_kernel_tuning *tuning)
{
    if (!tuning->has_next) return json_null();
    json_t *object = encode_choice(request->kernel, &tuning->next);
    ADV_PUT(object, ADV_M("fits_vmem", json_true()), ADV_M("scoped_vmem_limit_kib", tuning->next_limit_kib));
    return object;
}

static json_t *encode_axis(const struct adv_tile_axis *axis)
{
    ADV_LIST(values, i, axis->count, json_integer(axis->values[i]));
    return ADV_OBJECT(ADV_M("name", axis->member->name), ADV_M("values", values));
}

static json_t *encode_cell(enum adv_kernel kernel, const struct adv_tile_cell *cell)
{
    const struct adv_kernel_choice choice = {.tile = cell->tile, .time = cell->time};
    if (cell->state != ADV_TILE_ILLEGAL) return encode_choice(kernel, &choice);
    return ADV_OBJECT(ADV_M("broken_rule", cell->rule));
}

static json_t *encode_map_row(enum adv_kernel kernel, const struct adv_tile_map *map, int row)
{
    ADV_LIST(line, i, map->columns.count, encode_cell(kernel, &map->cells[row][i]));
    return line;
}

static json_t *encode_map(enum adv_kernel kernel, const struct adv_tile_map *map)
{
    ADV_LIST(cells, row, map->rows.count, encode_map_row(kernel, map, row));
    return ADV_OBJECT(ADV_M("rows", encode_axis(&map->rows)), ADV_M("columns", encode_axis(&map->columns)),
                      ADV_F(map, vmem_limit_bytes), ADV_M("evaluated", map->evaluated_count),
                      ADV_M("cells", cells));
}

/* One row of TILES: values in the order of NAMES, the predicted time beside them. */
static void write_tile(struct adv_text *text, json_t *tiles, enum adv_kernel kernel,
                       const struct adv_kernel_choice *choice)
{
    json_t *tile = encode_tile(kernel, choice);
    int count = 0;
    adv_text_append(text, "    (");
    for (struct adv_json_walk entry = {.in = tile}; adv_json_next_member(&entry);) {
        if (count++) adv_text_append(text, ", ");
        if (json_is_string(entry.value))
            adv_text_format(text, "\"%s\"", json_string_value(entry.value));
        else
            adv_text_format(text, "%lld", (long long)json_integer_value(entry.value));
    }
    adv_text_format(text, "),  # predicted %.1f us\n", choice->time.time_s * 1e6);
    (void)json_array_append_new(tiles, tile);
}

static void write_tiles(struct adv_text *text, json_t *tiles, const struct adv_kernel_request *request,
                        const struct adv_kernel_tuning *tuning)
{
    ADV_JSON_OWN json_t *first = encode_tile(request->kernel, &tuning->short_list[0].best);
    int count = 0;
    adv_text_append(text, "NAMES = (");
    for (struct adv_json_walk entry = {.in = first}; adv_json_next_member(&entry);)
        adv_text_format(text, "%s\"%s\"", count++ ? ", " : "", entry.key);
    adv_text_append(text, ")\nTILES = [\n");
    for (int i = 0; i < tuning->short_list_count; i++) {
        const struct adv_kernel_listed *listed = &tuning->short_list[i];
        write_tile(text, tiles, request->kernel, &listed->best);
        for (int k = 0; k < listed->others_count; k++)
            write_tile(text, tiles, request->kernel, &listed->others[k]);
    }
    adv_text_append(text, "]\n");
}

/* {tune_jax: python text that times the short list, tiles: its rows}; null when the list is empty. Names of
 * kernels and their arguments are those of jax.experimental and, for grouped matmuls and the fused loss, of
 * tokamax's kernel modules, which MaxText calls too. */
static json_t *encode_sweep(const struct adv_kernel_request *request, const struct adv_kernel_tuning *tuning)
{
    const struct adv_kernel_family *family = adv_kernel_family_of(request->kernel);
    if (tuning->short_list_count == 0) return json_null();
    json_t *tiles = json_array();
    struct adv_text text = adv_text_empty(ADV_LIMIT_BODY_BYTES);
    adv_text_format(&text, "# Times the short list of %s on a %s. Needs: pip install tune-jax%s\n",
                    adv_kernel_name(request->kernel), request->chip->chip.name, family->sweep_needs);
    if (request->scoped_vmem_limit_bytes > 0.0)
        adv_text_format(&text, "# Run with LIBTPU_INIT_ARGS=--xla_tpu_scoped_vmem_limit_kib=%.0f\n",
                        request->scoped_vmem_limit_bytes / 1024.0);
    const char *lines[ADV_SWEEP_DIFFERENCES];
    const int differences = family->differences ? family->differences(request, lines) : 0;
    for (int i = 0; i < differences; i++) adv_text_format(&text, "# Not as tuned: %s\n", lines[i]);
    adv_text_append(&text, "import jax\nimport jax.numpy as jnp\nimport numpy as np\nimport tune_jax\n");
    family->sweep(&text, request);
    write_tiles(&text, tiles, request, tuning);
    adv_text_append(&text, "tune_jax.tune_logger.setLevel(\"INFO\")\n"
                           "tuned = tune_jax.tune(run, hyperparams={\"tile\": TILES})\n"
                           "jax.block_until_ready(tuned(*arguments))\n"
                           "print(tuned.optimal_hyperparams)\n");
    json_t *sweep = json_object();
    (void)json_object_set_new(sweep, "tiles", tiles);
    (void)json_object_set_new(sweep, "tune_jax", text.data ? json_string(text.data) : json_null());
    adv_text_free(&text);
    return sweep;
}

json_t *adv_encode_tuning(const struct adv_catalog *catalog, const struct adv_kernel_request *request,
                          const struct adv_kernel_tuning *tuning, const adv_err *warnings)
{
    const enum adv_kernel kernel = request->kernel;
    ADV_LIST(ranked, i, tuning->choices_count, encode_ranked(kernel, &tuning->choices[i]));
    ADV_LIST(short_list, i, tuning->short_list_count, encode_listed(kernel, &tuning->short_list[i]));
    return ADV_OBJECT(
        ADV_M("chip", request->chip->chip.name), ADV_M("kernel", adv_kernel_name(kernel)),
        ADV_M("ranked", ranked), ADV_M("layouts", encode_layouts(request)),
        ADV_M("default", tuning->has_standard ? encode_choice(kernel, &tuning->standard) : json_null()),
        ADV_M("next_better", encode_next(request, tuning)),
        ADV_M("maxtext_keys",
              tuning->choices_count > 0 ? encode_maxtext_tiles(request, &tuning->choices[0]) : json_null()),
        ADV_M("short_list", short_list), ADV_M("sweep", encode_sweep(request, tuning)),
        ADV_M("search",
              ADV_OBJECT(ADV_M("evaluated", tuning->evaluated_count), ADV_M("exhaustive", json_true()))),
        ADV_M_IF(tuning->map, "tile_map", encode_map(kernel, tuning->map)),
        ADV_M("warnings", encode_warnings(warnings)), ADV_M("engine", adv_encode_engine(catalog)));
}

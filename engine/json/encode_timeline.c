/* encode_timeline.c: the picture of a simulated kernel, as a list of grid steps and as a trace. */
#include "engine/json/encode_timeline.h"

#include <math.h>
#include <stdio.h>

#include "engine/base/units.h"
#include "engine/json/encode_common.h"

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

json_t *adv_encode_timeline(const struct adv_timeline *timeline, const struct adv_kernel_time *time)
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

json_t *adv_encode_kernel_trace(const struct adv_timeline *timeline, const struct adv_kernel_time *time,
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

#include "engine/kernel/timeline.h"

#include <math.h>
#include <string.h>

#include "engine/base/limits.h"
#include "engine/base/text.h"
#include "engine/kernel/core.h"

ADV_NAMES(adv_lane_name, enum adv_lane, "dma_in", "mxu", "vector", "dma_out")

bool adv_part_is_outside(const struct adv_kernel_part *part)
{
    static const char *const names[] = {
        "wrapper_transposes", "wrapper_residuals", "wrapper_narrow_heads", "dq_reduction", "launch",
        "residual_copy",      "ring_merge",        "ring_launch"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(part->name, names[i]) == 0) return true;
    return false;
}

double adv_timeline_inside_s(const struct adv_kernel_time *time)
{
    double inside_s = time->time_s;
    for (int i = 0; i < time->parts_count; i++)
        if (adv_part_is_outside(&time->parts[i])) inside_s -= time->parts[i].time_s;
    return inside_s;
}

struct adv_timeline_pen adv_timeline_pen_of(struct adv_timeline *timeline, double all_steps, double end_s,
                                            double dma_s)
{
    return (struct adv_timeline_pen){
        .timeline = timeline, .dma_latest_s = end_s - dma_s, .all_steps = all_steps};
}

void adv_timeline_share_waits(struct adv_timeline_pen *pen, double wait_s, double shared_s, double first_in_s,
                              double last_out_s)
{
    pen->first_s = adv_min(wait_s, first_in_s);
    pen->last_s = adv_min(wait_s - pen->first_s, last_out_s);
    pen->wait_frac = shared_s > 0.0 ? (wait_s - pen->first_s - pen->last_s) / shared_s : 0.0;
}

bool adv_timeline_draw(struct adv_timeline_pen *pen, const int64_t at[ADV_TIMELINE_AXES],
                       const struct adv_timeline_cost *cost)
{
    struct adv_timeline *timeline = pen->timeline;
    const double first_s = pen->steps == 0.0 ? pen->first_s : 0.0;
    const double last_s = pen->steps + 1.0 == pen->all_steps ? pen->last_s : 0.0;
    const double start = pen->now_s, computing = start + cost->lead_s + cost->wait_s + first_s;
    const double computed = computing + cost->compute_s, end = computed + last_s;
    const double in = adv_min(adv_max(pen->dma_free_s, start), pen->dma_latest_s), loaded = in + cost->in_s;
    const double out = last_s > 0.0 ? adv_max(loaded, end - cost->out_s) : loaded;
    pen->now_s = end;
    pen->dma_free_s = out + cost->out_s;
    pen->dma_latest_s += cost->in_s + cost->out_s;
    pen->steps += 1.0;
    if (timeline->count < timeline->capacity) {
        struct adv_timeline_step *step = &timeline->steps[timeline->count++];
        memcpy(step->at, at, sizeof step->at);
        step->whole = (struct adv_span){start, end};
        step->lanes[ADV_LANE_DMA_IN] = (struct adv_span){in, loaded};
        const int before = cost->product_first ? ADV_LANE_MXU : ADV_LANE_VECTOR;
        const int after = cost->product_first ? ADV_LANE_VECTOR : ADV_LANE_MXU;
        const double before_s = cost->product_first ? cost->mxu_s : cost->vector_s;
        const double after_s = cost->product_first ? cost->vector_s : cost->mxu_s;
        step->lanes[before] = (struct adv_span){computing, computing + before_s};
        step->lanes[after] = (struct adv_span){computed - after_s, computed};
        step->lanes[ADV_LANE_DMA_OUT] = (struct adv_span){out, pen->dma_free_s};
    } else {
        timeline->omitted_s[ADV_LANE_DMA_IN] += cost->in_s;
        timeline->omitted_s[ADV_LANE_MXU] += cost->mxu_s;
        timeline->omitted_s[ADV_LANE_VECTOR] += cost->vector_s;
        timeline->omitted_s[ADV_LANE_DMA_OUT] += cost->out_s;
    }
    return pen->steps < ADV_LIMIT_TIMELINE_WALK;
}

void adv_timeline_close(struct adv_timeline_pen *pen, bool walked, double end_s)
{
    struct adv_timeline *timeline = pen->timeline;
    timeline->walked = walked;
    timeline->end_s = walked ? pen->now_s : end_s;
    timeline->omitted_count = pen->all_steps - timeline->count;
    if (walked) return;
    timeline->why_not = "the grid is too long to walk: the list ends before it, its end is the closed form's";
    for (int i = 0; i < ADV_LANES; i++) timeline->omitted_s[i] = (double)NAN;
}

void adv_one_step_timeline(const struct adv_kernel_machine *machine, const struct adv_kernel_time *time,
                           struct adv_timeline *timeline)
{
    const double kernel_s = adv_timeline_inside_s(time);
    double vector_s = 0.0;
    for (int i = 0; i < time->parts_count; i++)
        if (strcmp(time->parts[i].name, "vector") == 0) vector_s = time->parts[i].time_s;
    const double bw = machine->chip->hbm_achieved_frac * adv_core_hbm_bytes_per_s(machine->chip);
    const double mxu_s = adv_min(time->mxu_busy_s, kernel_s);
    struct adv_timeline_cost cost = {
        .in_s = adv_min(kernel_s, time->hbm_bytes / bw),
        .mxu_s = mxu_s,
        .vector_s = vector_s,
        .compute_s = adv_min(kernel_s, mxu_s + vector_s),
    };
    cost.lead_s = kernel_s - cost.compute_s;
    static const int64_t origin[ADV_TIMELINE_AXES];
    struct adv_timeline_pen pen = adv_timeline_pen_of(timeline, 1.0, kernel_s, cost.in_s);
    (void)adv_timeline_draw(&pen, origin, &cost);
    timeline->end_s = kernel_s;
    timeline->why_not = "XLA chooses the tiles of its own operations: one step stands for all";
}

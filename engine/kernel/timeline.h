/* timeline.h: a simulated kernel step by step: when each grid step moves and computes.
 *
 * The grid is walked in the order the kernel runs it, with the step costs that the closed forms sum, so the
 * last step ends at the closed form's time of the kernel itself (launch, wrapper and dQ reduction excluded).
 * The closed form's waits for DMA are handed out in this order: the first step's load and the last step's
 * store, which have nothing to hide behind; then the rest, for grouped matmuls of version 1 to the steps that
 * the closed form has wait, for the others in proportion to what a step moves. A kernel whose time holds less
 * waiting than its first load shows that load overlapping its own step. DMA runs ahead of the steps where it
 * must, to end with them. Bytes of a block stand in the step that they are charged to; with two buffers they
 * are on the way one step earlier. Output of grouped matmuls is spread evenly over the visits.
 * A ring is a grid per shard of keys, in the order of the keys; launches and merges between them are outside.
 * On megacore chips whose cores share the grid a step lasts 1/cores of what one core takes.
 */
#pragma once

#include "engine/kernel/kernel.h"
#include "engine/kernel/request.h"

enum adv_lane { ADV_LANE_DMA_IN, ADV_LANE_MXU, ADV_LANE_VECTOR, ADV_LANE_DMA_OUT, ADV_LANES };
enum { ADV_TIMELINE_AXES = 4 };
const char *adv_lane_name(enum adv_lane lane);

struct adv_span {
    double start_s, end_s; /* equal: nothing happens */
};

struct adv_timeline_step {
    int64_t at[ADV_TIMELINE_AXES]; /* where in the grid; names in adv_timeline.axes */
    struct adv_span whole, lanes[ADV_LANES];
};

struct adv_timeline {
    struct adv_timeline_step *steps; /* the caller's, `capacity` of them */
    int capacity, count;
    const char *axes[ADV_TIMELINE_AXES]; /* NULL: unused */
    double end_s;                /* of the kernel, by walking when `walked`, else by the closed form */
    bool walked;                 /* false: one step stands for all, or the list ends before the grid does */
    const char *why_not;         /* a sentence when not walked, else NULL */
    bool representative;         /* group sizes were made up from their distribution */
    double omitted_count;        /* steps past the listed ones; they run from the last listed end to end_s */
    double omitted_s[ADV_LANES]; /* busy time of the omitted; NAN when not walked */
};

/* Fill *timeline, of which the caller sets steps and capacity. Errors are those of adv_splash_time,
 * adv_gmm_time, and ADV_E_RANGE for a batch that is not whole. Cost: one pass over at most
 * ADV_LIMIT_TIMELINE_WALK grid steps. */
ADV_MUST_CHECK adv_code adv_splash_timeline(const struct adv_kernel_machine *machine,
                                            const struct adv_kernel_request *request,
                                            struct adv_timeline *timeline, adv_err *err);

/* Without given sizes the groups are representative. Version 1: as many non-empty ones as expected, of about
 * equal size (Zipf: proportional to 1/rank) and off the tile edges unless balanced. Version 2: the sizes the
 * closed form counts (adv_gmm_sizes); multinomial ones are spread as widely as their draws. */
ADV_MUST_CHECK adv_code adv_gmm_timeline(const struct adv_kernel_machine *machine,
                                         const struct adv_kernel_request *request,
                                         struct adv_timeline *timeline, adv_err *err);

/* XLA's own operations as one step: it chooses their tiles, the model has no grid of theirs. */
void adv_one_step_timeline(const struct adv_kernel_machine *machine, const struct adv_kernel_time *time,
                           struct adv_timeline *timeline);

/* Time of `time` outside the kernel's grid: launch, wrapper, reduction, residual copy; and inside it. */
bool adv_part_is_outside(const struct adv_kernel_part *part);
double adv_timeline_inside_s(const struct adv_kernel_time *time);

/* The walks' pen: one step after another. For timeline_*.c. */
struct adv_timeline_pen {
    struct adv_timeline *timeline;
    double now_s, dma_free_s;
    double dma_latest_s;     /* the next bytes must be on their way by then */
    double first_s, last_s;  /* that the first step waits for its load, the last for its store */
    double wait_frac;        /* waiting per second of DMA, or of what the closed form has a step wait */
    double steps, all_steps; /* drawn so far, and of the grid */
};
struct adv_timeline_cost {
    double lead_s; /* step overhead */
    double wait_s; /* for DMA */
    double in_s, out_s, mxu_s, vector_s;
    double compute_s;   /* of both units, overlaps counted */
    bool product_first; /* the vector unit works on what the array made; else the other way round */
};

/* A pen for a grid of `all_steps` that takes end_s and moves for dma_s. Then: of `wait_s` that it waits,
 * first_in_s at its first step and last_out_s at its last go before the rest, which is shared out over
 * `shared_s`. */
struct adv_timeline_pen adv_timeline_pen_of(struct adv_timeline *timeline, double all_steps, double end_s,
                                            double dma_s);
void adv_timeline_share_waits(struct adv_timeline_pen *pen, double wait_s, double shared_s, double first_in_s,
                              double last_out_s);

/* False: the walk is long enough. */
bool adv_timeline_draw(struct adv_timeline_pen *pen, const int64_t at[ADV_TIMELINE_AXES],
                       const struct adv_timeline_cost *cost);

/* Ends the timeline: at the pen when the grid was walked to its end, else at `end_s`. */
void adv_timeline_close(struct adv_timeline_pen *pen, bool walked, double end_s);

/* Version 2 of the grouped matmul, with given sizes: called by adv_gmm_timeline. */
void adv_gmm_v2_walk(const struct adv_kernel_machine *machine, const struct adv_gmm_shape *shape,
                     const struct adv_kernel_time *time, struct adv_timeline *timeline);

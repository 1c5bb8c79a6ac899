/* timeline.h: a simulated kernel step by step: when each grid step moves and computes.
 *
 * The grid is walked in the order the kernel runs it, with the step costs that the closed forms sum, so the
 * last step ends at the closed form's time of the kernel itself (launch, wrapper and dQ reduction excluded).
 * Grouped matmuls: a step lasts as long as the longer of its own DMA and compute plus what does not hide.
 * Attention: DMA runs ahead over the whole grid, as in the closed form; when the whole waits for DMA, steps
 * wait in proportion to what they move. Bytes of a block stand in the step that they are charged to; with two
 * buffers they are on the way one step earlier. Output of grouped matmuls is spread evenly over the visits.
 * On megacore chips whose cores share the grid a step lasts 1/cores of what one core takes.
 */
#ifndef ADV_KERNEL_TIMELINE_H
#define ADV_KERNEL_TIMELINE_H

#include "engine/kernel/kernel.h"

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
    double end_s; /* of the kernel, by walking when `walked`, else by the closed form */
    bool walked;  /* false: the grid is longer than ADV_LIMIT_TIMELINE_WALK, or has no walk (one step) */
    bool representative;         /* group sizes were made up from their distribution */
    double omitted_count;        /* steps past the listed ones; they run from the last listed end to end_s */
    double omitted_s[ADV_LANES]; /* busy time of the omitted; NAN when not walked */
};

/* Fill *timeline, of which the caller sets steps and capacity. Errors are those of adv_splash_time and
 * adv_gmm_time, and ADV_E_RANGE for a batch that is not whole. Cost: one pass over at most
 * ADV_LIMIT_TIMELINE_WALK grid steps. */
ADV_MUST_CHECK adv_code adv_splash_timeline(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                                            const struct adv_attention_shape *shape,
                                            const struct adv_attention_tile *tile,
                                            const struct adv_attention_flags *flags,
                                            struct adv_timeline *timeline, adv_err *err);

/* Version 1 kernels. Without given sizes the groups are representative: as many non-empty ones as expected,
 * of about equal size (Zipf: proportional to 1/rank) and off the tile edges unless balanced. */
ADV_MUST_CHECK adv_code adv_gmm_timeline(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                                         const struct adv_gmm_shape *shape, const struct adv_gmm_tile *tile,
                                         struct adv_timeline *timeline, adv_err *err);

/* A kernel without a walk (dense matmul, fused loss, GMM v2, XLA) as one step. */
void adv_one_step_timeline(const struct adv_kernel_machine *machine, const struct adv_kernel_time *time,
                           struct adv_timeline *timeline);

/* Time of `time` outside the kernel's grid: launch, wrapper, reduction, residual copy. */
bool adv_part_is_outside(const struct adv_kernel_part *part);

/* The walks' pen: one step after another. For timeline_*.c. */
struct adv_timeline_pen {
    struct adv_timeline *timeline;
    double now_s, dma_free_s;
    double dma_latest_s; /* the next bytes must be on their way by then; INFINITY: no matter */
    double steps;
};
struct adv_timeline_cost {
    double lead_s; /* step overhead and waiting */
    double in_s, out_s, mxu_s, vector_s;
    double compute_s; /* of both units, overlaps counted */
    double total_s;   /* >= lead_s + compute_s */
};
/* False: the walk is long enough. */
bool adv_timeline_draw(struct adv_timeline_pen *pen, const int64_t at[ADV_TIMELINE_AXES],
                       const struct adv_timeline_cost *cost);

#endif

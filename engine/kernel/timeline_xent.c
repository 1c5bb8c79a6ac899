#include "engine/kernel/timeline.h"
#include "engine/kernel/xent.h"

/* One step: forward's only stage and backward's first make logits, the second makes gradients of them. */
static bool draw(struct adv_timeline_pen *pen, const struct adv_xent_unit *u,
                 const int64_t at[ADV_TIMELINE_AXES])
{
    const int64_t v = at[1], h = at[2], stage = at[3];
    const bool gradients = stage == 1;
    const bool fetches_x = u->h_tiles > 1 || v == 0; /* a block as wide as x stays */
    const bool logits_done = u->stages == 1 ? h == u->h_tiles - 1 : gradients && h == 0;
    struct adv_timeline_cost cost = {
        .lead_s = u->step_s,
        .in_s = u->w_s + (fetches_x ? u->x_s : 0.0),
        .out_s = gradients ? u->gradient_s : 0.0,
        .mxu_s = u->product_s * (gradients ? 2.0 : 1.0),
        .vector_s = logits_done ? u->vector_s : 0.0,
        .product_first = !gradients,
    };
    cost.compute_s = cost.mxu_s + cost.vector_s;
    cost.wait_s = pen->wait_frac * (cost.in_s + cost.out_s);
    return adv_timeline_draw(pen, at, &cost);
}

static bool walk_grid(struct adv_timeline_pen *pen, const struct adv_xent_unit *u)
{
    for (int64_t b = 0; b < u->b_tiles; b++)
        for (int64_t v = 0; v < u->v_tiles; v++)
            for (int64_t stage = 0; stage < u->stages; stage++)
                for (int64_t h = 0; h < u->h_tiles; h++) {
                    const int64_t at[ADV_TIMELINE_AXES] = {b, v, h, stage};
                    if (!draw(pen, u, at)) return false;
                }
    return true;
}

adv_code adv_xent_timeline(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                           const struct adv_xent_shape *shape, const struct adv_xent_tile *tile,
                           struct adv_timeline *timeline, adv_err *err)
{
    struct adv_kernel_time time;
    struct adv_xent_unit unit;
    const adv_code bad = adv_xent_time(machine, kernel, shape, tile, &time, err);
    if (bad) return bad;
    const double end_s = adv_timeline_inside_s(&time);
    adv_xent_unit_of(machine, kernel, shape, tile, &unit);
    timeline->axes[0] = "token_block";
    timeline->axes[1] = "vocab_block";
    timeline->axes[2] = "width_block";
    if (unit.stages > 1) timeline->axes[3] = "stage";
    struct adv_timeline_pen pen = adv_timeline_pen_of(timeline, time.grid_steps, end_s, unit.dma_s);
    adv_timeline_share_waits(&pen, unit.exposed_s, unit.dma_s, unit.w_s + unit.x_s,
                             unit.stages > 1 ? unit.gradient_s : 0.0);
    adv_timeline_close(&pen, walk_grid(&pen, &unit), end_s);
    return ADV_OK;
}

#include "engine/base/limits.h"
#include "engine/base/units.h"
#include "engine/kernel/gmm_v2.h"
#include "engine/kernel/timeline.h"

/* `rows` of a group against one tile of columns. */
static bool draw(struct adv_timeline_pen *pen, const struct adv_gmm_v2_unit *u, const int64_t at[],
                 int64_t rows, bool new_group)
{
    const double computed = (double)adv_round_up(rows, u->bucket);
    struct adv_timeline_cost cost = {
        .lead_s = u->step_s,
        .in_s = (double)rows * u->row_in_s + (new_group ? u->weight_s : 0.0),
        .out_s = (double)rows * u->row_out_s,
        .mxu_s = computed * u->row_mxu_s,
        .vector_s = (computed + u->tail_rows) * u->row_tail_s,
    };
    cost.compute_s = cost.mxu_s + cost.vector_s;
    cost.wait_s = pen->wait_frac * (cost.in_s + cost.out_s);
    return adv_timeline_draw(pen, at, &cost);
}

static bool walk_groups(struct adv_timeline_pen *pen, const struct adv_gmm_v2_unit *u,
                        const struct adv_gmm_shape *shape, int64_t n_tile, long *looked)
{
    for (int g = 0; g < shape->num_groups; g++) {
        if (++*looked > ADV_LIMIT_TIMELINE_WALK) return false;
        for (int64_t row = 0; row < shape->group_sizes[g]; row += u->tile_m) {
            const int64_t at[ADV_TIMELINE_AXES] = {n_tile, g, row / u->tile_m};
            if (!draw(pen, u, at, adv_min_i(u->tile_m, shape->group_sizes[g] - row), row == 0)) return false;
        }
    }
    return true;
}

void adv_gmm_v2_walk(const struct adv_kernel_machine *machine, const struct adv_gmm_shape *shape,
                     const struct adv_kernel_time *time, struct adv_timeline *timeline)
{
    struct adv_gmm_v2_unit unit;
    const double end_s = adv_timeline_inside_s(time);
    adv_gmm_v2_unit_of(machine, shape, &unit);
    int64_t first = 0, last = 0; /* rows of the first step and of the last */
    for (int g = 0; g < shape->num_groups; g++) {
        const int64_t size = shape->group_sizes[g];
        if (size <= 0) continue;
        if (first == 0) first = adv_min_i(size, unit.tile_m);
        last = (size - 1) % unit.tile_m + 1;
    }
    timeline->axes[0] = "n_tile";
    timeline->axes[1] = "group";
    timeline->axes[2] = "row_tile";
    struct adv_timeline_pen pen = adv_timeline_pen_of(timeline, time->grid_steps, end_s, unit.dma_s);
    adv_timeline_share_waits(&pen, unit.exposed_s, unit.dma_s, (double)first * unit.row_in_s + unit.weight_s,
                             (double)last * unit.row_out_s);
    bool walked = true;
    long looked = 0;
    for (int64_t n = 0; n < unit.n_tiles && walked; n++) walked = walk_groups(&pen, &unit, shape, n, &looked);
    adv_timeline_close(&pen, walked, end_s);
}

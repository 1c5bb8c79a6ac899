#include <math.h>
#include <string.h>

#include "engine/base/limits.h"
#include "engine/base/units.h"
#include "engine/kernel/gmm.h"
#include "engine/kernel/gmm_visits.h"
#include "engine/kernel/timeline.h"

struct walk {
    const struct adv_gmm_shape *shape;
    const int64_t *sizes;
    int64_t tile_m;
    bool is_tgmm;
    struct adv_gmm_unit unit;
    struct adv_timeline_pen pen;
    long looked; /* groups asked for, also empty ones */
};

static bool draw(struct walk *walk, const int64_t at[ADV_TIMELINE_AXES], bool new_rows, bool new_group)
{
    const struct adv_gmm_unit *u = &walk->unit;
    struct adv_timeline_cost cost = {.lead_s = u->step_s,
                                     .in_s = ((new_rows || u->streams_all ? u->row_bytes : 0.0) +
                                              (new_group || u->streams_all ? u->weight_bytes : 0.0)) /
                                             u->bytes_per_s,
                                     .out_s = u->out_bytes / u->bytes_per_s,
                                     .mxu_s = u->mxu_s,
                                     .vector_s = u->vector_s};
    cost.compute_s = u->mxu_s + u->vector_s;
    cost.wait_s =
        walk->pen.wait_frac * adv_gmm_exposed_s(cost.in_s + cost.out_s, cost.compute_s, u->overlap_frac);
    return adv_timeline_draw(&walk->pen, at, &cost);
}

/* One pass over the groups; `at` names the n tile, tgmm's k tile too. */
static bool walk_visits(struct walk *walk, int64_t at[ADV_TIMELINE_AXES])
{
    int64_t start = 0, last_row_tile = -1;
    for (int g = 0; g < walk->shape->num_groups; g++) {
        const int64_t size = walk->sizes[g], end = adv_div_up(start + size, walk->tile_m);
        if (++walk->looked > ADV_LIMIT_TIMELINE_WALK) return false;
        at[2] = g;
        if (size <= 0) {
            const struct adv_timeline_cost cost = {.lead_s = walk->unit.step_s};
            at[3] = -1;
            if (walk->is_tgmm && !adv_timeline_draw(&walk->pen, at, &cost)) return false;
            continue;
        }
        for (int64_t row_tile = start / walk->tile_m; row_tile < end; row_tile++) {
            const bool new_rows = row_tile != last_row_tile, new_group = row_tile == start / walk->tile_m;
            at[3] = row_tile;
            const int64_t inner = walk->is_tgmm ? 1 : walk->unit.k_tiles;
            for (int64_t k = 0; k < inner; k++) {
                if (!walk->is_tgmm) at[1] = k;
                if (!draw(walk, at, new_rows, new_group)) return false;
            }
            last_row_tile = row_tile;
        }
        start += size;
    }
    return true;
}

static bool walk_grid(struct walk *walk)
{
    const int64_t outer = walk->is_tgmm ? walk->unit.k_tiles : 1;
    for (int64_t n = 0; n < walk->unit.n_tiles; n++)
        for (int64_t k = 0; k < outer; k++) {
            int64_t at[ADV_TIMELINE_AXES] = {n, k, 0, 0};
            if (!walk_visits(walk, at)) return false;
        }
    return true;
}

/* Group sizes that stand for a distribution. */
static void represent(const struct adv_gmm_shape *shape, int64_t tile_m, int64_t *sizes)
{
    struct adv_gmm_visits visits;
    adv_gmm_count_visits(shape, tile_m, &visits);
    const int64_t filled = adv_max_i(1, adv_min_i(llround(visits.nonempty), shape->num_groups));
    double harmonic = 0.0;
    for (int64_t g = 1; g <= filled; g++) harmonic += 1.0 / (double)g;
    int64_t left = shape->m;
    for (int64_t g = 0; g < shape->num_groups; g++) {
        sizes[g] = 0;
        if (g >= filled) continue;
        const int64_t later = filled - g - 1; /* each of them gets a row */
        int64_t size = shape->m / filled + (g < shape->m % filled ? 1 : 0);
        if (shape->distribution == ADV_GROUPS_ZIPF)
            size = llround((double)shape->m / harmonic / (double)(g + 1));
        else if (shape->distribution != ADV_GROUPS_BALANCED && g == 0)
            size++; /* the next boundaries lie inside tiles */
        sizes[g] = later ? adv_max_i(0, adv_min_i(adv_max_i(1, size), left - later)) : left;
        left -= sizes[g];
    }
}

/* Sizes spread like those of a multinomial draw, from the smallest to the largest, adding up to m: the
 * quantiles of a logistic curve, which is near enough to the bell of a binomial (within 0.01 of its
 * distribution, at 1.702 per deviation). */
static void draw_sizes(const struct adv_gmm_shape *shape, int64_t *sizes)
{
    const double groups = shape->num_groups, mean = (double)shape->m / groups;
    const double deviation = sqrt(mean * (1.0 - 1.0 / groups));
    int64_t edge = 0;
    double sum = 0.0, all = 0.0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t g = 0; g < shape->num_groups; g++) {
            const double place = ((double)g + 0.5) / groups;
            const double size = adv_max(0.0, mean + deviation * log(place / (1.0 - place)) / 1.702);
            if (pass == 0) {
                all += size;
                continue;
            }
            sum += size;
            const int64_t end = g + 1 < shape->num_groups ? llround((double)shape->m * sum / all) : shape->m;
            sizes[g] = end - edge;
            edge = end;
        }
}

/* Waiting is shared out as the closed form has its kinds of steps wait. */
static void share_waits(struct walk *walk, const struct adv_kernel_time *time)
{
    const struct adv_gmm_unit *u = &walk->unit;
    double wait_s = 0.0, hbm_bytes = time->hbm_bytes;
    for (int i = 0; i < time->parts_count; i++) {
        if (strcmp(time->parts[i].name, "dma_exposed") == 0) wait_s = time->parts[i].time_s;
        if (strcmp(time->parts[i].name, "residual_copy") == 0)
            hbm_bytes -= adv_gmm_residual_bytes(walk->shape);
    }
    walk->pen = adv_timeline_pen_of(walk->pen.timeline, time->grid_steps, adv_timeline_inside_s(time),
                                    hbm_bytes / u->bytes_per_s);
    adv_timeline_share_waits(&walk->pen, wait_s, wait_s, (u->row_bytes + u->weight_bytes) / u->bytes_per_s,
                             u->out_bytes / u->bytes_per_s);
}

static void walk_v1(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                    const struct adv_gmm_shape *shape, const struct adv_gmm_tile *tile,
                    const struct adv_kernel_time *time, struct adv_timeline *timeline)
{
    struct walk walk = {.shape = shape,
                        .sizes = shape->group_sizes,
                        .tile_m = tile->tile_m,
                        .is_tgmm = kernel == ADV_KERNEL_TGMM,
                        .pen = {.timeline = timeline}};
    adv_gmm_unit_of(machine, kernel, shape, tile, &walk.unit);
    timeline->axes[0] = "n_tile";
    timeline->axes[1] = "k_tile";
    timeline->axes[2] = "group";
    timeline->axes[3] = "row_tile";
    share_waits(&walk, time);
    adv_timeline_close(&walk.pen, walk_grid(&walk), adv_timeline_inside_s(time));
}

adv_code adv_gmm_timeline(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                          struct adv_timeline *timeline, adv_err *err)
{
    const enum adv_kernel kernel = request->kernel;
    const struct adv_gmm_shape *shape = &request->gmm;
    const struct adv_gmm_tile *tile = &request->tile.gmm;
    struct adv_kernel_time time;
    const adv_code bad = adv_gmm_time(machine, kernel, shape, tile, &time, err);
    if (bad) return bad;
    int64_t made[ADV_LIMIT_GROUPS];
    struct adv_gmm_shape walked = *shape;
    timeline->representative = shape->distribution != ADV_GROUPS_GIVEN;
    if (timeline->representative) {
        if (shape->version == 1)
            represent(shape, tile->tile_m, made);
        else if (!adv_gmm_sizes(shape, made))
            draw_sizes(shape, made);
        walked.distribution = ADV_GROUPS_GIVEN;
        walked.group_sizes = made;
        const adv_code worse = adv_gmm_time(machine, kernel, &walked, tile, &time, err);
        if (worse) return worse;
    }
    if (shape->version == 1)
        walk_v1(machine, kernel, &walked, tile, &time, timeline);
    else
        adv_gmm_v2_walk(machine, &walked, &time, timeline);
    return ADV_OK;
}

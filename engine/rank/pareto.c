#include "engine/rank/pareto.h"

#include "engine/base/list.h"

static double time_of(const struct adv_candidate *candidate)
{
    return candidate->estimate.step_time_s;
}

static double hbm_of(const struct adv_candidate *candidate)
{
    return candidate->estimate.hbm_bytes_per_device;
}

static void drop(struct adv_front *front, int at)
{
    adv_list_close(front->items, sizeof *front->items, &front->count, at);
}

/* The inner point with the closest neighbours; the two ends stay. */
static int most_crowded(const struct adv_front *front)
{
    int crowded = 1;
    double least = 0;
    for (int i = 1; i + 1 < front->count; i++) {
        double gap =
            (time_of(&front->items[i + 1]) - time_of(&front->items[i - 1])) / time_of(&front->items[i]) +
            (hbm_of(&front->items[i - 1]) - hbm_of(&front->items[i + 1])) / hbm_of(&front->items[i]);
        if (i > 1 && gap >= least) continue;
        crowded = i;
        least = gap;
    }
    return crowded;
}

void adv_front_offer(struct adv_front *front, const struct adv_plan *plan,
                     const struct adv_estimate *estimate)
{
    double time_s = estimate->step_time_s, hbm = estimate->hbm_bytes_per_device;
    int at = 0;
    while (at < front->count && time_of(&front->items[at]) <= time_s) {
        if (hbm_of(&front->items[at]) <= hbm) return;
        at++;
    }
    while (at < front->count && hbm_of(&front->items[at]) >= hbm) drop(front, at);
    if (front->count == front->capacity) {
        int crowded = most_crowded(front);
        drop(front, crowded);
        if (crowded < at) at--;
    }
    struct adv_candidate *place =
        adv_list_open(front->items, sizeof *front->items, &front->count, front->capacity, at);
    if (place) *place = (struct adv_candidate){.plan = *plan, .estimate = *estimate};
}

void adv_front_thin(struct adv_front *front, double time_frac)
{
    int kept = 0;
    double first_s =
        0; /* of the points dropped since the last one kept: what is kept is within time_frac of each */
    for (int i = 0; i < front->count; i++) {
        if (first_s == 0) first_s = time_of(&front->items[i]);
        if (i + 1 < front->count && time_of(&front->items[i + 1]) <= first_s * (1 + time_frac)) continue;
        first_s = 0;
        if (kept != i) front->items[kept] = front->items[i];
        kept++;
    }
    front->count = kept;
}

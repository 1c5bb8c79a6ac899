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

/* Where a plan of this time would stand: behind those that are at least as fast. */
static int place_of(const struct adv_front *front, double time_s)
{
    int first = 0, end = front->count;
    while (first < end) {
        const int middle = first + (end - first) / 2;
        if (time_of(&front->items[middle]) <= time_s)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* HBM falls along the front: the slowest of those that are as fast is the smallest of them. */
static bool is_beaten(const struct adv_front *front, int at, double hbm_bytes)
{
    return at > 0 && hbm_of(&front->items[at - 1]) <= hbm_bytes;
}

bool adv_front_wants(const struct adv_front *front, const struct adv_estimate *estimate)
{
    return !is_beaten(front, place_of(front, estimate->step_time_s), estimate->hbm_bytes_per_device);
}

void adv_front_offer(struct adv_front *front, const struct adv_plan *plan,
                     const struct adv_estimate *estimate)
{
    double hbm = estimate->hbm_bytes_per_device;
    int at = place_of(front, estimate->step_time_s);
    if (is_beaten(front, at, hbm)) return;
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
    int kept = front->count > 0; /* the fastest */
    double first_s =
        0; /* of the points dropped since the last one kept: what is kept is within time_frac of each */
    for (int i = 1; i < front->count; i++) {
        if (first_s == 0) first_s = time_of(&front->items[i]);
        if (i + 1 < front->count && time_of(&front->items[i + 1]) <= first_s * (1 + time_frac)) continue;
        first_s = 0;
        if (kept != i) front->items[kept] = front->items[i];
        kept++;
    }
    front->count = kept;
}

#include "engine/kernel/gmm_visits.h"

#include <math.h>

#include "engine/base/units.h"

static void count_given(const struct adv_gmm_shape *shape, int64_t tile_m, struct adv_gmm_visits *visits)
{
    int64_t start = 0, last_tile = -1;
    for (int g = 0; g < shape->num_groups; g++) {
        const int64_t size = shape->group_sizes[g];
        if (size <= 0) {
            visits->empty += 1.0;
            continue;
        }
        const int64_t first = start / tile_m, end = adv_div_up(start + size, tile_m);
        visits->visits += (double)(end - first);
        visits->m_tiles += (double)(end - adv_max_i(first, last_tile + 1));
        last_tile = end - 1;
        visits->nonempty += 1.0;
        start += size;
    }
}

/* Equal groups: a boundary lies on a tile edge exactly for every (tile_m / gcd)-th group. */
static double balanced_boundaries(int64_t m, int64_t groups, int64_t tile_m)
{
    if (m % groups) return (double)(groups - 1) * (1.0 - 1.0 / (double)tile_m);
    int64_t a = m / groups, b = tile_m;
    while (b) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return (double)(groups - 1 - (groups - 1) / (tile_m / a));
}

static double zipf_nonempty(int64_t m, int groups)
{
    double harmonic = 0.0;
    for (int g = 1; g <= groups; g++) harmonic += 1.0 / g;
    const double rank = 2.0 * (double)m / harmonic; /* the last one that rounds to a row */
    return adv_max(1.0, adv_min(groups, floor(rank)));
}

void adv_gmm_count_visits(const struct adv_gmm_shape *shape, int64_t tile_m, struct adv_gmm_visits *visits)
{
    *visits = (struct adv_gmm_visits){0};
    if (shape->distribution == ADV_GROUPS_GIVEN) {
        count_given(shape, tile_m, visits);
        return;
    }
    const double groups = shape->num_groups, m = (double)shape->m;
    visits->m_tiles = (double)adv_div_up(shape->m, tile_m);
    const double off_edge = 1.0 - 1.0 / (double)tile_m;
    double shared = 0.0; /* boundaries inside a tile: each costs one more visit */
    if (shape->distribution == ADV_GROUPS_BALANCED && shape->m >= shape->num_groups) {
        visits->nonempty = groups;
        shared = balanced_boundaries(shape->m, shape->num_groups, tile_m);
    } else if (shape->distribution == ADV_GROUPS_ZIPF) {
        visits->nonempty = zipf_nonempty(shape->m, shape->num_groups);
        shared = (visits->nonempty - 1.0) * off_edge;
    } else if (shape->distribution == ADV_GROUPS_MULTINOMIAL) {
        visits->nonempty = adv_max(1.0, groups * (1.0 - exp(m * log1p(-1.0 / groups))));
        shared = (visits->nonempty - 1.0) * off_edge;
    } else {
        visits->nonempty = adv_min(groups, m);
        shared = adv_min(visits->nonempty - 1.0, m - visits->m_tiles);
    }
    visits->empty = groups - visits->nonempty;
    visits->visits = visits->m_tiles + adv_max(0.0, shared);
}

void adv_gmm_count_rows(const struct adv_gmm_shape *shape, int64_t bucket, int64_t tile_m,
                        struct adv_gmm_rows *rows)
{
    *rows = (struct adv_gmm_rows){0};
    if (shape->distribution == ADV_GROUPS_GIVEN) {
        for (int g = 0; g < shape->num_groups; g++) {
            const int64_t size = shape->group_sizes[g];
            rows->padded += (double)adv_round_up(size, bucket);
            rows->tiles += (double)adv_div_up(size, tile_m);
            rows->nonempty += size > 0 ? 1.0 : 0.0;
        }
        return;
    }
    struct adv_gmm_visits visits;
    adv_gmm_count_visits(shape, tile_m, &visits);
    rows->nonempty = visits.nonempty;
    const double m = (double)shape->m, each = m / visits.nonempty;
    if (shape->distribution == ADV_GROUPS_BALANCED) {
        rows->padded = visits.nonempty * (double)adv_round_up((int64_t)ceil(each), bucket);
        rows->tiles = visits.nonempty * ceil(each / (double)tile_m);
        return;
    }
    /* the rest of a group past its last whole bucket is anywhere in it: half a bucket on average */
    rows->padded = m + visits.nonempty * (double)bucket / 2.0;
    rows->tiles = m / (double)tile_m + visits.nonempty * 0.5;
}

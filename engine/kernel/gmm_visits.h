/* gmm_visits.h: how often a grouped matmul's row tiles are visited.
 *
 * A row tile shared by g groups is visited g times and computed whole each time. With sizes given the count
 * is exact: sum over non-empty groups of ceil(end / tile_m) - floor(start / tile_m). Distributions have
 * closed forms.
 */
#pragma once

#include "engine/spec/kernel_shape.h"

struct adv_gmm_visits {
    double visits;   /* (group, row tile) pairs; between m_tiles and m_tiles + groups - 1 */
    double m_tiles;  /* row tiles that hold at least one row */
    double nonempty; /* groups with at least one row */
    double empty;    /* groups without */
};

/* ADV_GROUPS_GIVEN walks group_sizes; the others cost O(1), Zipf O(groups). Multinomial: the expectation when
 * every row picks one of the groups uniformly; a boundary between groups falls on a tile edge with
 * probability 1/tile_m. Zipf: sizes proportional to 1/rank. Worst: as many groups as possible straddle a tile
 * edge. */
void adv_gmm_count_visits(const struct adv_gmm_shape *shape, int64_t tile_m, struct adv_gmm_visits *visits);

/* Version 2 of the kernel: every group is cut on its own. Multinomial: the expectation over the binomial size
 * of a group; the others as their sizes are counted (adv_gmm_sizes). O(1), Zipf and given sizes O(groups). */
struct adv_gmm_rows {
    double padded; /* rows computed: every group rounded up to the bucket */
    double tiles;  /* row tiles: sum of ceil(size / tile_m) */
    double nonempty;
};
void adv_gmm_count_rows(const struct adv_gmm_shape *shape, int64_t bucket, int64_t tile_m,
                        struct adv_gmm_rows *rows);

/* Sizes of the groups that a distribution stands for, num_groups of them, adding up to m; false for
 * multinomial, which is drawn. Balanced: within a row of each other. Zipf: in proportion to 1/rank, rounded
 * where they add up. Worst: version 1, boundaries off the tile edges (of even tiles); version 2, single rows
 * and the rest in one group, which no other sizes exceed in buckets, whatever these hold. */
bool adv_gmm_sizes(const struct adv_gmm_shape *shape, int64_t *sizes);

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
    return (double)(groups - 1 - (groups - 1) / (tile_m / adv_gcd(m / groups, tile_m)));
}

static double harmonic_of(int groups)
{
    double sum = 0.0;
    for (int g = 1; g <= groups; g++) sum += 1.0 / g;
    return sum;
}

static double zipf_nonempty(int64_t m, int groups)
{
    const double rank = 2.0 * (double)m / harmonic_of(groups); /* the last one that rounds to a row */
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

/* Rows up to which a group's share is summed value by value; beyond, the normal curve is close. */
enum { SUMMED_ROWS = 64 };

/* E[ceil(X / bucket)], X binomial of few rows: the sum over its values. */
static double summed_buckets(double rows, double chance, double mean, int64_t bucket)
{
    const int64_t last = (int64_t)adv_min(rows, ceil(mean + 12.0 * sqrt(mean) + 20.0));
    const double odds = chance / (1.0 - chance);
    double buckets = 0.0, probability = exp(rows * log1p(-chance));
    for (int64_t x = 1; x <= last; x++) {
        probability *= (rows - (double)x + 1.0) / (double)x * odds;
        buckets += probability * (double)adv_div_up(x, bucket);
    }
    return buckets;
}

/* The same of many rows, as the sum of the chances that X passes 0, 1, 2, ... buckets: by the normal curve
 * with its first correction for skewness. A curve wider than a bucket meets all of its places alike. */
static double curved_buckets(double chance, double mean, int64_t bucket)
{
    const double deviation = sqrt(mean * (1.0 - chance)), width = (double)bucket;
    if (deviation >= width) return mean / width + 0.5 * (1.0 - 1.0 / width);
    const double skewness = (1.0 - 2.0 * chance) / deviation;
    const int64_t first = (int64_t)adv_max(0.0, ceil((mean - 6.0 * deviation) / width));
    const int64_t last = (int64_t)((mean + 6.0 * deviation) / width);
    double buckets = (double)first;
    for (int64_t edge = first; edge <= last; edge++) {
        const double z = ((double)edge * width + 0.5 - mean) / deviation;
        const double density = exp(-0.5 * z * z) * 0.3989422804014327; /* 1 / sqrt(2 pi) */
        buckets += 0.5 * erfc(z * 0.7071067811865476) + density * skewness / 6.0 * (z * z - 1.0);
    }
    return buckets;
}

/* Expected ceil(size / bucket) of a group that each of m rows picks with one chance in `groups`. */
static double multinomial_buckets(int64_t m, int groups, int64_t bucket)
{
    if (groups == 1) return (double)adv_div_up(m, bucket);
    const double chance = 1.0 / groups, mean = (double)m * chance;
    return mean < SUMMED_ROWS ? summed_buckets((double)m, chance, mean, bucket)
                              : curved_buckets(chance, mean, bucket);
}

/* Rows of the groups up to the one of `rank`, when sizes go with 1/rank; `sum`: of 1/1 .. 1/rank. */
static int64_t zipf_edge(int64_t m, double sum, double all)
{
    return (int64_t)floor((double)m * adv_min(1.0, sum / all) + 0.5);
}

/* All rows of groups of sizes that are the same in every draw. */
static void add_group(struct adv_gmm_rows *rows, double groups, int64_t size, int64_t bucket, int64_t tile_m)
{
    if (size <= 0) return;
    rows->padded += groups * (double)adv_round_up(size, bucket);
    rows->tiles += groups * (double)adv_div_up(size, tile_m);
    rows->nonempty += groups;
}

void adv_gmm_count_rows(const struct adv_gmm_shape *shape, int64_t bucket, int64_t tile_m,
                        struct adv_gmm_rows *rows)
{
    const int64_t m = shape->m;
    const int groups = shape->num_groups;
    *rows = (struct adv_gmm_rows){0};
    if (shape->distribution == ADV_GROUPS_MULTINOMIAL) {
        rows->padded = groups * multinomial_buckets(m, groups, bucket) * (double)bucket;
        rows->tiles = groups * multinomial_buckets(m, groups, tile_m);
        rows->nonempty = groups == 1 ? 1.0 : groups * -expm1((double)m * log1p(-1.0 / groups));
    } else if (shape->distribution == ADV_GROUPS_BALANCED) {
        add_group(rows, (double)(m % groups), m / groups + 1, bucket, tile_m);
        add_group(rows, (double)(groups - m % groups), m / groups, bucket, tile_m);
    } else if (shape->distribution == ADV_GROUPS_WORST) {
        const int64_t single = adv_min_i(groups, m) - 1; /* a row begins a bucket that nobody else fills */
        add_group(rows, (double)single, 1, bucket, tile_m);
        add_group(rows, 1.0, m - single, bucket, tile_m);
    } else if (shape->distribution == ADV_GROUPS_ZIPF) {
        const double all = harmonic_of(groups);
        double sum = 0.0;
        for (int64_t g = 0, start = 0, end; g < groups; g++, start = end) {
            end = zipf_edge(m, sum += 1.0 / (double)(g + 1), all);
            add_group(rows, 1.0, end - start, bucket, tile_m);
        }
    } else {
        for (int g = 0; g < groups; g++) add_group(rows, 1.0, shape->group_sizes[g], bucket, tile_m);
    }
}

/* Version 1: odd boundaries, which no tile edge is; rows one by one where there are too few. */
static int64_t worst_size(const struct adv_gmm_shape *shape, int64_t g, int64_t left)
{
    const int64_t filled = adv_min_i(shape->num_groups, shape->m), even = shape->m / filled / 2 * 2;
    if (g >= filled) return 0;
    if (g + 1 == filled) return left;
    if (shape->version == 2 || even == 0) return 1;
    return g == 0 ? even + 1 : even;
}

bool adv_gmm_sizes(const struct adv_gmm_shape *shape, int64_t *sizes)
{
    const int64_t m = shape->m, groups = shape->num_groups;
    if (shape->distribution == ADV_GROUPS_MULTINOMIAL) return false;
    const double all = shape->distribution == ADV_GROUPS_ZIPF ? harmonic_of(shape->num_groups) : 1.0;
    double sum = 0.0;
    int64_t start = 0;
    for (int64_t g = 0; g < groups; g++) {
        if (shape->distribution == ADV_GROUPS_GIVEN)
            sizes[g] = shape->group_sizes[g];
        else if (shape->distribution == ADV_GROUPS_BALANCED)
            sizes[g] = m / groups + (g < m % groups ? 1 : 0);
        else if (shape->distribution == ADV_GROUPS_ZIPF)
            sizes[g] = zipf_edge(m, sum += 1.0 / (double)(g + 1), all) - start;
        else
            sizes[g] = worst_size(shape, g, m - start);
        start += sizes[g];
    }
    return true;
}

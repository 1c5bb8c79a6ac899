/* short_list.h: what of a tuner's ranking is worth running on a chip.
 *
 * Sub-blocks of one pair of attention blocks are near duplicates: the model's error is larger than what it
 * predicts between them. So the list counts block pairs, and names the sub-blocks of each that it cannot tell
 * apart; without that, five tiles are often two pairs. Of a grouped matmul's tiles that differ in one axis
 * only and hardly there, and that are predicted alike, the list holds the faster one.
 */
#pragma once

#include "engine/kernel/kernel.h"

struct adv_kernel_family;

enum {
    ADV_SHORT_LIST = 5,         /* entries */
    ADV_SHORT_LIST_OTHERS = 5,  /* sub-blocks of one pair beside the best; the space has five in all */
    ADV_SHORT_LIST_RANKED = 64, /* tiles to rank for it: the field's largest attention space has 48 */
};

/* Sub-blocks within this share of their pair's best cannot be told from it: twice the median error. */
#define ADV_SHORT_LIST_SAME_FRAC 0.05

/* Grouped matmul tiles are duplicates when one axis differs by at most this factor (896 and 1024)... */
#define ADV_SHORT_LIST_ALIKE_FACTOR 1.25
/* ... and they are predicted within this share: less than the model's median error. */
#define ADV_SHORT_LIST_ALIKE_FRAC 0.015

struct adv_short_entry {
    int best;                          /* index in the ranking */
    int others[ADV_SHORT_LIST_OTHERS]; /* more indices */
    int others_count;
};

/* The best tiles of a tuner's space, fastest first. */
struct adv_ranking {
    int top_k;
    void *tiles;                   /* the caller's, top_k of the family's */
    struct adv_kernel_time *times; /* the caller's, top_k */
    const struct adv_kernel_family *family;
    int count;
    long evaluated_count; /* tiles of the space */
};

/* The first ADV_SHORT_LIST block pairs of attention tiles, fastest first; returns how many. */
int adv_splash_short_list(const struct adv_ranking *ranking, struct adv_short_entry entries[ADV_SHORT_LIST]);

/* Do two tiles differ in one axis only, and there by at most ADV_SHORT_LIST_ALIKE_FACTOR? */
bool adv_gmm_tiles_alike(const struct adv_gmm_tile *a, const struct adv_gmm_tile *b);

/* The first ADV_SHORT_LIST tiles of grouped matmuls that are no duplicates of one before, fastest first;
 * returns how many. */
int adv_gmm_short_list(const struct adv_ranking *ranking, struct adv_short_entry entries[ADV_SHORT_LIST]);

/* short_list.h: what of a tuner's ranking is worth running on a chip.
 *
 * Sub-blocks of one pair of attention blocks are near duplicates: the model's error is larger than what it
 * predicts between them. So the list counts block pairs, and names the sub-blocks of each that it cannot tell
 * apart; without that, five tiles are often two pairs. Grouped matmuls have no such duplicates.
 */
#ifndef ADV_KERNEL_SHORT_LIST_H
#define ADV_KERNEL_SHORT_LIST_H

#include "engine/kernel/kernel.h"

enum {
    ADV_SHORT_LIST = 5,         /* entries */
    ADV_SHORT_LIST_OTHERS = 5,  /* sub-blocks of one pair beside the best; the space has five in all */
    ADV_SHORT_LIST_RANKED = 64, /* tiles to rank for it: the field's largest space has 48 */
};

/* Sub-blocks within this share of their pair's best cannot be told from it: twice the median error. */
#define ADV_SHORT_LIST_SAME_FRAC 0.05

struct adv_short_entry {
    int best;                          /* index in the ranking */
    int others[ADV_SHORT_LIST_OTHERS]; /* more indices */
    int others_count;
};

/* The first ADV_SHORT_LIST block pairs of a ranking, fastest first; returns how many. */
int adv_splash_short_list(const struct adv_attention_tile *tiles, const struct adv_kernel_time *times,
                          int count, struct adv_short_entry entries[ADV_SHORT_LIST]);

#endif

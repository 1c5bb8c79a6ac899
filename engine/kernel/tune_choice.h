/* tune_choice.h: which tiles of a ranking to give to somebody who will run a handful of them.
 *
 * The fastest five by prediction are often one tile in five spellings: sub-blocks, or numbers of buffers,
 * whose times the model cannot tell apart. So each tile gets the chance that it is the fastest of a sweep,
 * and the likeliest are taken. Tiles of one family (the same blocks) err together: the family's chance falls
 * with the time of its best, and is shared out inside it by what published winners prefer. Sweeps differ in
 * what they try: half of the chance is that of the whole space, half that of the blocks up to 2048 that
 * today's search tries. Both halves fall by a factor e for every ADV_CHOICE_ERROR_FRAC of time, about the
 * model's median error.
 * The rules are few and round, and what they find changes little around them:
 * tests/accuracy/kernels_report.md. Allocates nothing; thread safe.
 */
#pragma once

#include "engine/kernel/request.h"
#include "engine/kernel/short_list.h"

#define ADV_CHOICE_ERROR_FRAC   0.02
#define ADV_CHOICE_BLOCK_SHARE  0.3 /* a sub-block twice or half the favourite, over the favourite */
#define ADV_CHOICE_BUFFER_SHARE 0.2 /* one buffer more or less than the favourite */

enum {
    ADV_CHOICE_RANKED = 128,                       /* tiles of a ranking that are looked at */
    ADV_CHOICE_CANDIDATES = 3 * ADV_CHOICE_RANKED, /* with two, three and four buffers */
};

struct adv_tile_candidate {
    int tile;     /* index in the ranking */
    int buffers;  /* grouped matmuls: input_buffer_count; else 0 */
    int family;   /* the ranking's first tile of the same blocks */
    bool usual;   /* in the space of today's published sweeps */
    double share; /* inside its family, on any scale; 0: a near duplicate of a faster family */
    double time_s;
    double chance_frac; /* set by adv_tune_choose */
};

/* How often published winners have the tile's part of a key block, over the favourite's: 1 for the favourite.
 */
double adv_tune_part_share(const struct adv_chip *chip, enum adv_kernel kernel,
                           const struct adv_splash_blocks *blocks);

/* Do two tiles of one kernel cut queries and keys alike, whatever the parts? */
bool adv_tune_same_pair(const struct adv_splash_blocks *a, const struct adv_splash_blocks *b);

/* The candidates of a ranking of attention tiles; returns how many. */
int adv_splash_candidates(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                          const struct adv_ranking *ranking,
                          struct adv_tile_candidate candidates[ADV_CHOICE_CANDIDATES]);

/* The same for grouped matmuls, each tile with every number of buffers that fits. */
int adv_gmm_candidates(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                       const struct adv_ranking *ranking,
                       struct adv_tile_candidate candidates[ADV_CHOICE_CANDIDATES]);

/* Reorders `candidates`: the top_k likeliest to be fastest come first, the predicted fastest always among
 * them, in the order of their predicted times (equals: the likelier first). Returns how many there are, at
 * most top_k. */
int adv_tune_choose(struct adv_tile_candidate *candidates, int count, int top_k);

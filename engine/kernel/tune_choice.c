#include "engine/kernel/tune_choice.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/units.h"
#include "engine/kernel/splash_blocks.h"
#include "engine/kernel/tune_space.h"

enum { USUAL_BLOCK = 2048, LEAST_PART = 256, MOST_PART = 512, WIDE_ARRAY = 256 };

/* Published winners keep the tile of scores at 2^20 numbers on arrays of 256 and 2^18 on arrays of 128, with
 * parts of 256 or 512 keys. */
double adv_tune_part_share(const struct adv_chip *chip, enum adv_kernel kernel,
                           const struct adv_splash_blocks *blocks)
{
    const struct adv_splash_cut b = adv_splash_cut_of(kernel, blocks);
    if (b.part == 0) return 1.0;
    const int scores = chip->mxu_rows >= WIDE_ARRAY ? 1 << 20 : 1 << 18;
    const double favourite = adv_max(LEAST_PART, adv_min(MOST_PART, (double)scores / b.q));
    return pow(ADV_CHOICE_BLOCK_SHARE, fabs(log2(b.part / favourite)));
}

int adv_splash_candidates(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                          const struct adv_ranking *ranking,
                          struct adv_tile_candidate candidates[ADV_CHOICE_CANDIDATES])
{
    const struct adv_attention_tile *tiles = ranking->tiles;
    const enum adv_kernel kernel = request->kernel;
    const int count = ranking->count < ADV_CHOICE_RANKED ? ranking->count : ADV_CHOICE_RANKED;
    for (int i = 0; i < count; i++) {
        const struct adv_splash_cut b = adv_splash_cut_of(kernel, &tiles[i].blocks);
        int family = 0;
        for (; family < i; family++) {
            const struct adv_splash_cut first = adv_splash_cut_of(kernel, &tiles[family].blocks);
            if (first.q == b.q && first.kv == b.kv) break;
        }
        candidates[i] =
            (struct adv_tile_candidate){.tile = i,
                                        .family = family,
                                        .usual = b.q <= USUAL_BLOCK && b.kv <= USUAL_BLOCK,
                                        .share = adv_tune_part_share(machine->chip, kernel, &tiles[i].blocks),
                                        .time_s = ranking->times[i].time_s};
    }
    return count;
}

/* Is tile i hardly slower than an earlier one that differs little and only in one axis? */
static bool is_duplicate(const struct adv_gmm_tile *tiles, const struct adv_kernel_time *times,
                         const bool *duplicate, int i)
{
    for (int j = 0; j < i; j++)
        if (!duplicate[j] && times[i].time_s <= times[j].time_s * (1.0 + ADV_SHORT_LIST_ALIKE_FRAC) &&
            adv_gmm_tiles_alike(&tiles[i], &tiles[j]))
            return true;
    return false;
}

int adv_gmm_candidates(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                       const struct adv_ranking *ranking,
                       struct adv_tile_candidate candidates[ADV_CHOICE_CANDIDATES])
{
    const struct adv_gmm_tile *tiles = ranking->tiles;
    const int count = ranking->count < ADV_CHOICE_RANKED ? ranking->count : ADV_CHOICE_RANKED;
    bool duplicate[ADV_CHOICE_RANKED] = {false};
    int found = 0;
    for (int i = 0; i < count; i++) {
        duplicate[i] = is_duplicate(tiles, ranking->times, duplicate, i);
        for (int buffers = 2; buffers <= ADV_TUNE_BUFFERS_MOST; buffers++) {
            struct adv_gmm_tile tile = tiles[i];
            struct adv_kernel_time time;
            tile.input_buffer_count = buffers;
            if (adv_gmm_time(machine, request->kernel, &request->gmm, &tile, &time, NULL) || !time.fits_vmem)
                continue;
            /* the ranking has the number that the kernel likes best; with fewer buffers than it likes it
             * still runs, and the reverse */
            const double share = pow(ADV_CHOICE_BUFFER_SHARE, abs(buffers - tiles[i].input_buffer_count));
            candidates[found++] = (struct adv_tile_candidate){.tile = i,
                                                              .buffers = buffers,
                                                              .family = i,
                                                              .usual = true,
                                                              .share = duplicate[i] ? 0.0 : share,
                                                              .time_s = time.time_s};
        }
    }
    return found;
}

static double falls(double time_s, double best_s)
{
    return exp(-log(time_s / best_s) / ADV_CHOICE_ERROR_FRAC);
}

/* Adds `weight` times the chances inside the whole or the usual space. False: nothing is in it. */
static bool add_chances(struct adv_tile_candidate *candidates, int count, bool usual, double weight)
{
    double best[ADV_CHOICE_RANKED], shares[ADV_CHOICE_RANKED] = {0.0}, all_best = (double)INFINITY, all = 0.0;
    for (int f = 0; f < ADV_CHOICE_RANKED; f++) best[f] = (double)INFINITY;
    for (int i = 0; i < count; i++) {
        const struct adv_tile_candidate *c = &candidates[i];
        if ((usual && !c->usual) || c->share <= 0.0) continue;
        best[c->family] = adv_min(best[c->family], c->time_s);
        all_best = adv_min(all_best, c->time_s);
    }
    for (int i = 0; i < count; i++) {
        const struct adv_tile_candidate *c = &candidates[i];
        if ((!usual || c->usual) && c->share > 0.0)
            shares[c->family] += c->share * falls(c->time_s, best[c->family]);
    }
    for (int f = 0; f < ADV_CHOICE_RANKED; f++)
        if (isfinite(best[f])) all += falls(best[f], all_best);
    for (int i = 0; i < count; i++) {
        struct adv_tile_candidate *c = &candidates[i];
        if ((usual && !c->usual) || c->share <= 0.0) continue;
        c->chance_frac += weight * falls(best[c->family], all_best) / all * c->share *
                          falls(c->time_s, best[c->family]) / shares[c->family];
    }
    return all > 0.0;
}

/* The likelier first; equals as they were ranked. */
static int by_chance(const void *a, const void *b)
{
    const struct adv_tile_candidate *x = a, *y = b;
    if (x->chance_frac != y->chance_frac) return x->chance_frac < y->chance_frac ? 1 : -1;
    if (x->time_s != y->time_s) return x->time_s < y->time_s ? -1 : 1;
    if (x->tile != y->tile) return x->tile < y->tile ? -1 : 1;
    return x->buffers - y->buffers;
}

static int by_time(const void *a, const void *b)
{
    const struct adv_tile_candidate *x = a, *y = b;
    if (x->time_s != y->time_s) return x->time_s < y->time_s ? -1 : 1;
    return by_chance(a, b);
}

int adv_tune_choose(struct adv_tile_candidate *candidates, int count, int top_k)
{
    for (int i = 0; i < count; i++) candidates[i].chance_frac = 0.0;
    if (count == 0) return 0;
    const bool has_usual = add_chances(candidates, count, true, 0.5);
    (void)add_chances(candidates, count, false, has_usual ? 0.5 : 1.0);
    qsort(candidates, (size_t)count, sizeof *candidates, by_chance);
    int fastest = 0;
    for (int i = 1; i < count; i++)
        if (by_time(&candidates[i], &candidates[fastest]) < 0) fastest = i;
    const int kept = count < top_k ? count : top_k;
    if (fastest >= kept) {
        const struct adv_tile_candidate first = candidates[fastest];
        candidates[fastest] = candidates[kept - 1];
        candidates[kept - 1] = first;
    }
    qsort(candidates, (size_t)kept, sizeof *candidates, by_time);
    return kept;
}

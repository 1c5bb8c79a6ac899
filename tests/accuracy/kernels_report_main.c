/* kernels_report_main.c: the accuracy page of the kernel simulation: errors on published timings, and whether
 * the tuner's short list holds the tile that a published sweep found fastest. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/accuracy/fit_kernels.h"
#include "engine/calibrate/validate_kernels.h"
#include "engine/catalog/catalog.h"
#include "engine/base/units.h"
#include "engine/kernel/family.h"
#include "engine/kernel/short_list.h"
#include "engine/kernel/tune_choice.h"
#include "engine/kernel/tune_space.h"
#include "tests/unit/tuned.h"

enum { FILE_MOST = 8 << 20, ROWS_MOST = 8192, GROUPS_MOST = 64, ROWS_OF_SHAPE = 64 };

struct group {
    const char *chip, *name;
    bool swapped; /* sweeps of grouped matmuls that took their tiles from the wrong axes */
    int winners, exact, blocks, listed, runs, faster, cheap, swept;
    int several, first, pairs, ordered; /* among the published tiles of a shape */
    int dated, dated_ordered;           /* one tile at two dates of the kernel library */
};

static double errors[ROWS_MOST];

static bool is_tiled(const struct adv_kernel_row *row)
{
    if (!row->trusted || !row->has_tile) return false;
    return !adv_kernel_tiles_itself(&row->request) && adv_kernel_family_of(row->request.kernel)->candidates;
}

static bool is_winner(const struct adv_kernel_row *rows, int count, int i)
{
    for (int j = 0; j < count; j++)
        if (is_tiled(&rows[j]) && strcmp(rows[j].chip, rows[i].chip) == 0 &&
            strcmp(rows[j].name, rows[i].name) == 0 && strcmp(rows[j].shape_id, rows[i].shape_id) == 0 &&
            rows[j].measured_s < rows[i].measured_s)
            return false;
    return true;
}

static struct adv_kernel_machine machine_of(const struct adv_catalog *catalog,
                                            const struct adv_kernel_row *row)
{
    const struct adv_catalog_chip *chip = adv_catalog_chip(catalog, row->chip);
    return (struct adv_kernel_machine){.chip = &chip->chip, .constants = &chip->constants};
}

static bool same_blocks(const struct adv_attention_tile *a, const struct adv_attention_tile *b)
{
    return memcmp(&a->blocks, &b->blocks, sizeof a->blocks) == 0;
}

static bool same_pair(const struct adv_attention_tile *a, const struct adv_attention_tile *b)
{
    const struct adv_splash_blocks *x = &a->blocks, *y = &b->blocks;
    return x->block_q == y->block_q && x->block_kv == y->block_kv && x->block_q_dkv == y->block_q_dkv &&
           x->block_kv_dkv == y->block_kv_dkv;
}

static double judge_splash(const struct adv_kernel_machine *machine, const struct adv_kernel_row *row,
                           struct group *group)
{
    static struct adv_attention_tile tiles[ADV_CHOICE_RANKED];
    static struct adv_kernel_time times[ADV_CHOICE_RANKED];
    struct adv_tile_candidate chosen[ADV_CHOICE_CANDIDATES];
    struct adv_short_entry list[ADV_SHORT_LIST];
    int found = 0;
    long evaluated = 0;
    if (tune_splash(machine, row->request.kernel, &row->request.attention, &row->request.attention_flags,
                    ADV_CHOICE_RANKED, tiles, times, &found, &evaluated, NULL))
        return (double)NAN;
    const struct adv_ranking ranking = {.tiles = tiles, .times = times, .count = found};
    const int candidates = adv_splash_candidates(machine, &row->request, &ranking, chosen);
    const int five = adv_tune_choose(chosen, candidates, 5);
    bool blocks = false;
    for (int i = 0; i < five; i++) {
        group->exact += same_blocks(&tiles[chosen[i].tile], &row->request.tile.attention);
        blocks = blocks || same_pair(&tiles[chosen[i].tile], &row->request.tile.attention);
    }
    group->blocks += blocks;
    const int listed = adv_splash_short_list(&ranking, list);
    for (int i = 0; i < listed; i++) {
        bool hit = same_blocks(&tiles[list[i].best], &row->request.tile.attention);
        for (int k = 0; k < list[i].others_count; k++)
            hit = hit || same_blocks(&tiles[list[i].others[k]], &row->request.tile.attention);
        group->listed += hit;
        group->runs += 1 + list[i].others_count;
    }
    return times[0].time_s;
}

static bool same_tile(const struct adv_gmm_tile *a, const struct adv_gmm_tile *b)
{
    return a->tile_m == b->tile_m && a->tile_k == b->tile_k && a->tile_n == b->tile_n;
}

static bool is_listed(struct adv_gmm_tile *tiles, struct adv_kernel_time *times, int count,
                      const struct adv_gmm_tile *own)
{
    const struct adv_ranking ranking = {.tiles = tiles, .times = times, .count = count};
    struct adv_short_entry list[ADV_SHORT_LIST];
    const int listed = adv_gmm_short_list(&ranking, list);
    for (int i = 0; i < listed; i++)
        if (same_tile(&tiles[list[i].best], own)) return true;
    return false;
}

/* The sweeps of transposed weights took their tiles from the axes the wrong way round until the meaning of
 * the tiles was settled. */
static bool has_swapped_axes(const struct adv_kernel_row *row)
{
    return row->request.kernel == ADV_KERNEL_GMM && row->request.gmm.rhs_transposed &&
           strcmp(row->commit_date, "2026-07-14") < 0;
}

struct tried {
    struct adv_gmm_tile tile;
    struct adv_kernel_time time;
};

static int faster(const void *a, const void *b)
{
    const double x = ((const struct tried *)a)->time.time_s, y = ((const struct tried *)b)->time.time_s;
    return (x > y) - (x < y);
}

/* Is the winner in the short list of what such a sweep tried: tiles of one axis on the other, cut to it
 * unless the row shows that they were not? */
static bool is_listed_swapped(const struct adv_kernel_machine *machine, const struct adv_kernel_row *row)
{
    static struct adv_gmm_tile space[ADV_GMM_SPACE_MAX];
    static struct tried all[ADV_GMM_SPACE_MAX];
    struct adv_gmm_shape swapped = row->request.gmm;
    swapped.k = row->request.gmm.n;
    swapped.n = row->request.gmm.k;
    const int k_most = (int)adv_round_up(row->request.gmm.k, 128),
              n_most = (int)adv_round_up(row->request.gmm.n, 128);
    const bool cuts = row->request.tile.gmm.tile_k <= k_most && row->request.tile.gmm.tile_n <= n_most;
    const int count = adv_gmm_space(&swapped, false, space);
    int found = 0;
    for (int i = 0; i < count; i++) {
        struct tried *now = &all[found];
        now->tile = (struct adv_gmm_tile){space[i].tile_m, space[i].tile_k, space[i].tile_n, 2};
        if (cuts && now->tile.tile_k > k_most) now->tile.tile_k = k_most;
        if (cuts && now->tile.tile_n > n_most) now->tile.tile_n = n_most;
        bool known = false;
        for (int j = 0; j < found; j++) known = known || same_tile(&all[j].tile, &now->tile);
        if (!known &&
            !adv_gmm_time(machine, row->request.kernel, &row->request.gmm, &now->tile, &now->time, NULL))
            found += now->time.fits_vmem;
    }
    qsort(all, (size_t)found, sizeof *all, faster);
    struct adv_gmm_tile tiles[ADV_SHORT_LIST_RANKED];
    struct adv_kernel_time times[ADV_SHORT_LIST_RANKED];
    if (found > ADV_SHORT_LIST_RANKED) found = ADV_SHORT_LIST_RANKED;
    for (int i = 0; i < found; i++) {
        tiles[i] = all[i].tile;
        times[i] = all[i].time;
    }
    return is_listed(tiles, times, found, &row->request.tile.gmm);
}

static double judge_gmm(const struct adv_kernel_machine *machine, const struct adv_kernel_row *row,
                        struct group *group)
{
    static struct adv_gmm_tile tiles[ADV_CHOICE_RANKED];
    static struct adv_kernel_time times[ADV_CHOICE_RANKED];
    struct adv_tile_candidate chosen[ADV_CHOICE_CANDIDATES];
    const struct adv_gmm_tile *own = &row->request.tile.gmm;
    int found = 0;
    long evaluated = 0;
    if (tune_gmm(machine, row->request.kernel, &row->request.gmm, ADV_CHOICE_RANKED, tiles, times, &found,
                 &evaluated, NULL))
        return (double)NAN;
    const struct adv_ranking ranking = {.tiles = tiles, .times = times, .count = found};
    const int candidates = adv_gmm_candidates(machine, &row->request, &ranking, chosen);
    const int five = adv_tune_choose(chosen, candidates, 5);
    bool blocks = false;
    for (int i = 0; i < five; i++) {
        const bool same = same_tile(&tiles[chosen[i].tile], own);
        group->exact += same && chosen[i].buffers == own->input_buffer_count;
        blocks = blocks || same;
    }
    group->blocks += blocks;
    const bool listed = is_listed(tiles, times, found, own);
    group->listed += listed;
    group->swept += listed || (has_swapped_axes(row) && is_listed_swapped(machine, row));
    group->runs += found < ADV_SHORT_LIST ? found : ADV_SHORT_LIST;
    return times[0].time_s;
}

static struct group *group_of(struct group *groups, int *count, const struct adv_kernel_row *row)
{
    const bool swapped = has_swapped_axes(row);
    for (int i = 0; i < *count; i++)
        if (strcmp(groups[i].chip, row->chip) == 0 && strcmp(groups[i].name, row->name) == 0 &&
            groups[i].swapped == swapped)
            return &groups[i];
    if (*count == GROUPS_MOST) return NULL;
    groups[*count] = (struct group){.chip = row->chip, .name = row->name, .swapped = swapped};
    return &groups[(*count)++];
}

static bool is_same_tile(const struct adv_kernel_row *a, const struct adv_kernel_row *b)
{
    if (adv_kernel_family_of(a->request.kernel) == &adv_family_splash)
        return same_blocks(&a->request.tile.attention, &b->request.tile.attention);
    return same_tile(&a->request.tile.gmm, &b->request.tile.gmm) &&
           a->request.tile.gmm.input_buffer_count == b->request.tile.gmm.input_buffer_count;
}

/* Among the published tiles of the winner's shape: does the model put the winner first, and which pairs more
 * than 5 % apart does it order right? Two timings of one tile, at two dates, are told apart from those. */
static void judge_published(const struct adv_kernel_machine *machine, const struct adv_kernel_row *rows,
                            int count, int winner, struct group *group)
{
    double measured[ROWS_OF_SHAPE], predicted[ROWS_OF_SHAPE];
    const struct adv_kernel_row *tiled[ROWS_OF_SHAPE];
    int found = 0, best = 0;
    for (int j = 0; j < count && found < ROWS_OF_SHAPE; j++) {
        if (!is_tiled(&rows[j]) || strcmp(rows[j].chip, rows[winner].chip) != 0 ||
            strcmp(rows[j].name, rows[winner].name) != 0 ||
            strcmp(rows[j].shape_id, rows[winner].shape_id) != 0)
            continue;
        struct adv_kernel_time time;
        if (adv_predict_kernel_row(machine, &rows[j], &time, NULL)) continue;
        measured[found] = rows[j].measured_s;
        tiled[found] = &rows[j];
        predicted[found++] = time.time_s;
    }
    int slower = 0;
    for (int a = 0; a < found; a++) {
        if (predicted[a] < predicted[best]) best = a;
        slower += measured[a] > 1.05 * rows[winner].measured_s;
        for (int b = 0; b < found; b++) {
            if (measured[a] <= 1.05 * measured[b]) continue;
            const bool right = predicted[a] > predicted[b];
            if (is_same_tile(tiled[a], tiled[b])) {
                group->dated++;
                group->dated_ordered += right;
            } else {
                group->pairs++;
                group->ordered += right;
            }
        }
    }
    if (slower == 0) return;
    group->several++;
    group->first += measured[best] <= 1.03 * rows[winner].measured_s;
}

static void judge_winners(const struct adv_catalog *catalog, const struct adv_kernel_row *rows, int count,
                          struct group *groups, int *groups_count)
{
    for (int i = 0; i < count; i++) {
        if (!is_tiled(&rows[i]) || !is_winner(rows, count, i)) continue;
        struct group *group = group_of(groups, groups_count, &rows[i]);
        if (!group) continue;
        const struct adv_kernel_machine machine = machine_of(catalog, &rows[i]);
        const int hits = group->listed;
        const double best_s = adv_kernel_family_of(rows[i].request.kernel) == &adv_family_splash
                                  ? judge_splash(&machine, &rows[i], group)
                                  : judge_gmm(&machine, &rows[i], group);
        struct adv_kernel_time own;
        if (isnan(best_s) || adv_predict_kernel_row(&machine, &rows[i], &own, NULL)) continue;
        group->winners++;
        judge_published(&machine, rows, count, i, group);
        group->cheap += own.time_s <= 1.03 * best_s;
        /* the model knows the winner's own time, and expects a tile outside the sweep to beat it clearly */
        group->faster += group->listed == hits && fabs(own.time_s / rows[i].measured_s - 1.0) <= 0.06 &&
                         best_s < 0.94 * own.time_s;
    }
}

static void write_errors(FILE *out, const struct adv_catalog *catalog, const struct adv_kernel_row *rows,
                         int count)
{
    (void)fprintf(out, "| kernel | chip | rows | median | p90 | max |\n|---|---|---|---|---|---|\n");
    for (int g = 0; g < adv_fit_groups_count(); g++) {
        const struct adv_fit_group *group = adv_fit_group_at(g);
        int used = 0;
        for (int i = 0; i < count && used < ROWS_MOST; i++) {
            if (!adv_fit_uses(group, &rows[i])) continue;
            const struct adv_kernel_machine machine = machine_of(catalog, &rows[i]);
            struct adv_kernel_time time;
            if (adv_predict_kernel_row(&machine, &rows[i], &time, NULL)) continue;
            errors[used++] = fabs(time.time_s / rows[i].measured_s - 1.0);
        }
        const struct adv_error_summary s = adv_summarize_errors(errors, used);
        (void)fprintf(out, "| %s | %s | %d | %.1f %% | %.1f %% | %.1f %% |\n", group->name, group->chip, used,
                      100.0 * s.median_frac, 100.0 * s.p90_frac, 100.0 * s.max_frac);
    }
}

static const char *name_of(const struct group *group, char text[64])
{
    (void)snprintf(text, 64, "%s%s", group->name, group->swapped ? ", swapped axes" : "");
    return text;
}

static void write_winners(FILE *out, const struct group *groups, int count)
{
    (void)fprintf(
        out,
        "\n## The short list\n\n"
        "Per shape the fastest published tile. Five tiles: it is among the five that `tune` ranks, sub-block "
        "and "
        "number of buffers included (blocks: whatever the sub-block or the buffers). Short list: it is in "
        "the list that `tune` gives for a "
        "sweep: five block pairs with the sub-blocks the model cannot tell apart (attention), five tiles "
        "that are no near duplicates, whatever their buffers (grouped matmul). Runs: tiles of that list on "
        "average. Beyond: winners outside the list whose own time is predicted within 6 %% while the pick is "
        "predicted more than 6 %% faster: the published sweep may not have tried it. Within 3 %%: the model "
        "predicts the published tile to cost at most 3 %% more than its own pick.\n\n"
        "Swapped axes: most sweeps of transposed weights before mid-July 2026 took the tiles of the "
        "contraction "
        "from the output axis and the other way round, so that the good tiles were never tried (some winners "
        "have tiles longer than their axis). In the sweep: the winner is in the list of `tune`, or of tiles "
        "taken so.\n\n"
        "| kernel winners | chip | shapes | five tiles | short list | share | runs | beyond | within 3 %% | "
        "in the sweep | five tiles' share | their blocks |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    char name[64];
    for (int i = 0; i < count; i++) {
        const struct group *g = &groups[i];
        if (g->winners == 0) continue;
        const bool splash = strncmp(g->name, "splash", 6) == 0;
        (void)fprintf(out,
                      "| %s winners | %s | %d | %d | %d | %.0f %% | %.1f | %d | %d | %d | %.0f %% | %d |\n",
                      name_of(g, name), g->chip, g->winners, g->exact, g->listed,
                      100.0 * g->listed / g->winners, (double)g->runs / g->winners, g->faster, g->cheap,
                      splash ? g->listed : g->swept, 100.0 * g->exact / g->winners, g->blocks);
    }
    (void)fprintf(
        out, "\n## Among published tiles\n\n"
             "Pairs of published tiles of one shape more than 5 %% apart, and how many the model puts "
             "in the measured order. Picked: shapes whose published tile that the model puts first "
             "costs at most 3 %% more than the fastest one. Two timings of one tile, months apart, tell the "
             "kernel library's versions apart, not tiles: counted beside the pairs.\n\n"
             "| kernel tiles | chip | shapes | pairs | ordered | one tile, two dates | ordered | picked |\n"
             "|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < count; i++) {
        const struct group *g = &groups[i];
        if (g->several == 0) continue;
        (void)fprintf(out, "| %s tiles | %s | %d | %d | %d | %d | %d | %d |\n", name_of(g, name), g->chip,
                      g->several, g->pairs, g->ordered, g->dated, g->dated_ordered, g->first);
    }
}

int main(int argc, char **argv)
{
    adv_err err;
    adv_err_init(&err);
    struct adv_arena arena;
    adv_arena_init(&arena, 64u << 20);
    struct adv_kernel_row *rows = NULL;
    int count = 0, groups_count = 0;
    struct group groups[GROUPS_MOST];
    struct adv_catalog *catalog = adv_catalog_load(NULL, &err);
    FILE *in = argc == 3 ? fopen(argv[1], "rb") : NULL;
    char *text = malloc(FILE_MOST);
    const size_t length = in && text ? fread(text, 1, FILE_MOST, in) : 0;
    if (in) (void)fclose(in);
    int status = 1;
    if (catalog && length > 0 && !adv_decode_kernel_rows(text, length, &arena, &rows, &count, &err)) {
        FILE *out = fopen(argv[2], "wb");
        if (out) {
            (void)fprintf(out,
                          "# Accuracy of the kernel simulation\n\nWritten by `make kernel-accuracy-update`. "
                          "Errors of the time of trusted published rows; the constants are fitted on them "
                          "(held-out shapes: `make fit-kernels`).\n\n");
            write_errors(out, catalog, rows, count);
            judge_winners(catalog, rows, count, groups, &groups_count);
            write_winners(out, groups, groups_count);
            status = fclose(out) != 0;
        }
    } else {
        (void)fprintf(stderr, "usage: kernels_report TIMINGS REPORT\n");
    }
    free(text);
    adv_arena_free(&arena);
    adv_catalog_free(catalog);
    return status;
}

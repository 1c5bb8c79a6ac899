/* kernels_report_main.c: the accuracy page of the kernel simulation: errors on published timings, and whether
 * the tuner's short list holds the tile that a published sweep found fastest. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/calibrate/fit_kernels.h"
#include "engine/calibrate/validate_kernels.h"
#include "engine/catalog/catalog.h"
#include "engine/kernel/short_list.h"

enum { FILE_MOST = 8 << 20, ROWS_MOST = 8192, GROUPS_MOST = 64 };

struct group {
    const char *chip, *name;
    int rows, winners, exact, listed, runs, faster, cheap;
};

static double errors[ROWS_MOST];

static bool is_tiled(const struct adv_kernel_row *row)
{
    if (!row->trusted || !row->has_tile) return false;
    return row->kind == ADV_ROW_SPLASH || (row->kind == ADV_ROW_GMM && row->gmm.version == 1);
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

static double judge_splash(const struct adv_kernel_machine *machine, const struct adv_kernel_row *row,
                           struct group *group)
{
    struct adv_attention_tile tiles[ADV_SHORT_LIST_RANKED];
    struct adv_kernel_time times[ADV_SHORT_LIST_RANKED];
    struct adv_short_entry list[ADV_SHORT_LIST];
    int found = 0;
    long evaluated = 0;
    if (adv_splash_tune(machine, row->kernel, &row->attention, &row->attention_flags, ADV_SHORT_LIST_RANKED,
                        tiles, times, &found, &evaluated, NULL))
        return (double)NAN;
    for (int i = 0; i < found && i < 5; i++) group->exact += same_blocks(&tiles[i], &row->attention_tile);
    const int listed = adv_splash_short_list(tiles, times, found, list);
    for (int i = 0; i < listed; i++) {
        bool hit = same_blocks(&tiles[list[i].best], &row->attention_tile);
        for (int k = 0; k < list[i].others_count; k++)
            hit = hit || same_blocks(&tiles[list[i].others[k]], &row->attention_tile);
        group->listed += hit;
        group->runs += 1 + list[i].others_count;
    }
    return times[0].time_s;
}

static double judge_gmm(const struct adv_kernel_machine *machine, const struct adv_kernel_row *row,
                        struct group *group)
{
    struct adv_gmm_tile tiles[5];
    struct adv_kernel_time times[5];
    int found = 0;
    long evaluated = 0;
    if (adv_gmm_tune(machine, row->kernel, &row->gmm, 5, tiles, times, &found, &evaluated, NULL))
        return (double)NAN;
    for (int i = 0; i < found; i++) {
        const struct adv_gmm_tile *own = &row->gmm_tile;
        const bool same = tiles[i].tile_m == own->tile_m && tiles[i].tile_k == own->tile_k &&
                          tiles[i].tile_n == own->tile_n;
        group->exact += same && tiles[i].input_buffer_count == own->input_buffer_count;
        group->listed += same;
    }
    group->runs += found;
    return times[0].time_s;
}

static struct group *group_of(struct group *groups, int *count, const struct adv_kernel_row *row)
{
    for (int i = 0; i < *count; i++)
        if (strcmp(groups[i].chip, row->chip) == 0 && strcmp(groups[i].name, row->name) == 0)
            return &groups[i];
    if (*count == GROUPS_MOST) return NULL;
    groups[*count] = (struct group){.chip = row->chip, .name = row->name};
    return &groups[(*count)++];
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
        const double best_s = rows[i].kind == ADV_ROW_SPLASH ? judge_splash(&machine, &rows[i], group)
                                                             : judge_gmm(&machine, &rows[i], group);
        struct adv_kernel_time own;
        if (isnan(best_s) || adv_predict_kernel_row(&machine, &rows[i], &own, NULL)) continue;
        group->winners++;
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

static void write_winners(FILE *out, const struct group *groups, int count)
{
    (void)fprintf(
        out,
        "\n## The short list\n\n"
        "Per shape the fastest published tile. Five tiles: it is among the first five of the ranking, "
        "number of buffers included. Short list: it is in the list that `tune` gives for a sweep: five "
        "block pairs with the sub-blocks the model cannot tell apart (attention), five tiles whatever "
        "their buffers (grouped matmul). Runs: tiles of that list on average. Beyond: winners outside "
        "the list whose own time is predicted within 6 %% while the pick is predicted more than 6 %% "
        "faster: the published sweep may not have tried it. Within 3 %%: the model predicts the "
        "published tile to cost at most 3 %% more than its own pick.\n\n"
        "| kernel winners | chip | shapes | five tiles | short list | share | runs | beyond | within 3 %% |\n"
        "|---|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < count; i++) {
        const struct group *g = &groups[i];
        if (g->winners == 0) continue;
        (void)fprintf(out, "| %s winners | %s | %d | %d | %d | %.0f %% | %.1f | %d | %d |\n", g->name,
                      g->chip, g->winners, g->exact, g->listed, 100.0 * g->listed / g->winners,
                      (double)g->runs / g->winners, g->faster, g->cheap);
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

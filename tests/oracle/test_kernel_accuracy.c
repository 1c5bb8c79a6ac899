/* Published timings (tests/data/kernel_timings.json) against the simulation: the accuracy the product
 * promises. Only rows that can be trusted count: published tile, unmodified kernel, not suspect. Run from the
 * top of the source tree. */
#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

#include "tests/accuracy/fit_kernels.h"
#include "engine/calibrate/validate_kernels.h"
#include "engine/catalog/catalog.h"

static struct adv_catalog *catalog;
static struct adv_arena arena;
static struct adv_kernel_row *rows;
static double *predicted_s;
static int rows_count;

static int load(void **state)
{
    (void)state;
    adv_err err;
    adv_err_init(&err);
    adv_arena_init(&arena, 64u * 1024u * 1024u);
    catalog = adv_catalog_load(NULL, &err);
    FILE *file = fopen("tests/data/kernel_timings.json", "rb");
    if (!catalog || !file) return -1;
    enum { MOST = 8 * 1024 * 1024 };
    char *text = malloc(MOST);
    const size_t length = text ? fread(text, 1, MOST, file) : 0;
    (void)fclose(file);
    const adv_code bad = adv_decode_kernel_rows(text, length, &arena, &rows, &rows_count, &err);
    free(text);
    predicted_s = calloc((size_t)rows_count + 1, sizeof *predicted_s);
    if (bad || !predicted_s) return -1;
    for (int i = 0; i < rows_count; i++) {
        const struct adv_catalog_chip *chip = adv_catalog_chip(catalog, rows[i].chip);
        const struct adv_kernel_machine machine = {.chip = &chip->chip, .constants = &chip->constants};
        struct adv_kernel_time time;
        if (rows[i].fault) continue; /* one whose groups do not add up is not predicted */
        if (adv_predict_kernel_row(&machine, &rows[i], &time, &err)) return -1;
        predicted_s[i] = time.time_s;
    }
    return 0;
}

static int unload(void **state)
{
    (void)state;
    free(predicted_s);
    adv_arena_free(&arena);
    adv_catalog_free(catalog);
    return 0;
}

static void each_kernel_of_each_generation_keeps_its_promise(void **state)
{
    (void)state;
    static double errors[4096];
    for (int g = 0; g < adv_fit_groups_count(); g++) {
        const struct adv_fit_group *group = adv_fit_group_at(g);
        if (group->kernels >> ADV_KERNEL_ATTENTION_XLA) continue; /* baselines: orders of magnitude */
        int count = 0;
        for (int i = 0; i < rows_count && count < 4096; i++)
            if (adv_fit_uses(group, &rows[i]))
                errors[count++] = fabs(predicted_s[i] / rows[i].measured_s - 1.0);
        const struct adv_error_summary summary = adv_summarize_errors(errors, count);
        const bool newest = strcmp(group->chip, "tpu7x") == 0;
        if (count == 0 || summary.median_frac > (newest ? 0.04 : 0.06) ||
            summary.p90_frac > (newest ? 0.10 : 0.15))
            fail_msg("%s %s: %d rows, median %.1f %%, p90 %.1f %%", group->chip, group->name, count,
                     100.0 * summary.median_frac, 100.0 * summary.p90_frac);
    }
}

static bool same_tile(const struct adv_kernel_row *a, const struct adv_kernel_row *b)
{
    return memcmp(&a->request.tile.gmm, &b->request.tile.gmm, sizeof a->request.tile.gmm) == 0 &&
           memcmp(&a->request.tile.attention.blocks, &b->request.tile.attention.blocks,
                  sizeof a->request.tile.attention.blocks) == 0 &&
           memcmp(&a->request.tile.xent, &b->request.tile.xent, sizeof a->request.tile.xent) == 0;
}

/* Of two tiles measured more than 5 % apart on one shape, the faster one is predicted to be faster. */
static void faster_tiles_are_predicted_faster(void **state)
{
    (void)state;
    int pairs = 0, right = 0;
    for (int i = 0; i < rows_count; i++)
        for (int j = i + 1; j < rows_count; j++) {
            const struct adv_kernel_row *a = &rows[i], *b = &rows[j];
            if (!a->trusted || !b->trusted || !a->has_tile || !b->has_tile) continue;
            if (strcmp(a->name, b->name) != 0 || strcmp(a->shape_id, b->shape_id) != 0 || same_tile(a, b))
                continue;
            if (fabs(a->measured_s / b->measured_s - 1.0) <= 0.05) continue;
            pairs++;
            right += (predicted_s[i] < predicted_s[j]) == (a->measured_s < b->measured_s);
        }
    assert_true(pairs >= 20);
    if (right < 0.95 * pairs) fail_msg("%d of %d pairs in the right order", right, pairs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kernel_of_each_generation_keeps_its_promise),
        cmocka_unit_test(faster_tiles_are_predicted_faster),
    };
    return cmocka_run_group_tests_name(__FILE__, tests, load, unload);
}

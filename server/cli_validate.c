#include "server/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/calibrate/validate_kernels.h"
#include "engine/json/decode_measurements.h"
#include "server/cli_io.h"

/* 4,096 rows of some 50 KiB each. */
static const size_t arena_limit_bytes = 512u * 1024u * 1024u;
/* Rows keep names and group sizes: 5,000 rows with 512 groups each. */
static const size_t kernels_limit_bytes = 64u * 1024u * 1024u;

/* How many rows have a prediction; what stands against one goes to the row's findings. */
static int predict(const struct adv_catalog *catalog, struct adv_measurement *rows, int count,
                   struct adv_arena *arena, adv_err *err)
{
    int answered = 0;
    for (int i = 0; i < count; i++) {
        adv_err own = adv_err_empty();
        const struct adv_catalog_chip *chip = adv_catalog_chip(catalog, rows[i].chip);
        if (chip) answered += adv_measurement_predict(&rows[i], &chip->constants, &own);
        if (adv_measurement_keep_findings(&rows[i], (size_t)i, &own, arena) != ADV_OK)
            (void)adv_err_add(err, ADV_E_MEMORY, "", NULL, "%d rows need more memory than the limit", count);
    }
    return answered;
}

static void report_findings(const struct adv_measurement *rows, int count, adv_err *err)
{
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < rows[i].findings_count; k++) {
            const struct adv_finding *finding = &rows[i].findings[k];
            (void)adv_err_add_rule(err, finding->code, finding->rule, finding->pointer, finding->hint, "%s",
                                   finding->detail);
        }
    }
}

static char *answer_measurements(const struct adv_catalog *catalog, const char *text, size_t text_bytes,
                                 struct adv_arena *arena, adv_err *err)
{
    struct adv_measurement *rows = NULL;
    int count = 0;
    const adv_code code = adv_decode_measurements(catalog, text, text_bytes, arena, &rows, &count, err);
    const int answered = code == ADV_OK ? predict(catalog, rows, count, arena, err) : 0;
    if (answered == 0) report_findings(rows, count, err); /* not one row: the file is at fault */
    return err->code == ADV_OK ? adv_encode_validation(catalog, rows, count) : NULL;
}

/* `validate --kernels FILE`: published kernel timings against the simulation. */
static char *answer_kernels(const struct adv_catalog *catalog, const char *text, size_t text_bytes,
                            struct adv_arena *arena, adv_err *err)
{
    struct adv_kernel_row *rows = NULL;
    int count = 0;
    if (adv_decode_kernel_rows(text, text_bytes, arena, &rows, &count, err)) return NULL;
    return adv_encode_kernel_validation(catalog, rows, count);
}

int adv_cli_validate(int argc, char **argv)
{
    const bool kernels = argc == 3 && strcmp(argv[1], "--kernels") == 0;
    if (!kernels && (argc != 2 || strncmp(argv[1], "--", 2) == 0)) {
        (void)fprintf(stderr,
                      "usage: tpu-advisor validate FILE | validate --kernels FILE   (- is standard input)\n");
        return ADV_CLI_USAGE;
    }
    adv_err err = adv_err_empty();
    size_t text_bytes = 0;
    char *text = adv_cli_read_file(argv[argc - 1], &text_bytes, &err);
    struct adv_catalog *catalog = text ? adv_catalog_load(NULL, &err) : NULL;
    struct adv_arena arena;
    adv_arena_init(&arena, kernels ? kernels_limit_bytes : arena_limit_bytes);
    char *answer = NULL;
    if (catalog)
        answer = (kernels ? answer_kernels : answer_measurements)(catalog, text, text_bytes, &arena, &err);
    if (!answer && err.code == ADV_OK)
        (void)adv_err_add(&err, ADV_E_MEMORY, "", NULL, "the answer does not fit in memory");
    if (answer) (void)puts(answer);
    const int status = answer ? ADV_CLI_OK : adv_cli_problem(&err);
    adv_arena_free(&arena);
    adv_catalog_free(catalog);
    free(answer);
    free(text);
    return status;
}

#include "server/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/json/decode_measurements.h"
#include "server/cli_io.h"

/* 4,000 rows of 40 KiB each. */
static const size_t arena_limit_bytes = 192u * 1024u * 1024u;

static int validate(const struct adv_catalog *catalog, const char *text, size_t text_bytes, adv_err *err)
{
    struct adv_arena arena;
    adv_arena_init(&arena, arena_limit_bytes);
    struct adv_measurement *rows = NULL;
    int count = 0;
    adv_code code = adv_decode_measurements(catalog, text, text_bytes, &arena, &rows, &count, err);
    for (int i = 0; i < count && code == ADV_OK; i++)
        (void)adv_measurement_predict(&rows[i], &adv_catalog_chip(catalog, rows[i].chip)->constants, err);
    code = err->code;
    char *answer = code == ADV_OK ? adv_encode_validation(catalog, rows, count) : NULL;
    adv_arena_free(&arena);
    if (!answer) return adv_cli_problem(err);
    (void)puts(answer);
    free(answer);
    return 0;
}

int adv_cli_validate(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--kernels") == 0) return adv_cli_validate_kernels(argv[2]);
    if (argc != 2) {
        (void)fprintf(stderr,
                      "usage: tpu-advisor validate FILE | validate --kernels FILE   (- is standard input)\n");
        return 2;
    }
    adv_err err;
    adv_err_init(&err);
    size_t text_bytes = 0;
    char *text = adv_cli_read_file(argv[1], &text_bytes, &err);
    struct adv_catalog *catalog = text ? adv_catalog_load(NULL, &err) : NULL;
    int status = catalog ? validate(catalog, text, text_bytes, &err) : adv_cli_problem(&err);
    adv_catalog_free(catalog);
    free(text);
    return status;
}

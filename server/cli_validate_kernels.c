/* cli_validate_kernels.c: `validate --kernels FILE`: published kernel timings against the simulation. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/calibrate/validate_kernels.h"
#include "engine/catalog/catalog.h"
#include "server/cli.h"
#include "server/cli_io.h"

/* Rows keep names and group sizes: 5,000 rows with 512 groups each. */
static const size_t arena_limit_bytes = 64u * 1024u * 1024u;

int adv_cli_validate_kernels(const char *path)
{
    adv_err err = adv_err_empty();
    size_t text_bytes = 0;
    char *text = adv_cli_read_file(path, &text_bytes, &err);
    struct adv_catalog *catalog = text ? adv_catalog_load(NULL, &err) : NULL;
    struct adv_arena arena;
    adv_arena_init(&arena, arena_limit_bytes);
    struct adv_kernel_row *rows = NULL;
    int count = 0;
    char *answer = NULL;
    if (catalog && !adv_decode_kernel_rows(text, text_bytes, &arena, &rows, &count, &err)) {
        answer = adv_encode_kernel_validation(catalog, rows, count);
        if (!answer) (void)adv_err_add(&err, ADV_E_MEMORY, "", NULL, "the answer does not fit in memory");
    }
    const int done = answer != NULL;
    if (done) (void)puts(answer);
    adv_arena_free(&arena);
    adv_catalog_free(catalog);
    free(answer);
    free(text);
    return done ? ADV_CLI_OK : adv_cli_problem(&err);
}

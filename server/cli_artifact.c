/* cli_artifact.c: artifact: a file made from an answer of estimate or advise, on standard output. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/catalog/catalog.h"
#include "engine/emit/artifact.h"
#include "engine/json/decode_answer.h"
#include "server/cli.h"
#include "server/cli_io.h"

enum { ARTIFACT_LIMIT_BYTES = 1024 * 1024 }; /* a table of 100 rows takes 20 KiB */

static void print_usage(void)
{
    (void)fprintf(stderr, "usage: tpu-advisor artifact NAME FILE [--rank N]\n"
                          "  FILE is the answer of estimate or advise (- is standard input), NAME one of");
    for (int i = 0; adv_artifact_name(i); i++) (void)fprintf(stderr, " %s", adv_artifact_name(i));
    (void)fprintf(stderr, "\n");
}

int adv_cli_artifact(int argc, char **argv)
{
    long rank = 1;
    const struct adv_cli_option options[] = {{"--rank", .number = &rank, .most = ADV_LIMIT_RANKED},
                                             {.name = NULL}};
    const char *name = NULL, *file = NULL;
    bool good = true;
    for (int i = 1; i < argc && good; i++) { /* in any order */
        const enum adv_cli_taken taken = adv_cli_take_option(options, argc, argv, &i);
        good = taken == ADV_CLI_TAKEN ||
               (taken == ADV_CLI_UNKNOWN && (argv[i][0] != '-' || !argv[i][1]) && !file);
        if (taken == ADV_CLI_UNKNOWN) *(name ? &file : &name) = argv[i];
    }
    if (!good || !file) {
        print_usage();
        return ADV_CLI_USAGE;
    }
    adv_err err = adv_err_empty();
    size_t answer_bytes = 0;
    char *answer = adv_cli_read_file(file, &answer_bytes, &err);
    struct adv_catalog *catalog = answer ? adv_catalog_load(NULL, &err) : NULL;
    struct adv_text text = adv_text_empty(ARTIFACT_LIMIT_BYTES);
    const bool made = catalog && adv_artifact_from_answer(catalog, name, answer, answer_bytes, (int)rank,
                                                          &text, &err) == ADV_OK;
    const int status = made ? adv_cli_write(&text) : adv_cli_problem(&err);
    adv_text_free(&text);
    adv_catalog_free(catalog);
    free(answer);
    return status;
}

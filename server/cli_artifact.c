/* cli_artifact.c: artifact: a file made from an answer of estimate or advise, on standard output. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/catalog/catalog.h"
#include "engine/emit/artifact.h"
#include "engine/json/decode_answer.h"
#include "server/cli.h"
#include "server/cli_io.h"

enum { ARTIFACT_LIMIT_BYTES = 1024 * 1024 }; /* a table of 100 rows takes 20 KiB */

struct arguments {
    const char *name, *file;
    int rank;
};

/* NAME, FILE and --rank N in any order; true: go on. */
static bool read_arguments(int argc, char **argv, struct arguments *arguments)
{
    *arguments = (struct arguments){NULL, NULL, 1};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--rank") == 0 && i + 1 < argc) {
            char *end = NULL;
            long rank = strtol(argv[++i], &end, 10);
            if (end == argv[i] || *end != '\0' || rank < 1 || rank > ADV_LIMIT_RANKED) return false;
            arguments->rank = (int)rank;
        } else if (argv[i][0] == '-' && argv[i][1] != '\0') {
            return false;
        } else if (!arguments->name) {
            arguments->name = argv[i];
        } else if (!arguments->file) {
            arguments->file = argv[i];
        } else {
            return false;
        }
    }
    return arguments->file != NULL;
}

static void print_usage(void)
{
    (void)fprintf(stderr, "usage: tpu-advisor artifact NAME FILE [--rank N]\n"
                          "  FILE is the answer of estimate or advise (- is standard input), NAME one of");
    for (int i = 0; adv_artifact_name(i); i++) (void)fprintf(stderr, " %s", adv_artifact_name(i));
    (void)fprintf(stderr, "\n");
}

int adv_cli_artifact(int argc, char **argv)
{
    struct arguments arguments;
    if (!read_arguments(argc, argv, &arguments)) {
        print_usage();
        return ADV_CLI_USAGE;
    }
    adv_err err = adv_err_empty();
    size_t answer_bytes = 0;
    char *answer = adv_cli_read_file(arguments.file, &answer_bytes, &err);
    if (!answer) return adv_cli_problem(&err);
    struct adv_text text = adv_text_empty(ARTIFACT_LIMIT_BYTES);
    struct adv_catalog *catalog = adv_catalog_load(NULL, &err);
    if (!catalog) {
        free(answer);
        return adv_cli_problem(&err);
    }
    adv_code code =
        adv_artifact_from_answer(catalog, arguments.name, answer, answer_bytes, arguments.rank, &text, &err);
    int status = code == ADV_OK ? ADV_CLI_OK : adv_cli_problem(&err);
    if (code == ADV_OK &&
        (fwrite(text.data, 1, text.length_bytes, stdout) != text.length_bytes || fflush(stdout) != 0)) {
        (void)fprintf(stderr, "tpu-advisor: standard output: %s\n", strerror(errno));
        status = ADV_CLI_FAILED;
    }
    adv_text_free(&text);
    adv_catalog_free(catalog);
    free(answer);
    return status;
}

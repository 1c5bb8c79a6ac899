/* cli_oneshot.c: estimate, advise, simulate, tune, lint: a file in, its answer on standard output. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/advise.h"
#include "server/cli.h"
#include "server/cli_io.h"

struct arguments {
    const char *file, *catalog_dir;
    struct adv_cli_given given;
};

/* True: go on. FILE, --catalog DIR and what is given beside a recipe, in any order. */
static bool read_arguments(int argc, char **argv, struct arguments *arguments)
{
    for (int i = 1; i < argc; i++) {
        const bool is_option = argv[i][0] == '-' && argv[i][1] != '\0';
        if (is_option && strncmp(argv[i], "--", 2) != 0) return false;
        if (!is_option && arguments->file) return false;
        if (!is_option)
            arguments->file = argv[i];
        else if (strcmp(argv[i], "--catalog") == 0 && i + 1 < argc)
            arguments->catalog_dir = argv[++i];
        else if (!adv_cli_take_given(&arguments->given, argc, argv, &i))
            return false;
    }
    return arguments->file != NULL;
}

/* The request that the text means with what is given beside it; the text itself where nothing is. */
static adv_code give(const struct adv_catalog *catalog, enum adv_request_kind kind,
                     const struct arguments *arguments, char **text, size_t *text_bytes, adv_err *err)
{
    char *json = NULL;
    size_t json_bytes = 0;
    if (arguments->given.count == 0) return ADV_OK;
    adv_code code = adv_request_expand(catalog, kind, *text, *text_bytes, arguments->given.members,
                                       arguments->given.count, &json, &json_bytes, err);
    if (code != ADV_OK) return code;
    free(*text);
    *text = json;
    *text_bytes = json_bytes;
    return ADV_OK;
}

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int answer_file(enum adv_request_kind kind, int argc, char **argv)
{
    static const char recipe_usage[] =
        "  FILE: a request, or a recipe: shell script, command line, Kubernetes manifest, MaxText YAML\n"
        "  beside a recipe: --chip tpu7x --topology 4x4x4 --slices 2 --model NAME --command N, and MaxText "
        "keys,\n"
        "  as --per_device_batch_size 2\n";
    const bool reads = kind == ADV_REQUEST_ESTIMATE || kind == ADV_REQUEST_ADVISE || kind == ADV_REQUEST_LINT;
    struct arguments arguments = {0};
    if (!read_arguments(argc, argv, &arguments) || (!reads && arguments.given.count)) {
        (void)fprintf(stderr, "usage: tpu-advisor %s [--catalog DIR] FILE    (- is standard input)\n%s",
                      argv[0], reads ? recipe_usage : "");
        return ADV_CLI_USAGE;
    }
    adv_err err;
    adv_err_init(&err);
    size_t text_bytes = 0;
    char *text = adv_cli_read_file(arguments.file, &text_bytes, &err);
    struct adv_catalog *catalog = text ? adv_catalog_load(arguments.catalog_dir, &err) : NULL;
    if (!catalog) {
        free(text);
        return adv_cli_problem(&err);
    }
    char *answers = NULL;
    size_t answers_bytes = 0;
    bool refutes = false;
    adv_code code = give(catalog, kind, &arguments, &text, &text_bytes, &err);
    if (code == ADV_OK)
        code = adv_answer_documents(catalog, kind, text, text_bytes, now_s, &answers, &answers_bytes,
                                    &refutes, &err);
    int status = code != ADV_OK ? adv_cli_problem(&err) : refutes ? ADV_CLI_REFUTED : ADV_CLI_OK;
    if (code == ADV_OK && (fwrite(answers, 1, answers_bytes, stdout) != answers_bytes ||
                           fputc('\n', stdout) == EOF || fflush(stdout) != 0)) {
        (void)fprintf(stderr, "tpu-advisor: standard output: %s\n", strerror(errno));
        status = ADV_CLI_FAILED;
    }
    free(answers);
    adv_catalog_free(catalog);
    free(text);
    return status;
}

int adv_cli_estimate(int argc, char **argv)
{
    return answer_file(ADV_REQUEST_ESTIMATE, argc, argv);
}

int adv_cli_advise(int argc, char **argv)
{
    return answer_file(ADV_REQUEST_ADVISE, argc, argv);
}

int adv_cli_simulate(int argc, char **argv)
{
    return answer_file(ADV_REQUEST_SIMULATE, argc, argv);
}

int adv_cli_tune(int argc, char **argv)
{
    return answer_file(ADV_REQUEST_TUNE, argc, argv);
}

int adv_cli_lint(int argc, char **argv)
{
    return answer_file(ADV_REQUEST_LINT, argc, argv);
}

int adv_cli_version(int argc, char **argv)
{
    const char *catalog_dir = argc == 3 && strcmp(argv[1], "--catalog") == 0 ? argv[2] : NULL;
    if (argc != 1 && !catalog_dir) {
        (void)fprintf(stderr, "usage: tpu-advisor version [--catalog DIR]\n");
        return ADV_CLI_USAGE;
    }
    adv_err err;
    adv_err_init(&err);
    struct adv_catalog *catalog = adv_catalog_load(catalog_dir, &err);
    if (!catalog) return adv_cli_problem(&err);
    (void)printf("{\"version\":\"%s\",\"catalog_hash\":\"%s\",\"calibration\":\"%s\"}\n",
                 adv_engine_version(), adv_catalog_hash(catalog), adv_catalog_calibration(catalog));
    adv_catalog_free(catalog);
    return ADV_CLI_OK;
}

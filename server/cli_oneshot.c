/* cli_oneshot.c: estimate, advise, simulate, tune, lint: a file in, its answer on standard output. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/base/budget.h"
#include "engine/base/crew.h"
#include "server/cli.h"
#include "server/cli_io.h"
#include "server/monotonic.h"

enum { ANSWERS_BYTES_MAX = 1 << 30 };

struct arguments {
    char **files; /* the first `count` of argv, which is put in order for it */
    int count;
    const char *catalog_dir;
    struct adv_cli_given given;
    struct adv_crew *crew; /* helps; may be NULL */
};

/* True: go on. FILEs, --catalog DIR and what is given beside a recipe, in any order. What is given may be all
 * there is. */
static bool read_arguments(int argc, char **argv, struct arguments *arguments)
{
    arguments->files = argv + 1;
    for (int i = 1; i < argc; i++) {
        const bool is_option = argv[i][0] == '-' && argv[i][1] != '\0';
        if (is_option && strncmp(argv[i], "--", 2) != 0) return false;
        if (!is_option)
            arguments->files[arguments->count++] = argv[i];
        else if (strcmp(argv[i], "--catalog") == 0 && i + 1 < argc)
            arguments->catalog_dir = argv[++i];
        else if (!adv_cli_take_given(&arguments->given, argc, argv, &i))
            return false;
    }
    return arguments->count > 0 || arguments->given.count > 0;
}

/* The text of a file; without one, of an empty request. */
static char *text_of(const char *file, size_t *text_bytes, adv_err *err)
{
    static const char empty[] = "{}";
    if (file) return adv_cli_read_file(file, text_bytes, err);
    *text_bytes = sizeof empty - 1;
    char *text = strdup(empty);
    if (!text) (void)adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the request");
    return text;
}

/* Adds the answer to a file, NULL an empty request; what is wrong with one of several is said with its name.
 */
static void answer_file(const struct adv_catalog *catalog, enum adv_request_kind kind,
                        const struct arguments *arguments, const char *file, struct adv_text *out,
                        bool *refutes, adv_err *err)
{
    char *answers = NULL;
    size_t text_bytes = 0, answers_bytes = 0;
    bool one_refutes = false;
    const struct adv_budget budget = {.crew = arguments->crew};
    adv_err own = adv_err_empty();
    char *text = text_of(file, &text_bytes, &own);
    adv_code code =
        text ? adv_cli_expand(catalog, kind, &arguments->given, &text, &text_bytes, &own) : own.code;
    if (code == ADV_OK)
        code = adv_answer_documents(catalog, kind, text, text_bytes, adv_monotonic_s, &budget, &answers,
                                    &answers_bytes, &one_refutes, &own);
    if (code == ADV_OK) adv_text_append_bytes(out, answers, answers_bytes);
    adv_err_merge(err, &own, arguments->count > 1 ? ADV_AT("", file) : "");
    *refutes = *refutes || one_refutes;
    free(answers);
    free(text);
}

/* The answer; of several files an array, in their order. */
static void answer_files(const struct adv_catalog *catalog, enum adv_request_kind kind,
                         const struct arguments *arguments, struct adv_text *out, bool *refutes, adv_err *err)
{
    const bool several = arguments->count > 1;
    if (several) adv_text_append(out, "[");
    for (int i = 0; i < arguments->count; i++) {
        if (i > 0) adv_text_append(out, ",\n");
        answer_file(catalog, kind, arguments, arguments->files[i], out, refutes, err);
    }
    if (arguments->count == 0) answer_file(catalog, kind, arguments, NULL, out, refutes, err);
    adv_text_append(out, several ? "]\n" : "\n");
    if (out->overflow)
        (void)adv_err_add(err, ADV_E_TOO_LARGE, "", "give fewer files", "the answers are over %d bytes",
                          ANSWERS_BYTES_MAX);
}

/* Offers what the command takes: the batch and length of a workload are for advise to search around. */
static int print_usage(const char *command, enum adv_request_kind kind)
{
    (void)fprintf(stderr, "usage: tpu-advisor %s [--catalog DIR] FILE...    (- is standard input)\n",
                  command);
    if (kind == ADV_REQUEST_SIMULATE || kind == ADV_REQUEST_TUNE) return ADV_CLI_USAGE;
    (void)fprintf(
        stderr,
        "  FILE: a request of %s, a recipe (shell script, command line, Kubernetes manifest, MaxText\n"
        "  YAML), or the config.json of a Hugging Face model; of several files the answer is an array\n"
        "  beside them, or without FILE: --model NAME --chip tpu7x --topology 4x4x4 --slices 2\n"
        "  --command N,%s and MaxText keys, as --per_device_batch_size 2%s\n",
        command, kind == ADV_REQUEST_ADVISE ? " --seq_len 8192 --global_batch_sequences 256" : "",
        kind == ADV_REQUEST_ADVISE ? "" : " --max_target_length 8192");
    return ADV_CLI_USAGE;
}

int adv_cli_oneshot(int argc, char **argv)
{
    static const char *const names[] = {[ADV_REQUEST_ESTIMATE] = "estimate",
                                        [ADV_REQUEST_ADVISE] = "advise",
                                        [ADV_REQUEST_SIMULATE] = "simulate",
                                        [ADV_REQUEST_TUNE] = "tune",
                                        [ADV_REQUEST_LINT] = "lint"};
    enum adv_request_kind kind = ADV_REQUEST_ESTIMATE;
    while (strcmp(argv[0], names[kind]) != 0) kind++;
    const bool reads = kind == ADV_REQUEST_ESTIMATE || kind == ADV_REQUEST_ADVISE || kind == ADV_REQUEST_LINT;
    struct arguments arguments = {0};
    if (!read_arguments(argc, argv, &arguments) || (!reads && arguments.given.count)) {
        return print_usage(argv[0], kind);
    }
    adv_err err = adv_err_empty();
    struct adv_catalog *catalog = adv_catalog_load(arguments.catalog_dir, &err);
    if (!catalog) return adv_cli_problem(&err);
    struct adv_text out = adv_text_empty(ANSWERS_BYTES_MAX);
    bool refutes = false;
    if (kind == ADV_REQUEST_ADVISE) arguments.crew = adv_crew_start(0, 0);
    answer_files(catalog, kind, &arguments, &out, &refutes, &err);
    adv_crew_stop(arguments.crew);
    int status = err.code != ADV_OK ? adv_cli_problem(&err) : refutes ? ADV_CLI_REFUTED : ADV_CLI_OK;
    if (err.code == ADV_OK && adv_cli_write(&out)) status = ADV_CLI_FAILED;
    adv_text_free(&out);
    adv_catalog_free(catalog);
    return status;
}

int adv_cli_version(int argc, char **argv)
{
    const char *catalog_dir = argc == 3 && strcmp(argv[1], "--catalog") == 0 ? argv[2] : NULL;
    if (argc != 1 && !catalog_dir) {
        (void)fprintf(stderr, "usage: tpu-advisor version [--catalog DIR]\n");
        return ADV_CLI_USAGE;
    }
    adv_err err = adv_err_empty();
    struct adv_catalog *catalog = adv_catalog_load(catalog_dir, &err);
    if (!catalog) return adv_cli_problem(&err);
    (void)printf("{\"version\":\"%s\",\"catalog_hash\":\"%s\",\"calibration\":\"%s\"}\n",
                 adv_engine_version(), adv_catalog_hash(catalog), adv_catalog_calibration(catalog));
    adv_catalog_free(catalog);
    return ADV_CLI_OK;
}

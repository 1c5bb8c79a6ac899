/* cli_verify.c: verify: a plan before the real MaxText and libtpu. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/json/proof.h"
#include "server/cli.h"
#include "server/cli_io.h"
#include "server/compiler.h"

#define TIME_S       900
#define MEMORY_GIB   16 /* unscanned models take nine */
#define OUTPUT_BYTES (8u * 1024u * 1024u)

struct arguments {
    const char *file, *keep;
    struct adv_cli_given given; /* beside a recipe */
    long rank, top, time_s, memory_gib;
    bool whole, text, install;
};

/* True: go on. */
static bool read_arguments(int argc, char **argv, struct arguments *arguments)
{
    *arguments = (struct arguments){.time_s = TIME_S, .memory_gib = MEMORY_GIB};
    const struct adv_cli_option options[] = {
        {"--rank", .number = &arguments->rank, .most = ADV_LIMIT_RANKED},
        {"--top", .number = &arguments->top, .most = ADV_LIMIT_RANKED},
        {"--timeout", .number = &arguments->time_s, .most = 86400},
        {"--memory-gib", .number = &arguments->memory_gib, .most = 65536},
        {"--whole", .flag = &arguments->whole},
        {"--text", .flag = &arguments->text},
        {"--install", .flag = &arguments->install},
        {"--keep", .text = &arguments->keep},
        {.name = NULL}};
    for (int i = 1; i < argc; i++) {
        const enum adv_cli_taken taken = adv_cli_take_option(options, argc, argv, &i);
        if (taken == ADV_CLI_WRONG) return false;
        if (taken == ADV_CLI_TAKEN) continue;
        if (strncmp(argv[i], "--", 2) == 0) {
            if (!adv_cli_take_given(&arguments->given, argc, argv, &i)) return false;
            continue;
        }
        if ((argv[i][0] == '-' && argv[i][1] != '\0') || arguments->file) return false;
        arguments->file = argv[i];
    }
    return arguments->install ? !arguments->file : arguments->file && !(arguments->rank && arguments->top);
}

static void print_usage(void)
{
    (void)fprintf(
        stderr,
        "usage: tpu-advisor verify FILE [--rank N | --top K] [--whole] [--text] [--timeout S]\n"
        "                          [--memory-gib N] [--keep FOLDER]\n"
        "       tpu-advisor verify --install\n"
        "  FILE (- is standard input): a recipe (shell script, manifest, MaxText YAML), a request of "
        "estimate\n"
        "             or advise, an answer of theirs, or a run\n"
        "  beside a recipe or a request: --chip tpu7x --topology 4x4x4 --model NAME, and MaxText keys\n"
        "  --whole    generate code too: minutes instead of half a minute, same verdict on memory\n"
        "  --keep     leave what XLA dumps in FOLDER (of the last plan)\n"
        "  --install  make the private Python with the pinned releases (minutes, 3 GB from PyPI)\n"
        "  exit status: 0 every plan compiles and fits, 1 one does not, 2 bad input, 3 not installed\n");
}

static enum adv_request_kind asked(enum adv_proof_file kind)
{
    return kind == ADV_PROOF_OF_ADVISE ? ADV_REQUEST_ADVISE : ADV_REQUEST_ESTIMATE;
}

/* A recipe, or a request with something given beside it, becomes the plain request that it means. */
static adv_code expand(const struct adv_catalog *catalog, const struct arguments *arguments, char **text,
                       size_t *bytes, enum adv_proof_file *kind, adv_err *err)
{
    const struct adv_cli_given *given = &arguments->given;
    char *json = NULL;
    size_t json_bytes = 0;
    if (*kind == ADV_PROOF_OF_ANSWER || *kind == ADV_PROOF_OF_RUN)
        return adv_err_add(err, ADV_E_BAD_REQUEST, "",
                           "give them to estimate or advise, which make the answer",
                           "--%s changes nothing in an answer", given->members[0].name);
    for (;;) {
        adv_code code = adv_request_expand(catalog, asked(*kind), *text, *bytes, given->members, given->count,
                                           &json, &json_bytes, err);
        if (code) return code;
        if (*kind != ADV_PROOF_OF_RECIPE) break;
        code = adv_proof_file_kind(json, json_bytes, kind, err);
        if (!code && *kind != ADV_PROOF_OF_ADVISE) break;
        free(json); /* YAML of such a request: read once more as it */
        if (code) return code;
    }
    free(*text);
    *text = json;
    *bytes = json_bytes;
    return ADV_OK;
}

/* The answer to what the file asks, malloc'ed. */
static char *ask(const struct arguments *arguments, const struct adv_catalog *catalog, char **text,
                 size_t bytes, enum adv_proof_file kind, adv_err *err)
{
    struct adv_answer answer = {0};
    adv_code code = ADV_OK;
    if (kind == ADV_PROOF_OF_RECIPE || arguments->given.count)
        code = expand(catalog, arguments, text, &bytes, &kind, err);
    if (code == ADV_OK) {
        if (kind == ADV_PROOF_OF_RECIPE) /* an array of requests */
            (void)adv_err_add(err, ADV_E_INVALID, "", "give one request", "the file holds several requests");
        else if (adv_answer_request(catalog, asked(kind), *text, bytes, &answer, err) != ADV_OK)
            answer.json = NULL;
    }
    return answer.json;
}

/* The answer that the file holds or asks for, malloc'ed. */
static char *read_answer(const struct arguments *arguments, const struct adv_catalog *catalog, adv_err *err)
{
    enum adv_proof_file kind = ADV_PROOF_OF_ANSWER;
    char *found = NULL;
    size_t bytes = 0;
    char *text = adv_cli_read_file(arguments->file, &bytes, err);
    if (!text || adv_proof_file_kind(text, bytes, &kind, err)) {
        free(text);
        return NULL;
    }
    if (kind == ADV_PROOF_OF_ANSWER && !arguments->given.count) return text;
    if (kind == ADV_PROOF_OF_RUN && !arguments->given.count) {
        if (adv_proof_run_answer(text, bytes, &found, err)) found = NULL;
    } else {
        found = ask(arguments, catalog, &text, bytes, kind, err);
    }
    free(text);
    return found;
}

struct progress {
    int rank;
};

static bool show_stage(void *context, const char *stage, double seconds)
{
    const struct progress *progress = context;
    if (stage) (void)fprintf(stderr, "plan %d: %s (%.0f s)\n", progress->rank, stage, seconds);
    return true;
}

/* Verifies one plan; its result is appended to `out`. The exit status. */
static int verify_rank(const struct arguments *arguments, const struct adv_catalog *catalog,
                       const char *answer, int rank, struct adv_text *out, int *first_proven, adv_err *err)
{
    struct adv_proof_plan plan;
    struct adv_proof_summary summary = {.verdict = ADV_PROOF_FAILED};
    struct progress progress = {rank};
    int ranks_count = 0;
    if (adv_proof_plan_read(catalog, answer, strlen(answer), rank, &plan, &ranks_count, err))
        return ADV_CLI_USAGE;
    const struct adv_compiler_order order = {.plan = plan.plan,
                                             .whole = arguments->whole,
                                             .time_s = arguments->time_s,
                                             .memory_gib = arguments->memory_gib,
                                             .program = getenv("TPU_ADVISOR_COMPILER"),
                                             .keep = arguments->keep,
                                             .watch = show_stage,
                                             .context = &progress};
    char *result = NULL;
    const enum adv_compiler_end end = adv_compiler_run(&order, &result, err);
    int status = ADV_CLI_USAGE;
    if (end == ADV_COMPILER_NO_ENVIRONMENT) {
        (void)fprintf(stderr,
                      "tpu-advisor: the real compiler is not installed; run: " ADV_COMPILER_INSTALL "\n");
        status = ADV_CLI_NO_ENVIRONMENT;
    } else if (end == ADV_COMPILER_SAID && adv_proof_summarize(result, &summary, err) == ADV_OK &&
               adv_proof_join(result, plan.predicted, rank, out, err) == ADV_OK) {
        status = summary.verdict == ADV_PROOF_COMPILES ? ADV_CLI_OK : ADV_CLI_REFUTED;
        if (status == ADV_CLI_OK && !*first_proven) *first_proven = rank;
    }
    free(result);
    adv_proof_plan_free(&plan);
    return status;
}

static int verify_ranks(const struct arguments *arguments, const struct adv_catalog *catalog,
                        const char *answer, adv_err *err)
{
    int status = ADV_CLI_OK, first_proven = 0, count = 0;
    const int first = arguments->rank ? (int)arguments->rank : 1;
    const int last = arguments->top ? (int)arguments->top : first;
    struct adv_text results = adv_text_empty(OUTPUT_BYTES), people;
    adv_text_init(&people, OUTPUT_BYTES);
    for (int rank = first; rank <= last && status <= ADV_CLI_REFUTED; rank++, count++) {
        struct adv_text one = adv_text_empty(ADV_LIMIT_PROOF_BYTES);
        const int said = verify_rank(arguments, catalog, answer, rank, &one, &first_proven, err);
        /* An answer may have fewer plans than were asked for. */
        const bool past_last = said == ADV_CLI_USAGE && rank > first && err->code == ADV_E_NOT_FOUND;
        if (!past_last) status = said > status ? said : status;
        if (one.data && said <= ADV_CLI_REFUTED) {
            adv_text_format(&results, "%s", count ? "," : "");
            adv_text_append(&results, one.data);
            if (arguments->text && adv_proof_print(one.data, &people, err)) status = ADV_CLI_USAGE;
        }
        adv_text_free(&one);
        if (past_last) break;
    }
    if (status <= ADV_CLI_REFUTED && arguments->text) {
        (void)fputs(people.data ? people.data : "", stdout);
    } else if (status <= ADV_CLI_REFUTED) {
        char proven[16] = "null";
        if (first_proven) (void)snprintf(proven, sizeof proven, "%d", first_proven);
        (void)printf("{\"results\":[%s],\"first_proven_rank\":%s}\n", results.data ? results.data : "",
                     proven);
    }
    adv_text_free(&results);
    adv_text_free(&people);
    return status;
}

int adv_cli_verify(int argc, char **argv)
{
    struct arguments arguments;
    if (!read_arguments(argc, argv, &arguments)) {
        print_usage();
        return ADV_CLI_USAGE;
    }
    adv_err err = adv_err_empty();
    if (arguments.install) {
        if (adv_compiler_install(&err)) return ADV_CLI_OK;
        if (err.count) (void)adv_cli_problem(&err);
        return ADV_CLI_NO_ENVIRONMENT;
    }
    struct adv_catalog *catalog = adv_catalog_load(NULL, &err);
    char *answer = catalog ? read_answer(&arguments, catalog, &err) : NULL;
    int status = answer ? verify_ranks(&arguments, catalog, answer, &err) : ADV_CLI_USAGE;
    if (status == ADV_CLI_USAGE) (void)adv_cli_problem(&err);
    free(answer);
    adv_catalog_free(catalog);
    return status;
}

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/text.h"
#include "server/cli.h"

/* Adding a subcommand = adding a row. */
static const struct {
    const char *name;
    const char *help;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"serve", "run the daemon (default address 127.0.0.1:8080)", adv_cli_serve},
    {"estimate", "FILE...: predict step time and memory of one plan", adv_cli_oneshot},
    {"advise", "FILE: rank the plans for a training job", adv_cli_oneshot},
    {"artifact", "NAME FILE: a file made from an answer of estimate or advise: maxtext.sh, gcluster.sh, ...",
     adv_cli_artifact},
    {"simulate",
     "FILE: run one kernel with given tiles; \"timeline\": true and \"trace\": true in FILE add its steps",
     adv_cli_oneshot},
    {"tune", "FILE: find the best tiles for a kernel's shape", adv_cli_oneshot},
    {"lint", "FILE: check a MaxText configuration and XLA flags; exit status 1 when it is not valid",
     adv_cli_oneshot},
    {"verify", "FILE: ask the real MaxText and libtpu whether the plan compiles and fits", adv_cli_verify},
    {"verifier", "work off the verifications that the daemon has queued in its database", adv_cli_verifier},
    {"validate", "FILE: predict every row of a measurement file and compare", adv_cli_validate},
    {"bench", "measure the engine's own speed", adv_cli_bench},
    {"migrate", "apply the database migrations and leave", adv_cli_migrate},
    {"check", "compare candidates with a baseline of a daemon, for CI; exit status 0, 1 regression, 2, 3",
     adv_cli_check},
    {"token", "create|list|revoke: bearer tokens, with scope, project and end", adv_cli_token},
    {"healthcheck", "ask a running daemon whether it is ready", adv_cli_healthcheck},
    {"version", "print the version, the catalog's hash and the calibration", adv_cli_version},
};

#define COMMANDS_COUNT ((int)(sizeof commands / sizeof commands[0]))

static void print_usage(FILE *out)
{
    (void)fprintf(out, "usage: tpu-advisor COMMAND [ARGUMENTS]\n\n");
    for (int i = 0; i < COMMANDS_COUNT; i++)
        (void)fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].help);
    (void)fprintf(out, "\nFILE - is standard input. `tpu-advisor serve --help` lists the settings.\n");
}

/* Memory that one answer gives back is for the next. By itself glibc returns what is free at the end of the
 * heap to the kernel, after every answer or after none as it happens, and gets it back page by page: a tenth
 * of a search's time. */
static void keep_memory(void)
{
    enum { MOST_KEPT_BYTES = 64 << 20, MAPPED_BYTES = 32 << 20 };
    (void)mallopt(M_TRIM_THRESHOLD, MOST_KEPT_BYTES);
    (void)mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
}

/* Whether all that was printed has arrived: a token, a table or a version that is lost on a full disk is no
 * success. */
static bool is_written(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return true;
    (void)fprintf(stderr, "tpu-advisor: standard output cannot be written: %s\n", strerror(errno));
    return false;
}

/* A command that is misused tells its usage on standard error; one that is asked for it, where it can be
 * paged. */
static int run_command(int command, int argc, char **argv)
{
    const bool is_asked = argc == 2 && strcmp(argv[1], "--help") == 0;
    if (is_asked) (void)dup2(STDOUT_FILENO, STDERR_FILENO);
    int status = commands[command].run(argc, argv);
    if (status == ADV_CLI_OK && !is_written()) status = ADV_CLI_FAILED;
    return is_asked && status == ADV_CLI_USAGE ? ADV_CLI_OK : status;
}

int main(int argc, char **argv)
{
    keep_memory();
    if (argc < 2) {
        print_usage(stderr);
        return ADV_CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_usage(stdout);
        return ADV_CLI_OK;
    }
    const char *asked = strcmp(argv[1], "--version") == 0 ? "version" : argv[1];
    const char *names[COMMANDS_COUNT];
    for (int i = 0; i < COMMANDS_COUNT; i++) {
        if (strcmp(asked, commands[i].name) == 0) return run_command(i, argc - 1, argv + 1);
        names[i] = commands[i].name;
    }
    const char *nearest = adv_text_nearest(argv[1], names, COMMANDS_COUNT);
    (void)fprintf(stderr, "tpu-advisor: there is no command '%s'%s%s%s\n", argv[1],
                  nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    print_usage(stderr);
    return ADV_CLI_USAGE;
}

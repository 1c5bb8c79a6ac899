/* cli_io.h: what commands share: reading a whole file or standard input, what is given beside it, settings,
 * printing a problem. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/advise.h"
#include "engine/base/text.h"
#include "server/config.h"

/* All of `path` ("-": standard input), NUL-terminated, malloc'ed. NULL and ADV_E_IO when it cannot be read,
 * NULL and ADV_E_TOO_LARGE beyond 64 MiB. */
char *adv_cli_read_file(const char *path, size_t *text_bytes, adv_err *err);

/* An option of a command, with the one place of its value: a switch, a text, the next of a list of at most
 * `most` texts, a whole number from 1 to `most`, or what `take` makes of it. */
struct adv_cli_option {
    const char *name; /* "--rank"; NULL ends a table */
    bool *flag;
    const char **text;
    int *count; /* of the list that `text` is */
    long *number, most;
    bool (*take)(void *context, char *value); /* false: it is wrong */
    void *context;
};
enum adv_cli_taken { ADV_CLI_TAKEN, ADV_CLI_UNKNOWN, ADV_CLI_WRONG };
/* Takes argv[*at] by the table; *at is then its last word. Wrong: the value is, or it is
 * missing or one too many. */
enum adv_cli_taken adv_cli_take_option(const struct adv_cli_option *options, int argc, char **argv, int *at);

/* Members of a request and MaxText keys from the command line, for adv_request_expand. Not to be copied:
 * `members` point into `names`. */
enum { ADV_CLI_GIVEN = 32 };
struct adv_cli_given {
    struct adv_given_member members[ADV_CLI_GIVEN];
    int count;
    char names[ADV_CLI_GIVEN][ADV_LIMIT_NAME];
};

/* Takes argv[*at], "--num-slices 2" or "--num-slices=2", as num_slices; --strict and --lenient alone are
 * true. *at is then its last word. False: no value, or too many. */
bool adv_cli_take_given(struct adv_cli_given *given, int argc, char **argv, int *at);

/* The request that the text means with what is given beside it takes its place; without, it stays. */
ADV_MUST_CHECK adv_code adv_cli_expand(const struct adv_catalog *catalog, enum adv_request_kind kind,
                                       const struct adv_cli_given *given, char **text, size_t *text_bytes,
                                       adv_err *err);

/* Writes the text to standard output; returns the exit status. */
int adv_cli_write(const struct adv_text *text);

/* Writes the problem document of `err` to standard error; returns the exit status. */
int adv_cli_problem(const adv_err *err);

/* The daemon's settings from all sources, where argv[0] is the command. True: go on; false: `status` is the
 * exit status, and what was asked for instead (help, …) is printed. */
bool adv_cli_settings(struct adv_daemon_config *config, int argc, char **argv, int *status);

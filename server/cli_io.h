/* cli_io.h: what the one-shot commands share: reading a whole file or standard input, printing a problem. */
#ifndef ADV_SERVER_CLI_IO_H
#define ADV_SERVER_CLI_IO_H

#include <stddef.h>

#include "engine/base/err.h"

/* All of `path` ("-": standard input), NUL-terminated, malloc'ed. NULL and ADV_E_IO when it cannot be read,
 * NULL and ADV_E_TOO_LARGE beyond 64 MiB. */
char *adv_cli_read_file(const char *path, size_t *text_bytes, adv_err *err);

/* Writes the problem document of `err` to standard error; returns the exit status. */
int adv_cli_problem(const adv_err *err);

#endif

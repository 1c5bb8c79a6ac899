/* serve.h: the daemon's start, life and orderly end. */
#pragma once

#include "server/app.h"

/* Builds the app from its settings, serves until SIGTERM or SIGINT, drains. SIGHUP reads the settings again,
 * from argv as at the start (argv[0] is the command's name). Returns the process's exit status. */
int adv_serve(const struct adv_daemon_config *config, int argc, char **argv);

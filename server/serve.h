/* serve.h: the daemon's start, life and orderly end. */
#ifndef ADV_SERVER_SERVE_H
#define ADV_SERVER_SERVE_H

#include "server/app.h"

/* Builds the app from its settings, serves until SIGTERM or SIGINT, drains. Returns the process's exit
 * status. */
int adv_serve(const struct adv_config *config);

#endif

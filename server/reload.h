/* reload.h: SIGHUP: tokens, the settings that may change, and the log's file are read again. */
#pragma once

#include "server/app.h"

/* Reads the settings again as at the start (argv[0] is the command's name) and takes over what a running
 * daemon can; what needs a new start, and mistakes, are logged and change nothing. */
void adv_reload(struct adv_app *app, int argc, char **argv);

/* The tokens of the file, read anew. false: there are mistakes, printed to `errors`; those in force stay. */
ADV_MUST_CHECK bool adv_reload_tokens(struct adv_app *app, FILE *errors);

/* Frees the settings that reloads made. */
void adv_reload_free(struct adv_app *app);

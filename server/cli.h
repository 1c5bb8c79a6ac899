/* cli.h: the subcommands of tpu-advisor; the table that names them is in main.c.
 *
 * argv[0] is the subcommand's own name, its arguments follow. The result is the exit status:
 * 0 done, 1 the environment failed (file, network, database) or `lint` found errors, 2 the input or the
 * command line is wrong. A wrong input leaves a problem document on standard error and nothing on standard
 * output.
 */
#pragma once

#define ADV_CLI_OK             0
#define ADV_CLI_FAILED         1
#define ADV_CLI_USAGE          2
#define ADV_CLI_NO_ENVIRONMENT 3 /* verify: the real compiler is not installed */

#define ADV_CLI_REFUTED 1 /* lint: the answer, on standard output, says "valid": false */

int adv_cli_serve(int argc, char **argv);   /* the daemon, until SIGTERM or SIGINT */
int adv_cli_migrate(int argc, char **argv); /* applies the database migrations and leaves */
int adv_cli_check(int argc, char **argv);
int adv_cli_token(int argc, char **argv);
int adv_cli_healthcheck(int argc, char **argv); /* asks a running daemon's /readyz */

int adv_cli_oneshot(int argc, char **argv);  /* estimate, advise, simulate, tune, lint */
int adv_cli_artifact(int argc, char **argv); /* writes a file made from an answer to standard output */
int adv_cli_verify(int argc, char **argv);   /* 0 compiles, 1 not, 2 bad input, 3 no compiler here */
int adv_cli_verifier(int argc, char **argv); /* takes plans from the database, until SIGTERM */
int adv_cli_validate(int argc, char **argv);
int adv_cli_bench(int argc, char **argv);
int adv_cli_version(int argc, char **argv);

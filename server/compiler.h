/* compiler.h: the program that asks the real MaxText and libtpu for their word on a plan, run as a child.
 *
 * Its Python files are embedded (server/verifier/) and written to a folder of their own for each child,
 * removed with it. The child leads a process group; the group is killed when the time is over, when it holds
 * more memory than it may, when nobody wants the answer any more, and by the kernel when this process dies.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "engine/base/err.h"
#include "engine/json/proof.h"

#define ADV_COMPILER_INSTALL "tpu-advisor verify --install" /* the command that makes the environment */

struct adv_compiler_order {
    const char *plan; /* adv_proof_plan's */
    bool whole;       /* with the code generation */
    long time_s, memory_gib;
    const char *program; /* runs instead of the Python that is installed; NULL or "" = that one */
    const char *keep;    /* the dump stays in this folder; NULL = it goes */
    /* Called at least every 250 ms, with the stage once it has changed, else NULL. False: nobody waits. */
    bool (*watch)(void *context, const char *stage, double seconds);
    void *context;
};

enum adv_compiler_end {
    ADV_COMPILER_SAID,           /* there is a result, be it "failed" */
    ADV_COMPILER_UNWANTED,       /* `watch` said so */
    ADV_COMPILER_NO_ENVIRONMENT, /* and ADV_COMPILER_INSTALL makes it */
    ADV_COMPILER_ERROR           /* of this machine: no process, no folder; see `err` */
};

/* Runs one child to its end. *result: malloc'ed JSON on ADV_COMPILER_SAID, else NULL. */
enum adv_compiler_end adv_compiler_run(const struct adv_compiler_order *order, char **result, adv_err *err);

/* Whether a compile can be started here: with `program` (NULL or "": the installed one). */
bool adv_compiler_ready(const char *program);

/* Makes the environment if it is not there (minutes, 3 GB from PyPI); progress on standard error. True: it is
 * there. */
bool adv_compiler_install(adv_err *err);

/* {"python", "maxtext", "jax", "libtpu"}: the releases that the environment holds. Static. */
const char *adv_compiler_versions(void);

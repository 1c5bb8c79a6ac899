/* compiler_files.h: the embedded files of the verifier in a folder of their own, and the memory of a process
 * group. */
#ifndef ADV_SERVER_COMPILER_FILES_H
#define ADV_SERVER_COMPILER_FILES_H

#include <stdbool.h>
#include <sys/types.h>

#include "engine/base/err.h"

#define ADV_LIMIT_FOLDER 256

/* Writes the files below $TMPDIR (else /tmp); `folder` is its name. ADV_E_IO with the reason. */
ADV_MUST_CHECK adv_code adv_compiler_unpack(char folder[ADV_LIMIT_FOLDER], adv_err *err);
void adv_compiler_remove(const char *folder); /* with all that a child has put there */

/* Bytes of memory that the processes of a group hold, shared pages counted in each; 0 where /proc does not
 * tell. */
double adv_compiler_group_bytes(pid_t group);

#endif

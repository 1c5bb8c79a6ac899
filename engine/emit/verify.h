/* verify.h: a script that has XLA check the plan's memory before a machine is booked. */
#ifndef ADV_EMIT_VERIFY_H
#define ADV_EMIT_VERIFY_H

#include "engine/emit/artifact.h"

/* Appends a script that compiles the training step ahead of time for the slice, on a machine without a TPU,
 * and compares the compiler's bytes per device with the predicted ones. Its exit status: 0 it fits, 1 it does
 * not, 2 it could not be compiled for another reason. */
void adv_verify_write(const struct adv_artifact_source *source, struct adv_text *text);

#endif

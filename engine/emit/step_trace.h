/* step_trace.h: the ledger of one step as a Chrome trace (chrome://tracing, Perfetto).
 *
 * A row of what the step waits for, its terms end to end (their sum is the step time), and the lanes of the
 * view of a layer (explain/step_view.h) with what keeps each of them busy. The ledger has no order in time:
 * within a row terms stand in the ledger's order.
 */
#pragma once

#include "engine/emit/artifact.h"

/* Appends the trace: an object with traceEvents, times in microseconds. */
void adv_step_trace_write(const struct adv_artifact_source *source, struct adv_text *text);

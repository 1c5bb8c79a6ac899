/* step_constants.h: the constants of the whole-step model: X(member, unit, what). Owner: engine/cost. */
#ifndef ADV_CATALOG_STEP_CONSTANTS_H
#define ADV_CATALOG_STEP_CONSTANTS_H

#define ADV_STEP_CONSTANTS(X)                                                                                \
    X(step_matmul_frac, "frac", "dense matmul rate inside a step over peak")                                 \
    X(step_collective_latency_s, "s", "fixed cost of one collective issued by a step")

#endif

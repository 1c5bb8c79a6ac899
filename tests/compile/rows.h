/* rows.h: compiled steps (tests/compile/truth/(*).json) beside what the engine says of them. */
#pragma once

#include <jansson.h>

#include "engine/calibrate/measurement.h"

struct compiled_row {
    struct adv_measurement *row;
    const json_t *compiled; /* the row's member of that name */
    const json_t *drawn;    /* what was predicted when the plan was drawn; NULL: nothing is known of that */
    double need_bytes, argument_bytes, heap_bytes,
        host_bytes;                    /* per device; NAN where the compiler did not say */
    bool fits;                         /* the compiler's verdict */
    bool judged;                       /* both the compiler and the engine counted bytes */
    double predicted_bytes, error_log; /* ln(predicted / compiled) */
    struct compiled_step *step;        /* what the row's memory is worked out from */
};

struct compiled_rows {
    struct compiled_row *rows;
    int count;
};

/* Reads the files; what cannot be read ends the program with a message. Owned by the process. */
struct compiled_rows compiled_rows_load(const struct adv_catalog *catalog, char *const *paths,
                                        int paths_count);

/* Predicts a row with these constants; false where the engine refuses it. */
bool compiled_row_predict(struct compiled_row *row, const struct adv_constants *constants);

/* The same for a row that was predicted before: its bytes and their spread alone, without the time. */
void compiled_row_weigh(struct compiled_row *row, const struct adv_constants *constants);

/* Whether the program copies a stack of its layers' [tokens, emb] whole for the iteration that it takes out
 * of the backward loop, and whether adv_memory_turns_emb says so. */
struct compiled_turn {
    bool shown; /* false: the row has no such stack, or does not show it: dense layers, one a scan step, no
                   tensor axes, on one slice, and no loop over microbatches, in which copies were not looked
                   for */
    bool windowed, says, does;
};
struct compiled_turn compiled_row_turn(struct compiled_row *row, const struct adv_constants *constants);

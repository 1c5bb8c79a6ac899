/* tape.h: what came out of pricing the plans of one family, in the order they were priced, to be shown later
 * and elsewhere as if they had been priced there and then.
 *
 * Memory is the tape's own, kept for the next family until adv_tape_free. Zero-initialised means empty.
 */
#pragma once

#include "engine/cost/estimate.h"
#include "engine/cost/projections.h"

struct adv_tape_row {
    struct adv_places places;
    double above; /* only a search with a cutoff above this prices the plan */
    bool known;   /* false: the engine has no model of the plan */
    unsigned char priced[ADV_ESTIMATE_AGAIN_BYTES]; /* the start of its estimate */
};

struct adv_tape {
    int count, room;
    bool broken;  /* rows are missing: memory was exhausted */
    double above; /* of the rows to come */
    struct adv_tape_row *rows;
};

/* Empties it; the rows to come are for any cutoff. */
void adv_tape_rewind(struct adv_tape *tape);

/* Adds a row; `estimate` NULL: the plan was not known. */
void adv_tape_write(struct adv_tape *tape, const struct adv_places *places,
                    const struct adv_estimate *estimate);

/* Reads the estimate of row `at` as far as adv_estimate_again writes it. False: the plan was not known. */
bool adv_tape_read(const struct adv_tape *tape, int at, struct adv_estimate *estimate);

void adv_tape_free(struct adv_tape *tape);

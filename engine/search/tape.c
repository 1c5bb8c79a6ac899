#include "engine/search/tape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROWS = 256 };

void adv_tape_rewind(struct adv_tape *tape)
{
    tape->count = 0;
    tape->broken = false;
    tape->above = -(double)INFINITY;
}

static bool make_room(struct adv_tape *tape)
{
    if (tape->count < tape->room) return true;
    const int room = tape->room > 0 ? 2 * tape->room : FIRST_ROWS;
    struct adv_tape_row *rows = realloc(tape->rows, (size_t)room * sizeof *rows);
    if (!rows) return false;
    tape->rows = rows;
    tape->room = room;
    return true;
}

void adv_tape_write(struct adv_tape *tape, const struct adv_places *places,
                    const struct adv_estimate *estimate)
{
    if (tape->broken || !make_room(tape)) {
        tape->broken = true;
        return;
    }
    struct adv_tape_row *row = &tape->rows[tape->count++];
    row->places = *places;
    row->above = tape->above;
    row->known = estimate != NULL;
    if (estimate) memcpy(row->priced, estimate, sizeof row->priced);
}

bool adv_tape_read(const struct adv_tape *tape, int at, struct adv_estimate *estimate)
{
    const struct adv_tape_row *row = &tape->rows[at];
    if (row->known) memcpy(estimate, row->priced, sizeof row->priced);
    return row->known;
}

void adv_tape_free(struct adv_tape *tape)
{
    free(tape->rows);
    *tape = (struct adv_tape){0};
}

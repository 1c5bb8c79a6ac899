/* tile_pins.h: which members of a plan's tiles a request fixes, and how other members make room for them. */
#pragma once

#include "engine/spec/request.h"

/* Members that are 0 or negative are open. */
struct adv_tile_pins {
    bool any;
    bool one_set; /* layers with a window have the tiles of all others */
    struct adv_splash_blocks
        blocks[2]; /* global, local: the global ones where the model has only local layers */
    struct adv_gmm_blocks gmm_blocks[2][ADV_GMM_PASSES];
    bool has_layout[3]; /* of queries, keys, values */
    enum adv_layout layout[3];
};

/* Reads the pins of `request`, whose values `base` has. */
void adv_tile_pins_of(const struct adv_advise_request *request, const struct adv_plan *base,
                      struct adv_tile_pins *pins);

/* Sets the pinned blocks. A sub-block of keys that does not divide its block then is as large as the block,
 * and a block that a pinned sub-block does not divide as large as that. */
void adv_tile_pins_set_blocks(const struct adv_splash_blocks *pins, struct adv_splash_blocks *blocks);

/* Sets the pinned members of one grouped matmul. */
void adv_tile_pins_set_gmm(const struct adv_gmm_blocks *pins, struct adv_gmm_blocks *blocks);

/* Whether any member is pinned. */
bool adv_tile_pins_blocks(const struct adv_splash_blocks *pins);
bool adv_tile_pins_gmm(const struct adv_gmm_blocks *pins);

/* space_tiles.h: kernel tiles tuned once for each shape that the search meets, and remembered.
 *
 * The best tiles depend on sequence, context shards and head sizes, not on how many heads or sequences a
 * device has (those only repeat the grid), so a search meets a handful of shapes. One memo
 * belongs to one request; its threads share it.
 */
#pragma once

#include "engine/base/arena.h"
#include "engine/catalog/constants.h"
#include "engine/search/tile_pins.h"
#include "engine/spec/cluster.h"
#include "engine/spec/model.h"
#include "engine/spec/plan.h"

struct adv_tile_memo;

/* NULL when the arena is exhausted. `pins`: what tuning leaves alone; NULL: nothing. The other pointers are
 * borrowed for the memo's life. */
struct adv_tile_memo *adv_tile_memo_create(const struct adv_model *model, const struct adv_cluster *cluster,
                                           const struct adv_constants *constants,
                                           const struct adv_tile_pins *pins, struct adv_arena *arena);

/* Sets attention blocks and layouts (and expert tiles where MaxText's keys reach the kernel) of `plan` for
 * its mesh, sequence and VMEM limit. Where no legal tile exists the plan keeps what it has; false then. */
bool adv_tile_memo_apply(struct adv_tile_memo *memo, struct adv_plan *plan);

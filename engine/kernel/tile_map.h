/* tile_map.h: predicted time over two block sizes of a kernel: what lies around the tile that tune finds.
 *
 * Rows and columns are the first two sizes of the kernel's tile (queries and keys; rows and contraction;
 * tokens and width), each over the powers of two between its smallest and largest legal value, and over the
 * values of `seeds`. A cell has the best of all sizes that are left: powers of two too, and those of the
 * seeds. Its tiles are legal, but not always in the space that tune searches.
 */
#pragma once

#include "engine/kernel/family.h"

enum { ADV_TILE_MAP_VALUES = 12 }; /* of a row or column */

enum adv_tile_state { ADV_TILE_ILLEGAL, ADV_TILE_OVER_VMEM, ADV_TILE_FITS };

struct adv_tile_cell {
    enum adv_tile_state state;
    struct adv_kernel_tile tile; /* the fastest that fits; where none fits, the one with least VMEM */
    struct adv_kernel_time time; /* of it; nothing where the state is ILLEGAL */
    char rule[ADV_LIMIT_DETAIL]; /* what an illegal cell breaks */
};

struct adv_tile_axis {
    const struct adv_kernel_member *member;
    int values[ADV_TILE_MAP_VALUES]; /* rising */
    int count;
};

struct adv_tile_map {
    struct adv_tile_axis rows, columns;
    double vmem_limit_bytes;                                              /* 0: no cell is legal */
    long evaluated_count;                                                 /* tiles simulated */
    struct adv_tile_cell cells[ADV_TILE_MAP_VALUES][ADV_TILE_MAP_VALUES]; /* [row][column] */
};

/* Fills `map`, whatever was in it. `seeds`: tiles whose sizes are to be on the map, the first one with the
 * layouts and the most buffers of all others; at least one. The kernel has tiles to choose. ADV_OK, or what a
 * simulation failed with. Pure; thread safe. */
ADV_MUST_CHECK adv_code adv_tile_map_fill(const struct adv_kernel_machine *machine,
                                          const struct adv_kernel_request *request,
                                          const struct adv_kernel_tile *seeds, int seeds_count,
                                          struct adv_tile_map *map, adv_err *err);

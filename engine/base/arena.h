/* arena.h: all memory of one request, given back in one call.
 *
 * Blocks are chained and doubled up to 1 MiB, beyond which they are as large as what is asked; the total is
 * capped, so a request cannot take the machine down. Not thread safe: one arena belongs to one request.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct adv_arena_block;

struct adv_arena {
    struct adv_arena_block *blocks;
    size_t used_bytes;
    size_t held_bytes; /* of all blocks: what the system gave */
    size_t limit_bytes;
    size_t first_bytes; /* of the first block; may be set between init and the first alloc, 0 = 64 KiB */
    bool was_refused;   /* more was asked for than the cap allows: it is not the system that has no memory */
};

/* Prepares an empty arena; nothing is allocated yet. */
void adv_arena_init(struct adv_arena *arena, size_t limit_bytes);

/* Zeroed memory aligned for any type, or NULL when the cap or the system's memory is exhausted. */
void *adv_arena_alloc(struct adv_arena *arena, size_t bytes);

/* The same without zeroing, for large things that are written before they are read. */
void *adv_arena_bare(struct adv_arena *arena, size_t bytes);

/* Like adv_arena_alloc for `count` elements; NULL also when the product overflows. */
void *adv_arena_array(struct adv_arena *arena, size_t count, size_t element_bytes);

/* An array of `count` elements that starts with the `old_count` of `memory`, which must not be used any more:
 * a large one is given back. NULL on failure, `memory` is then as it was; `memory` NULL: adv_arena_array. */
void *adv_arena_grow(struct adv_arena *arena, void *memory, size_t old_count, size_t count,
                     size_t element_bytes);

/* A copy of `text` in the arena, or NULL. */
char *adv_arena_copy(struct adv_arena *arena, const char *text);

/* Takes over all memory of `from`, which is empty then. False: that is more than the cap allows, and nothing
 * was done. */
bool adv_arena_adopt(struct adv_arena *arena, struct adv_arena *from);

/* Frees all; the arena can be used again. */
void adv_arena_free(struct adv_arena *arena);

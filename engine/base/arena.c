#include "engine/base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct adv_arena_block {
    struct adv_arena_block *next;
    size_t capacity_bytes;
    size_t used_bytes;
    alignas(max_align_t) unsigned char bytes[];
};

enum { FIRST_BLOCK_BYTES = 64 * 1024, MOST_BLOCK_BYTES = 1024 * 1024 };

void adv_arena_init(struct adv_arena *arena, size_t limit_bytes)
{
    arena->blocks = NULL;
    arena->used_bytes = 0;
    arena->held_bytes = 0;
    arena->limit_bytes = limit_bytes;
    arena->first_bytes = 0;
    arena->was_refused = false;
}

static struct adv_arena_block *add_block(struct adv_arena *arena, size_t bytes)
{
    size_t capacity = arena->first_bytes ? arena->first_bytes : FIRST_BLOCK_BYTES;
    if (arena->blocks) capacity = 2 * arena->blocks->capacity_bytes;
    if (capacity > MOST_BLOCK_BYTES) capacity = MOST_BLOCK_BYTES;
    if (capacity < bytes) capacity = bytes;
    struct adv_arena_block *block = malloc(sizeof *block + capacity);
    if (!block) return NULL;
    block->capacity_bytes = capacity;
    block->used_bytes = 0;
    arena->held_bytes += capacity;
    block->next = arena->blocks;
    arena->blocks = block;
    return block;
}

void *adv_arena_bare(struct adv_arena *arena, size_t bytes)
{
    const size_t align = alignof(max_align_t);
    if (bytes <= arena->limit_bytes) bytes = (bytes + align - 1) / align * align;
    if (bytes > arena->limit_bytes - arena->used_bytes) {
        arena->was_refused = true;
        return NULL;
    }
    struct adv_arena_block *block = arena->blocks;
    if (!block || bytes > block->capacity_bytes - block->used_bytes) block = add_block(arena, bytes);
    if (!block) return NULL;
    void *memory = block->bytes + block->used_bytes;
    block->used_bytes += bytes;
    arena->used_bytes += bytes;
    return memory;
}

void *adv_arena_alloc(struct adv_arena *arena, size_t bytes)
{
    void *memory = adv_arena_bare(arena, bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

void *adv_arena_array(struct adv_arena *arena, size_t count, size_t element_bytes)
{
    if (element_bytes != 0 && count > SIZE_MAX / element_bytes) return NULL;
    return adv_arena_alloc(arena, count * element_bytes);
}

/* Gives back the block that holds nothing but `memory`, if there is one; never the newest, which holds more.
 */
static void release(struct adv_arena *arena, const void *memory, size_t bytes)
{
    const size_t align = alignof(max_align_t);
    bytes = (bytes + align - 1) / align * align;
    for (struct adv_arena_block **at = &arena->blocks->next; *at; at = &(*at)->next) {
        struct adv_arena_block *block = *at;
        if (memory != block->bytes || block->used_bytes != bytes) continue;
        *at = block->next;
        arena->used_bytes -= block->used_bytes;
        arena->held_bytes -= block->capacity_bytes;
        free(block);
        return;
    }
}

void *adv_arena_grow(struct adv_arena *arena, void *memory, size_t old_count, size_t count,
                     size_t element_bytes)
{
    void *larger = adv_arena_array(arena, count, element_bytes);
    if (!larger || !memory || old_count == 0) return larger;
    memcpy(larger, memory, old_count * element_bytes);
    release(arena, memory, old_count * element_bytes);
    return larger;
}

char *adv_arena_copy(struct adv_arena *arena, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = adv_arena_bare(arena, bytes);
    if (copy) memcpy(copy, text, bytes);
    return copy;
}

bool adv_arena_adopt(struct adv_arena *arena, struct adv_arena *from)
{
    if (from->used_bytes > arena->limit_bytes - arena->used_bytes) return false;
    struct adv_arena_block **end = &from->blocks; /* behind the newest of `arena`, which has room left */
    while (*end) end = &(*end)->next;
    *end = arena->blocks ? arena->blocks->next : NULL;
    if (arena->blocks)
        arena->blocks->next = from->blocks;
    else
        arena->blocks = from->blocks;
    arena->used_bytes += from->used_bytes;
    arena->held_bytes += from->held_bytes;
    from->blocks = NULL;
    from->used_bytes = from->held_bytes = 0;
    return true;
}

void adv_arena_free(struct adv_arena *arena)
{
    while (arena->blocks) {
        struct adv_arena_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
    arena->used_bytes = arena->held_bytes = 0;
}

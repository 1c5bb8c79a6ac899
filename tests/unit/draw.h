/* draw.h: xorshift numbers, so that a test draws the same cases on every machine. */
#pragma once

#include <stdint.h>

/* The next number after *state, which must not be 0. */
static inline uint64_t draw_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* near.h: the legal values next to one that is not: what hints are made of. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The nearest on both sides; 0: there is none on that side. Equal: the value itself is legal. */
struct adv_near {
    int64_t below, above;
};

/* The values next to `wanted` that divide `length` and are multiples of `unit`, or are `length` itself. Cost:
 * the square root of length. All zero for lengths below 1. */
struct adv_near adv_near_divisors(int64_t length, int64_t unit, int64_t wanted);

/* The multiples of `unit` next to `wanted`, at least one unit. */
struct adv_near adv_near_multiples(int64_t unit, int64_t wanted);

/* Takes `value` into the neighbourhood of `wanted` when it is nearer than what is there. */
void adv_near_consider(struct adv_near *near, int64_t value, int64_t wanted);

/* Writes "512 or 1024", or the one there is, to `text` and returns it. */
const char *adv_near_text(struct adv_near near, char *text, size_t text_bytes);

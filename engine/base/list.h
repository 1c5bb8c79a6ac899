/* list.h: arrays that are kept in an order: room is made for an item at its place, or an item taken out. */
#pragma once

#include <stddef.h>
#include <string.h>

/* Moves the items from `at` on up by one and counts one more; of `capacity` items that are there already the
 * last falls off instead. Returns the free place, to be written by the caller; NULL when `at` is behind the
 * last of them. 0 <= at <= *count <= capacity. */
static inline void *adv_list_open(void *items, size_t item_bytes, int *count, int capacity, int at)
{
    char *place = (char *)items + (size_t)at * item_bytes;
    if (at >= capacity) return NULL;
    if (*count < capacity) ++*count;
    if (at + 1 < *count) memmove(place + item_bytes, place, (size_t)(*count - at - 1) * item_bytes);
    return place;
}

/* Takes the item at `at` out. 0 <= at < *count. */
static inline void adv_list_close(void *items, size_t item_bytes, int *count, int at)
{
    char *place = (char *)items + (size_t)at * item_bytes;
    --*count;
    if (at < *count) memmove(place, place + item_bytes, (size_t)(*count - at) * item_bytes);
}

/* hash.h: FNV-1a, 64 bit. For the catalog's identity and cache keys; not for secrets. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define ADV_HASH_START UINT64_C(0xcbf29ce484222325)

/* The hash of `bytes` appended to what `hash` stands for; start with ADV_HASH_START. */
static inline uint64_t adv_hash_bytes(uint64_t hash, const void *bytes, size_t length_bytes)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < length_bytes; i++) hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

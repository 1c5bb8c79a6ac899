#include "engine/cost/scratch.h"

#include <string.h>

uint64_t adv_scratch_bits(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

struct adv_cost_kernel *adv_scratch_kernel(struct adv_cost_scratch *scratch, const uint64_t key[16])
{
    uint64_t lanes[4] = {0}; /* side by side: a chain of 16 products would take longer than the look-up */
    for (int i = 0; i < 16; i++)
        lanes[i % 4] = (lanes[i % 4] ^ lanes[i % 4] >> 32 ^ key[i]) * 0x9e3779b97f4a7c15u;
    uint64_t hash = lanes[0];
    for (int i = 1; i < 4; i++) hash = (hash ^ hash >> 32 ^ lanes[i]) * 0x9e3779b97f4a7c15u;
    struct adv_cost_kernel *row = &scratch->kernels[(hash >> 48) % ADV_SCRATCH_KERNELS];
    if (row->known && memcmp(row->key, key, sizeof row->key) == 0) return row;
    row->known = false; /* a collision only costs a simulation */
    memcpy(row->key, key, sizeof row->key);
    return row;
}

#include "engine/spec/local_mask.h"

#include <string.h>

#include "engine/base/units.h"

enum { CONTENTS_MOST = 1024 };

/* What queries of one run in a tile see of its keys. Equal contents have equal numbers; those of partly seen
 * ones are not negative. */
enum { NO_QUERIES = -3, ALL_SEEN = -2, NONE_SEEN = -1 };

static int64_t chunk_start(const struct adv_local_mask *mask, int64_t query)
{
    return query / mask->window_tokens * mask->window_tokens;
}

static const uint64_t hash_start = 1;

/* Of the keys that each query sees, first and last, after those of `bits`. */
static uint64_t hash_of_rows(const struct adv_local_mask *mask, int64_t query, int64_t queries, int64_t key,
                             int64_t keys, uint64_t bits)
{
    for (int64_t q = query; q < query + queries; q++) {
        const int64_t reach = mask->chunked ? chunk_start(mask, q) : q - mask->window_tokens + 1;
        const int64_t first = adv_max_i(key, reach), after = adv_min_i(key + keys, q + 1);
        const uint64_t row = first < after ? (uint64_t)((first - key) * (keys + 1) + after - key) : 0;
        bits = (bits ^ row) * 1099511628211u; /* FNV-1a */
        bits ^= bits >> 32;
    }
    return bits;
}

static int64_t above_all_distances(uint64_t hash)
{
    return (int64_t)(hash >> 2 | (uint64_t)1 << 62);
}

/* Contents of a window, and of chunks that start outside of the tile, differ by the distance of queries and
 * keys alone. */
static int64_t content(const struct adv_local_mask *mask, int64_t query, int64_t queries, int64_t key,
                       int64_t keys)
{
    if (queries == 0) return NO_QUERIES;
    const int64_t nearest = query - key - (keys - 1), farthest = query - key + queries - 1;
    const int64_t distance = query - key + mask->seq_len;
    if (farthest < 0) return NONE_SEEN;
    if (!mask->chunked) {
        if (nearest >= mask->window_tokens) return NONE_SEEN;
        return nearest >= 0 && farthest < mask->window_tokens ? ALL_SEEN : distance;
    }
    if (key + keys <= chunk_start(mask, query)) return NONE_SEEN;
    if (key >= chunk_start(mask, query + queries - 1)) return nearest >= 0 ? ALL_SEEN : distance;
    return above_all_distances(hash_of_rows(mask, query, queries, key, keys, hash_start));
}

struct contents {
    int64_t of[CONTENTS_MOST][2];
    int count;
    bool too_many;
};

static void keep(struct contents *contents, const int64_t tile[2])
{
    for (int i = 0; i < contents->count; i++)
        if (!memcmp(contents->of[i], tile, sizeof contents->of[i])) return;
    contents->too_many = contents->count == CONTENTS_MOST;
    if (!contents->too_many) memcpy(contents->of[contents->count++], tile, sizeof contents->of[0]);
}

int adv_local_mask_blocks(const struct adv_local_mask *mask, int64_t block_q, int64_t block_kv)
{
    const int64_t shard = mask->seq_len / mask->context;
    if (block_q < 1 || block_kv < 1 || shard % block_q != 0 || mask->seq_len % block_kv != 0) return 0;
    const int64_t piece = mask->load_balanced ? shard / 2 : shard;
    struct contents contents;
    contents.count = 0;
    contents.too_many = false;
    /* Where all tiles are cut alike, equal contents have equal parts; else rows are compared. */
    const bool cut_alike = piece % block_q == 0 || block_q == shard;
    for (int64_t at = 0; at < mask->seq_len && !contents.too_many; at += block_q) {
        const int64_t of_shard = at / shard, row = at % shard;
        /* a shard's first piece, and the one as far from the end */
        const int64_t early = adv_max_i(0, adv_min_i(piece - row, block_q)), late = block_q - early;
        const int64_t early_at = of_shard * piece + row;
        const int64_t late_at = mask->seq_len - (of_shard + 1) * piece + adv_max_i(0, row - piece);
        const int64_t last = late > 0 ? late_at + late : early_at + early;
        const int64_t reach = adv_max_i(0, (early > 0 ? early_at : late_at) - mask->window_tokens);
        for (int64_t key = reach / block_kv * block_kv; key < last && !contents.too_many; key += block_kv) {
            int64_t tile[2] = {content(mask, early_at, early, key, block_kv),
                               content(mask, late_at, late, key, block_kv)};
            if (early == 0) tile[0] = tile[1];
            if (early == 0 || late == 0) tile[1] = tile[0];
            if (tile[0] < 0 && tile[0] == tile[1]) continue;
            if (!cut_alike) {
                uint64_t rows = hash_of_rows(mask, early_at, early, key, block_kv, hash_start);
                rows = hash_of_rows(mask, late_at, late, key, block_kv, rows);
                tile[0] = tile[1] = above_all_distances(rows);
            }
            keep(&contents, tile);
        }
    }
    return contents.too_many ? 0 : contents.count;
}

/* local_mask.h: the blocks of a local layer's mask that an attention kernel has to read.
 *
 * The mask of a window or of chunks is cut into tiles of queries x keys. Tiles of which all pairs are seen,
 * or none, need no mask; tokamax's kernel is handed each other content once, as `partial_mask_blocks`, an
 * array that MaxText 0.2.5 shards over the context axis (_process_mask of tokamax 0.0.17, attention_op.py of
 * MaxText).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct adv_local_mask {
    int64_t seq_len;
    int64_t window_tokens; /* of the window, or of a chunk */
    bool chunked;
    int context;        /* shards of the queries */
    bool load_balanced; /* each shard holds one piece from either end of the sequence */
};

/* How many contents partly seen tiles of block_q x block_kv have; 0 where a block does not divide the
 * queries of a shard, or the keys, and where there are more than 1,024. */
int adv_local_mask_blocks(const struct adv_local_mask *mask, int64_t block_q, int64_t block_kv);

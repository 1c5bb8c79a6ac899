#include "engine/kernel/short_list.h"

#include "engine/kernel/tune_choice.h"

/* Only the blocks of the tile's kernel are set. */
bool adv_tune_same_pair(const struct adv_splash_blocks *a, const struct adv_splash_blocks *b)
{
    return a->block_q == b->block_q && a->block_kv == b->block_kv && a->block_q_dkv == b->block_q_dkv &&
           a->block_kv_dkv == b->block_kv_dkv && a->block_q_dq == b->block_q_dq &&
           a->block_kv_dq == b->block_kv_dq;
}

int adv_splash_short_list(const struct adv_ranking *ranking, struct adv_short_entry entries[ADV_SHORT_LIST])
{
    const struct adv_attention_tile *tiles = ranking->tiles;
    const struct adv_kernel_time *times = ranking->times;
    int found = 0;
    for (int i = 0; i < ranking->count; i++) {
        int at = 0;
        while (at < found && !adv_tune_same_pair(&tiles[entries[at].best].blocks, &tiles[i].blocks)) at++;
        if (at == found) {
            if (found < ADV_SHORT_LIST) entries[found++] = (struct adv_short_entry){.best = i};
            continue;
        }
        struct adv_short_entry *entry = &entries[at];
        const double most_s = times[entry->best].time_s * (1.0 + ADV_SHORT_LIST_SAME_FRAC);
        if (times[i].time_s <= most_s && entry->others_count < ADV_SHORT_LIST_OTHERS)
            entry->others[entry->others_count++] = i;
    }
    return found;
}

bool adv_gmm_tiles_alike(const struct adv_gmm_tile *a, const struct adv_gmm_tile *b)
{
    const double x[] = {a->tile_m, a->tile_k, a->tile_n}, y[] = {b->tile_m, b->tile_k, b->tile_n};
    int differ = 0;
    for (int i = 0; i < 3; i++) {
        if (x[i] == y[i]) continue;
        differ++;
        if (x[i] > ADV_SHORT_LIST_ALIKE_FACTOR * y[i] || y[i] > ADV_SHORT_LIST_ALIKE_FACTOR * x[i])
            return false;
    }
    return differ <= 1;
}

int adv_gmm_short_list(const struct adv_ranking *ranking, struct adv_short_entry entries[ADV_SHORT_LIST])
{
    const struct adv_gmm_tile *tiles = ranking->tiles;
    const struct adv_kernel_time *times = ranking->times;
    int found = 0;
    for (int i = 0; i < ranking->count && found < ADV_SHORT_LIST; i++) {
        int at = 0;
        while (at < found) {
            const int best = entries[at].best;
            if (times[i].time_s <= times[best].time_s * (1.0 + ADV_SHORT_LIST_ALIKE_FRAC) &&
                adv_gmm_tiles_alike(&tiles[i], &tiles[best]))
                break;
            at++;
        }
        if (at == found) entries[found++] = (struct adv_short_entry){.best = i};
    }
    return found;
}

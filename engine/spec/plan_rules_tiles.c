/* plan_rules_tiles.c: the rules of MaxText's tile keys: attention blocks and the tiles of expert matmuls. */
#include "engine/spec/plan_rules.h"

#include <stdio.h>

#include "engine/base/near.h"
#include "engine/base/units.h"

enum { LANES = 128 };

static bool is_flash(const struct adv_rule_facts *facts)
{
    return facts->plan->family.attention == ADV_ATTENTION_IMPL_FLASH;
}

/* Queries one kernel call sees, and the keys it walks over: Ulysses gathers the sequence, a ring holds one
 * chunk. */
static int64_t query_length(const struct adv_rule_facts *facts)
{
    if (facts->plan->family.cp_strategy == ADV_CP_ULYSSES) return facts->plan->family.seq_len;
    return facts->plan->family.seq_len / facts->sequence_shards;
}

static int64_t key_length(const struct adv_rule_facts *facts)
{
    return adv_plan_circulates_keys(facts->plan) ? facts->plan->family.seq_len / facts->sequence_shards
                                                 : facts->plan->family.seq_len;
}

/* Blocks are whole lanes. Where no such block divides what a shard holds of the sequence, the sequence is
 * what has to change: no other block is any better. NULL: a block will do, or nobody listens. */
static const char *hint_of_length(const struct adv_rule_facts *facts, struct adv_rule_report *report,
                                  int64_t length)
{
    char near[64];
    if (!report || length % LANES == 0) return NULL;
    const int64_t seq_len = facts->plan->family.seq_len,
                  unit = length < seq_len ? LANES * facts->sequence_shards : LANES;
    (void)adv_near_text(adv_near_multiples(unit, seq_len), near, sizeof near);
    return adv_rule_hint(report,
                         "max_target_length=%s, a multiple of %lld: no block of whole 128 lanes divides %lld",
                         near, (long long)unit, (long long)length);
}

struct block_key {
    const char *key;
    int block;
};

/* The blocks of `keys` that do not divide `length`; true when there is one. Blocks are clamped to the length
 * they tile only by the whole sequence, so a context shard may be shorter than the block. */
static bool blocks_broken(const struct adv_rule_facts *facts, struct adv_rule_report *report, bool local,
                          const struct block_key *keys, int count, int64_t length, int64_t clamp,
                          const char *what)
{
    bool any = false;
    for (int i = 0; i < count; i++) {
        const int64_t block = adv_min_i(keys[i].block, clamp);
        const bool divides = block >= 1 && length % block == 0;
        if (divides && (block % LANES == 0 || block == length)) continue;
        any = true;
        if (!report) return true;
        char pointer[ADV_LIMIT_POINTER], near[64];
        const char *prefix = local ? "local_" : "";
        (void)snprintf(pointer, sizeof pointer, "/config/%s%s", prefix, keys[i].key);
        (void)adv_near_text(adv_near_divisors(length, LANES, block), near, sizeof near);
        const char *hint = hint_of_length(facts, report, length);
        if (!hint) hint = adv_rule_hint(report, "%s, a divisor of %lld", near, (long long)length);
        (void)adv_rule_broken(report, pointer, hint,
                              divides ? "%s%s %d is not a multiple of 128, nor all of the %lld %s"
                                      : "%s%s %d does not divide the %lld %s",
                              prefix, keys[i].key, keys[i].block, (long long)length, what);
    }
    return any;
}

bool adv_rule_block_q(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (!is_flash(facts)) return false;
    bool any = false;
    for (int i = 0; i < (facts->has_local_tiles ? 2 : 1); i++) {
        const struct adv_splash_blocks *blocks = &facts->plan->family.blocks[i];
        bool fused = facts->plan->family.use_fused_bwd || facts->plan->family.use_tokamax_splash;
        const struct block_key keys[] = {{"sa_block_q", blocks->block_q},
                                         {"sa_block_q_dkv", blocks->block_q_dkv},
                                         {"sa_block_q_dq", blocks->block_q_dq}};
        any |= blocks_broken(facts, report, i == 1, keys, fused ? 2 : 3, query_length(facts),
                             facts->plan->family.seq_len, "queries of one context shard");
        if (any && !report) return true;
    }
    return any;
}

bool adv_rule_block_kv(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (!is_flash(facts)) return false;
    const int64_t length = key_length(facts);
    bool any = false;
    for (int i = 0; i < (facts->has_local_tiles ? 2 : 1); i++) {
        const struct adv_splash_blocks *blocks = &facts->plan->family.blocks[i];
        bool fused = facts->plan->family.use_fused_bwd || facts->plan->family.use_tokamax_splash;
        const struct block_key keys[] = {{"sa_block_kv", blocks->block_kv},
                                         {"sa_block_kv_dkv", blocks->block_kv_dkv},
                                         {"sa_block_kv_dq", blocks->block_kv_dq}};
        any |= blocks_broken(facts, report, i == 1, keys, fused ? 2 : 3, length, length, "keys");
        if (any && !report) return true;
    }
    return any;
}

bool adv_rule_block_compute(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (!is_flash(facts)) return false;
    bool any = false;
    for (int i = 0; i < (facts->has_local_tiles ? 2 : 1); i++) {
        const struct adv_splash_blocks *blocks = &facts->plan->family.blocks[i];
        const struct {
            const char *key;
            int compute;
            const char *of_key;
            int of;
        } pairs[] = {{"sa_block_kv_compute", blocks->block_kv_compute, "sa_block_kv", blocks->block_kv},
                     {"sa_block_kv_dkv_compute", blocks->block_kv_dkv_compute, "sa_block_kv_dkv",
                      blocks->block_kv_dkv}};
        for (int k = 0; k < 2; k++) {
            const int compute = pairs[k].compute;
            if (compute > 0 && compute % LANES == 0 && pairs[k].of % compute == 0) continue;
            any = true;
            if (!report) return true;
            char pointer[ADV_LIMIT_POINTER], near[64];
            const char *prefix = i == 1 ? "local_" : "";
            (void)snprintf(pointer, sizeof pointer, "/config/%s%s", prefix, pairs[k].key);
            const bool of_lanes =
                pairs[k].of % LANES == 0; /* else that key is reported: any multiple will do */
            (void)adv_near_text(of_lanes ? adv_near_divisors(pairs[k].of, LANES, compute)
                                         : adv_near_multiples(LANES, compute),
                                near, sizeof near);
            const char *hint = of_lanes ? NULL : hint_of_length(facts, report, key_length(facts));
            if (!hint && of_lanes)
                hint = adv_rule_hint(report, "%s, a multiple of 128 that divides %d", near, pairs[k].of);
            if (!hint) hint = adv_rule_hint(report, "%s, once %s is a multiple of it", near, pairs[k].of_key);
            (void)adv_rule_broken(report, pointer, hint,
                                  "%s%s %d must be a multiple of 128 and divide %s%s %d", prefix,
                                  pairs[k].key, compute, prefix, pairs[k].of_key, pairs[k].of);
        }
    }
    return any;
}

static const char *const pass_names[ADV_GMM_PASSES] = {"fwd", "dlhs", "drhs"};

static bool tiles_are_read(const struct adv_rule_facts *facts)
{
    return facts->has_experts && adv_plan_reads_expert_tiles(facts->plan);
}

static const struct adv_layer *expert_layer(const struct adv_rule_facts *facts)
{
    for (int i = 0; i < facts->model->layer_kinds_count; i++)
        if (facts->model->layers[i].experts > 1) return &facts->model->layers[i];
    return NULL;
}

/* One tile key with the axis it cuts; MaxText clamps it to that axis. */
struct tile_key {
    int index;
    int64_t tile, axis;
    bool embeds;
};

/* Columns of the experts' width on one device. */
static int64_t expert_columns(const struct adv_rule_facts *facts, const struct adv_layer *layer)
{
    return layer ? adv_max_i(1, layer->moe_mlp_dim / (facts->tensor * facts->tensor_sequence)) : 0;
}

/* Tile key `index` of the 2 matrices x 3 passes x 2 axes. */
static struct tile_key tile_key_of(const struct adv_rule_facts *facts, int64_t columns, int index)
{
    const int matrix = index / (2 * ADV_GMM_PASSES), pass = index / 2 % ADV_GMM_PASSES;
    const struct adv_gmm_blocks *blocks = &facts->plan->family.gmm_blocks[matrix][pass];
    struct tile_key key = {.index = index, .embeds = index % 2 == 0};
    key.axis = key.embeds ? facts->model->emb_dim : columns;
    key.tile = adv_min_i(key.embeds ? blocks->embed_dim : blocks->mlp_dim, key.axis);
    return key;
}

/* Only for reports: the search asks the rules of every combination. */
static void name_tile_key(const struct tile_key *key, char name[ADV_LIMIT_NAME])
{
    (void)snprintf(name, ADV_LIMIT_NAME, "%s_tile_%s_%s", key->index < 2 * ADV_GMM_PASSES ? "wi" : "wo",
                   pass_names[key->index / 2 % ADV_GMM_PASSES], key->embeds ? "embed_dim" : "mlp_dim");
}

enum { TILE_KEYS = 2 * ADV_GMM_PASSES * 2 };

bool adv_rule_tile_lanes(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_layer *layer = tiles_are_read(facts) ? expert_layer(facts) : NULL;
    const int64_t columns = expert_columns(facts, layer);
    bool any = false;
    for (int i = 0; layer && i < TILE_KEYS; i++) {
        const struct tile_key key = tile_key_of(facts, columns, i);
        if (key.tile % LANES == 0 || key.tile == key.axis) continue;
        any = true;
        if (!report) return true;
        char near[64], name[ADV_LIMIT_NAME];
        name_tile_key(&key, name);
        (void)adv_near_text(adv_near_multiples(LANES, key.tile), near, sizeof near);
        (void)adv_rule_broken(report, ADV_AT("/config", name),
                              adv_rule_hint(report, "%s, or %lld, the whole", near, (long long)key.axis),
                              "%s %lld is neither a multiple of 128 nor the whole of the %lld %s", name,
                              (long long)key.tile, (long long)key.axis,
                              key.embeds ? "embedding columns" : "expert columns of a device");
    }
    return any;
}

/* Rows are padded to the row tile of wi's forward pass; every pass has to cut them into whole tiles. Version
 * 2 reads groups at their own rows, and expert parallelism makes the number of rows data. */
bool adv_rule_tile_rows(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_plan *plan = facts->plan;
    const struct adv_layer *layer = tiles_are_read(facts) ? expert_layer(facts) : NULL;
    if (!layer || plan->family.moe == ADV_MOE_GMM_V2 || facts->expert > 1) return false;
    const double rows = adv_plan_expert_rows(plan, layer);
    const int64_t unit = plan->family.quantization == ADV_QUANT_FP8_FULL ? 32 : 16;
    const int64_t padded =
        adv_round_up((int64_t)(rows + 0.5), adv_max_i(1, plan->family.gmm_blocks[0][0].batch_seq));
    bool any = false;
    for (int i = 0; i < 2 * ADV_GMM_PASSES; i++) {
        const int64_t tile = plan->family.gmm_blocks[i / ADV_GMM_PASSES][i % ADV_GMM_PASSES].batch_seq;
        if (tile >= padded || (padded % tile == 0 && tile % unit == 0)) continue;
        any = true;
        if (!report) return true;
        char pointer[ADV_LIMIT_POINTER], near[64];
        (void)snprintf(pointer, sizeof pointer, "/config/%s_tile_%s_batch_seq",
                       i < ADV_GMM_PASSES ? "wi" : "wo", pass_names[i % ADV_GMM_PASSES]);
        (void)adv_near_text(adv_near_divisors(padded, unit, tile), near, sizeof near);
        (void)adv_rule_broken(report, pointer, adv_rule_hint(report, "%s", near),
                              "a row tile of %lld must be a multiple of %lld and divide the %lld rows that a "
                              "device's experts take at once, padded to wi_tile_fwd_batch_seq %d",
                              (long long)tile, (long long)unit, (long long)padded,
                              plan->family.gmm_blocks[0][0].batch_seq);
    }
    return any;
}

/* A fifth of the work or more spent on padding, said once per axis: tuned tiles leave smaller tails. */
bool adv_rule_tile_tails(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    static const double worth_saying_frac = 0.2;
    const struct adv_layer *layer = tiles_are_read(facts) ? expert_layer(facts) : NULL;
    const int64_t columns = expert_columns(facts, layer);
    bool any = false;
    for (int embeds = 0; layer && embeds < 2; embeds++) {
        struct tile_key worst = {.tile = 0};
        double worst_frac = worth_saying_frac;
        int count = 0;
        for (int i = 0; i < TILE_KEYS; i++) {
            const struct tile_key key = tile_key_of(facts, columns, i);
            const int64_t covered = adv_round_up(key.axis, adv_max_i(1, key.tile));
            const double frac = (double)(covered - key.axis) / (double)covered;
            if (key.embeds != (embeds == 1) || frac < worth_saying_frac) continue;
            count++;
            if (worst.tile == 0 || frac > worst_frac) worst = key, worst_frac = frac;
        }
        if (count == 0) continue;
        any = true;
        if (!report) return true;
        char near[64], name[ADV_LIMIT_NAME], others[ADV_LIMIT_NAME] = "";
        name_tile_key(&worst, name);
        if (count > 1) (void)snprintf(others, sizeof others, " (and %d more tile keys)", count - 1);
        struct adv_near whole = adv_near_divisors(worst.axis, LANES, worst.tile);
        if (2 * whole.below < worst.tile) whole.below = 0; /* small tiles cost more than the tail */
        (void)adv_near_text(whole, near, sizeof near);
        (void)adv_rule_broken(
            report, ADV_AT("/config", name), adv_rule_hint(report, "%s: whole tiles", near),
            "%s %lld%s does not divide %lld: the tail is masked and %.0f %% of the product is padding; "
            "quantised kernels refuse it",
            name, (long long)worst.tile, others, (long long)worst.axis, 100.0 * worst_frac);
    }
    return any;
}

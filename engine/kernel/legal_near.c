#include "engine/kernel/legal_near.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/kernel/legal.h"
#include "engine/kernel/splash_blocks.h"

enum { LANES = ADV_LEGAL_LANES, LABELS = ADV_LEGAL_LABELS };

int adv_legal_blocks_of(enum adv_kernel kernel, const struct adv_attention_shape *s,
                        const struct adv_splash_blocks *b, struct adv_legal_block list[3])
{
    const int64_t keys = adv_splash_call_keys(s);
    const char *keys_name = keys == s->kv_len ? "kv_len" : "a ring shard's share of kv_len,";
    if (kernel == ADV_KERNEL_SPLASH_FWD || kernel == ADV_KERNEL_SPLASH_FWD_RESIDUALS) {
        list[0] = (struct adv_legal_block){"block_q", b->block_q, "q_len", s->q_len, true};
        list[1] = (struct adv_legal_block){"block_kv", b->block_kv, keys_name, keys, false};
        list[2] =
            (struct adv_legal_block){"block_kv_compute", b->block_kv_compute, "block_kv", b->block_kv, false};
        return 3;
    }
    if (kernel == ADV_KERNEL_SPLASH_BWD_DQ) {
        list[0] = (struct adv_legal_block){"block_q_dq", b->block_q_dq, "q_len", s->q_len, true};
        list[1] = (struct adv_legal_block){"block_kv_dq", b->block_kv_dq, keys_name, keys, false};
        return 2;
    }
    list[0] = (struct adv_legal_block){"block_q_dkv", b->block_q_dkv, "q_len", s->q_len, true};
    list[1] = (struct adv_legal_block){"block_kv_dkv", b->block_kv_dkv, keys_name, keys, false};
    list[2] = (struct adv_legal_block){"block_kv_dkv_compute", b->block_kv_dkv_compute, "block_kv_dkv",
                                       b->block_kv_dkv, false};
    return 3;
}

bool adv_legal_can_cut(int64_t length, bool whole)
{
    return length % LANES == 0 || (whole && length < LANES);
}

/* What no tile may be wide is not offered. */
static void drop_beyond(struct adv_near *near, int64_t most)
{
    if (near->above > most) near->above = 0;
    if (near->below > most) near->below = 0;
}

void adv_legal_near_rows(int64_t m, int64_t unit, int64_t wanted, struct adv_legal_values *values)
{
    char *rule = values->rule;
    if (m <= 0) {
        values->near = adv_near_multiples(unit, adv_min_i(wanted, ADV_GMM_TILE_MAX));
        (void)snprintf(rule, sizeof values->rule, "a multiple of %lld that divides m", (long long)unit);
        return;
    }
    values->near = adv_near_divisors(m, unit, adv_min_i(wanted, ADV_GMM_TILE_MAX));
    drop_beyond(&values->near, ADV_GMM_TILE_MAX);
    if (m % unit == 0)
        (void)snprintf(rule, sizeof values->rule, "a multiple of %lld that divides m %lld", (long long)unit,
                       (long long)m);
    else if (values->near.below || values->near.above)
        (void)snprintf(rule, sizeof values->rule, "the whole of m, which %lld does not divide",
                       (long long)unit);
    else
        (void)snprintf(rule, sizeof values->rule, "no tile divides m %lld: pad it to %lld", (long long)m,
                       (long long)adv_round_up(m, LANES));
}

void adv_legal_near_masked(const char *axis, int64_t length, int64_t wanted, struct adv_legal_values *values)
{
    const int64_t tile = adv_min_i(wanted, ADV_GMM_TILE_MAX);
    values->near = adv_near_multiples(LANES, tile);
    if (length <= 0) {
        (void)snprintf(values->rule, sizeof values->rule, "a multiple of 128 or the whole of %s", axis);
        return;
    }
    const bool whole = length <= ADV_GMM_TILE_MAX;
    if (whole && (tile >= length || length < LANES)) values->near = (struct adv_near){length, length};
    if (whole) adv_near_consider(&values->near, length, tile);
    (void)snprintf(values->rule, sizeof values->rule, "a multiple of 128%s%s %lld",
                   whole ? " or the whole of " : " along ", axis, (long long)length);
}

void adv_legal_near_tokens(int64_t tokens, int64_t wanted, struct adv_legal_values *values)
{
    const int64_t block = adv_min_i(wanted, ADV_GMM_TILE_MAX);
    struct adv_near *near = &values->near;
    char *rule = values->rule;
    *near = tokens > 0 ? adv_near_divisors(tokens, LABELS, block) : adv_near_multiples(LABELS, block);
    for (int64_t small = LANES; small < LABELS; small *= 2)
        if (tokens % small == 0) adv_near_consider(near, small, block);
    drop_beyond(near, ADV_GMM_TILE_MAX);
    if (tokens <= 0)
        (void)snprintf(rule, sizeof values->rule,
                       "a multiple of 1024 or a power of two from 128, that divides the tokens");
    else if (near->below || near->above)
        (void)snprintf(rule, sizeof values->rule,
                       "a multiple of 1024, a power of two from 128 or all, that divides the %lld tokens",
                       (long long)tokens);
    else
        (void)snprintf(rule, sizeof values->rule, "no block divides the %lld tokens: pad them to %lld",
                       (long long)tokens, (long long)adv_round_up(tokens, LABELS));
}

/* Blocks of attention: `block` is NULL for one that the kernel does not read. */
static void near_block(const struct adv_legal_block *block, int64_t wanted, struct adv_legal_values *values)
{
    const bool known = block && block->length > 0 && adv_legal_can_cut(block->length, block->whole);
    const int64_t least = adv_min_i(wanted, ADV_KERNEL_LEN_MAX);
    values->near = known ? adv_near_divisors(block->length, LANES, least) : adv_near_multiples(LANES, least);
    const char *length_name = block ? block->length_name : "";
    if (known && block->length % LANES)
        (void)snprintf(values->rule, sizeof values->rule, "the whole of %s %lld", length_name,
                       (long long)block->length);
    else if (known)
        (void)snprintf(values->rule, sizeof values->rule, "a multiple of 128 that divides %s %lld",
                       length_name, (long long)block->length);
    else
        (void)snprintf(values->rule, sizeof values->rule, "a multiple of 128%s%s",
                       block ? " that divides " : "", length_name);
}

bool adv_legal_near_member(const struct adv_legal_context *c, const char *name, int64_t wanted,
                           struct adv_legal_values *values)
{
    memset(values, 0, sizeof *values);
    if (strcmp(name, "tile_m") == 0)
        adv_legal_near_rows(c->gmm->m, adv_legal_row_unit(c->gmm->lhs), wanted, values);
    else if (strcmp(name, "tile_k") == 0)
        adv_legal_near_masked("k", c->gmm->k, wanted, values);
    else if (strcmp(name, "tile_n") == 0)
        adv_legal_near_masked("n", c->gmm->n, wanted, values);
    else if (strncmp(name, "b_block", 7) == 0)
        adv_legal_near_tokens(c->xent->tokens, wanted, values);
    else if (strncmp(name, "h_block", 7) == 0)
        adv_legal_near_masked("emb_dim", c->xent->emb_dim, wanted, values);
    else if (strncmp(name, "v_block", 7) == 0)
        adv_legal_near_masked("vocab", c->xent->vocab, wanted, values);
    else if (strncmp(name, "block_", 6) != 0)
        return false;
    else {
        struct adv_legal_block list[3];
        const int count = adv_legal_blocks_of(c->kernel, c->attention, c->blocks, list);
        int found = 0;
        while (found < count && strcmp(list[found].name, name) != 0) found++;
        near_block(found < count ? &list[found] : NULL, wanted, values);
    }
    return true;
}

const char *adv_legal_values_text(const struct adv_legal_values *values, char hint[ADV_LIMIT_DETAIL])
{
    char near[64];
    if (values->near.below || values->near.above)
        (void)snprintf(hint, ADV_LIMIT_DETAIL, "%s, %s", adv_near_text(values->near, near, sizeof near),
                       values->rule);
    else
        (void)snprintf(hint, ADV_LIMIT_DETAIL, "%s", values->rule);
    return hint;
}

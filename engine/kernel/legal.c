#include "engine/kernel/legal.h"

#include <stdio.h>

#include "engine/base/near.h"
#include "engine/base/units.h"
#include "engine/kernel/legal_near.h"
#include "engine/kernel/splash_blocks.h"

enum { LANES = ADV_LEGAL_LANES, LABELS = ADV_LEGAL_LABELS, LEAST_ROWS = 64 /* of the tuners' row tiles */ };

/* Lengths that no block can cut, of those that are known. Keys are cut by the shard in a ring. */
static adv_code judge_lengths(const struct adv_attention_shape *s, adv_err *err)
{
    adv_code code = ADV_OK;
    const int64_t keys = s->kv_len > 0 ? adv_splash_call_keys(s) : 0;
    const int64_t calls = keys > 0 ? adv_max_i(1, s->kv_len / keys) : 1;
    if (s->q_len > 0 && !adv_legal_can_cut(s->q_len, true))
        code = adv_legal_untunable("q_len", s->q_len, LANES, err);
    if (keys > 0 && !adv_legal_can_cut(keys, false))
        code = adv_legal_untunable("kv_len", s->kv_len, LANES * calls, err);
    return code;
}

static adv_code refuse_block(const struct adv_legal_block *b, adv_err *err)
{
    char pointer[ADV_LIMIT_NAME], hint[ADV_LIMIT_DETAIL], near[64];
    if (!err) return ADV_E_ILLEGAL;
    (void)snprintf(pointer, sizeof pointer, "/tile/%s", b->name);
    const bool cut = b->length % LANES == 0;
    (void)adv_near_text(adv_near_divisors(b->length, LANES, b->block), near, sizeof near);
    (void)snprintf(hint, sizeof hint, "%s%s%s %lld", near,
                   cut ? ", a multiple of 128 that divides " : ", the whole of ", b->length_name,
                   (long long)b->length);
    if (b->block < 1 || b->block % LANES)
        return adv_err_add(err, ADV_E_ILLEGAL, pointer, hint, "%s is %lld, not a multiple of 128", b->name,
                           (long long)b->block);
    return adv_err_add(err, ADV_E_ILLEGAL, pointer, hint, "%s %lld does not divide %s %lld", b->name,
                       (long long)b->block, b->length_name, (long long)b->length);
}

static bool block_is_legal(const struct adv_legal_block *b)
{
    if (b->block < 1 || b->length % b->block) return false;
    return b->block % LANES == 0 || (b->whole && b->block == b->length && b->length < LANES);
}

/* A sub-block of a key block that 128 does not divide either: any multiple of 128 may divide the right one.
 */
static adv_code judge_part_of_refused(const struct adv_legal_block *part, adv_err *err)
{
    char hint[ADV_LIMIT_DETAIL], near[64];
    if (part->block >= 1 && part->block % LANES == 0) return ADV_OK;
    (void)snprintf(hint, sizeof hint, "%s, once %s is a multiple of it",
                   adv_near_text(adv_near_multiples(LANES, part->block), near, sizeof near),
                   part->length_name);
    return adv_err_add(err, ADV_E_ILLEGAL, ADV_AT("/tile", part->name), hint,
                       "%s is %lld, not a multiple of 128", part->name, (long long)part->block);
}

/* The blocks of one kernel; with `known_only`, blocks and lengths that are 0 are left out. */
static adv_code judge_blocks(const struct adv_legal_block *list, int count, bool known_only, adv_err *err)
{
    adv_code code = ADV_OK, found;
    for (int i = 0; i < count; i++) {
        if (known_only && (list[i].block == 0 || list[i].length == 0)) continue;
        if (block_is_legal(&list[i]) || (i < 2 && !adv_legal_can_cut(list[i].length, list[i].whole)))
            continue;
        const bool whole_refused = i == 2 && list[1].block % LANES != 0 && !block_is_legal(&list[1]);
        found = whole_refused ? judge_part_of_refused(&list[i], err) : refuse_block(&list[i], err);
        if (found) code = found;
    }
    return code;
}

adv_code adv_legal_splash_blocks(enum adv_kernel kernel, const struct adv_attention_shape *shape,
                                 const struct adv_splash_blocks *blocks, adv_err *err)
{
    struct adv_legal_block list[3];
    const adv_code bad = judge_lengths(shape, err);
    const adv_code bad_blocks =
        judge_blocks(list, adv_legal_blocks_of(kernel, shape, blocks, list), false, err);
    return bad ? bad : bad_blocks;
}

static adv_code judge_context(const struct adv_attention_shape *s, adv_err *err)
{
    adv_code code = ADV_OK;
    char hint[ADV_LIMIT_NAME], near[64];
    const int64_t shards = s->context_shards;
    if (shards <= 1) return ADV_OK;
    const int64_t made_up = s->q_len * shards;
    if (s->q_len > 0 && s->kv_len > 0 && made_up != s->kv_len) {
        if (s->kv_len % shards == 0)
            (void)snprintf(hint, sizeof hint, "q_len %lld, or kv_len %lld", (long long)(s->kv_len / shards),
                           (long long)made_up);
        else
            (void)snprintf(hint, sizeof hint, "kv_len %lld", (long long)made_up);
        code = adv_err_add(err, ADV_E_ILLEGAL, "/shape/q_len", hint,
                           "%lld context shards of %lld queries do not make up the %lld keys",
                           (long long)shards, (long long)s->q_len, (long long)s->kv_len);
    }
    if (s->context_load_balanced && s->q_len % 2) {
        (void)snprintf(hint, sizeof hint, "%s",
                       adv_near_text((struct adv_near){s->q_len - 1, s->q_len + 1}, near, sizeof near));
        code =
            adv_err_add(err, ADV_E_ILLEGAL, "/shape/q_len", hint,
                        "load balancing cuts the %lld queries of a shard in two halves", (long long)s->q_len);
    }
    return code;
}

adv_code adv_legal_attention(enum adv_kernel kernel, const struct adv_attention_shape *s,
                             const struct adv_attention_tile *tile, adv_err *err, adv_err *warnings)
{
    char near[64], hint[ADV_LIMIT_NAME];
    adv_code code = judge_context(s, err);
    if (s->q_heads > 0 && s->kv_heads > 0 && s->q_heads % s->kv_heads) {
        (void)snprintf(hint, sizeof hint, "%s, a divisor of q_heads %d",
                       adv_near_text(adv_near_divisors(s->q_heads, 1, s->kv_heads), near, sizeof near),
                       s->q_heads);
        code =
            adv_err_add(err, ADV_E_ILLEGAL, "/shape/kv_heads", hint,
                        "%d query heads are not a multiple of %d key-value heads", s->q_heads, s->kv_heads);
    }
    if (!s->causal && (s->window > 0 || s->chunk > 0)) {
        const char *name = s->window > 0 ? "window" : "chunk";
        (void)snprintf(hint, sizeof hint, "causal true, or no %s", name);
        code = adv_err_add(err, ADV_E_ILLEGAL, s->window > 0 ? "/shape/window" : "/shape/chunk", hint,
                           "a %s limits causal attention, but causal is false", name);
    }
    if (s->window > 0 && s->kv_len > 0 && s->window >= s->kv_len && warnings)
        (void)adv_err_add_rule(warnings, ADV_OK, "no-effect", "/shape/window", "leave it out",
                               "a window of %lld keys hides none of the %lld", (long long)s->window,
                               (long long)s->kv_len);
    if (!tile) return code; /* the tuners' lengths: adv_legal_tunable */
    struct adv_legal_block list[3];
    const adv_code bad_lengths = judge_lengths(s, err);
    if (bad_lengths) code = bad_lengths;
    const adv_code bad = judge_blocks(list, adv_legal_blocks_of(kernel, s, &tile->blocks, list), true, err);
    return bad ? bad : code;
}

/* The legal row tiles next to one that is not, and the rows that would take it, or the next that fills its
 * registers. */
static void hint_rows(int64_t m, int64_t unit, int64_t tile_m, char hint[ADV_LIMIT_DETAIL])
{
    struct adv_legal_values values;
    char near[64], padding[128] = "";
    adv_legal_near_rows(m, unit, tile_m, &values);
    const int64_t tile = adv_round_up(tile_m, unit), padded = adv_round_up(m, tile);
    const bool some = values.near.below || values.near.above;
    if (tile == tile_m)
        (void)snprintf(padding, sizeof padding, "pad m to %lld", (long long)padded);
    else if (padded != m)
        (void)snprintf(padding, sizeof padding, "%lld, with m padded to %lld", (long long)tile,
                       (long long)padded);
    (void)snprintf(hint, ADV_LIMIT_DETAIL, "%s%s%s",
                   some ? adv_near_text(values.near, near, sizeof near) : "",
                   some && padding[0] ? "; or " : "", padding);
}

/* Rows are never masked at the end: tile_m divides m. */
static adv_code judge_rows(const struct adv_gmm_shape *s, int64_t tile_m, adv_err *err)
{
    char hint[ADV_LIMIT_DETAIL];
    const int64_t unit = adv_legal_row_unit(s->lhs), m = s->m;
    if (tile_m <= 0 || m <= 0 || (m % tile_m == 0 && (tile_m % unit == 0 || tile_m == m))) return ADV_OK;
    hint_rows(m, unit, tile_m, hint);
    if (m % tile_m)
        return adv_err_add(err, ADV_E_ILLEGAL, "/tile/tile_m", hint,
                           "tile_m %lld does not divide m %lld: %lld rows are left over", (long long)tile_m,
                           (long long)m, (long long)(m % tile_m));
    return adv_err_add(err, ADV_E_ILLEGAL, "/tile/tile_m", hint,
                       "tile_m %lld is not a multiple of %lld, the rows of a register tile of the lhs",
                       (long long)tile_m, (long long)unit);
}

adv_code adv_legal_gmm(enum adv_kernel kernel, const struct adv_gmm_shape *s, const struct adv_gmm_tile *tile,
                       adv_err *err, adv_err *warnings)
{
    adv_code code = ADV_OK, found;
    if (!tile || s->version == 2) return code;
    if ((found = judge_rows(s, tile->tile_m, err))) code = found;
    if ((found =
             adv_legal_masked("tile_k", "k", tile->tile_k, s->k, kernel == ADV_KERNEL_GMM, err, warnings)))
        code = found;
    if ((found = adv_legal_masked("tile_n", "n", tile->tile_n, s->n, false, err, warnings))) code = found;
    return code;
}

adv_code adv_legal_attention_tunable(const struct adv_kernel_request *request, adv_err *err)
{
    return judge_lengths(&request->attention, err);
}

adv_code adv_legal_gmm_tunable(const struct adv_gmm_shape *shape, bool wide, adv_err *err)
{
    const int unit = adv_legal_row_unit(shape->lhs), wide_rows = unit > 16 ? unit : 16;
    const int rows = wide ? wide_rows : LEAST_ROWS;
    return shape->m > LABELS && shape->m % rows ? adv_legal_untunable("m", shape->m, rows, err) : ADV_OK;
}

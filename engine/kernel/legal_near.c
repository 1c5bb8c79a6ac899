#include "engine/kernel/legal_near.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/kernel/splash_blocks.h"

enum { LANES = ADV_LEGAL_LANES };

int adv_legal_blocks_of(enum adv_kernel kernel, const struct adv_attention_shape *s,
                        const struct adv_splash_blocks *b, struct adv_legal_block list[3])
{
    const int64_t keys = adv_splash_call_keys(s);
    const char *keys_name = keys == s->kv_len ? "kv_len" : "a ring shard's share of kv_len,";
    if (adv_splash_is_forward(kernel)) {
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

int adv_legal_row_unit(enum adv_format lhs)
{
    const double bytes = adv_format_bytes(lhs);
    return bytes > 2.0 ? 8 : bytes > 1.0 ? 16 : 32;
}

void adv_legal_near_drop(struct adv_near *near, int64_t most)
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
    adv_legal_near_drop(&values->near, ADV_GMM_TILE_MAX);
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

bool adv_legal_near_block(const struct adv_kernel_request *request, const char *name, int64_t wanted,
                          struct adv_legal_values *values)
{
    struct adv_legal_block list[3];
    const int count =
        adv_legal_blocks_of(request->kernel, &request->attention, &request->tile.attention.blocks, list);
    int found = 0;
    if (strncmp(name, "block_", 6) != 0) return false;
    while (found < count && strcmp(list[found].name, name) != 0) found++;
    near_block(found < count ? &list[found] : NULL, wanted, values);
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

adv_code adv_legal_untunable(const char *name, int64_t length, int64_t unit, adv_err *err)
{
    char near[64];
    return adv_err_add(err, ADV_E_ILLEGAL, ADV_AT("/shape", name),
                       adv_near_text(adv_near_multiples(unit, length), near, sizeof near),
                       "no tile divides %s %lld, which is not a multiple of %lld", name, (long long)length,
                       (long long)unit);
}

/* The tiles near `tile`, within a factor of two, that leave no remainder; "" when there is none. */
static const char *whole_tiles_text(int64_t length, int64_t tile, char *text, size_t text_bytes)
{
    char values[64];
    struct adv_near near = adv_near_divisors(length, LANES, tile);
    if (2 * near.below < tile) near.below = 0;
    if (near.above > 2 * tile || near.above > ADV_GMM_TILE_MAX) near.above = 0;
    text[0] = '\0';
    if (near.below || near.above)
        (void)snprintf(text, text_bytes, "%s leaves no remainder",
                       adv_near_text(near, values, sizeof values));
    return text;
}

adv_code adv_legal_masked(const char *name, const char *axis, int64_t tile, int64_t length, bool contracts,
                          adv_err *err, adv_err *warnings)
{
    char pointer[ADV_LIMIT_NAME], hint[ADV_LIMIT_DETAIL], near[64];
    if (tile <= 0 || length <= 0) return ADV_OK;
    (void)snprintf(pointer, sizeof pointer, "/tile/%s", name);
    if (tile % LANES && tile != length) {
        struct adv_legal_values values;
        adv_legal_near_masked(axis, length, tile, &values);
        (void)adv_near_text(values.near, near, sizeof near);
        const bool offers_whole = values.near.below == length || values.near.above == length;
        if (length % LANES && length <= ADV_GMM_TILE_MAX && !offers_whole)
            (void)snprintf(hint, sizeof hint, "%s, or %lld, the whole of %s", near, (long long)length, axis);
        else
            (void)snprintf(hint, sizeof hint, "%s%s%s", near, offers_whole ? ", the whole of " : "",
                           offers_whole ? axis : "");
        return adv_err_add(err, ADV_E_ILLEGAL, pointer, hint,
                           "%s is %lld, neither a multiple of 128 nor the whole of %s %lld", name,
                           (long long)tile, axis, (long long)length);
    }
    const int64_t count = adv_div_up(length, tile), held = length - (count - 1) * tile;
    if (held == tile || !warnings) return ADV_OK;
    const double padding = 100.0 * (double)(count * tile - length) / (double)(count * tile);
    (void)whole_tiles_text(length, tile, hint, sizeof hint);
    if (count == 1)
        (void)adv_err_add(warnings, ADV_OK, pointer, hint,
                          "%s %lld is wider than %s %lld: %.1f %% of what it computes is padding", name,
                          (long long)tile, axis, (long long)length, padding);
    else
        (void)adv_err_add_rule(
            warnings, ADV_OK, "masked-tail", pointer, hint,
            "%s %lld does not divide %s %lld: the last of %lld tiles holds %lld%s, %.1f %% of "
            "what is computed is padding",
            name, (long long)tile, axis, (long long)length, (long long)count, (long long)held,
            contracts ? " and is masked on both sides" : "", padding);
    return ADV_OK;
}

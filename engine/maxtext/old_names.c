/* old_names.c: keys and values that MaxText once had. The catalog has the plain renames; here are those that
 * need more. */
#include "engine/maxtext/reader.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/text.h"

/* Keys whose old spelling also had other values. */
static const struct {
    const char *old, *current;
    const char *when_true, *when_false; /* value under the current name, NULL = leave the default */
} rewrites[] = {
    {"int8_training", "quantization", "int8", NULL},
    {"use_int8_training", "quantization", "int8", NULL},
    {"enable_profiler", "profiler", "xplane", NULL},
    {"enable_flash_attention", "attention", "flash", "dot_product"},
};

/* Values MaxText once took, and what they are called now. */
static const struct {
    const char *key, *old, *current;
} old_values[] = {
    {"remat_policy", "proj", "save_qkv_proj"},
    {"quantization", "aqt_fp8", "fp8"},
};

/* One old key that now is several. */
static const struct {
    const char *old, *suffix;
} tile_rewrites[] = {
    {"tile_batch_seq", "batch_seq"}, {"tile_embed_dim", "embed_dim"}, {"tile_mlp_dim", "mlp_dim"}};

static void apply_under(struct adv_config_reader *reader, const char *current, const struct adv_value *raw,
                        const char *pointer)
{
    const struct adv_config_source *source = reader->source;
    const struct adv_catalog_key *key = adv_catalog_key(source->catalog, current);
    bool current_is_given = adv_given_find(source->given, source->given_count, current) != NULL;
    if (key && !current_is_given && !adv_config_is_model_key(current))
        adv_reader_take(reader, key, raw, pointer);
}

static void apply_tile_rewrite(struct adv_config_reader *reader, const char *suffix,
                               const struct adv_value *raw, const char *pointer)
{
    static const char *const stems[] = {"wi_tile_fwd_", "wi_tile_dlhs_", "wi_tile_drhs_",
                                        "wo_tile_fwd_", "wo_tile_dlhs_", "wo_tile_drhs_"};
    for (size_t i = 0; i < sizeof stems / sizeof *stems; i++) {
        char name[ADV_LIMIT_NAME];
        (void)snprintf(name, sizeof name, "%s%s", stems[i], suffix);
        apply_under(reader, name, raw, pointer);
    }
}

static bool is_true(const struct adv_value *raw)
{
    return (raw->kind == ADV_VALUE_BOOL && raw->boolean) ||
           (raw->kind == ADV_VALUE_STRING && strcasecmp(raw->string, "true") == 0);
}

/* Gives an old key its effect; returns the current name to tell, or NULL when there is none. */
static const char *apply_old(struct adv_config_reader *reader, const struct adv_given *given,
                             const struct adv_catalog_old_key *old, const char *pointer)
{
    for (size_t i = 0; i < sizeof rewrites / sizeof *rewrites; i++) {
        if (strcmp(rewrites[i].old, given->key) != 0) continue;
        struct adv_value current = {.kind = ADV_VALUE_STRING};
        current.string = is_true(&given->value) ? rewrites[i].when_true : rewrites[i].when_false;
        if (current.string) apply_under(reader, rewrites[i].current, &current, pointer);
        return rewrites[i].current;
    }
    for (size_t i = 0; i < sizeof tile_rewrites / sizeof *tile_rewrites; i++) {
        if (strcmp(tile_rewrites[i].old, given->key) != 0) continue;
        apply_tile_rewrite(reader, tile_rewrites[i].suffix, &given->value, pointer);
        return old && old->current ? old->current : "the wi_tile_* and wo_tile_* keys";
    }
    if (!old || !old->current) return NULL;
    apply_under(reader, old->current, &given->value, pointer);
    return old->current;
}

static void report_unknown(const struct adv_config_reader *reader, const char *name, const char *pointer)
{
    const struct adv_config_source *source = reader->source;
    adv_err *into = source->strict ? reader->err : reader->warnings;
    char hint[ADV_LIMIT_DETAIL] = "";
    const char *nearest = adv_err_has_room(into) ? adv_catalog_nearest_key(source->catalog, name) : NULL;
    if (nearest) (void)snprintf(hint, sizeof hint, "did you mean %s?", nearest);
    (void)adv_err_add_rule(into, source->strict ? ADV_E_INVALID : ADV_OK, "unknown-key", pointer, hint,
                           "%.90s is not a MaxText key", name);
}

void adv_reader_take_old(struct adv_config_reader *reader, const struct adv_given *given, const char *pointer)
{
    const struct adv_catalog_old_key *old = adv_catalog_old_key(reader->source->catalog, given->key);
    const char *current = apply_old(reader, given, old, pointer);
    if (!old && !current) {
        report_unknown(reader, given->key, pointer);
        return;
    }
    bool strict = reader->source->strict;
    adv_err *into = strict ? reader->err : reader->warnings;
    char hint[ADV_LIMIT_DETAIL] = "leave it out";
    if (current) (void)snprintf(hint, sizeof hint, "use %s", current);
    (void)adv_err_add_rule(into, strict ? ADV_E_INVALID : ADV_OK, current ? "renamed-key" : "dropped-key",
                           pointer, hint, "MaxText has no key %s%s%s", given->key,
                           old && *old->why ? ": " : "", old ? old->why : "");
}

bool adv_reader_current_value(const struct adv_config_reader *reader, const struct adv_given *given,
                              const char *pointer, struct adv_value *current)
{
    if (given->value.kind != ADV_VALUE_STRING) return false;
    for (size_t i = 0; i < sizeof old_values / sizeof *old_values; i++) {
        if (strcmp(old_values[i].key, given->key) != 0 || strcmp(old_values[i].old, given->value.string) != 0)
            continue;
        char hint[ADV_LIMIT_DETAIL];
        (void)snprintf(hint, sizeof hint, "use %s", old_values[i].current);
        bool strict = reader->source->strict;
        adv_err *into = strict ? reader->err : reader->warnings;
        (void)adv_err_add_rule(into, strict ? ADV_E_INVALID : ADV_OK, "renamed-value", pointer, hint,
                               "%s no longer takes \"%s\"", given->key, given->value.string);
        *current = (struct adv_value){.kind = ADV_VALUE_STRING, .string = old_values[i].current};
        return true;
    }
    return false;
}

#include "engine/json/decode_kernel.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/near.h"
#include "engine/base/text.h"
#include "engine/base/units.h"
#include "engine/json/decode_members.h"
#include "engine/json/kernel_members.h"
#include "engine/kernel/family.h"

enum { DEFAULT_TOP_K = 10, CHIPS_MAX = 32 };

/* One request while it is read. */
struct decoder {
    const json_t *root, *shape, *tile;
    struct adv_arena *arena;
    struct adv_kernel_request *request;
    struct adv_kernel_tile given; /* the tile before blocks that were left out got a value */
    adv_err *err, *warnings;
    bool with_tile;
};

/* The values of members that are left out. */
static void set_defaults(struct adv_kernel_request *request)
{
    memset(request, 0, sizeof *request);
    request->top_k = DEFAULT_TOP_K;
    request->attention = (struct adv_attention_shape){
        .batch = 1, .causal = true, .context_shards = 1, .dtype = ADV_FORMAT_BF16};
    request->tile.attention.q_layout = request->tile.attention.k_layout = request->tile.attention.v_layout =
        ADV_LAYOUT_HEAD_DIM_MINOR;
    request->gmm = (struct adv_gmm_shape){.version = 1, .lhs = ADV_FORMAT_BF16};
    request->gmm.distribution = ADV_GROUPS_MULTINOMIAL; /* what random routing gives */
    request->tile.gmm.input_buffer_count = 2;
    request->matmul.lhs = ADV_FORMAT_BF16;
}

/* Blocks that take another's value when they are left out. */
static void derive_tile(struct decoder *d)
{
    d->given = d->request->tile;
    struct adv_splash_blocks *blocks = &d->request->tile.attention.blocks;
    if (!adv_json_has(d->tile, "block_kv_compute")) blocks->block_kv_compute = blocks->block_kv;
    if (!adv_json_has(d->tile, "block_kv_dkv_compute")) blocks->block_kv_dkv_compute = blocks->block_kv_dkv;
}

/* The same of the shape. */
static void derive_shape(struct decoder *d)
{
    struct adv_kernel_request *r = d->request;
    if (!adv_json_has(d->shape, "kv_len"))
        r->attention.kv_len = r->attention.q_len * r->attention.context_shards;
    if (!adv_json_has(d->shape, "head_dim_v")) r->attention.head_dim_v = r->attention.head_dim_qk;
    const bool narrow = r->gmm.lhs == ADV_FORMAT_FP8 || r->gmm.lhs == ADV_FORMAT_INT8;
    if (!adv_json_has(d->shape, "rhs_dtype")) r->gmm.rhs = r->gmm.lhs, r->matmul.rhs = r->matmul.lhs;
    if (adv_json_has(d->shape, "out_dtype")) return;
    r->gmm.out = narrow ? ADV_FORMAT_BF16 : r->gmm.lhs;
    r->matmul.out = r->matmul.lhs == ADV_FORMAT_F32 ? ADV_FORMAT_F32 : ADV_FORMAT_BF16;
}

static void refuse_heads(struct decoder *d, const char *name, int heads, int shards)
{
    char hint[ADV_LIMIT_NAME], near[64];
    (void)snprintf(hint, sizeof hint, "%s, or all_gather",
                   adv_near_text(adv_near_multiples(shards, heads), near, sizeof near));
    (void)adv_err_add(d->err, ADV_E_ILLEGAL, ADV_AT("/shape", name), hint,
                      "ulysses spreads the heads over %d context shards, which do not divide %d", shards,
                      heads);
}

/* Whole sequences of a share of the heads, once the devices have traded. */
static void apply_ulysses(struct decoder *d)
{
    struct adv_attention_shape *s = &d->request->attention;
    const int shards = s->context_shards;
    const bool uneven_q = s->q_heads > 0 && s->q_heads % shards,
               uneven_kv = s->kv_heads > 0 && s->kv_heads % shards;
    if (uneven_q) refuse_heads(d, "q_heads", s->q_heads, shards);
    if (uneven_kv) refuse_heads(d, "kv_heads", s->kv_heads, shards);
    if (s->context_load_balanced) {
        const bool own_name = adv_json_has(d->shape, "context_load_balanced");
        ADV_WARN(d->warnings, "not-used",
                 own_name ? "/shape/context_load_balanced" : "/shape/context_parallel_load_balance",
                 "leave it out", "sequences are whole while ulysses attends: there is nothing to balance");
    }
    s->context_load_balanced = false;
    if (uneven_q || uneven_kv || s->q_len * shards != s->kv_len) return; /* judged with the lengths */
    s->q_heads /= shards;
    s->kv_heads /= shards;
    s->q_len *= shards;
    s->context_shards = 1;
}

/* How devices that share a sequence exchange keys. */
static void read_strategy(struct decoder *d)
{
    struct adv_attention_shape *s = &d->request->attention;
    int strategy = 0;
    if (!adv_json_choice(d->shape, "/shape", "context_parallel_strategy", ADV_JSON_OPTIONAL,
                         ADV_JSON_NAMES("all_gather", "ring", "ulysses"), &strategy, d->err))
        return;
    if (s->context_shards <= 1) {
        if (strategy == 0) return;
        ADV_WARN(d->warnings, "not-used", "/shape/context_parallel_strategy",
                 "context_shards, the devices that share a sequence",
                 "no other device shares the sequences: the strategy is not used");
        return;
    }
    s->context_ring = strategy == 1;
    if (strategy == 2) apply_ulysses(d);
}

static void warn_unused_tile(struct decoder *d, const char *why)
{
    if (!d->tile || json_object_size(d->tile) == 0) return;
    ADV_WARN(d->warnings, "not-used", "/tile", "leave it out", "%s: the tile is not used", why);
}

static void read_flags(struct decoder *d)
{
    struct adv_attention_flags *flags = &d->request->attention_flags;
    const json_t *json = adv_json_object(d->root, "", "flags", ADV_JSON_OPTIONAL, d->err);
    double estimate = -1.0, cap = 0.0, limit_kib = 0.0, flag_kib = 0.0;
    (void)adv_json_number(d->root, "", "scoped_vmem_limit_kib", ADV_JSON_OPTIONAL, 1, 1e7, &limit_kib,
                          d->err);
    if (json) {
        (void)adv_json_known_members(
            json, "/flags",
            ADV_JSON_NAMES("use_max_logit_estimate", "attn_logits_soft_cap", "dq_reduction_steps",
                           "kernel_only", "use_experimental_scheduler", "xla_tpu_scoped_vmem_limit_kib"),
            d->err);
        (void)adv_json_number(json, "/flags", "use_max_logit_estimate", ADV_JSON_OPTIONAL, -1, 1 << 24,
                              &estimate, d->err);
        (void)adv_json_number(json, "/flags", "attn_logits_soft_cap", ADV_JSON_OPTIONAL, 0, 1e6, &cap,
                              d->err);
        (void)adv_json_int(json, "/flags", "dq_reduction_steps", ADV_JSON_OPTIONAL, 0, 3,
                           &flags->dq_reduction_steps, d->err);
        (void)adv_json_bool(json, "/flags", "kernel_only", ADV_JSON_OPTIONAL, &flags->kernel_only, d->err);
        (void)adv_json_bool(json, "/flags", "use_experimental_scheduler", ADV_JSON_OPTIONAL,
                            &flags->use_experimental_scheduler, d->err);
        (void)adv_json_number(json, "/flags", "xla_tpu_scoped_vmem_limit_kib", ADV_JSON_OPTIONAL, 1, 1e7,
                              &flag_kib, d->err);
    }
    if (flags->dq_reduction_steps % 3 != 0)
        (void)adv_err_add(d->err, ADV_E_ILLEGAL, "/flags/dq_reduction_steps", "0 or 3",
                          "the kernel sums its dQ partials in 0 or 3 steps, not in %d",
                          flags->dq_reduction_steps);
    if (limit_kib > 0.0 && flag_kib > 0.0 && limit_kib != flag_kib)
        ADV_REFUSE(d->err, "/scoped_vmem_limit_kib", "one of the two",
                   "scoped_vmem_limit_kib is %.15g, the XLA flag of the same meaning %.15g", limit_kib,
                   flag_kib);
    flags->max_logit_constant = estimate > 0.0;
    flags->soft_cap = cap > 0.0;
    d->request->scoped_vmem_limit_bytes = (flag_kib > 0.0 ? flag_kib : limit_kib) * ADV_KIB;
}

/* "tpu7x, v6e or v4": the TPUs of the catalog. */
static const char *generations_of(const struct adv_catalog *catalog, char text[ADV_LIMIT_DETAIL])
{
    const char *names[CHIPS_MAX];
    int count = 0;
    for (int i = 0; i < adv_catalog_tables(catalog)->chips_count && count < CHIPS_MAX; i++) {
        const struct adv_chip *chip = &adv_catalog_tables(catalog)->chips[i].chip;
        if (chip->is_tpu) names[count++] = chip->name;
    }
    text[0] = '\0';
    for (int i = 0; i < count; i++)
        adv_append(text, ADV_LIMIT_DETAIL, "%s%s", i == 0 ? "" : i < count - 1 ? ", " : " or ", names[i]);
    return text;
}

static void read_chip(const struct adv_catalog *catalog, struct decoder *d)
{
    char text[ADV_LIMIT_DETAIL];
    const char *name = NULL, *generations = generations_of(catalog, text);
    if (!adv_json_has(d->root, "chip")) {
        ADV_REFUSE(d->err, "/chip", generations, "`chip` is required");
        return;
    }
    if (!adv_json_string(d->root, "", "chip", ADV_JSON_REQUIRED, &name, d->err)) return;
    d->request->chip = adv_catalog_chip(catalog, name);
    if (d->request->chip && d->request->chip->chip.is_tpu) return;
    d->request->chip = NULL;
    ADV_REFUSE(d->err, "/chip", generations, "\"%.60s\" is not a TPU generation the catalog knows", name);
}

/* A limit beyond the VMEM that there is counts as all of it. */
static void judge_limit(struct decoder *d)
{
    struct adv_kernel_request *r = d->request;
    if (!r->chip) return;
    const double capacity = adv_vmem_capacity_bytes(&r->chip->chip);
    if (!(r->scoped_vmem_limit_bytes > capacity)) return; /* also when the capacity is unknown */
    char hint[ADV_LIMIT_NAME];
    (void)snprintf(hint, sizeof hint, "%.0f at most", capacity / ADV_KIB);
    ADV_WARN(d->warnings, "vmem-limit", "/scoped_vmem_limit_kib", hint,
             "a limit of %.0f KiB is more than the %.0f KiB of VMEM of a %s device: counted as "
             "all of it",
             r->scoped_vmem_limit_bytes / ADV_KIB, capacity / ADV_KIB, r->chip->chip.name);
    r->scoped_vmem_limit_bytes = capacity;
}

/* Tiles of a baseline would be a mistake about what is compared: they are refused, an empty object is not. */
static void refuse_xla_tile(struct decoder *d, const char *operation)
{
    const struct adv_kernel_info *kernel = adv_kernel_info_of(d->request->kernel);
    char hint[ADV_LIMIT_NAME];
    if (!d->tile || json_object_size(d->tile) == 0 || !kernel->rival) return;
    (void)snprintf(hint, sizeof hint, "leave it out, or %s, which takes tiles", kernel->rival);
    ADV_REFUSE(d->err, "/tile", hint, "XLA chooses the tiles of %s: %s takes no tile", operation,
               adv_kernel_name(kernel->kernel));
}

static void refuse_xla_tuning(struct decoder *d, const char *operation)
{
    const char *rival = adv_kernel_info_of(d->request->kernel)->rival;
    char hint[ADV_LIMIT_NAME] = "simulate it instead";
    if (rival)
        (void)snprintf(hint, sizeof hint, "simulate it instead, to compare with %s as simulated or tuned",
                       rival);
    (void)adv_err_add(d->err, ADV_E_UNSUPPORTED, "/kernel", hint,
                      "XLA chooses the tiles of %s: nothing to tune", operation);
}

/* The rules of request->kernel on what could be read. */
static void judge(struct decoder *d)
{
    const struct adv_kernel_request *r = d->request;
    const struct adv_kernel_family *family = adv_kernel_family_of(r->kernel);
    const int errors = d->err->count, warnings = d->warnings ? d->warnings->count : 0;
    /* blocks that were left out are their neighbours: nothing to find about them */
    if (family->judge) family->judge(r, d->tile ? &d->given : NULL, d->err, d->warnings);
    adv_kernel_members_rename(r->kernel, d->tile, d->err, errors);
    adv_kernel_members_rename(r->kernel, d->tile, d->warnings, warnings);
    if (family->operation) refuse_xla_tile(d, family->operation);
    if (d->with_tile) return;
    if (family->operation)
        refuse_xla_tuning(d, family->operation);
    else
        (void)family->tunable(r, d->err);
}

/* The tile of a kernel that is known, after its shape: hints name what the shape allows. */
static void read_tile(struct decoder *d, enum adv_kernel kernel)
{
    const struct adv_kernel_family *family = adv_kernel_family_of(kernel);
    const bool own_tile = adv_kernel_tiles_itself(d->request);
    if (d->with_tile) d->tile = adv_json_object(d->root, "", "tile", ADV_JSON_OPTIONAL, d->err);
    if (d->with_tile && !own_tile && !adv_json_has(d->root, "tile"))
        ADV_REFUSE(d->err, "/tile", "tune finds the best tiles of a shape", "`tile` is required");
    if (family->tile.count > 0)
        adv_kernel_members_read(kernel, ADV_KERNEL_TILE, d->tile, !own_tile, d->request, d->err);
    adv_kernel_members_warn_unused(kernel, d->tile, d->warnings);
    adv_kernel_members_judge_names(kernel, ADV_KERNEL_TILE, d->tile, d->err);
    if (own_tile && family->own_tiles) warn_unused_tile(d, family->own_tiles(d->request));
    derive_tile(d);
}

/* Shape and tile of a kernel that is known. */
static void read_known(struct decoder *d)
{
    const enum adv_kernel kernel = d->request->kernel;
    adv_kernel_members_read(kernel, ADV_KERNEL_SHAPE, d->shape, true, d->request, d->err);
    if (adv_kernel_members_have(kernel, ADV_MEMBER_GROUPS) && d->shape)
        adv_decode_groups(d->shape, d->arena, &d->request->gmm, d->err, d->warnings);
    adv_kernel_members_drop_unused(kernel, d->request, d->warnings);
    derive_shape(d);
    adv_kernel_members_judge_names(kernel, ADV_KERNEL_SHAPE, d->shape, d->err);
    if (adv_kernel_members_have(kernel, ADV_MEMBER_STRATEGY) && d->shape) read_strategy(d);
    read_tile(d, kernel);
    judge(d);
}

/* The kernel is not known: what is there is judged as far as its name tells what it is. */
static void read_unknown(struct decoder *d, const char *nearest)
{
    if (d->with_tile) d->tile = adv_json_object(d->root, "", "tile", ADV_JSON_OPTIONAL, d->err);
    adv_kernel_members_read_any(ADV_KERNEL_SHAPE, d->shape, d->request, d->err);
    if (d->shape) adv_decode_groups(d->shape, d->arena, &d->request->gmm, d->err, d->warnings);
    derive_shape(d);
    adv_kernel_members_judge_names_any(ADV_KERNEL_SHAPE, d->shape, d->err);
    if (d->shape) read_strategy(d);
    adv_kernel_members_read_any(ADV_KERNEL_TILE, d->tile, d->request, d->err);
    derive_tile(d);
    for (int i = 0; nearest && i < ADV_KERNEL_COUNT; i++) {
        if (adv_kernel_name((enum adv_kernel)i) != nearest) continue;
        d->request->kernel = (enum adv_kernel)i;
        judge(d);
    }
}

/* Members of the other question about kernels. */
static void refuse_foreign(struct decoder *d)
{
    static const char *const of_simulate[] = {"tile", "timeline", "trace"};
    static const char *const of_tune[] = {"top_k", "wide", "tile_map"};
    const char *const *names = d->with_tile ? of_tune : of_simulate;
    const int count = 3;
    for (int i = 0; i < count; i++) {
        if (!json_object_get(d->root, names[i])) continue;
        ADV_REFUSE(d->err, ADV_AT("", names[i]), "leave it out",
                   d->with_tile ? "`%s` belongs to tune, which chooses the tile"
                                : "`%s` belongs to simulate, which is given a tile",
                   names[i]);
    }
}

static void read_top(const struct adv_catalog *catalog, struct decoder *d)
{
    static const char *const members[] = {
        "chip",  "kernel", "shape", "flags",    "scoped_vmem_limit_kib", "tile", "timeline",
        "trace", "top_k",  "wide",  "tile_map", ADV_STORE_MEMBERS};
    struct adv_kernel_request *r = d->request;
    (void)adv_json_known_members(d->root, "", members, (int)(sizeof members / sizeof *members), d->err);
    refuse_foreign(d);
    if (d->with_tile) {
        (void)adv_json_bool(d->root, "", "timeline", ADV_JSON_OPTIONAL, &r->timeline, d->err);
        (void)adv_json_bool(d->root, "", "trace", ADV_JSON_OPTIONAL, &r->trace, d->err);
    } else {
        (void)adv_json_bool(d->root, "", "wide", ADV_JSON_OPTIONAL, &r->wide_tiles, d->err);
        (void)adv_json_bool(d->root, "", "tile_map", ADV_JSON_OPTIONAL, &r->tile_map, d->err);
        (void)adv_json_int(d->root, "", "top_k", ADV_JSON_OPTIONAL, 1, ADV_LIMIT_RANKED, &r->top_k, d->err);
    }
    adv_decode_store(d->root, d->arena, &r->wish, d->err);
    read_chip(catalog, d);
    read_flags(d);
    judge_limit(d);
}

adv_code adv_decode_kernel_request(const struct adv_catalog *catalog, const json_t *root, bool with_tile,
                                   struct adv_arena *arena, struct adv_kernel_request *request, adv_err *err,
                                   adv_err *warnings)
{
    const int before = err->count + err->lost_count;
    struct decoder d = {.root = root,
                        .arena = arena,
                        .request = request,
                        .err = err,
                        .warnings = warnings,
                        .with_tile = with_tile};
    set_defaults(request);
    if (!adv_json_is_object(root, "", err)) return ADV_E_INVALID;
    read_top(catalog, &d);
    const char *names[ADV_KERNEL_COUNT];
    for (int i = 0; i < ADV_KERNEL_COUNT; i++) names[i] = adv_kernel_name((enum adv_kernel)i);
    int kernel = 0;
    const bool known =
        adv_json_choice(root, "", "kernel", ADV_JSON_REQUIRED, names, ADV_KERNEL_COUNT, &kernel, err);
    request->kernel = (enum adv_kernel)kernel;
    d.shape = adv_json_object(root, "", "shape", ADV_JSON_REQUIRED, err);
    if (known && !d.shape) adv_kernel_members_hint(request->kernel, ADV_KERNEL_SHAPE, err);
    if (known) {
        read_known(&d);
    } else {
        const char *given = json_string_value(json_object_get(root, "kernel"));
        read_unknown(&d, given ? adv_text_nearest(given, names, ADV_KERNEL_COUNT) : NULL);
    }
    return err->count + err->lost_count > before ? err->code : ADV_OK;
}

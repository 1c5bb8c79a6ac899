#include "engine/json/decode_kernel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/near.h"
#include "engine/base/text.h"
#include "engine/base/units.h"
#include "engine/json/decode_groups.h"
#include "engine/json/kernel_members.h"
#include "engine/kernel/gmm.h"
#include "engine/kernel/legal.h"
#include "engine/kernel/vmem.h"

enum { DEFAULT_TOP_K = 10, CHIPS_MAX = 32 };

bool adv_kernel_is_attention(enum adv_kernel kernel)
{
    return kernel <= ADV_KERNEL_SPLASH_BWD_DKV;
}

bool adv_kernel_is_gmm(enum adv_kernel kernel)
{
    return kernel == ADV_KERNEL_GMM || kernel == ADV_KERNEL_TGMM;
}

bool adv_kernel_is_xla_attention(enum adv_kernel kernel)
{
    return kernel == ADV_KERNEL_ATTENTION_XLA || kernel == ADV_KERNEL_ATTENTION_XLA_BWD;
}

bool adv_kernel_is_xla_ragged_dot(enum adv_kernel kernel)
{
    return kernel == ADV_KERNEL_RAGGED_DOT_XLA || kernel == ADV_KERNEL_RAGGED_DOT_XLA_TGMM;
}

bool adv_kernel_is_xla(enum adv_kernel kernel)
{
    return kernel == ADV_KERNEL_MATMUL || adv_kernel_is_xla_attention(kernel) ||
           adv_kernel_is_xla_ragged_dot(kernel);
}

bool adv_kernel_tiles_itself(const struct adv_kernel_request *request)
{
    return adv_kernel_is_xla(request->kernel) ||
           (adv_kernel_is_gmm(request->kernel) && request->gmm.version == 2);
}

static bool has_attention_shape(enum adv_kernel kernel)
{
    return adv_kernel_is_attention(kernel) || adv_kernel_is_xla_attention(kernel);
}

static bool has_gmm_shape(enum adv_kernel kernel)
{
    return adv_kernel_is_gmm(kernel) || adv_kernel_is_xla_ragged_dot(kernel);
}

static bool is_xent(enum adv_kernel kernel)
{
    return kernel == ADV_KERNEL_LINEAR_XENT || kernel == ADV_KERNEL_LINEAR_XENT_BWD;
}

/* One request while it is read. */
struct decoder {
    const json_t *root, *shape, *tile;
    struct adv_arena *arena;
    struct adv_kernel_request *request;
    adv_err *err, *warnings;
    bool with_tile;
};

/* What members mean when they are left out. */
static void set_defaults(struct adv_kernel_request *request)
{
    memset(request, 0, sizeof *request);
    request->top_k = DEFAULT_TOP_K;
    request->attention = (struct adv_attention_shape){
        .batch = 1, .causal = true, .context_shards = 1, .dtype = ADV_FORMAT_BF16};
    request->attention_tile.q_layout = request->attention_tile.k_layout = request->attention_tile.v_layout =
        ADV_LAYOUT_HEAD_DIM_MINOR;
    request->gmm = (struct adv_gmm_shape){.version = 1, .lhs = ADV_FORMAT_BF16};
    request->gmm.distribution = ADV_GROUPS_MULTINOMIAL; /* what random routing gives */
    request->gmm_tile.input_buffer_count = 2;
    request->matmul.lhs = ADV_FORMAT_BF16;
}

static bool has(const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);
    return value && !json_is_null(value);
}

/* Blocks that take another's value when they are left out. */
static void derive_tile(struct decoder *d)
{
    struct adv_splash_blocks *blocks = &d->request->attention_tile.blocks;
    if (!has(d->tile, "block_kv_compute")) blocks->block_kv_compute = blocks->block_kv;
    if (!has(d->tile, "block_kv_dkv_compute")) blocks->block_kv_dkv_compute = blocks->block_kv_dkv;
}

/* The same of the shape. */
static void derive_shape(struct decoder *d)
{
    struct adv_kernel_request *r = d->request;
    if (!has(d->shape, "kv_len")) r->attention.kv_len = r->attention.q_len * r->attention.context_shards;
    if (!has(d->shape, "head_dim_v")) r->attention.head_dim_v = r->attention.head_dim_qk;
    const bool narrow = r->gmm.lhs == ADV_FORMAT_FP8 || r->gmm.lhs == ADV_FORMAT_INT8;
    if (!has(d->shape, "rhs_dtype")) r->gmm.rhs = r->gmm.lhs, r->matmul.rhs = r->matmul.lhs;
    if (has(d->shape, "out_dtype")) return;
    r->gmm.out = narrow ? ADV_FORMAT_BF16 : r->gmm.lhs;
    r->matmul.out = r->matmul.lhs == ADV_FORMAT_F32 ? ADV_FORMAT_F32 : ADV_FORMAT_BF16;
}

static void refuse_heads(struct decoder *d, const char *name, int heads, int shards)
{
    char pointer[ADV_LIMIT_NAME], hint[ADV_LIMIT_NAME], near[64];
    (void)snprintf(pointer, sizeof pointer, "/shape/%s", name);
    (void)snprintf(hint, sizeof hint, "%s, or all_gather",
                   adv_near_text(adv_near_multiples(shards, heads), near, sizeof near));
    (void)adv_err_add(d->err, ADV_E_ILLEGAL, pointer, hint,
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
    if (s->context_load_balanced && d->warnings) {
        const bool own_name = has(d->shape, "context_load_balanced");
        (void)adv_err_add(d->warnings, ADV_OK,
                          own_name ? "/shape/context_load_balanced" : "/shape/context_parallel_load_balance",
                          "leave it out",
                          "sequences are whole while ulysses attends: there is nothing to balance");
        adv_err_rule(d->warnings, "not-used");
    }
    s->context_load_balanced = false;
    if (uneven_q || uneven_kv || s->q_len * shards != s->kv_len) return; /* judged with the lengths */
    s->q_heads /= shards;
    s->kv_heads /= shards;
    s->q_len *= shards;
    s->context_shards = 1;
}

/* What the devices that share a sequence do with each other's keys. */
static void read_strategy(struct decoder *d)
{
    static const char *const names[] = {"all_gather", "ring", "ulysses"};
    struct adv_attention_shape *s = &d->request->attention;
    int strategy = 0;
    if (has(d->shape, "context_load_balanced") && has(d->shape, "context_parallel_load_balance"))
        (void)adv_err_add(d->err, ADV_E_INVALID, "/shape/context_load_balanced", "one of the two names",
                          "`context_load_balanced` and `context_parallel_load_balance` say the same thing "
                          "twice");
    if (!adv_json_choice(d->shape, "/shape", "context_parallel_strategy", ADV_JSON_OPTIONAL, names, 3,
                         &strategy, d->err))
        return;
    if (s->context_shards <= 1) {
        if (strategy == 0 || !d->warnings) return;
        (void)adv_err_add(d->warnings, ADV_OK, "/shape/context_parallel_strategy",
                          "context_shards, the devices that share a sequence",
                          "no other device shares the sequences: the strategy is not used");
        adv_err_rule(d->warnings, "not-used");
        return;
    }
    s->context_ring = strategy == 1;
    if (strategy == 2) apply_ulysses(d);
}

/* Each block of the fused loss goes by two names. */
static void judge_xent_names(struct decoder *d)
{
    static const char *const names[] = {"b_block", "h_block", "v_block"};
    for (int i = 0; i < 3 && d->tile; i++) {
        char pointer[ADV_LIMIT_NAME], full[ADV_LIMIT_NAME];
        (void)snprintf(pointer, sizeof pointer, "/tile/%s", names[i]);
        (void)snprintf(full, sizeof full, "%s_size", names[i]);
        if (has(d->tile, names[i]) && has(d->tile, full))
            (void)adv_err_add(d->err, ADV_E_INVALID, pointer, "one of the two names",
                              "`%s` and `%s` say the same thing twice", names[i], full);
    }
}

/* What was found about a block that goes by its long name is said of that name. */
static void rename_xent_blocks(const struct decoder *d, adv_err *findings, int from)
{
    for (int i = from; findings && i < findings->count; i++) {
        char *pointer = findings->findings[i].pointer, full[ADV_LIMIT_POINTER];
        if (strncmp(pointer, "/tile/", 6) != 0) continue;
        (void)snprintf(full, sizeof full, "%.*s_size", ADV_LIMIT_NAME, pointer);
        if (has(d->tile, full + 6)) (void)snprintf(pointer, ADV_LIMIT_POINTER, "%s", full);
    }
}

static void judge_xent(struct decoder *d)
{
    struct adv_kernel_request *r = d->request;
    const int errors = d->err->count, warnings = d->warnings ? d->warnings->count : 0;
    (void)adv_legal_xent(&r->xent, d->tile ? &r->xent_tile : NULL, d->err, d->warnings);
    rename_xent_blocks(d, d->err, errors);
    rename_xent_blocks(d, d->warnings, warnings);
}

static void warn_unused_tile(struct decoder *d, const char *why)
{
    if (!d->tile || json_object_size(d->tile) == 0 || !d->warnings) return;
    (void)adv_err_add(d->warnings, ADV_OK, "/tile", "leave it out", "%s: the tile is not used", why);
    adv_err_rule(d->warnings, "not-used");
}

static void read_flags(struct decoder *d)
{
    static const char *const members[] = {"use_max_logit_estimate",     "attn_logits_soft_cap",
                                          "dq_reduction_steps",         "kernel_only",
                                          "use_experimental_scheduler", "xla_tpu_scoped_vmem_limit_kib"};
    struct adv_attention_flags *flags = &d->request->attention_flags;
    const json_t *json = adv_json_object(d->root, "", "flags", ADV_JSON_OPTIONAL, d->err);
    double estimate = -1.0, cap = 0.0, limit_kib = 0.0, flag_kib = 0.0;
    (void)adv_json_number(d->root, "", "scoped_vmem_limit_kib", ADV_JSON_OPTIONAL, 1, 1e7, &limit_kib,
                          d->err);
    if (json) {
        (void)adv_json_known_members(json, "/flags", members, 6, d->err);
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
        (void)adv_err_add(d->err, ADV_E_INVALID, "/scoped_vmem_limit_kib", "one of the two",
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
    size_t used = 0;
    for (int i = 0; i < adv_catalog_chips_count(catalog) && count < CHIPS_MAX; i++) {
        const struct adv_chip *chip = &adv_catalog_chip_at(catalog, i)->chip;
        if (chip->is_tpu) names[count++] = chip->name;
    }
    text[0] = '\0';
    for (int i = 0; i < count && used < ADV_LIMIT_DETAIL; i++)
        used += (size_t)snprintf(text + used, ADV_LIMIT_DETAIL - used, "%s%s",
                                 i == 0           ? ""
                                 : i == count - 1 ? " or "
                                                  : ", ",
                                 names[i]);
    return text;
}

static void read_chip(const struct adv_catalog *catalog, struct decoder *d)
{
    char text[ADV_LIMIT_DETAIL];
    const char *name = NULL, *generations = generations_of(catalog, text);
    if (!has(d->root, "chip")) {
        (void)adv_err_add(d->err, ADV_E_INVALID, "/chip", generations, "`chip` is required");
        return;
    }
    if (!adv_json_string(d->root, "", "chip", ADV_JSON_REQUIRED, &name, d->err)) return;
    d->request->chip = adv_catalog_chip(catalog, name);
    if (d->request->chip && d->request->chip->chip.is_tpu) return;
    d->request->chip = NULL;
    (void)adv_err_add(d->err, ADV_E_INVALID, "/chip", generations,
                      "\"%.60s\" is not a TPU generation the catalog knows", name);
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
    if (d->warnings) {
        (void)adv_err_add(d->warnings, ADV_OK, "/scoped_vmem_limit_kib", hint,
                          "a limit of %.0f KiB is more than the %.0f KiB of VMEM of a %s device: counted as "
                          "all of it",
                          r->scoped_vmem_limit_bytes / ADV_KIB, capacity / ADV_KIB, r->chip->chip.name);
        adv_err_rule(d->warnings, "vmem-limit");
    }
    r->scoped_vmem_limit_bytes = capacity;
}

/* The gradient of the weights has no weights to transpose, and no pass of its own that would want its inputs.
 */
static void drop_forward_members(struct decoder *d, enum adv_kernel kernel)
{
    struct adv_gmm_shape *s = &d->request->gmm;
    const struct {
        const char *name;
        bool *value;
    } members[] = {{"rhs_transposed", &s->rhs_transposed}, {"return_residuals", &s->return_residuals}};
    for (int i = 0; i < 2; i++) {
        char pointer[ADV_LIMIT_POINTER];
        if (!*members[i].value) continue;
        *members[i].value = false;
        if (!d->warnings) continue;
        (void)adv_err_add(d->warnings, ADV_OK, adv_json_pointer(pointer, "/shape", members[i].name),
                          "leave it out", "%s is of the forward kernel: %s does not use it", members[i].name,
                          adv_kernel_name(kernel));
        adv_err_rule(d->warnings, "not-used");
    }
}

/* XLA's attention makes every score and hides some behind its masks; its keys are all there at once. */
static void warn_masks(struct decoder *d)
{
    const struct adv_attention_shape *s = &d->request->attention;
    const struct {
        const char *name;
        bool given;
    } masks[] = {{"window", s->window > 0}, {"chunk", s->chunk > 0}, {"segment_ids", s->segment_ids}};
    if (!d->warnings) return;
    for (int i = 0; i < 3; i++) {
        char pointer[ADV_LIMIT_POINTER];
        if (!masks[i].given) continue;
        (void)adv_err_add(d->warnings, ADV_OK, adv_json_pointer(pointer, "/shape", masks[i].name),
                          "leave it out, or compare with the splash kernels, which skip hidden tiles",
                          "XLA's attention makes the scores that %s hides too: the time is the same without",
                          masks[i].name);
        adv_err_rule(d->warnings, "no-effect");
    }
    if (!s->context_ring) return;
    (void)adv_err_add(d->warnings, ADV_OK, "/shape/context_parallel_strategy", "all_gather",
                      "XLA's attention has no ring: the time is that of all keys at once");
    adv_err_rule(d->warnings, "not-used");
}

/* What XLA tiles itself and the kernel that computes the same with tiles to choose; NULL = there is none. */
static void xla_tiles(enum adv_kernel kernel, const char **what, const char **rival)
{
    const bool attention = adv_kernel_is_xla_attention(kernel);
    *what = attention ? "its own attention" : "its own ragged dot";
    *rival = attention ? "splash_fwd" : "gmm";
    if (kernel == ADV_KERNEL_ATTENTION_XLA_BWD) *rival = "splash_bwd_fused";
    if (kernel == ADV_KERNEL_RAGGED_DOT_XLA_TGMM) *rival = "tgmm";
    if (kernel == ADV_KERNEL_MATMUL) *what = "a dense matmul", *rival = NULL;
}

/* Tiles of a baseline would be a mistake about what is compared: they are refused, an empty object is not. */
static void refuse_xla_tile(struct decoder *d, enum adv_kernel kernel)
{
    const char *what, *rival;
    char hint[ADV_LIMIT_NAME];
    if (!d->tile || json_object_size(d->tile) == 0) return;
    xla_tiles(kernel, &what, &rival);
    (void)snprintf(hint, sizeof hint, "leave it out, or %s, which takes tiles", rival);
    (void)adv_err_add(d->err, ADV_E_INVALID, "/tile", hint, "XLA chooses the tiles of %s: %s takes no tile",
                      what, adv_kernel_name(kernel));
}

static void refuse_xla_tuning(struct decoder *d, enum adv_kernel kernel)
{
    const char *what, *rival;
    char hint[ADV_LIMIT_NAME] = "simulate it instead";
    xla_tiles(kernel, &what, &rival);
    if (rival)
        (void)snprintf(hint, sizeof hint, "simulate it instead, to compare with %s as simulated or tuned",
                       rival);
    (void)adv_err_add(d->err, ADV_E_UNSUPPORTED, "/kernel", hint,
                      "XLA chooses the tiles of %s: nothing to tune", what);
}

/* Sub-blocks that were left out are their blocks: nothing to find about them. */
static void judge_attention(struct decoder *d, enum adv_kernel kernel)
{
    struct adv_kernel_request *r = d->request;
    struct adv_attention_tile given = r->attention_tile;
    if (!has(d->tile, "block_kv_compute")) given.blocks.block_kv_compute = 0;
    if (!has(d->tile, "block_kv_dkv_compute")) given.blocks.block_kv_dkv_compute = 0;
    (void)adv_legal_attention(kernel, &r->attention, d->tile ? &given : NULL, d->err, d->warnings);
    if ((r->timeline || r->trace) && r->attention.batch != floor(r->attention.batch))
        (void)adv_err_add(d->err, ADV_E_RANGE, "/shape/batch", "a whole number, or no timeline and trace",
                          "the steps of %.15g sequences cannot be drawn", r->attention.batch);
}

/* The rules of the kernel on what could be read. */
static void judge(struct decoder *d, enum adv_kernel kernel)
{
    struct adv_kernel_request *r = d->request;
    if (adv_kernel_is_xla_attention(kernel)) {
        (void)adv_legal_attention(kernel, &r->attention, NULL, d->err, NULL);
        warn_masks(d);
    } else if (adv_kernel_is_attention(kernel)) {
        judge_attention(d, kernel);
    } else if (adv_kernel_is_gmm(kernel)) {
        (void)adv_gmm_check_version(kernel, &r->gmm, d->err);
        (void)adv_legal_gmm(kernel, &r->gmm, d->tile ? &r->gmm_tile : NULL, d->err, d->warnings);
    } else if (is_xent(kernel)) {
        judge_xent(d);
    }
    if (adv_kernel_is_xla(kernel) && kernel != ADV_KERNEL_MATMUL) refuse_xla_tile(d, kernel);
    if (d->with_tile) return;
    if (adv_kernel_is_xla(kernel))
        refuse_xla_tuning(d, kernel);
    else if (kernel == ADV_KERNEL_GMM && r->gmm.version == 2)
        (void)adv_err_add(d->err, ADV_E_UNSUPPORTED, "/shape/version", "simulate it instead, or version 1",
                          "version 2 of the grouped matmul chooses its own tiles: nothing to tune");
    else
        (void)adv_legal_tunable(kernel, &r->attention, &r->gmm, &r->xent, r->wide_tiles, d->err);
}

/* The tile of a kernel that is known, after its shape: hints name what the shape allows. */
static void read_tile(struct decoder *d, enum adv_kernel kernel)
{
    const bool own_tile = adv_kernel_tiles_itself(d->request);
    if (d->with_tile) d->tile = adv_json_object(d->root, "", "tile", ADV_JSON_OPTIONAL, d->err);
    if (d->with_tile && !own_tile && !has(d->root, "tile"))
        (void)adv_err_add(d->err, ADV_E_INVALID, "/tile", "tune finds the best tiles of a shape",
                          "`tile` is required");
    if (!adv_kernel_is_xla(kernel) || kernel == ADV_KERNEL_MATMUL)
        adv_kernel_members_read(kernel, ADV_KERNEL_TILE, d->tile, !own_tile, d->request, d->err);
    if (adv_kernel_is_attention(kernel)) adv_kernel_members_warn_unused(kernel, d->tile, d->warnings);
    if (is_xent(kernel)) judge_xent_names(d);
    if (kernel == ADV_KERNEL_MATMUL || (kernel == ADV_KERNEL_GMM && own_tile))
        warn_unused_tile(d, kernel == ADV_KERNEL_MATMUL ? "XLA tiles a dense matmul itself"
                                                        : "version 2 of the grouped matmul picks its own");
    derive_tile(d);
}

/* Shape and tile of a kernel that is known. */
static void read_known(struct decoder *d)
{
    const enum adv_kernel kernel = d->request->kernel;
    adv_kernel_members_read(kernel, ADV_KERNEL_SHAPE, d->shape, true, d->request, d->err);
    if (has_gmm_shape(kernel) && d->shape)
        adv_decode_groups(d->shape, d->arena, &d->request->gmm, d->err, d->warnings);
    if (kernel == ADV_KERNEL_TGMM || kernel == ADV_KERNEL_RAGGED_DOT_XLA_TGMM)
        drop_forward_members(d, kernel);
    derive_shape(d);
    if (has_attention_shape(kernel) && d->shape) read_strategy(d);
    read_tile(d, kernel);
    judge(d, kernel);
}

/* The kernel is not known: what is there is judged as far as its name tells what it is. */
static void read_unknown(struct decoder *d, const char *nearest)
{
    if (d->with_tile) d->tile = adv_json_object(d->root, "", "tile", ADV_JSON_OPTIONAL, d->err);
    adv_kernel_members_read_any(ADV_KERNEL_SHAPE, d->shape, d->request, d->err);
    if (d->shape) adv_decode_groups(d->shape, d->arena, &d->request->gmm, d->err, d->warnings);
    derive_shape(d);
    if (d->shape) read_strategy(d);
    adv_kernel_members_read_any(ADV_KERNEL_TILE, d->tile, d->request, d->err);
    derive_tile(d);
    for (int i = 0; nearest && i < ADV_KERNEL_COUNT; i++)
        if (adv_kernel_name((enum adv_kernel)i) == nearest) judge(d, (enum adv_kernel)i);
}

/* Members of the other question about kernels. */
static void refuse_foreign(struct decoder *d)
{
    static const char *const of_simulate[] = {"tile", "timeline", "trace"};
    static const char *const of_tune[] = {"top_k", "wide"};
    const char *const *names = d->with_tile ? of_tune : of_simulate;
    const int count = d->with_tile ? 2 : 3;
    for (int i = 0; i < count; i++) {
        char pointer[ADV_LIMIT_POINTER];
        if (!json_object_get(d->root, names[i])) continue;
        (void)adv_err_add(d->err, ADV_E_INVALID, adv_json_pointer(pointer, "", names[i]), "leave it out",
                          d->with_tile ? "`%s` belongs to tune, which chooses the tile"
                                       : "`%s` belongs to simulate, which is given a tile",
                          names[i]);
    }
}

static void read_top(const struct adv_catalog *catalog, struct decoder *d)
{
    static const char *const members[] = {
        "chip",     "kernel", "shape", "flags", "scoped_vmem_limit_kib", "tile",
        "timeline", "trace",  "top_k", "wide",  ADV_STORE_MEMBERS};
    struct adv_kernel_request *r = d->request;
    (void)adv_json_known_members(d->root, "", members, (int)(sizeof members / sizeof *members), d->err);
    refuse_foreign(d);
    if (d->with_tile) {
        (void)adv_json_bool(d->root, "", "timeline", ADV_JSON_OPTIONAL, &r->timeline, d->err);
        (void)adv_json_bool(d->root, "", "trace", ADV_JSON_OPTIONAL, &r->trace, d->err);
    } else {
        (void)adv_json_bool(d->root, "", "wide", ADV_JSON_OPTIONAL, &r->wide_tiles, d->err);
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

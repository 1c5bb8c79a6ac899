#include "engine/json/kernel_members.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/json/encode_common.h"
#include "engine/kernel/legal_near.h"

enum kind {
    INT,
    TILE, /* INT, of a tile: which values are legal depends on the shape */
    SIZE, /* int64_t */
    NUMBER,
    BOOL,
    DTYPE,
    LAYOUT,
    NAME,  /* this and the next are read by decode_kernel.c */
    SIZES, /* a list of whole numbers */
};

struct member {
    const char *name;
    enum kind kind;
    size_t offset; /* in struct adv_kernel_request */
    double low, high;
    unsigned of, needed_by; /* bits of enum adv_kernel: whose time it bears on, who cannot do without */
    const char *what;       /* for users; NULL: another name of a member that has one */
};

#define AT(path)  offsetof(struct adv_kernel_request, path)
#define BIT(id)   (1u << ADV_KERNEL_##id)
#define EVERY     (~0u)
#define OF_FWD    (BIT(SPLASH_FWD) | BIT(SPLASH_FWD_RESIDUALS))
#define OF_DKV    (BIT(SPLASH_BWD_FUSED) | BIT(SPLASH_BWD_DKV))
#define OF_DQ     BIT(SPLASH_BWD_DQ)
#define OF_ROWS   (~(BIT(TGMM) | BIT(RAGGED_DOT_XLA_TGMM))) /* the gradient takes and ignores them */
#define A(member) AT(attention.member)
#define B(member) AT(attention_tile.blocks.member)

static const struct member attention_shape[] = {
    {"batch", NUMBER, A(batch), 1e-3, 1e6, EVERY, 0, "sequences on the device; 1 when left out"},
    {"q_heads", INT, A(q_heads), 1, ADV_KERNEL_HEADS_MAX, EVERY, EVERY, "query heads on the device"},
    {"kv_heads", INT, A(kv_heads), 1, ADV_KERNEL_HEADS_MAX, EVERY, EVERY,
     "key-value heads on the device; a divisor of q_heads"},
    {"q_len", SIZE, A(q_len), 1, ADV_KERNEL_LEN_MAX, EVERY, EVERY, "queries of one sequence on the device"},
    {"kv_len", SIZE, A(kv_len), 1, ADV_KERNEL_LEN_MAX, EVERY, 0,
     "keys they may see; q_len times context_shards when left out"},
    {"head_dim_qk", INT, A(head_dim_qk), 1, ADV_KERNEL_HEAD_DIM_MAX, EVERY, EVERY,
     "size of a query and key head"},
    {"head_dim_v", INT, A(head_dim_v), 1, ADV_KERNEL_HEAD_DIM_MAX, EVERY, 0,
     "size of a value head; head_dim_qk when left out"},
    {"causal", BOOL, A(causal), 0, 0, EVERY, 0, "true when left out"},
    {"window", SIZE, A(window), 0, ADV_KERNEL_LEN_MAX, EVERY, 0, "sliding window in tokens; causal only"},
    {"chunk", SIZE, A(chunk), 0, ADV_KERNEL_LEN_MAX, EVERY, 0,
     "attention inside chunks of this many tokens; causal only"},
    {"segment_ids", BOOL, A(segment_ids), 0, 0, EVERY, 0, "packed sequences are masked from each other"},
    {"context_shards", INT, A(context_shards), 1, ADV_KERNEL_SHARDS_MAX, EVERY, 0,
     "devices that share one sequence"},
    {"context_load_balanced", BOOL, A(context_load_balanced), 0, 0, EVERY, 0,
     "each shard holds an early and a late part; also by MaxText's name, context_parallel_load_balance"},
    {"context_parallel_load_balance", BOOL, A(context_load_balanced), 0, 0, EVERY, 0, NULL},
    {"context_parallel_strategy", NAME, 0, 0, 0, EVERY, 0,
     "all_gather (when left out), ring or ulysses, as MaxText names them; q_len, q_heads and kv_heads are "
     "the "
     "device's own before any exchange, the time is the slowest shard's without the exchange"},
    {"dtype", DTYPE, A(dtype), 0, 0, EVERY, 0, "bfloat16 when left out"},
};

static const struct member attention_tile[] = {
    {"block_q", TILE, B(block_q), 1, ADV_KERNEL_LEN_MAX, OF_FWD, OF_FWD, "queries per grid step"},
    {"block_kv", TILE, B(block_kv), 1, ADV_KERNEL_LEN_MAX, OF_FWD, OF_FWD, "keys per grid step"},
    {"block_kv_compute", TILE, B(block_kv_compute), 1, ADV_KERNEL_LEN_MAX, OF_FWD, 0,
     "keys per inner step; block_kv when left out"},
    {"block_q_dkv", TILE, B(block_q_dkv), 1, ADV_KERNEL_LEN_MAX, OF_DKV, OF_DKV, "queries per grid step"},
    {"block_kv_dkv", TILE, B(block_kv_dkv), 1, ADV_KERNEL_LEN_MAX, OF_DKV, OF_DKV, "keys per grid step"},
    {"block_kv_dkv_compute", TILE, B(block_kv_dkv_compute), 1, ADV_KERNEL_LEN_MAX, OF_DKV, 0,
     "keys per inner step; block_kv_dkv when left out"},
    {"block_q_dq", TILE, B(block_q_dq), 1, ADV_KERNEL_LEN_MAX, OF_DQ, OF_DQ, "queries per grid step"},
    {"block_kv_dq", TILE, B(block_kv_dq), 1, ADV_KERNEL_LEN_MAX, OF_DQ, OF_DQ, "keys per grid step"},
    {"q_layout", LAYOUT, AT(attention_tile.q_layout), 0, 0, EVERY, 0, "HEAD_DIM_MINOR (1) or SEQ_MINOR (2)"},
    {"k_layout", LAYOUT, AT(attention_tile.k_layout), 0, 0, EVERY, 0, "HEAD_DIM_MINOR (1) or SEQ_MINOR (2)"},
    {"v_layout", LAYOUT, AT(attention_tile.v_layout), 0, 0, EVERY, 0, "HEAD_DIM_MINOR (1) or SEQ_MINOR (2)"},
    {"use_base2_exp", BOOL, AT(attention_base2_exp), 0, 0, EVERY, 0, "taken, without effect on the time"},
    {"use_experimental_scheduler", BOOL, AT(attention_flags.use_experimental_scheduler), 0, 0, EVERY, 0,
     "the compiler's other instruction scheduler"},
};

static const struct member gmm_shape[] = {
    {"m", SIZE, AT(gmm.m), 1, ADV_KERNEL_SIZE_MAX, EVERY, EVERY, "rows of all groups"},
    {"k", SIZE, AT(gmm.k), 1, ADV_KERNEL_SIZE_MAX, EVERY, EVERY,
     "contraction (columns of the output's first axis in tgmm)"},
    {"n", SIZE, AT(gmm.n), 1, ADV_KERNEL_SIZE_MAX, EVERY, EVERY, "output columns"},
    {"num_groups", INT, AT(gmm.num_groups), 1, ADV_LIMIT_GROUPS, EVERY, EVERY, "experts on the device"},
    {"group_sizes", SIZES, 0, 0, 0, EVERY, 0, "rows of each group, adding up to m"},
    {"group_distribution", NAME, 0, 0, 0, EVERY, 0,
     "balanced, multinomial, zipf or worst when sizes are not given; multinomial when left out"},
    {"rhs_transposed", BOOL, AT(gmm.rhs_transposed), 0, 0, OF_ROWS, 0, "weights stored transposed"},
    {"return_residuals", BOOL, AT(gmm.return_residuals), 0, 0, OF_ROWS, 0,
     "inputs are kept for the backward pass"},
    {"dtype", DTYPE, AT(gmm.lhs), 0, 0, EVERY, 0, "of the rows; bfloat16 when left out"},
    {"rhs_dtype", DTYPE, AT(gmm.rhs), 0, 0, EVERY, 0, "of the weights; dtype when left out"},
    {"out_dtype", DTYPE, AT(gmm.out), 0, 0, EVERY, 0,
     "of the result; dtype, bfloat16 for 8-bit rows, when left out"},
    /* the last: XLA's ragged dot has no versions */
    {"version", INT, AT(gmm.version), 1, 2, EVERY, 0, "1, or 2: the kernel that picks its own tiles"},
};

static const struct member gmm_tile[] = {
    {"tile_m", TILE, AT(gmm_tile.tile_m), 1, ADV_GMM_TILE_MAX, EVERY, EVERY, "rows per grid step; divides m"},
    {"tile_k", TILE, AT(gmm_tile.tile_k), 1, ADV_GMM_TILE_MAX, EVERY, EVERY,
     "contraction per grid step: a multiple of 128 or all of k"},
    {"tile_n", TILE, AT(gmm_tile.tile_n), 1, ADV_GMM_TILE_MAX, EVERY, EVERY,
     "columns per grid step: a multiple of 128 or all of n"},
    {"input_buffer_count", INT, AT(gmm_tile.input_buffer_count), 2, ADV_GMM_BUFFERS_MAX, EVERY, 0,
     "buffers of the inputs; 2 when left out"},
};

static const struct member matmul_shape[] = {
    {"m", SIZE, AT(matmul.m), 1, ADV_KERNEL_SIZE_MAX, EVERY, EVERY, "rows"},
    {"k", SIZE, AT(matmul.k), 1, ADV_KERNEL_SIZE_MAX, EVERY, EVERY, "contraction"},
    {"n", SIZE, AT(matmul.n), 1, ADV_KERNEL_SIZE_MAX, EVERY, EVERY, "columns"},
    {"dtype", DTYPE, AT(matmul.lhs), 0, 0, EVERY, 0, "of the left operand; bfloat16 when left out"},
    {"rhs_dtype", DTYPE, AT(matmul.rhs), 0, 0, EVERY, 0, "of the right operand; dtype when left out"},
    {"out_dtype", DTYPE, AT(matmul.out), 0, 0, EVERY, 0,
     "of the result; bfloat16, float32 for float32, when left out"},
};

static const struct member xent_shape[] = {
    {"tokens", SIZE, AT(xent.tokens), 1, ADV_KERNEL_SIZE_MAX, EVERY, EVERY, "tokens on the device"},
    {"emb_dim", SIZE, AT(xent.emb_dim), 1, ADV_KERNEL_SIZE_MAX, EVERY, EVERY,
     "width of the residual stream; a multiple of 8"},
    {"vocab", SIZE, AT(xent.vocab), 1, ADV_KERNEL_SIZE_MAX, EVERY, EVERY, "vocabulary on the device"},
};

/* Each block under two names: the short one and that of the kernel's own configuration. */
static const struct member xent_tile[] = {
    {"b_block", TILE, AT(xent_tile.b_block), 1, ADV_GMM_TILE_MAX, EVERY, EVERY,
     "tokens per grid step; divides tokens"},
    {"h_block", TILE, AT(xent_tile.h_block), 1, ADV_GMM_TILE_MAX, EVERY, EVERY,
     "width per grid step: a multiple of 128 or all of it"},
    {"v_block", TILE, AT(xent_tile.v_block), 1, ADV_GMM_TILE_MAX, EVERY, EVERY,
     "vocabulary per grid step: a multiple of 128 or all of it"},
    {"b_block_size", TILE, AT(xent_tile.b_block), 1, ADV_GMM_TILE_MAX, EVERY, 0, NULL},
    {"h_block_size", TILE, AT(xent_tile.h_block), 1, ADV_GMM_TILE_MAX, EVERY, 0, NULL},
    {"v_block_size", TILE, AT(xent_tile.v_block), 1, ADV_GMM_TILE_MAX, EVERY, 0, NULL},
};

#undef AT
#undef A
#undef B

struct table {
    const struct member *rows;
    int count;
};

#define TABLE(rows)                                                                                          \
    {                                                                                                        \
        rows, (int)(sizeof(rows) / sizeof *(rows))                                                           \
    }
enum { FAMILIES = 6, NAMES_MAX = 64, GMM_SHAPE = sizeof gmm_shape / sizeof *gmm_shape };
/* A matmul's tile is not used: decode_kernel.c says so. What follows has none; the version comes last. */
static const struct table tables[FAMILIES][2] = {
    {TABLE(attention_shape), TABLE(attention_tile)},
    {TABLE(gmm_shape), TABLE(gmm_tile)},
    {TABLE(matmul_shape), TABLE(gmm_tile)},
    {TABLE(xent_shape), TABLE(xent_tile)},
    {TABLE(attention_shape), {NULL, 0}},
    {{gmm_shape, GMM_SHAPE - 1}, {NULL, 0}},
};
#undef TABLE

static int family_of(enum adv_kernel kernel)
{
    if (adv_kernel_is_attention(kernel)) return 0;
    if (adv_kernel_is_gmm(kernel)) return 1;
    if (adv_kernel_is_xla_attention(kernel)) return 4;
    if (adv_kernel_is_xla_ragged_dot(kernel)) return 5;
    return kernel == ADV_KERNEL_MATMUL ? 2 : 3;
}

static const char *pointer_of(enum adv_kernel_object which)
{
    return which == ADV_KERNEL_SHAPE ? "/shape" : "/tile";
}

/* One member while it is read. */
struct reader {
    const json_t *object;
    const char *at;
    const struct member *member;
    enum adv_json_need need;
    struct adv_kernel_request *request;
    char *out;
    adv_err *err;
};

static void read_dtype(const struct reader *r)
{
    static const char *const names[] = {"bfloat16", "float32", "float8",        "int8",       "bf16",
                                        "f32",      "fp8",     "float8_e4m3fn", "float8_e5m2"};
    static const enum adv_format formats[] = {ADV_FORMAT_BF16, ADV_FORMAT_F32,  ADV_FORMAT_FP8,
                                              ADV_FORMAT_INT8, ADV_FORMAT_BF16, ADV_FORMAT_F32,
                                              ADV_FORMAT_FP8,  ADV_FORMAT_FP8,  ADV_FORMAT_FP8};
    int index = 0;
    if (adv_json_choice(r->object, r->at, r->member->name, r->need, names, sizeof names / sizeof *names,
                        &index, r->err))
        memcpy(r->out, &formats[index], sizeof formats[index]);
}

/* 1 or "HEAD_DIM_MINOR", 2 or "SEQ_MINOR". */
static void read_layout(const struct reader *r)
{
    const json_t *value = json_object_get(r->object, r->member->name);
    char pointer[ADV_LIMIT_POINTER];
    if (!value || json_is_null(value)) return;
    const char *name = json_string_value(value);
    for (int i = ADV_LAYOUT_HEAD_DIM_MINOR; i <= ADV_LAYOUT_SEQ_MINOR; i++) {
        const enum adv_layout layout = (enum adv_layout)i;
        if ((!json_is_integer(value) || json_integer_value(value) != i) &&
            (!name || strcmp(name, adv_layout_name(layout)) != 0))
            continue;
        memcpy(r->out, &layout, sizeof layout);
        return;
    }
    (void)adv_err_add(r->err, ADV_E_INVALID, adv_json_pointer(pointer, r->at, r->member->name),
                      "HEAD_DIM_MINOR (1) or SEQ_MINOR (2)", "%s is not a layout", r->member->name);
}

/* What was meant by a value that is no tile size: the number, or that in quotes; NAN: neither. */
static double meant(const json_t *value)
{
    const char *text = json_string_value(value);
    char *end = NULL;
    if (!text) return json_is_number(value) ? json_number_value(value) : (double)NAN;
    if (strspn(text, "-.0123456789eE") != strlen(text)) return (double)NAN; /* no 0x10, no infinity */
    const double number = strtod(text, &end);
    return end != text && !*end ? number : (double)NAN;
}

/* The hint of a tile size that was just refused: the nearest values that the shape allows, or what they are.
 */
static void hint_tile(const struct reader *r)
{
    const struct member *m = r->member;
    const struct adv_kernel_request *k = r->request;
    const json_t *value = json_object_get(r->object, m->name);
    const struct adv_legal_context context = {k->kernel, &k->attention, &k->attention_tile.blocks, &k->gmm,
                                              &k->xent};
    const double number = floor(meant(value));
    const int64_t wanted = number > m->high ? (int64_t)m->high : number > 0.0 ? (int64_t)number : 0;
    struct adv_legal_values values;
    char hint[ADV_LIMIT_DETAIL];
    if (adv_kernel_tiles_itself(k)) {
        adv_err_hint(r->err, "leave it out: this kernel takes no tile");
        return;
    }
    if (!adv_legal_near_member(&context, m->name, wanted, &values)) return;
    const bool meant_legal = values.near.below == wanted && values.near.above == wanted;
    if (json_is_string(value) && meant_legal) return; /* its own number, without quotes */
    if (isnan(number))
        (void)snprintf(hint, sizeof hint, "%s", values.rule);
    else
        (void)adv_legal_values_text(&values, hint);
    adv_err_hint(r->err, hint);
}

/* The hint of a size of the shape that was just refused: what it is when it is missing; and what is larger
 * than 0 but can hold no tile is not the nearest legal value. */
static void hint_shape(const struct reader *r)
{
    const json_t *value = json_object_get(r->object, r->member->name);
    static const struct {
        const char *name, *hint;
    } least[] = {{"batch", "1, or a part of a sequence from 0.001"},
                 {"q_len", "128, a multiple of 128"},
                 {"kv_len", "128, a multiple of 128"},
                 {"emb_dim", "8, a multiple of 8"}};
    const double number = meant(value);
    const bool lengths_are_free = adv_kernel_is_xla(r->request->kernel);
    if ((!value || json_is_null(value)) && r->member->what) adv_err_hint(r->err, r->member->what);
    if (!(number < r->member->low)) return;
    for (int i = 0; i < (int)(sizeof least / sizeof *least); i++)
        if (strcmp(least[i].name, r->member->name) == 0 && (i == 0 || !lengths_are_free))
            adv_err_hint(r->err, least[i].hint);
}

static void read_member(const struct reader *r)
{
    const struct member *m = r->member;
    const int before = r->err->count + r->err->lost_count;
    int64_t whole = 0;
    int narrow = 0;
    if ((m->kind == INT || m->kind == TILE) &&
        adv_json_int(r->object, r->at, m->name, r->need, (int)m->low, (int)m->high, &narrow, r->err))
        memcpy(r->out, &narrow, sizeof narrow);
    if (m->kind == SIZE && adv_json_integer(r->object, r->at, m->name, r->need, (int64_t)m->low,
                                            (int64_t)m->high, &whole, r->err))
        memcpy(r->out, &whole, sizeof whole);
    if (m->kind == NUMBER) {
        double number = 0.0;
        if (adv_json_number(r->object, r->at, m->name, r->need, m->low, m->high, &number, r->err))
            memcpy(r->out, &number, sizeof number);
    }
    if (m->kind == BOOL) {
        bool flag = false;
        if (adv_json_bool(r->object, r->at, m->name, r->need, &flag, r->err))
            memcpy(r->out, &flag, sizeof flag);
    }
    if (m->kind == DTYPE) read_dtype(r);
    if (m->kind == LAYOUT) read_layout(r);
    if (r->err->count + r->err->lost_count == before) return;
    if (m->kind == TILE) hint_tile(r);
    if (m->kind == INT || m->kind == SIZE || m->kind == NUMBER) hint_shape(r);
}

static void read_table(const struct table *table, const struct reader *about, unsigned kernel_bit,
                       struct adv_kernel_request *request)
{
    for (int i = 0; i < table->count; i++) {
        struct reader reader = *about;
        reader.member = &table->rows[i];
        char full_name[ADV_LIMIT_NAME]; /* of the blocks that go by two names */
        (void)snprintf(full_name, sizeof full_name, "%s_size", reader.member->name);
        const bool needed =
            reader.member->needed_by & kernel_bit && !json_object_get(reader.object, full_name);
        reader.need = needed ? ADV_JSON_REQUIRED : ADV_JSON_OPTIONAL;
        reader.request = request;
        reader.out = (char *)request + reader.member->offset;
        read_member(&reader);
    }
}

void adv_kernel_members_read(enum adv_kernel kernel, enum adv_kernel_object which, const json_t *object,
                             bool needs_all, struct adv_kernel_request *request, adv_err *err)
{
    const struct table *table = &tables[family_of(kernel)][which];
    const char *names[NAMES_MAX];
    if (!object) return;
    for (int i = 0; i < table->count; i++) names[i] = table->rows[i].name;
    (void)adv_json_known_members(object, pointer_of(which), names, table->count, err);
    const struct reader reader = {.object = object, .at = pointer_of(which), .err = err};
    read_table(table, &reader, needs_all ? 1u << kernel : 0u, request);
}

void adv_kernel_members_warn_unused(enum adv_kernel kernel, const json_t *tile, adv_err *warnings)
{
    const struct table *table = &tables[family_of(kernel)][ADV_KERNEL_TILE];
    for (int i = 0; i < table->count && warnings; i++) {
        const struct member *m = &table->rows[i];
        const json_t *value = json_object_get(tile, m->name);
        char pointer[ADV_LIMIT_POINTER];
        if (m->of & 1u << kernel || !value || json_is_null(value)) continue;
        (void)adv_err_add(warnings, ADV_OK, adv_json_pointer(pointer, "/tile", m->name), "leave it out",
                          "%s is of another pass: %s does not use it", m->name, adv_kernel_name(kernel));
        adv_err_rule(warnings, "not-used");
    }
}

void adv_kernel_members_hint(enum adv_kernel kernel, enum adv_kernel_object which, adv_err *err)
{
    const struct table *table = &tables[family_of(kernel)][which];
    char hint[ADV_LIMIT_DETAIL];
    size_t used = (size_t)snprintf(hint, sizeof hint, "an object with at least");
    for (int i = 0; i < table->count; i++) {
        if (!(table->rows[i].needed_by & 1u << kernel) || used >= sizeof hint) continue;
        used += (size_t)snprintf(hint + used, sizeof hint - used, " `%s`", table->rows[i].name);
    }
    adv_err_hint(err, hint);
}

json_t *adv_kernel_members_describe(enum adv_kernel kernel, enum adv_kernel_object which)
{
    static const char *const types[] = {
        [INT] = "int",      [TILE] = "int",      [SIZE] = "int",    [NUMBER] = "number", [BOOL] = "bool",
        [DTYPE] = "string", [LAYOUT] = "string", [NAME] = "string", [SIZES] = "int[]"};
    const struct table *table = &tables[family_of(kernel)][which];
    json_t *list = json_array();
    for (int i = 0; i < table->count; i++) {
        const struct member *m = &table->rows[i];
        if (!m->what || !(m->of & 1u << kernel)) continue;
        json_t *row = json_pack("{s:s,s:s,s:s,s:b}", "name", m->name, "type", types[m->kind], "what", m->what,
                                "required", (m->needed_by & 1u << kernel) != 0);
        if (m->high > 0.0) {
            (void)json_object_set_new(row, "minimum", adv_encode_number(m->low));
            (void)json_object_set_new(row, "maximum", adv_encode_number(m->high));
        }
        (void)json_array_append_new(list, row);
    }
    return list;
}

void adv_kernel_members_read_any(enum adv_kernel_object which, const json_t *object,
                                 struct adv_kernel_request *request, adv_err *err)
{
    struct member rows[NAMES_MAX];
    const char *names[NAMES_MAX];
    struct table all = {rows, 0};
    if (!object) return;
    for (int family = 0; family < FAMILIES; family++) {
        const struct table *table = &tables[family][which];
        for (int i = 0; i < table->count; i++) {
            int known = 0;
            while (known < all.count && strcmp(names[known], table->rows[i].name) != 0) known++;
            if (known < all.count) continue;
            names[all.count] = table->rows[i].name;
            rows[all.count++] = table->rows[i];
        }
    }
    (void)adv_json_known_members(object, pointer_of(which), names, all.count, err);
    const struct reader reader = {.object = object, .at = pointer_of(which), .err = err};
    read_table(&all, &reader, 0u, request);
}

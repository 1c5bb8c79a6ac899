#include "engine/json/decode_kernel.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/kernel/kernel.h"

enum { SIZE_MAX_DIM = 1 << 28, HEADS_MAX = 1 << 16, BLOCK_MAX = 1 << 24, DEFAULT_TOP_K = 10 };

static const char *const dtype_names[] = {"bfloat16", "float32", "float8",        "int8",       "bf16",
                                          "f32",      "fp8",     "float8_e4m3fn", "float8_e5m2"};
static const enum adv_format dtype_formats[] = {ADV_FORMAT_BF16, ADV_FORMAT_F32,  ADV_FORMAT_FP8,
                                                ADV_FORMAT_INT8, ADV_FORMAT_BF16, ADV_FORMAT_F32,
                                                ADV_FORMAT_FP8,  ADV_FORMAT_FP8,  ADV_FORMAT_FP8};

bool adv_kernel_is_attention(enum adv_kernel kernel)
{
    return kernel <= ADV_KERNEL_SPLASH_BWD_DKV;
}

bool adv_kernel_is_gmm(enum adv_kernel kernel)
{
    return kernel == ADV_KERNEL_GMM || kernel == ADV_KERNEL_TGMM;
}

struct int_member {
    const char *name;
    size_t offset;
    int low, high;
    enum adv_json_need need;
};

static void read_ints(const json_t *object, const char *at, const struct int_member *members, int count,
                      void *out, adv_err *err)
{
    for (int i = 0; i < count; i++) {
        const struct int_member *member = &members[i];
        int value = 0;
        if (adv_json_int(object, at, member->name, member->need, member->low, member->high, &value, err)) {
            memcpy((char *)out + member->offset, &value, sizeof value);
        }
    }
}

static void read_size(const json_t *shape, const char *member, enum adv_json_need need, int64_t *value,
                      adv_err *err)
{
    (void)adv_json_integer(shape, "/shape", member, need, 1, SIZE_MAX_DIM, value, err);
}

static enum adv_format read_dtype(const json_t *object, const char *member, enum adv_format fallback,
                                  adv_err *err)
{
    int index = 0;
    enum { NAMES_COUNT = sizeof dtype_names / sizeof *dtype_names };
    bool given =
        adv_json_choice(object, "/shape", member, ADV_JSON_OPTIONAL, dtype_names, NAMES_COUNT, &index, err);
    return given ? dtype_formats[index] : fallback;
}

static void read_attention_shape(const json_t *json, struct adv_attention_shape *shape, adv_err *err)
{
    static const char *const members[] = {"batch",
                                          "q_heads",
                                          "kv_heads",
                                          "q_len",
                                          "kv_len",
                                          "head_dim_qk",
                                          "head_dim_v",
                                          "causal",
                                          "window",
                                          "chunk",
                                          "segment_ids",
                                          "context_shards",
                                          "context_load_balanced",
                                          "dtype"};
    static const struct int_member ints[] = {
        {"q_heads", offsetof(struct adv_attention_shape, q_heads), 1, HEADS_MAX, ADV_JSON_REQUIRED},
        {"kv_heads", offsetof(struct adv_attention_shape, kv_heads), 1, HEADS_MAX, ADV_JSON_REQUIRED},
        {"head_dim_qk", offsetof(struct adv_attention_shape, head_dim_qk), 1, 8192, ADV_JSON_REQUIRED},
        {"head_dim_v", offsetof(struct adv_attention_shape, head_dim_v), 1, 8192, ADV_JSON_OPTIONAL},
        {"context_shards", offsetof(struct adv_attention_shape, context_shards), 1, 65536, ADV_JSON_OPTIONAL},
    };
    *shape = (struct adv_attention_shape){.batch = 1, .causal = true, .context_shards = 1};
    (void)adv_json_known_members(json, "/shape", members, (int)(sizeof members / sizeof *members), err);
    read_ints(json, "/shape", ints, (int)(sizeof ints / sizeof *ints), shape, err);
    if (shape->head_dim_v == 0) shape->head_dim_v = shape->head_dim_qk;
    (void)adv_json_number(json, "/shape", "batch", ADV_JSON_OPTIONAL, 1e-6, 1e6, &shape->batch, err);
    read_size(json, "q_len", ADV_JSON_REQUIRED, &shape->q_len, err);
    shape->kv_len = shape->q_len;
    read_size(json, "kv_len", ADV_JSON_OPTIONAL, &shape->kv_len, err);
    (void)adv_json_bool(json, "/shape", "causal", ADV_JSON_OPTIONAL, &shape->causal, err);
    (void)adv_json_integer(json, "/shape", "window", ADV_JSON_OPTIONAL, 0, SIZE_MAX_DIM, &shape->window, err);
    (void)adv_json_integer(json, "/shape", "chunk", ADV_JSON_OPTIONAL, 0, SIZE_MAX_DIM, &shape->chunk, err);
    (void)adv_json_bool(json, "/shape", "segment_ids", ADV_JSON_OPTIONAL, &shape->segment_ids, err);
    (void)adv_json_bool(json, "/shape", "context_load_balanced", ADV_JSON_OPTIONAL,
                        &shape->context_load_balanced, err);
    shape->dtype = read_dtype(json, "dtype", ADV_FORMAT_BF16, err);
    if (shape->q_heads > 0 && shape->kv_heads > 0 && shape->q_heads % shape->kv_heads != 0) {
        (void)adv_err_add(err, ADV_E_INVALID, "/shape/kv_heads", "a divisor of q_heads",
                          "%d query heads are not a multiple of %d key-value heads", shape->q_heads,
                          shape->kv_heads);
    }
}

/* 1 or "HEAD_DIM_MINOR", 2 or "SEQ_MINOR". */
static enum adv_layout read_layout(const json_t *tile, const char *member, adv_err *err)
{
    const json_t *value = json_object_get(tile, member);
    char pointer[ADV_LIMIT_POINTER];
    if (!value || json_is_null(value)) return ADV_LAYOUT_HEAD_DIM_MINOR;
    for (int layout = ADV_LAYOUT_HEAD_DIM_MINOR; layout <= ADV_LAYOUT_SEQ_MINOR; layout++) {
        const char *name = json_string_value(value);
        if (json_is_integer(value) && json_integer_value(value) == layout) return (enum adv_layout)layout;
        if (name && strcmp(name, adv_layout_name((enum adv_layout)layout)) == 0)
            return (enum adv_layout)layout;
    }
    (void)adv_err_add(err, ADV_E_INVALID, adv_json_pointer(pointer, "/tile", member),
                      "HEAD_DIM_MINOR (1) or SEQ_MINOR (2)", "%s is not a layout", member);
    return ADV_LAYOUT_HEAD_DIM_MINOR;
}

/* The blocks a kernel reads; a compute block left out is the whole block. */
static void read_attention_tile(const json_t *json, enum adv_kernel kernel, struct adv_attention_tile *tile,
                                adv_err *err)
{
    static const char *const members[] = {"block_q",
                                          "block_kv",
                                          "block_kv_compute",
                                          "block_q_dkv",
                                          "block_kv_dkv",
                                          "block_kv_dkv_compute",
                                          "block_q_dq",
                                          "block_kv_dq",
                                          "q_layout",
                                          "k_layout",
                                          "v_layout",
                                          "use_base2_exp",
                                          "use_experimental_scheduler"};
    bool forward = kernel == ADV_KERNEL_SPLASH_FWD || kernel == ADV_KERNEL_SPLASH_FWD_RESIDUALS;
    bool dq = kernel == ADV_KERNEL_SPLASH_BWD_DQ;
    enum adv_json_need of_forward = forward ? ADV_JSON_REQUIRED : ADV_JSON_OPTIONAL;
    enum adv_json_need of_dq = dq ? ADV_JSON_REQUIRED : ADV_JSON_OPTIONAL;
    enum adv_json_need of_dkv = !forward && !dq ? ADV_JSON_REQUIRED : ADV_JSON_OPTIONAL;
    const struct int_member ints[] = {
        {"block_q", offsetof(struct adv_splash_blocks, block_q), 1, BLOCK_MAX, of_forward},
        {"block_kv", offsetof(struct adv_splash_blocks, block_kv), 1, BLOCK_MAX, of_forward},
        {"block_kv_compute", offsetof(struct adv_splash_blocks, block_kv_compute), 1, BLOCK_MAX,
         ADV_JSON_OPTIONAL},
        {"block_q_dkv", offsetof(struct adv_splash_blocks, block_q_dkv), 1, BLOCK_MAX, of_dkv},
        {"block_kv_dkv", offsetof(struct adv_splash_blocks, block_kv_dkv), 1, BLOCK_MAX, of_dkv},
        {"block_kv_dkv_compute", offsetof(struct adv_splash_blocks, block_kv_dkv_compute), 1, BLOCK_MAX,
         ADV_JSON_OPTIONAL},
        {"block_q_dq", offsetof(struct adv_splash_blocks, block_q_dq), 1, BLOCK_MAX, of_dq},
        {"block_kv_dq", offsetof(struct adv_splash_blocks, block_kv_dq), 1, BLOCK_MAX, of_dq},
    };
    struct adv_splash_blocks *blocks = &tile->blocks;
    (void)adv_json_known_members(json, "/tile", members, (int)(sizeof members / sizeof *members), err);
    read_ints(json, "/tile", ints, (int)(sizeof ints / sizeof *ints), blocks, err);
    if (blocks->block_kv_compute == 0) blocks->block_kv_compute = blocks->block_kv;
    if (blocks->block_kv_dkv_compute == 0) blocks->block_kv_dkv_compute = blocks->block_kv_dkv;
    tile->q_layout = read_layout(json, "q_layout", err);
    tile->k_layout = read_layout(json, "k_layout", err);
    tile->v_layout = read_layout(json, "v_layout", err);
}

static void read_group_sizes(const json_t *json, struct adv_arena *arena, struct adv_gmm_shape *shape,
                             adv_err *err)
{
    json_t *list = adv_json_array(json, "/shape", "group_sizes", ADV_JSON_OPTIONAL, err);
    if (!list) return;
    int64_t *sizes = adv_arena_array(arena, json_array_size(list) + 1, sizeof *sizes);
    int64_t total = 0;
    size_t index = 0, valid_count = 0;
    json_t *element = NULL;
    if (!sizes) {
        (void)adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request is too large");
        return;
    }
    if (json_array_size(list) != (size_t)shape->num_groups) {
        (void)adv_err_add(err, ADV_E_INVALID, "/shape/group_sizes", "one size per group",
                          "%zu sizes for %d groups", json_array_size(list), shape->num_groups);
        return;
    }
    json_array_foreach(list, index, element)
    {
        char pointer[ADV_LIMIT_POINTER];
        bool valid = json_is_integer(element) && json_integer_value(element) >= 0 &&
                     json_integer_value(element) <= SIZE_MAX_DIM;
        if (!valid) {
            (void)adv_err_add(err, ADV_E_INVALID,
                              adv_json_pointer_index(pointer, "/shape/group_sizes", index), NULL,
                              "must be a whole number >= 0");
            continue;
        }
        valid_count++;
        sizes[index] = json_integer_value(element);
        total += sizes[index];
    }
    if (shape->m > 0 && valid_count == json_array_size(list) && total != shape->m) {
        char hint[ADV_LIMIT_NAME];
        (void)snprintf(hint, sizeof hint, "m %lld, or sizes that sum to %lld", (long long)total,
                       (long long)shape->m);
        (void)adv_err_add(err, ADV_E_INVALID, "/shape/group_sizes", hint,
                          "the groups hold %lld rows, but m is %lld", (long long)total, (long long)shape->m);
    }
    shape->group_sizes = sizes;
    shape->distribution = ADV_GROUPS_GIVEN;
}

static void read_gmm_shape(const json_t *json, struct adv_arena *arena, struct adv_gmm_shape *shape,
                           adv_err *err)
{
    static const char *const members[] = {"m",
                                          "k",
                                          "n",
                                          "num_groups",
                                          "group_sizes",
                                          "group_distribution",
                                          "rhs_transposed",
                                          "return_residuals",
                                          "dtype",
                                          "rhs_dtype",
                                          "out_dtype",
                                          "version"};
    static const char *const distributions[] = {"balanced", "multinomial", "zipf", "worst"};
    int index = 1; /* multinomial: what random routing gives */
    (void)adv_json_known_members(json, "/shape", members, (int)(sizeof members / sizeof *members), err);
    read_size(json, "m", ADV_JSON_REQUIRED, &shape->m, err);
    read_size(json, "k", ADV_JSON_REQUIRED, &shape->k, err);
    read_size(json, "n", ADV_JSON_REQUIRED, &shape->n, err);
    (void)adv_json_int(json, "/shape", "num_groups", ADV_JSON_REQUIRED, 1, ADV_LIMIT_GROUPS,
                       &shape->num_groups, err);
    (void)adv_json_choice(json, "/shape", "group_distribution", ADV_JSON_OPTIONAL, distributions, 4, &index,
                          err);
    shape->distribution = (enum adv_group_distribution)(ADV_GROUPS_BALANCED + index);
    (void)adv_json_bool(json, "/shape", "rhs_transposed", ADV_JSON_OPTIONAL, &shape->rhs_transposed, err);
    (void)adv_json_bool(json, "/shape", "return_residuals", ADV_JSON_OPTIONAL, &shape->return_residuals, err);
    shape->lhs = read_dtype(json, "dtype", ADV_FORMAT_BF16, err);
    shape->rhs = read_dtype(json, "rhs_dtype", shape->lhs, err);
    bool narrow = shape->lhs == ADV_FORMAT_FP8 || shape->lhs == ADV_FORMAT_INT8;
    shape->out = read_dtype(json, "out_dtype", narrow ? ADV_FORMAT_BF16 : shape->lhs, err);
    shape->version = 1;
    (void)adv_json_int(json, "/shape", "version", ADV_JSON_OPTIONAL, 1, 2, &shape->version, err);
    if (shape->num_groups > 0) read_group_sizes(json, arena, shape, err);
}

static void read_gmm_tile(const json_t *json, struct adv_gmm_tile *tile, adv_err *err)
{
    static const char *const members[] = {"tile_m", "tile_k", "tile_n", "input_buffer_count"};
    static const struct int_member ints[] = {
        {"tile_m", offsetof(struct adv_gmm_tile, tile_m), 1, BLOCK_MAX, ADV_JSON_REQUIRED},
        {"tile_k", offsetof(struct adv_gmm_tile, tile_k), 1, BLOCK_MAX, ADV_JSON_REQUIRED},
        {"tile_n", offsetof(struct adv_gmm_tile, tile_n), 1, BLOCK_MAX, ADV_JSON_REQUIRED},
        {"input_buffer_count", offsetof(struct adv_gmm_tile, input_buffer_count), 2, 8, ADV_JSON_OPTIONAL},
    };
    tile->input_buffer_count = 2;
    (void)adv_json_known_members(json, "/tile", members, 4, err);
    read_ints(json, "/tile", ints, 4, tile, err);
}

static void read_matmul_shape(const json_t *json, struct adv_matmul_shape *shape, adv_err *err)
{
    static const char *const members[] = {"m", "k", "n", "dtype", "rhs_dtype", "out_dtype"};
    (void)adv_json_known_members(json, "/shape", members, 6, err);
    read_size(json, "m", ADV_JSON_REQUIRED, &shape->m, err);
    read_size(json, "k", ADV_JSON_REQUIRED, &shape->k, err);
    read_size(json, "n", ADV_JSON_REQUIRED, &shape->n, err);
    shape->lhs = read_dtype(json, "dtype", ADV_FORMAT_BF16, err);
    shape->rhs = read_dtype(json, "rhs_dtype", shape->lhs, err);
    shape->out =
        read_dtype(json, "out_dtype", shape->lhs == ADV_FORMAT_F32 ? ADV_FORMAT_F32 : ADV_FORMAT_BF16, err);
}

static void read_xent(const json_t *shape_json, const json_t *tile_json, struct adv_xent_shape *shape,
                      struct adv_xent_tile *tile, adv_err *err)
{
    static const char *const members[] = {"tokens", "emb_dim", "vocab"};
    static const char *const tile_members[] = {"b_block",      "h_block",      "v_block",
                                               "b_block_size", "h_block_size", "v_block_size"};
    int *const blocks[] = {&tile->b_block, &tile->h_block, &tile->v_block};
    (void)adv_json_known_members(shape_json, "/shape", members, 3, err);
    read_size(shape_json, "tokens", ADV_JSON_REQUIRED, &shape->tokens, err);
    read_size(shape_json, "emb_dim", ADV_JSON_REQUIRED, &shape->emb_dim, err);
    read_size(shape_json, "vocab", ADV_JSON_REQUIRED, &shape->vocab, err);
    if (!tile_json) return;
    (void)adv_json_known_members(tile_json, "/tile", tile_members, 6, err);
    for (int i = 0; i < 3; i++) {
        bool long_name = json_object_get(tile_json, tile_members[i + 3]) != NULL;
        (void)adv_json_int(tile_json, "/tile", tile_members[long_name ? i + 3 : i], ADV_JSON_REQUIRED, 1,
                           BLOCK_MAX, blocks[i], err);
    }
}

static void read_flags(const json_t *root, const json_t *tile, struct adv_kernel_request *request,
                       adv_err *err)
{
    static const char *const members[] = {"use_max_logit_estimate", "dq_reduction_steps", "kernel_only",
                                          "use_experimental_scheduler", "xla_tpu_scoped_vmem_limit_kib"};
    struct adv_attention_flags *flags = &request->attention_flags;
    const json_t *json = adv_json_object(root, "", "flags", ADV_JSON_OPTIONAL, err);
    int estimate = -1;
    double limit_kib = 0;
    (void)adv_json_bool(tile, "/tile", "use_experimental_scheduler", ADV_JSON_OPTIONAL,
                        &flags->use_experimental_scheduler, err);
    (void)adv_json_number(root, "", "scoped_vmem_limit_kib", ADV_JSON_OPTIONAL, 1, 1e7, &limit_kib, err);
    if (json) {
        (void)adv_json_known_members(json, "/flags", members, 5, err);
        (void)adv_json_int(json, "/flags", "use_max_logit_estimate", ADV_JSON_OPTIONAL, -1, 1 << 24,
                           &estimate, err);
        (void)adv_json_int(json, "/flags", "dq_reduction_steps", ADV_JSON_OPTIONAL, 0, 3,
                           &flags->dq_reduction_steps, err);
        (void)adv_json_bool(json, "/flags", "kernel_only", ADV_JSON_OPTIONAL, &flags->kernel_only, err);
        (void)adv_json_bool(json, "/flags", "use_experimental_scheduler", ADV_JSON_OPTIONAL,
                            &flags->use_experimental_scheduler, err);
        (void)adv_json_number(json, "/flags", "xla_tpu_scoped_vmem_limit_kib", ADV_JSON_OPTIONAL, 1, 1e7,
                              &limit_kib, err);
    }
    flags->max_logit_constant = estimate > 0;
    request->scoped_vmem_limit_bytes = limit_kib * ADV_KIB;
}

static void read_chip(const struct adv_catalog *catalog, const json_t *root,
                      struct adv_kernel_request *request, adv_err *err)
{
    const char *name = NULL;
    if (!adv_json_string(root, "", "chip", ADV_JSON_REQUIRED, &name, err)) return;
    request->chip = adv_catalog_chip(catalog, name);
    if (request->chip && request->chip->chip.is_tpu) return;
    request->chip = NULL;
    (void)adv_err_add(err, ADV_E_INVALID, "/chip", "tpu7x, v6e, v5p, v5e or v4",
                      "\"%.60s\" is not a TPU generation the catalog knows", name);
}

adv_code adv_decode_kernel_request(const struct adv_catalog *catalog, const json_t *root, bool with_tile,
                                   struct adv_arena *arena, struct adv_kernel_request *request, adv_err *err)
{
    static const char *const simulate_members[] = {"chip",     "kernel", "shape",
                                                   "tile",     "flags",  "scoped_vmem_limit_kib",
                                                   "timeline", "trace",  ADV_STORE_MEMBERS};
    static const char *const tune_members[] = {
        "chip", "kernel", "shape", "top_k", "flags", "scoped_vmem_limit_kib", "wide", ADV_STORE_MEMBERS};
    int before = err->count + err->lost_count;
    memset(request, 0, sizeof *request);
    if (!adv_json_is_object(root, "", err)) return ADV_E_INVALID;
    (void)adv_json_known_members(root, "", with_tile ? simulate_members : tune_members,
                                 (int)(with_tile ? sizeof simulate_members / sizeof *simulate_members
                                                 : sizeof tune_members / sizeof *tune_members),
                                 err);
    (void)adv_json_bool(root, "", "wide", ADV_JSON_OPTIONAL, &request->wide_tiles, err);
    (void)adv_json_bool(root, "", "timeline", ADV_JSON_OPTIONAL, &request->timeline, err);
    (void)adv_json_bool(root, "", "trace", ADV_JSON_OPTIONAL, &request->trace, err);
    adv_decode_store(root, arena, &request->wish, err);
    read_chip(catalog, root, request, err);
    const char *names[ADV_KERNEL_COUNT];
    for (int i = 0; i < ADV_KERNEL_COUNT; i++) names[i] = adv_kernel_name((enum adv_kernel)i);
    int kernel = 0;
    bool has_kernel =
        adv_json_choice(root, "", "kernel", ADV_JSON_REQUIRED, names, ADV_KERNEL_COUNT, &kernel, err);
    request->kernel = (enum adv_kernel)kernel;
    request->top_k = DEFAULT_TOP_K;
    (void)adv_json_int(root, "", "top_k", ADV_JSON_OPTIONAL, 1, ADV_LIMIT_RANKED, &request->top_k, err);
    const json_t *shape = adv_json_object(root, "", "shape", ADV_JSON_REQUIRED, err);
    bool needs_tile = with_tile && request->kernel != ADV_KERNEL_MATMUL;
    const json_t *tile =
        with_tile ? adv_json_object(root, "", "tile", needs_tile ? ADV_JSON_REQUIRED : ADV_JSON_OPTIONAL, err)
                  : NULL;
    read_flags(root, tile, request, err);
    if (!has_kernel || !shape) return err->code;
    if (adv_kernel_is_attention(request->kernel)) {
        read_attention_shape(shape, &request->attention, err);
        if (tile) read_attention_tile(tile, request->kernel, &request->attention_tile, err);
    } else if (adv_kernel_is_gmm(request->kernel)) {
        read_gmm_shape(shape, arena, &request->gmm, err);
        if (tile) read_gmm_tile(tile, &request->gmm_tile, err);
    } else if (request->kernel == ADV_KERNEL_MATMUL) {
        read_matmul_shape(shape, &request->matmul, err);
    } else {
        read_xent(shape, tile, &request->xent, &request->xent_tile, err);
    }
    return err->count + err->lost_count > before ? err->code : ADV_OK;
}

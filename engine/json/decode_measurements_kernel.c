#include "engine/calibrate/validate_kernels.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/json/json_read.h"
#include "engine/kernel/family.h"
#include "engine/kernel/splash_blocks.h"

enum { SIZE_MAX_ROWS = 1 << 28 };

/* Kernels that timings call otherwise than the engine, XLA's own baselines among them. */
static const struct {
    const char *name;
    enum adv_kernel kernel;
} other_names[] = {
    {"gmm_pallas_v2", ADV_KERNEL_GMM},
    {"gmm_xla_default", ADV_KERNEL_RAGGED_DOT_XLA},
    {"tgmm_xla_default", ADV_KERNEL_RAGGED_DOT_XLA_TGMM},
    {"attention_xla_default_fwd", ADV_KERNEL_ATTENTION_XLA},
    {"attention_xla_default_bwd", ADV_KERNEL_ATTENTION_XLA_BWD},
    {"hbm_copy_bandwidth", ADV_KERNEL_MATMUL}, /* pays its launch */
};

static void find_kernel(struct adv_kernel_row *row)
{
    for (int i = 0; i < ADV_KERNEL_COUNT && !row->known; i++) {
        row->request.kernel = (enum adv_kernel)i;
        row->known = !adv_kernel_info_of(row->request.kernel)->rival &&
                     strcmp(adv_kernel_name(row->request.kernel), row->name) == 0;
    }
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names && !row->known; i++) {
        row->request.kernel = other_names[i].kernel;
        row->known = strcmp(other_names[i].name, row->name) == 0;
    }
}

/* One row while it is read. */
struct reader {
    const json_t *json;
    const char *at;
    struct adv_arena *arena;
    adv_err *err;
};

/* Never NULL: when memory is exhausted a finding says so. */
static const char *string_of(const struct reader *r, const char *member)
{
    const char *value = NULL;
    if (!adv_json_string(r->json, r->at, member, ADV_JSON_OPTIONAL, &value, r->err)) return "";
    const char *copy = adv_arena_copy(r->arena, value);
    if (!copy) (void)adv_err_add(r->err, ADV_E_MEMORY, r->at, NULL, "the rows do not fit in memory");
    return copy ? copy : "";
}

static int int_of(const struct reader *r, const json_t *object, const char *member, int missing)
{
    int value = missing;
    (void)adv_json_int(object, r->at, member, ADV_JSON_OPTIONAL, 0, SIZE_MAX_ROWS, &value, r->err);
    return value;
}

static bool bool_of(const struct reader *r, const char *member)
{
    bool value = false;
    (void)adv_json_bool(r->json, r->at, member, ADV_JSON_OPTIONAL, &value, r->err);
    return value;
}

/* Number formats as timings spell them: "bf16", "f8_e4m3fn", "bfloat16", "int8". */
static enum adv_format format_of(const json_t *dtypes, const char *member)
{
    const char *name = json_string_value(json_object_get(dtypes, member));
    if (!name) return ADV_FORMAT_BF16;
    if (strncmp(name, "f8", 2) == 0 || strncmp(name, "float8", 6) == 0) return ADV_FORMAT_FP8;
    if (strcmp(name, "f32") == 0 || strcmp(name, "float32") == 0) return ADV_FORMAT_F32;
    if (strncmp(name, "int8", 4) == 0 || strcmp(name, "s8") == 0) return ADV_FORMAT_INT8;
    return ADV_FORMAT_BF16;
}

/* Rows of groups that contradict the row are not guessed at. */
static void judge_groups(const json_t *list, struct adv_kernel_row *row)
{
    const struct adv_gmm_shape *s = &row->request.gmm;
    int64_t sum = 0;
    if (!list || json_is_null(list)) return;
    if (!json_is_array(list)) row->fault = "group_sizes is not a list";
    if (json_array_size(list) != (size_t)s->num_groups) row->fault = "group_sizes has not num_groups entries";
    for (struct adv_json_walk size = {.in = list}; adv_json_next(&size);) {
        const bool good = json_is_integer(size.value) && json_integer_value(size.value) >= 0 &&
                          json_integer_value(size.value) <= SIZE_MAX_ROWS;
        if (!good) row->fault = "group_sizes holds something that is no number of rows";
        if (good) sum += json_integer_value(size.value);
    }
    if (!row->fault && sum != s->m) row->fault = "group_sizes do not add up to m";
}

static int64_t *sizes_of(const struct reader *r, const json_t *list, int *count)
{
    const size_t n = json_array_size(list);
    int64_t *sizes = n ? adv_arena_array(r->arena, n, sizeof *sizes) : NULL;
    for (size_t i = 0; sizes && i < n; i++) sizes[i] = json_integer_value(json_array_get(list, i));
    *count = sizes ? (int)n : 0;
    return sizes;
}

/* "2026-07-16" as 2026.54; 0 without a date. */
static double date_of(const char *text)
{
    int year = 0, month = 0, day = 0;
    if (sscanf(text, "%4d-%2d-%2d", &year, &month, &day) != 3) return 0.0;
    return year + (month - 1) / 12.0 + (day - 1) / 365.0;
}

static void read_attention(const struct reader *r, const json_t *tile, struct adv_kernel_row *row)
{
    struct adv_attention_shape *s = &row->request.attention;
    s->batch = int_of(r, r->json, "batch", 1);
    s->q_heads = int_of(r, r->json, "q_heads", 1);
    s->kv_heads = int_of(r, r->json, "kv_heads", s->q_heads);
    s->q_len = int_of(r, r->json, "q_len", 1);
    s->kv_len = int_of(r, r->json, "kv_len", 1);
    s->head_dim_qk = int_of(r, r->json, "head_dim_qk", 128);
    s->head_dim_v = int_of(r, r->json, "head_dim_v", s->head_dim_qk);
    s->causal = bool_of(r, "causal");
    s->window = int_of(r, r->json, "window", 0);
    s->context_shards = 1;
    s->dtype = format_of(json_object_get(r->json, "dtypes"), "q");
    const json_t *extra = json_object_get(r->json, "mask_extra");
    s->segment_sizes = sizes_of(r, json_object_get(extra, "segments"), &s->segment_sizes_count);
    s->segment_ids = s->segment_sizes != NULL;
    s->has_bias = json_object_get(extra, "bias") != NULL;
    const char *format = json_string_value(json_object_get(json_object_get(r->json, "dtypes"), "q"));
    s->is_float16 = format && strcmp(format, "f16") == 0;
    struct adv_attention_tile *t = &row->request.tile.attention;
    struct adv_splash_blocks *b = &t->blocks;
    b->block_q = int_of(r, tile, "block_q", 0);
    b->block_kv = int_of(r, tile, "block_kv", 0);
    b->block_kv_compute = int_of(r, tile, "block_kv_compute", b->block_kv);
    b->block_q_dkv = int_of(r, tile, "block_q_dkv", 0);
    b->block_kv_dkv = int_of(r, tile, "block_kv_dkv", 0);
    b->block_kv_dkv_compute = int_of(r, tile, "block_kv_dkv_compute", b->block_kv_dkv);
    b->block_q_dq = int_of(r, tile, "block_q_dq", 0);
    b->block_kv_dq = int_of(r, tile, "block_kv_dq", 0);
    row->has_tile =
        adv_splash_is_forward(row->request.kernel) ? b->block_q > 0 : b->block_q_dkv > 0 || b->block_q_dq > 0;
    t->q_layout = int_of(r, tile, "q_layout", 1) == 2 ? ADV_LAYOUT_SEQ_MINOR : ADV_LAYOUT_HEAD_DIM_MINOR;
    t->k_layout = int_of(r, tile, "k_layout", 1) == 2 ? ADV_LAYOUT_SEQ_MINOR : ADV_LAYOUT_HEAD_DIM_MINOR;
    t->v_layout = int_of(r, tile, "v_layout", 1) == 2 ? ADV_LAYOUT_SEQ_MINOR : ADV_LAYOUT_HEAD_DIM_MINOR;
    row->request.attention_flags.use_experimental_scheduler =
        json_is_true(json_object_get(tile, "use_experimental_scheduler"));
    row->request.attention_flags.software_date = date_of(row->commit_date);
    /* forks of the kernel: no running maximum, timed without the wrapper */
    if (json_is_string(json_object_get(r->json, "modified_kernel"))) {
        row->request.attention_flags.max_logit_constant = true;
        row->request.attention_flags.kernel_only = true;
        row->trusted = false;
    }
    const char *timing = json_string_value(json_object_get(r->json, "timing_method"));
    if (timing && (strstr(timing, "kernel ONLY") || strstr(timing, "tuned on pallas calls")))
        row->request.attention_flags.kernel_only = true;
    if (!row->has_tile && !adv_kernel_tiles_itself(&row->request)) row->trusted = false;
}

/* Quantised lhs: how many scales a row has, from "... 'scale': 'bf16[524288,28]' ..."; 0 = one per tensor or
 * none. */
static int scale_blocks_of(const struct reader *r)
{
    const char *spec = json_string_value(json_object_get(r->json, "lhs_spec"));
    const char *scale = spec ? strstr(spec, "'scale'") : NULL;
    int rows = 0, blocks = 0;
    if (!scale || !(scale = strchr(scale, '[')) || sscanf(scale, "[%9d,%9d]", &rows, &blocks) != 2) return 0;
    return blocks > 1 ? blocks : 0;
}

static void read_gmm(const struct reader *r, const json_t *tile, struct adv_kernel_row *row)
{
    struct adv_gmm_shape *s = &row->request.gmm;
    const json_t *dtypes = json_object_get(r->json, "dtypes");
    s->m = int_of(r, r->json, "m", 1);
    s->k = int_of(r, r->json, "k", 1);
    s->n = int_of(r, r->json, "n", 1);
    s->num_groups = int_of(r, r->json, "num_groups", 1);
    s->rhs_transposed = bool_of(r, "rhs_transposed");
    s->return_residuals = bool_of(r, "return_residuals");
    s->lhs = format_of(dtypes, "lhs");
    s->rhs = format_of(dtypes, "rhs");
    s->out =
        s->lhs == ADV_FORMAT_FP8 || s->lhs == ADV_FORMAT_INT8 ? ADV_FORMAT_BF16 : format_of(dtypes, "out");
    if (s->lhs == ADV_FORMAT_FP8 || s->lhs == ADV_FORMAT_INT8) s->scale_blocks = scale_blocks_of(r);
    s->version = strcmp(row->name, "gmm_pallas_v2") == 0 ? 2 : 1;
    int count = 0;
    s->group_sizes = sizes_of(r, json_object_get(r->json, "group_sizes"), &count);
    s->distribution = s->group_sizes && count == s->num_groups ? ADV_GROUPS_GIVEN : ADV_GROUPS_MULTINOMIAL;
    row->request.tile.gmm.tile_m = int_of(r, tile, "tile_m", 0);
    row->request.tile.gmm.tile_k = int_of(r, r->json, "tile_contract", int_of(r, tile, "tile_k", 0));
    row->request.tile.gmm.tile_n = int_of(r, r->json, "tile_out", int_of(r, tile, "tile_n", 0));
    row->request.tile.gmm.input_buffer_count = int_of(r, tile, "input_buffer_count", 2);
    row->has_tile = row->request.tile.gmm.tile_m > 0;
    judge_groups(json_object_get(r->json, "group_sizes"), row);
    const bool tiled = !adv_kernel_tiles_itself(&row->request);
    if (row->has_tile && tiled && s->m % row->request.tile.gmm.tile_m)
        row->fault = "tile_m does not divide m";
    if (row->fault) row->trusted = false;
    /* transposed weights: tile_k tiled the contraction until the kernel of 2026-07-14 swapped the names */
    if (s->rhs_transposed && row->has_tile && row->commit_date[0]) {
        const bool swapped = strcmp(row->commit_date, "2026-07-14") >= 0;
        row->request.tile.gmm.tile_k =
            int_of(r, tile, swapped ? "tile_n" : "tile_k", row->request.tile.gmm.tile_k);
        row->request.tile.gmm.tile_n =
            int_of(r, tile, swapped ? "tile_k" : "tile_n", row->request.tile.gmm.tile_n);
    }
    if (!row->has_tile && tiled) row->trusted = false;
    /* XLA's ragged dot got a new lowering in March 2026: the same shapes were two to thirteen times slower */
    if (adv_kernel_family_of(row->request.kernel)->operation && row->commit_date[0] &&
        strcmp(row->commit_date, "2026-03") < 0)
        row->trusted = false;
}

static void read_xent(const struct reader *r, const json_t *tile, struct adv_kernel_row *row)
{
    row->request.xent.tokens = int_of(r, r->json, "m", 1);
    row->request.xent.emb_dim = int_of(r, r->json, "k", 1);
    row->request.xent.vocab = int_of(r, r->json, "n", 1);
    row->request.tile.xent.b_block = int_of(r, tile, "b_block_size", 0);
    row->request.tile.xent.h_block = int_of(r, tile, "h_block_size", 0);
    row->request.tile.xent.v_block = int_of(r, tile, "v_block_size", 0);
    row->has_tile = row->request.tile.xent.b_block > 0;
    if (!row->has_tile) row->trusted = false;
}

static void read_matmul(const struct reader *r, struct adv_kernel_row *row)
{
    const json_t *dtypes = json_object_get(r->json, "dtypes");
    row->request.matmul.m = int_of(r, r->json, "m", 1);
    row->request.matmul.k = int_of(r, r->json, "k", 1);
    row->request.matmul.n = int_of(r, r->json, "n", 1);
    row->request.matmul.lhs = format_of(dtypes, "lhs");
    row->request.matmul.rhs = format_of(dtypes, "rhs");
    row->request.matmul.out = format_of(dtypes, "out");
}

static void read_measured(const struct reader *r, struct adv_kernel_row *row)
{
    double value = 0.0;
    if (adv_json_number(r->json, r->at, "time_ms_median", ADV_JSON_OPTIONAL, 0.0, 1e9, &value, r->err))
        row->measured_s = value * 1e-3;
    else if (adv_json_number(r->json, r->at, "time_us", ADV_JSON_OPTIONAL, 0.0, 1e12, &value, r->err))
        row->measured_s = value * ADV_US;
}

static void read_row(const struct reader *r, struct adv_kernel_row *row)
{
    row->id = string_of(r, "id");
    row->chip = string_of(r, "chip");
    row->name = string_of(r, json_object_get(r->json, "kernel") ? "kernel" : "kind");
    row->commit_date = string_of(r, "commit_date");
    row->shape_id = string_of(r, "shape_id");
    row->trusted = !json_is_string(json_object_get(r->json, "suspect"));
    find_kernel(row);
    read_measured(r, row);
    const json_t *tile = json_object_get(r->json, "tile");
    if (!json_is_object(tile)) tile = NULL;
    const struct adv_kernel_family *family = adv_kernel_family_of(row->request.kernel);
    if (!row->known) return;
    row->is_copy = strcmp(row->name, "hbm_copy_bandwidth") == 0;
    if (row->is_copy)
        row->copy_bytes = 2.0 * json_number_value(json_object_get(r->json, "array_bytes"));
    else if (family == &adv_family_splash || family == &adv_family_attention_xla)
        read_attention(r, tile, row);
    else if (family == &adv_family_gmm || family == &adv_family_ragged_dot_xla)
        read_gmm(r, tile, row);
    else if (family == &adv_family_xent)
        read_xent(r, tile, row);
    else
        read_matmul(r, row);
}

adv_code adv_decode_kernel_rows(const char *text, size_t length_bytes, struct adv_arena *arena,
                                struct adv_kernel_row **rows, int *rows_count, adv_err *err)
{
    *rows = NULL;
    *rows_count = 0;
    ADV_JSON_OWN json_t *root = NULL;
    const adv_code bad = adv_json_parse_file_text(text, length_bytes, &root, err);
    if (bad) return bad;
    if (!json_is_array(root))
        return adv_err_add(err, ADV_E_INVALID, "", "an array of rows",
                           "the measurement file is not an array");
    const size_t count = json_array_size(root);
    *rows = count ? adv_arena_array(arena, count, sizeof **rows) : NULL;
    if (count && !*rows)
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "%zu rows do not fit in memory", count);
    for (size_t i = 0; i < count; i++) {
        const char *at = ADV_AT_INDEX("", i);
        const json_t *item = json_array_get(root, i);
        if (!adv_json_is_object(item, at, err)) continue;
        read_row(&(struct reader){item, at, arena, err}, &(*rows)[i]);
    }
    *rows_count = (int)count;
    return err->code;
}

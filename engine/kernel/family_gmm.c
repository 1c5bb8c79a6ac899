/* family_gmm.c: the rows of matmuls: the grouped kernels, XLA's own ragged dot, and the dense matmul. */
#include <stdio.h>

#include "engine/kernel/family.h"
#include "engine/kernel/gmm.h"
#include "engine/kernel/gmm_visits.h"
#include "engine/kernel/legal.h"
#include "engine/kernel/tune_space.h"

#define AT(path) ADV_KERNEL_AT(path)
#define BIT(id)  ADV_KERNEL_BIT(id)
#define EVERY    ADV_KERNEL_EVERY
#define OF_ROWS  (~(BIT(TGMM) | BIT(RAGGED_DOT_XLA_TGMM))) /* the gradient takes and ignores them */

#define SIZE(shape, member, what)                                                                            \
    ADV_KERNEL_MEMBER(#member, SIZE, AT(shape.member), 1, ADV_KERNEL_SIZE_MAX, EVERY, EVERY, what)
#define FORMAT(name, member, what) ADV_KERNEL_MEMBER(name, DTYPE, AT(member), 0, 0, EVERY, 0, what)
#define TILE(member, what)                                                                                   \
    ADV_KERNEL_MEMBER(#member, TILE, AT(tile.gmm.member), 1, ADV_GMM_TILE_MAX, EVERY, EVERY, what)

static const struct adv_kernel_member gmm_shape[] = {
    SIZE(gmm, m, "rows of all groups"),
    SIZE(gmm, k, "contraction (columns of the output's first axis in tgmm)"),
    SIZE(gmm, n, "output columns"),
    ADV_KERNEL_MEMBER("num_groups", INT, AT(gmm.num_groups), 1, ADV_LIMIT_GROUPS, EVERY, EVERY,
                      "experts on the device"),
    ADV_KERNEL_MEMBER("group_sizes", GROUPS, 0, 0, 0, EVERY, 0, "rows of each group, adding up to m"),
    ADV_KERNEL_MEMBER(
        "group_distribution", DISTRIBUTION, 0, 0, 0, EVERY, 0,
        "balanced, multinomial, zipf or worst when sizes are not given; multinomial when left out"),
    ADV_KERNEL_MEMBER("rhs_transposed", BOOL, AT(gmm.rhs_transposed), 0, 0, OF_ROWS, 0,
                      "weights stored transposed"),
    ADV_KERNEL_MEMBER("return_residuals", BOOL, AT(gmm.return_residuals), 0, 0, OF_ROWS, 0,
                      "inputs are kept for the backward pass"),
    FORMAT("dtype", gmm.lhs, "of the rows; bfloat16 when left out"),
    FORMAT("rhs_dtype", gmm.rhs, "of the weights; dtype when left out"),
    FORMAT("out_dtype", gmm.out, "of the result; dtype, bfloat16 for 8-bit rows, when left out"),
    /* the last: XLA's ragged dot has no versions */
    ADV_KERNEL_MEMBER("version", INT, AT(gmm.version), 1, 2, EVERY, 0,
                      "1, or 2: the kernel that picks its own tiles"),
};

static const struct adv_kernel_member gmm_tile[] = {
    TILE(tile_m, "rows per grid step; divides m"),
    TILE(tile_k, "contraction per grid step: a multiple of 128 or all of k"),
    TILE(tile_n, "columns per grid step: a multiple of 128 or all of n"),
    ADV_KERNEL_MEMBER("input_buffer_count", INT, AT(tile.gmm.input_buffer_count), 2, ADV_GMM_BUFFERS_MAX,
                      EVERY, 0, "buffers of the inputs; 2 when left out"),
};

static const struct adv_kernel_info gmm_kernels[] = {
    {ADV_KERNEL_GMM, ADV_KERNEL_MEASURED(gmm_measured),
     "grouped matmul: rows of each group times its weights", NULL},
    {ADV_KERNEL_TGMM, ADV_KERNEL_MEASURED(gmm_measured),
     "transposed grouped matmul: the gradient of the weights", NULL},
};

static const char *own_tiles(const struct adv_kernel_request *request)
{
    return request->gmm.version == 2 ? "version 2 of the grouped matmul picks its own" : NULL;
}

static void judge_row(const struct adv_kernel_request *request, const struct adv_kernel_tile *tile,
                      adv_err *err, adv_err *warnings)
{
    (void)adv_gmm_check_version(request->kernel, &request->gmm, err);
    (void)adv_legal_gmm(request->kernel, &request->gmm, tile ? &tile->gmm : NULL, err, warnings);
}

static adv_code time_row(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                         const struct adv_kernel_tile *tile, struct adv_kernel_time *time, adv_err *err)
{
    return adv_gmm_time(machine, request->kernel, &request->gmm, &tile->gmm, time, err);
}

static int vmem_row(const struct adv_chip *chip, const struct adv_kernel_request *request,
                    const struct adv_kernel_tile *tile, struct adv_vmem_part parts[ADV_VMEM_PARTS])
{
    return adv_vmem_gmm_parts(chip, request->kernel, &request->gmm, &tile->gmm, parts);
}

static bool near_row(const struct adv_kernel_request *request, const char *member, int64_t wanted,
                     struct adv_legal_values *values)
{
    const struct adv_gmm_shape *s = &request->gmm;
    switch (member[sizeof "tile_" - 1]) {
    case 'm':
        adv_legal_near_rows(s->m, adv_legal_row_unit(s->lhs), wanted, values);
        return true;
    case 'k':
        adv_legal_near_masked("k", s->k, wanted, values);
        return true;
    case 'n':
        adv_legal_near_masked("n", s->n, wanted, values);
        return true;
    default:
        return false;
    }
}

static adv_code tunable_row(const struct adv_kernel_request *request, adv_err *err)
{
    if (request->kernel == ADV_KERNEL_GMM && own_tiles(request))
        return adv_err_add(err, ADV_E_UNSUPPORTED, "/shape/version", "simulate it instead, or version 1",
                           "version 2 of the grouped matmul chooses its own tiles: nothing to tune");
    return adv_legal_gmm_tunable(&request->gmm, request->wide_tiles, err);
}

static bool standard_row(const struct adv_kernel_request *request, struct adv_kernel_tile *tile)
{
    tile->gmm = adv_tune_default_gmm(&request->gmm);
    return adv_legal_gmm(request->kernel, &request->gmm, &tile->gmm, NULL, NULL) == ADV_OK;
}

static int list_row(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                    bool wide, void *tiles)
{
    (void)machine;
    return adv_gmm_space(&request->gmm, wide, tiles);
}

/* The contraction of wi is the embedding, that of wo the mlp dimension; in the data gradient the other way
 * round. */
static int keys_row(const struct adv_kernel_request *request, const struct adv_kernel_tile *tile,
                    struct adv_kernel_key keys[ADV_KERNEL_KEYS])
{
    const bool dlhs = request->kernel == ADV_KERNEL_GMM && request->gmm.rhs_transposed;
    const char *pass = request->kernel == ADV_KERNEL_TGMM ? "drhs" : dlhs ? "dlhs" : "fwd";
    int count = 0;
    for (int wo = 0; wo < 2; wo++) {
        const bool embed_first = (wo == 0) != dlhs;
        const struct {
            const char *name;
            int value;
        } axes[] = {{"batch_seq", tile->gmm.tile_m},
                    {"embed_dim", embed_first ? tile->gmm.tile_k : tile->gmm.tile_n},
                    {"mlp_dim", embed_first ? tile->gmm.tile_n : tile->gmm.tile_k}};
        for (int i = 0; i < 3; i++) {
            struct adv_kernel_key *key = &keys[count++];
            *key = (struct adv_kernel_key){.use = wo ? "wo" : "wi", .value = axes[i].value};
            (void)snprintf(key->name, sizeof key->name, "%s_tile_%s_%s", key->use, pass, axes[i].name);
        }
    }
    return count;
}

/* Tokamax's kernel is the one that MaxText runs and the one with a number of buffers; it and the older one of
 * jax.experimental name the format of the result differently. */
static void write_gmm_backend(struct adv_text *text, const struct adv_gmm_shape *s)
{
    adv_text_format(
        text,
        "try:\n"
        "    from tokamax._src.ops.ragged_dot import pallas_mosaic_tpu_kernel as backend\n\n"
        "    HAS_BUFFERS = True\n"
        "    REST = dict(precision=jax.lax.Precision.DEFAULT, out_dtype=jnp.%s)\n"
        "except ImportError:  # two buffers: tiles that differ in their number alone time alike\n"
        "    import importlib\n\n"
        "    backend = importlib.import_module(\"jax.experimental.pallas.ops.tpu.megablox.gmm\")\n"
        "    HAS_BUFFERS = False\n"
        "    REST = dict(preferred_element_type=jnp.%s)\n\n",
        adv_kernel_jax_dtype(s->out), adv_kernel_jax_dtype(s->out));
}

static void sweep_row(struct adv_text *text, const struct adv_kernel_request *request)
{
    const struct adv_gmm_shape *s = &request->gmm;
    const bool tgmm = request->kernel == ADV_KERNEL_TGMM;
    write_gmm_backend(text, s);
    adv_text_format(text, "M, K, N, GROUPS = %lld, %lld, %lld, %d\n", (long long)s->m, (long long)s->k,
                    (long long)s->n, s->num_groups);
    int64_t sizes[ADV_LIMIT_GROUPS];
    if (adv_gmm_sizes(s, sizes)) {
        adv_text_append(text, "sizes = jnp.array([");
        for (int g = 0; g < s->num_groups; g++)
            adv_text_format(text, "%s%lld", g ? ", " : "", (long long)sizes[g]);
        adv_text_append(text, "], jnp.int32)\n");
    } else {
        adv_text_append(text, "rows = jax.random.randint(jax.random.key(0), (M,), 0, GROUPS)\n"
                              "sizes = jnp.bincount(rows, length=GROUPS).astype(jnp.int32)\n");
    }
    if (tgmm)
        adv_text_format(text, "lhs = jnp.ones((K, M), jnp.%s)\nrhs = jnp.ones((M, N), jnp.%s)\n",
                        adv_kernel_jax_dtype(s->lhs), adv_kernel_jax_dtype(s->rhs));
    else
        adv_text_format(text, "lhs = jnp.ones((M, K), jnp.%s)\nrhs = jnp.ones((GROUPS, %s), jnp.%s)\n",
                        adv_kernel_jax_dtype(s->lhs), s->rhs_transposed ? "N, K" : "K, N",
                        adv_kernel_jax_dtype(s->rhs));
    adv_text_format(text,
                    "\n\ndef run(lhs, rhs, sizes, tile):\n"
                    "    buffers = dict(input_buffer_count=tile[3]) if HAS_BUFFERS else {}\n"
                    "    return backend.%s(lhs, rhs, sizes, tiling=tile[:3]%s, **REST, **buffers)\n"
                    "\n\narguments = (lhs, rhs, sizes)\n",
                    tgmm ? "tgmm" : "gmm", !tgmm && s->rhs_transposed ? ", transpose_rhs=True" : "");
}

static int differences_row(const struct adv_kernel_request *request, const char *lines[ADV_SWEEP_DIFFERENCES])
{
    lines[0] = "return_residuals: the program times the kernel without the copy of its result";
    return request->gmm.return_residuals ? 1 : 0;
}

const struct adv_kernel_family adv_family_gmm = {
    .kernels = gmm_kernels,
    .kernels_count = ADV_KERNEL_ROWS(gmm_kernels),
    .shape = {gmm_shape, ADV_KERNEL_ROWS(gmm_shape)},
    .tile = {gmm_tile, ADV_KERNEL_ROWS(gmm_tile)},
    .own_tiles = own_tiles,
    .judge = judge_row,
    .time = time_row,
    .vmem_parts = vmem_row,
    .near = near_row,
    .timeline = adv_gmm_timeline,
    .space = "tile_m of 64 to 1024 that divides m, tile_k and tile_n of 128 x 2^i, dim / 2^i and dim, 2 to 4 "
             "buffers; wide: tile_m of 16 to 2048",
    .tunable = tunable_row,
    .standard = standard_row,
    .tile_offset = offsetof(struct adv_kernel_tile, gmm),
    .tile_bytes = sizeof(struct adv_gmm_tile),
    .list_tiles = list_row,
    .has_buffers = true,
    .short_list = adv_gmm_short_list,
    .candidates = adv_gmm_candidates,
    .maxtext_keys = keys_row,
    .sweep = sweep_row,
    .sweep_needs = " tokamax",
    .differences = differences_row,
};

static const struct adv_kernel_info ragged_kernels[] = {
    {ADV_KERNEL_RAGGED_DOT_XLA, ADV_KERNEL_MEASURED(gmm_measured),
     "XLA's own ragged dot: the baseline of gmm", "gmm"},
    {ADV_KERNEL_RAGGED_DOT_XLA_TGMM, ADV_KERNEL_MEASURED(gmm_measured),
     "XLA's own ragged dot for the gradient of the weights: the baseline of tgmm", "tgmm"},
};

static adv_code time_ragged(const struct adv_kernel_machine *machine,
                            const struct adv_kernel_request *request, const struct adv_kernel_tile *tile,
                            struct adv_kernel_time *time, adv_err *err)
{
    const bool gradient = request->kernel == ADV_KERNEL_RAGGED_DOT_XLA_TGMM;
    (void)tile;
    return adv_gmm_xla_time(machine, gradient ? ADV_KERNEL_TGMM : ADV_KERNEL_GMM, &request->gmm, time, err);
}

const struct adv_kernel_family adv_family_ragged_dot_xla = {
    .kernels = ragged_kernels,
    .kernels_count = ADV_KERNEL_ROWS(ragged_kernels),
    .shape = {gmm_shape, ADV_KERNEL_ROWS(gmm_shape) - 1}, /* without the version */
    .operation = "its own ragged dot",
    .time = time_ragged,
};

static const struct adv_kernel_member matmul_shape[] = {
    SIZE(matmul, m, "rows"),
    SIZE(matmul, k, "contraction"),
    SIZE(matmul, n, "columns"),
    FORMAT("dtype", matmul.lhs, "of the left operand; bfloat16 when left out"),
    FORMAT("rhs_dtype", matmul.rhs, "of the right operand; dtype when left out"),
    FORMAT("out_dtype", matmul.out, "of the result; bfloat16, float32 for float32, when left out"),
};

static const struct adv_kernel_info matmul_kernels[] = {
    {ADV_KERNEL_MATMUL, ADV_KERNEL_MEASURED(matmul_measured), "dense matmul as XLA compiles it", NULL},
};

static const char *xla_tiles_matmuls(const struct adv_kernel_request *request)
{
    (void)request;
    return "XLA tiles a dense matmul itself";
}

static adv_code time_matmul(const struct adv_kernel_machine *machine,
                            const struct adv_kernel_request *request, const struct adv_kernel_tile *tile,
                            struct adv_kernel_time *time, adv_err *err)
{
    (void)tile;
    return adv_matmul_time(machine, &request->matmul, time, err);
}

const struct adv_kernel_family adv_family_matmul = {
    .kernels = matmul_kernels,
    .kernels_count = ADV_KERNEL_ROWS(matmul_kernels),
    .shape = {matmul_shape, ADV_KERNEL_ROWS(matmul_shape)},
    .tile = {gmm_tile, ADV_KERNEL_ROWS(gmm_tile)}, /* taken, not used */
    .operation = "a dense matmul",
    .own_tiles = xla_tiles_matmuls,
    .time = time_matmul,
};

#include "engine/kernel/xent.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/near.h"
#include "engine/base/units.h"
#include "engine/kernel/core.h"
#include "engine/kernel/family.h"

enum {
    VREG = 1024,
    LANES = ADV_LEGAL_LANES,
    LABELS = ADV_LEGAL_LABELS,
    BLOCKS_MAX = 9 /* of one axis of the space */
};

#define VMEM_LIMIT_FRAC 0.5 /* of a core's, where no limit is set */

/* The legal token blocks next to one that is not. */
static void near_tokens(int64_t tokens, int64_t wanted, struct adv_legal_values *values)
{
    const int64_t block = adv_min_i(wanted, ADV_GMM_TILE_MAX);
    struct adv_near *near = &values->near;
    char *rule = values->rule;
    *near = tokens > 0 ? adv_near_divisors(tokens, LABELS, block) : adv_near_multiples(LABELS, block);
    for (int64_t small = LANES; small < LABELS; small *= 2)
        if (tokens % small == 0) adv_near_consider(near, small, block);
    adv_legal_near_drop(near, ADV_GMM_TILE_MAX);
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

bool adv_xent_is_token_block(int64_t tokens, int64_t block)
{
    if (block < 1 || tokens % block) return false;
    return block == tokens || block % LABELS == 0 || (block >= LANES && (block & (block - 1)) == 0);
}

static adv_code judge_token_block(int64_t tokens, int64_t block, adv_err *err, adv_err *warnings)
{
    char hint[ADV_LIMIT_DETAIL], near[64];
    if (tokens <= 0 || block <= 0) return ADV_OK;
    if (!adv_xent_is_token_block(tokens, block)) {
        struct adv_legal_values values;
        near_tokens(tokens, block, &values);
        const bool some = values.near.below || values.near.above;
        (void)snprintf(hint, sizeof hint, "%s%spad the tokens to %lld",
                       some ? adv_near_text(values.near, near, sizeof near) : "", some ? "; or " : "",
                       (long long)adv_round_up(tokens, LABELS));
        if (tokens % block)
            return adv_err_add(err, ADV_E_ILLEGAL, "/tile/b_block", hint,
                               "b_block %lld does not divide the %lld tokens", (long long)block,
                               (long long)tokens);
        return adv_err_add(err, ADV_E_ILLEGAL, "/tile/b_block", hint,
                           "b_block %lld is neither a multiple of 1024, nor a power of two from 128, nor all "
                           "tokens: labels have no such block",
                           (long long)block);
    }
    if (block % LABELS && tokens >= LABELS && warnings)
        (void)adv_err_add_rule(
            warnings, ADV_OK, "label-layout", "/tile/b_block", "1024 or more",
            "b_block %lld is below the tuner's space: several compilers refuse label blocks "
            "that 1024 does not divide",
            (long long)block);
    return ADV_OK;
}

adv_code adv_xent_legal(const struct adv_xent_shape *s, const struct adv_xent_tile *tile, adv_err *err,
                        adv_err *warnings)
{
    adv_code code = ADV_OK, found;
    char near[64];
    if (s->emb_dim % 8)
        code = adv_err_add(err, ADV_E_ILLEGAL, "/shape/emb_dim",
                           adv_near_text(adv_near_multiples(8, s->emb_dim), near, sizeof near),
                           "emb_dim %lld is not a multiple of 8, which the weight's rows are stored in",
                           (long long)s->emb_dim);
    if (!tile) return code;
    if ((found = judge_token_block(s->tokens, tile->b_block, err, warnings))) code = found;
    if ((found = adv_legal_masked("h_block", "emb_dim", tile->h_block, s->emb_dim, true, err, warnings)))
        code = found;
    if ((found = adv_legal_masked("v_block", "vocab", tile->v_block, s->vocab, false, err, warnings)))
        code = found;
    return code;
}

static int vmem_parts_of(enum adv_kernel kernel, const struct adv_xent_tile *tile,
                         struct adv_vmem_part list[ADV_VMEM_PARTS])
{
    const double b = tile->b_block, h = tile->h_block, v = tile->v_block;
    const struct adv_vmem_part parts[] = {
        {"x blocks (b_block x h_block)", 2.0 * b * h * 2.0},
        {"weight blocks (h_block x v_block)", 2.0 * h * v * 2.0},
        {"logits and one-hot labels (b_block x v_block)", b * v * (4.0 + 2.0)},
        {"labels and statistics (b_block)", 2.0 * 2.0 * b * 4.0},
        /* backward: the logits become their gradient in place; one tile of each sum goes to HBM and back */
        {"dx tile (b_block x h_block)", b * h * 4.0},
        {"dW tile (h_block x v_block)", h * v * 4.0},
    };
    memcpy(list, parts, sizeof parts);
    return kernel == ADV_KERNEL_LINEAR_XENT ? 4 : 6;
}

double adv_xent_vmem_bytes(enum adv_kernel kernel, const struct adv_xent_tile *tile)
{
    struct adv_vmem_part parts[ADV_VMEM_PARTS];
    return adv_vmem_sum(parts, vmem_parts_of(kernel, tile, parts));
}

static adv_code check(const struct adv_xent_shape *s, const struct adv_xent_tile *t, adv_err *err)
{
    adv_code code = ADV_OK, found;
    if ((found = adv_core_check_size(err, "/shape/tokens", s->tokens))) code = found;
    if ((found = adv_core_check_size(err, "/shape/emb_dim", s->emb_dim))) code = found;
    if ((found = adv_core_check_size(err, "/shape/vocab", s->vocab))) code = found;
    const int blocks[] = {t->b_block, t->h_block, t->v_block};
    for (int i = 0; i < 3; i++)
        if (blocks[i] < 1 || blocks[i] > ADV_GMM_TILE_MAX)
            code = adv_err_add(err, ADV_E_ILLEGAL, "/tile", "blocks of 128 to 65536", "a block is %d",
                               blocks[i]);
    if (code) return code;
    return adv_xent_legal(s, t, err, NULL);
}

/* The whole grid (token blocks, vocabulary blocks, embedding blocks): x and W tiles are loaded at every step;
 * forward keeps the running maximum and sum per row, backward recomputes the logits and makes dx and dW
 * (three products). */
struct work {
    double b_tiles, h_tiles, v_tiles;
    double mxu_s, vector_s;
    double w_bytes, x_bytes;   /* of one sweep over the grid; backward makes two */
    double dw_bytes, dx_bytes; /* backward */
    double bytes, bytes_per_s, steps;
};

static struct work work_of(const struct adv_kernel_machine *machine, bool backward,
                           const struct adv_xent_shape *shape, const struct adv_xent_tile *tile)
{
    const struct adv_constants *k = machine->constants;
    const struct adv_chip *chip = machine->chip;
    struct work w = {.b_tiles = (double)adv_div_up(shape->tokens, tile->b_block),
                     .h_tiles = (double)adv_div_up(shape->emb_dim, tile->h_block),
                     .v_tiles = (double)adv_div_up(shape->vocab, tile->v_block)};
    const double rows = w.b_tiles * tile->b_block, dim = w.h_tiles * tile->h_block,
                 words = w.v_tiles * tile->v_block;
    const double products = backward ? 3.0 : 1.0;
    const double rate =
        (backward ? k->xent_bwd_mxu_frac : k->xent_mxu_frac) * adv_core_peak_flops_per_s(chip);
    w.mxu_s = products * 2.0 * rows * dim * words / rate;
    w.vector_s = rows * words / VREG * (backward ? k->xent_bwd_vreg_s : k->xent_fwd_vreg_s);
    w.w_bytes = w.b_tiles * dim * words * 2.0;
    w.x_bytes = (w.h_tiles > 1.0 ? w.v_tiles : 1.0) * rows * dim * 4.0;
    w.dw_bytes = backward ? dim * words * 4.0 * w.b_tiles : 0.0;
    w.dx_bytes = backward ? rows * dim * 4.0 * w.v_tiles : 0.0;
    w.bytes = w.w_bytes + w.x_bytes;
    if (backward) w.bytes = w.bytes * 2.0 + w.dw_bytes + w.dx_bytes;
    w.bytes_per_s = k->xent_hbm_frac * adv_core_hbm_bytes_per_s(chip);
    w.steps = w.b_tiles * w.h_tiles * w.v_tiles * (backward ? 2.0 : 1.0);
    return w;
}

static double exposed_s(const struct adv_constants *k, const struct work *w)
{
    const double dma_s = w->bytes / w->bytes_per_s, compute_s = w->mxu_s + w->vector_s;
    return adv_max(0.0, dma_s - compute_s) + k->xent_overlap_frac * adv_min(dma_s, compute_s);
}

/* Grid (token blocks, vocabulary blocks, stages, width blocks). The one stage forward makes logits, a product
 * a step; backward makes them again, then dx and dW in a second stage, two products a step. */
struct unit {
    int64_t b_tiles, v_tiles, h_tiles;
    int stages;
    double product_s;        /* of one step's tiles */
    double vector_s;         /* of a block of logits, when they are whole */
    double step_s;           /* of every step */
    double w_s;              /* DMA of every step */
    double x_s;              /* DMA of every step; of a token block's first when one block is as wide as x */
    double gradient_s;       /* DMA out of every step of the second stage: tiles of dx and dW */
    double dma_s, exposed_s; /* of the whole grid; the second does not hide behind compute */
};

static void unit_of(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                    const struct adv_xent_shape *shape, const struct adv_xent_tile *tile, struct unit *unit)
{
    const bool backward = kernel == ADV_KERNEL_LINEAR_XENT_BWD;
    const struct work w = work_of(machine, backward, shape, tile);
    const double tiles = w.b_tiles * w.h_tiles * w.v_tiles;
    *unit = (struct unit){
        .b_tiles = (int64_t)w.b_tiles,
        .h_tiles = (int64_t)w.h_tiles,
        .v_tiles = (int64_t)w.v_tiles,
        .stages = backward ? 2 : 1,
        .product_s = w.mxu_s / tiles / (backward ? 3.0 : 1.0),
        .vector_s = w.vector_s / (w.b_tiles * w.v_tiles),
        .step_s = machine->constants->xent_step_s,
        .exposed_s = exposed_s(machine->constants, &w),
        .dma_s = w.bytes / w.bytes_per_s,
        .w_s = w.w_bytes / tiles / w.bytes_per_s,
        .x_s = w.x_bytes / (w.h_tiles > 1.0 ? tiles : w.b_tiles) / w.bytes_per_s,
        .gradient_s = (w.dw_bytes + w.dx_bytes) / tiles / w.bytes_per_s,
    };
}

static adv_code simulate(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                         const struct adv_xent_shape *shape, const struct adv_xent_tile *tile,
                         struct adv_kernel_time *time, adv_err *err)
{
    const adv_code bad = check(shape, tile, err);
    if (bad) return bad;
    const struct adv_constants *k = machine->constants;
    const struct adv_chip *chip = machine->chip;
    const struct work w = work_of(machine, kernel == ADV_KERNEL_LINEAR_XENT_BWD, shape, tile);
    const double dma_s = w.bytes / w.bytes_per_s, compute_s = w.mxu_s + w.vector_s;
    const double waiting_s = exposed_s(k, &w), steps_s = w.steps * k->xent_step_s;
    *time = (struct adv_kernel_time){.mxu_busy_s = w.mxu_s, .hbm_bytes = w.bytes, .grid_steps = w.steps};
    time->time_s = compute_s + waiting_s + steps_s + k->matmul_launch_s;
    time->bound = dma_s > compute_s ? ADV_RES_HBM : w.vector_s > w.mxu_s ? ADV_RES_VPU : ADV_RES_MXU;
    adv_kernel_part_add(time, "mxu", w.mxu_s);
    adv_kernel_part_add(time, "vector", w.vector_s);
    adv_kernel_part_add(time, "dma_exposed", waiting_s);
    adv_kernel_part_add(time, "grid_steps", steps_s);
    adv_kernel_part_add(time, "launch", k->matmul_launch_s);
    time->vmem_bytes = adv_xent_vmem_bytes(kernel, tile);
    time->vmem_limit_bytes = adv_core_vmem_limit_or(machine, VMEM_LIMIT_FRAC);
    time->fits_vmem = adv_vmem_compiles(chip, kernel, time->vmem_bytes, time->vmem_limit_bytes);
    time->extrapolated = k->xent_measured < 0.5;
    return ADV_OK;
}

/* Token blocks: the published winners have 1024 or 2048; tokens that 1024 does not divide take the powers of
 * two that do, or all of them. */
static int token_blocks_of(int64_t tokens, bool wide, int blocks[BLOCKS_MAX])
{
    int count = 0;
    for (int block = 4096; block >= (wide ? 128 : 1024); block /= 2)
        if (tokens % block == 0) blocks[count++] = block;
    if (wide && tokens % 3072 == 0) blocks[count++] = 3072;
    for (int block = 512; count == 0 && block >= 128; block /= 2)
        if (tokens % block == 0) blocks[count++] = block;
    if (count == 0 && tokens <= LABELS) blocks[count++] = (int)tokens;
    return count;
}

/* Blocks of an axis whose tail is masked: none wider than the axis needs. */
static int masked_blocks_of(int64_t axis, const int *sizes, int sizes_count, int blocks[BLOCKS_MAX])
{
    int count = 0;
    for (int i = 0; i < sizes_count; i++)
        if (i == 0 || sizes[i] <= adv_round_up(axis, 128)) blocks[count++] = sizes[i];
    return count;
}

int adv_xent_space(const struct adv_xent_shape *shape, bool wide,
                   struct adv_xent_tile tiles[ADV_XENT_SPACE_MAX])
{
    static const int widths[] = {128, 256, 512, 640, 768, 1024, 1280, 2048, 2560};
    static const int words[] = {128, 256, 512, 1024, 2048, 4096};
    int b[BLOCKS_MAX], h[BLOCKS_MAX], v[BLOCKS_MAX], count = 0;
    const int b_count = token_blocks_of(shape->tokens, wide, b);
    const int h_count = masked_blocks_of(shape->emb_dim, widths, sizeof widths / sizeof *widths, h);
    const int v_count = masked_blocks_of(shape->vocab, words, sizeof words / sizeof *words, v);
    for (int i = 0; i < b_count; i++)
        for (int j = 0; j < h_count; j++)
            for (int k = 0; k < v_count; k++) tiles[count++] = (struct adv_xent_tile){b[i], h[j], v[k]};
    return count;
}

/* One step: forward's only stage and backward's first make logits, the second makes gradients of them. */
static bool draw(struct adv_timeline_pen *pen, const struct unit *u, const int64_t at[ADV_TIMELINE_AXES])
{
    const int64_t v = at[1], h = at[2], stage = at[3];
    const bool gradients = stage == 1;
    const bool fetches_x = u->h_tiles > 1 || v == 0; /* a block as wide as x stays */
    const bool logits_done = u->stages == 1 ? h == u->h_tiles - 1 : gradients && h == 0;
    struct adv_timeline_cost cost = {
        .lead_s = u->step_s,
        .in_s = u->w_s + (fetches_x ? u->x_s : 0.0),
        .out_s = gradients ? u->gradient_s : 0.0,
        .mxu_s = u->product_s * (gradients ? 2.0 : 1.0),
        .vector_s = logits_done ? u->vector_s : 0.0,
        .product_first = !gradients,
    };
    cost.compute_s = cost.mxu_s + cost.vector_s;
    cost.wait_s = pen->wait_frac * (cost.in_s + cost.out_s);
    return adv_timeline_draw(pen, at, &cost);
}

static bool walk_grid(struct adv_timeline_pen *pen, const struct unit *u)
{
    for (int64_t b = 0; b < u->b_tiles; b++)
        for (int64_t v = 0; v < u->v_tiles; v++)
            for (int64_t stage = 0; stage < u->stages; stage++)
                for (int64_t h = 0; h < u->h_tiles; h++) {
                    const int64_t at[ADV_TIMELINE_AXES] = {b, v, h, stage};
                    if (!draw(pen, u, at)) return false;
                }
    return true;
}

static adv_code timeline_row(const struct adv_kernel_machine *machine,
                             const struct adv_kernel_request *request, struct adv_timeline *timeline,
                             adv_err *err)
{
    struct adv_kernel_time time;
    struct unit unit;
    const adv_code bad = simulate(machine, request->kernel, &request->xent, &request->tile.xent, &time, err);
    if (bad) return bad;
    const double end_s = adv_timeline_inside_s(&time);
    unit_of(machine, request->kernel, &request->xent, &request->tile.xent, &unit);
    timeline->axes[0] = "token_block";
    timeline->axes[1] = "vocab_block";
    timeline->axes[2] = "width_block";
    if (unit.stages > 1) timeline->axes[3] = "stage";
    struct adv_timeline_pen pen = adv_timeline_pen_of(timeline, time.grid_steps, end_s, unit.dma_s);
    adv_timeline_share_waits(&pen, unit.exposed_s, unit.dma_s, unit.w_s + unit.x_s,
                             unit.stages > 1 ? unit.gradient_s : 0.0);
    adv_timeline_close(&pen, walk_grid(&pen, &unit), end_s);
    return ADV_OK;
}

/* The two passes of tokamax's loss by themselves; backward takes the log-sum-exp that forward leaves. */
static void sweep_row(struct adv_text *text, const struct adv_kernel_request *request)
{
    const struct adv_xent_shape *s = &request->xent;
    const bool backward = request->kernel == ADV_KERNEL_LINEAR_XENT_BWD;
    const char *operands = backward ? "dout, lse, x, labels, w" : "x, labels, w";
    adv_text_format(text,
                    "from tokamax._src.ops.linear_softmax_cross_entropy_loss import pallas_mosaic_tpu_kernel "
                    "as backend\n\n"
                    "TOKENS, EMB_DIM, VOCAB = %lld, %lld, %lld\n"
                    "x = jnp.ones((TOKENS, EMB_DIM), jnp.bfloat16)\n"
                    "w = jnp.ones((EMB_DIM, VOCAB), jnp.bfloat16)\n"
                    "labels = jax.random.randint(jax.random.key(0), (TOKENS,), 0, VOCAB)\n",
                    (long long)s->tokens, (long long)s->emb_dim, (long long)s->vocab);
    if (backward)
        adv_text_append(text, "dout = jnp.ones((), jnp.float32)\n"
                              "lse = jnp.full((TOKENS,), np.log(VOCAB) + EMB_DIM, jnp.float32)\n");
    adv_text_format(
        text,
        "\n\ndef run(%s, tile):\n"
        "    blocks = {name + \"_size\": size for name, size in zip(NAMES, tile)}\n"
        "    return backend.linear_softmax_cross_entropy_loss_%s_pallas_mosaic_tpu(%s, **blocks)\n"
        "\n\narguments = (%s)\n",
        operands, backward ? "bwd" : "fwd", operands, operands);
}

/* ---- The family's row: the functions above as everybody asks for them. */

static void judge_row(const struct adv_kernel_request *request, const struct adv_kernel_tile *tile,
                      adv_err *err, adv_err *warnings)
{
    (void)adv_xent_legal(&request->xent, tile ? &tile->xent : NULL, err, warnings);
}

static adv_code time_row(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                         const struct adv_kernel_tile *tile, struct adv_kernel_time *time, adv_err *err)
{
    return simulate(machine, request->kernel, &request->xent, &tile->xent, time, err);
}

static int vmem_row(const struct adv_chip *chip, const struct adv_kernel_request *request,
                    const struct adv_kernel_tile *tile, struct adv_vmem_part parts[ADV_VMEM_PARTS])
{
    (void)chip;
    return vmem_parts_of(request->kernel, &tile->xent, parts);
}

static bool near_row(const struct adv_kernel_request *request, const char *member, int64_t wanted,
                     struct adv_legal_values *values)
{
    const struct adv_xent_shape *s = &request->xent;
    if (member[0] == 'b') near_tokens(s->tokens, wanted, values);
    if (member[0] == 'h') adv_legal_near_masked("emb_dim", s->emb_dim, wanted, values);
    if (member[0] == 'v') adv_legal_near_masked("vocab", s->vocab, wanted, values);
    return true;
}

static adv_code tunable_row(const struct adv_kernel_request *request, adv_err *err)
{
    const int64_t tokens = request->xent.tokens;
    return tokens > LABELS && tokens % LANES ? adv_legal_untunable("tokens", tokens, LANES, err) : ADV_OK;
}

static int list_row(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                    bool wide, void *tiles)
{
    (void)machine;
    return adv_xent_space(&request->xent, wide, tiles);
}

static bool standard_row(const struct adv_kernel_request *request, struct adv_kernel_tile *tile)
{
    (void)request;
    tile->xent = (struct adv_xent_tile){1024, 512, 2048}; /* tokamax's */
    return true;
}

#define EVERY ADV_KERNEL_EVERY
#define SIZE(member, what)                                                                                   \
    ADV_KERNEL_MEMBER(#member, SIZE, ADV_KERNEL_AT(xent.member), 1, ADV_KERNEL_SIZE_MAX, EVERY, EVERY, what)
static const struct adv_kernel_member shape_members[] = {
    SIZE(tokens, "tokens on the device"),
    SIZE(emb_dim, "width of the residual stream; a multiple of 8"),
    SIZE(vocab, "vocabulary on the device"),
};

/* Each block under two names: the short one and that of the kernel's own configuration. */
#define BLOCK(name) ADV_MEMBER_TILE, ADV_KERNEL_AT(tile.xent.name), 1, ADV_GMM_TILE_MAX, EVERY
static const struct adv_kernel_member tile_members[] = {
    {"b_block", BLOCK(b_block), EVERY, "tokens per grid step; divides tokens", NULL},
    {"h_block", BLOCK(h_block), EVERY, "width per grid step: a multiple of 128 or all of it", NULL},
    {"v_block", BLOCK(v_block), EVERY, "vocabulary per grid step: a multiple of 128 or all of it", NULL},
    {"b_block_size", BLOCK(b_block), 0, NULL, "b_block"},
    {"h_block_size", BLOCK(h_block), 0, NULL, "h_block"},
    {"v_block_size", BLOCK(v_block), 0, NULL, "v_block"},
};

static const struct adv_kernel_info kernels[] = {
    {ADV_KERNEL_LINEAR_XENT, ADV_KERNEL_MEASURED(xent_measured), "logits and cross-entropy in one kernel",
     NULL},
    {ADV_KERNEL_LINEAR_XENT_BWD, ADV_KERNEL_MEASURED(xent_measured), "its backward pass", NULL},
};

const struct adv_kernel_family adv_family_xent = {
    .kernels = kernels,
    .kernels_count = ADV_KERNEL_ROWS(kernels),
    .shape = {shape_members, ADV_KERNEL_ROWS(shape_members)},
    .tile = {tile_members, ADV_KERNEL_ROWS(tile_members)},
    .judge = judge_row,
    .time = time_row,
    .vmem_parts = vmem_row,
    .vmem_limit_frac = VMEM_LIMIT_FRAC,
    .near = near_row,
    .timeline = timeline_row,
    .space =
        "b_block of 1024 to 4096 that divides the tokens, h_block of 128 to 2560, v_block of 128 to 4096; "
        "wide: b_block from 128",
    .tunable = tunable_row,
    .standard = standard_row,
    .tile_offset = offsetof(struct adv_kernel_tile, xent),
    .tile_bytes = sizeof(struct adv_xent_tile),
    .list_tiles = list_row,
    .sweep = sweep_row,
    .sweep_needs = " tokamax",
};

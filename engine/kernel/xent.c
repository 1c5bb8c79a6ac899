#include "engine/kernel/xent.h"

#include "engine/kernel/core.h"
#include "engine/kernel/legal.h"
#include "engine/kernel/vmem.h"

enum { VREG = 1024, DIM_MAX = ADV_KERNEL_SIZE_MAX };

static adv_code check(const struct adv_xent_shape *s, const struct adv_xent_tile *t, adv_err *err)
{
    adv_code code = ADV_OK;
    const struct {
        const char *pointer;
        int64_t value;
    } sizes[] = {{"/shape/tokens", s->tokens}, {"/shape/emb_dim", s->emb_dim}, {"/shape/vocab", s->vocab}};
    for (int i = 0; i < 3; i++)
        if (sizes[i].value < 1 || sizes[i].value > DIM_MAX)
            code = adv_err_add(err, ADV_E_RANGE, sizes[i].pointer, "1..268435456", "the size is %ld",
                               (long)sizes[i].value);
    const int blocks[] = {t->b_block, t->h_block, t->v_block};
    for (int i = 0; i < 3; i++)
        if (blocks[i] < 1 || blocks[i] > ADV_GMM_TILE_MAX)
            code = adv_err_add(err, ADV_E_ILLEGAL, "/tile", "blocks of 128 to 65536", "a block is %d",
                               blocks[i]);
    if (code) return code;
    return adv_legal_xent(s, t, err, NULL);
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

void adv_xent_unit_of(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                      const struct adv_xent_shape *shape, const struct adv_xent_tile *tile,
                      struct adv_xent_unit *unit)
{
    const bool backward = kernel == ADV_KERNEL_LINEAR_XENT_BWD;
    const struct work w = work_of(machine, backward, shape, tile);
    const double tiles = w.b_tiles * w.h_tiles * w.v_tiles;
    *unit = (struct adv_xent_unit){
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

adv_code adv_xent_time(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
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
    time->vmem_bytes = adv_vmem_xent_bytes(kernel, tile);
    time->vmem_limit_bytes = machine->scoped_vmem_limit_bytes > 0.0 ? adv_core_vmem_limit_bytes(machine)
                                                                    : 0.5 * chip->vmem_bytes_per_core;
    time->fits_vmem = adv_vmem_compiles(chip, kernel, time->vmem_bytes, time->vmem_limit_bytes);
    time->extrapolated = k->xent_measured < 0.5;
    return ADV_OK;
}

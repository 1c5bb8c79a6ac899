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

/* Grid (token blocks, vocabulary blocks, embedding blocks): x and W tiles are loaded at every step; forward
 * keeps the running maximum and sum per row, backward recomputes the logits and makes dx and dW (three
 * products). */
adv_code adv_xent_time(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                       const struct adv_xent_shape *shape, const struct adv_xent_tile *tile,
                       struct adv_kernel_time *time, adv_err *err)
{
    const adv_code bad = check(shape, tile, err);
    if (bad) return bad;
    const struct adv_constants *k = machine->constants;
    const struct adv_chip *chip = machine->chip;
    const bool backward = kernel == ADV_KERNEL_LINEAR_XENT_BWD;
    const double b_tiles = (double)adv_div_up(shape->tokens, tile->b_block);
    const double h_tiles = (double)adv_div_up(shape->emb_dim, tile->h_block);
    const double v_tiles = (double)adv_div_up(shape->vocab, tile->v_block);
    const double rows = b_tiles * tile->b_block, dim = h_tiles * tile->h_block,
                 words = v_tiles * tile->v_block;
    const double products = backward ? 3.0 : 1.0;
    const double rate =
        (backward ? k->xent_bwd_mxu_frac : k->xent_mxu_frac) * adv_core_peak_flops_per_s(chip);
    const double mxu_s = products * 2.0 * rows * dim * words / rate;
    const double vector_s = rows * words / VREG * (backward ? k->xent_bwd_vreg_s : k->xent_fwd_vreg_s);
    double bytes = b_tiles * dim * words * 2.0 + (h_tiles > 1.0 ? v_tiles : 1.0) * rows * dim * 4.0;
    if (backward) bytes = bytes * 2.0 + dim * words * 4.0 * b_tiles + rows * dim * 4.0 * v_tiles;
    const double dma_s = bytes / (k->xent_hbm_frac * adv_core_hbm_bytes_per_s(chip));
    const double steps = b_tiles * h_tiles * v_tiles * (backward ? 2.0 : 1.0);
    const double compute_s = mxu_s + vector_s, steps_s = steps * k->xent_step_s;
    const double exposed_s =
        adv_max(0.0, dma_s - compute_s) + k->xent_overlap_frac * adv_min(dma_s, compute_s);
    *time = (struct adv_kernel_time){.mxu_busy_s = mxu_s, .hbm_bytes = bytes, .grid_steps = steps};
    time->time_s = compute_s + exposed_s + steps_s + k->matmul_launch_s;
    time->bound = dma_s > compute_s ? ADV_RES_HBM : vector_s > mxu_s ? ADV_RES_VPU : ADV_RES_MXU;
    adv_kernel_part_add(time, "mxu", mxu_s);
    adv_kernel_part_add(time, "vector", vector_s);
    adv_kernel_part_add(time, "dma_exposed", exposed_s);
    adv_kernel_part_add(time, "grid_steps", steps_s);
    adv_kernel_part_add(time, "launch", k->matmul_launch_s);
    time->vmem_bytes = adv_vmem_xent_bytes(kernel, tile);
    time->vmem_limit_bytes = machine->scoped_vmem_limit_bytes > 0.0 ? adv_core_vmem_limit_bytes(machine)
                                                                    : 0.5 * chip->vmem_bytes_per_core;
    time->fits_vmem = adv_vmem_compiles(chip, kernel, time->vmem_bytes, time->vmem_limit_bytes);
    time->extrapolated = k->xent_measured < 0.5;
    return ADV_OK;
}

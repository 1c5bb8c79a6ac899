#include "engine/kernel/gmm.h"

#include "engine/kernel/core.h"
#include "engine/kernel/gmm_v2.h"
#include "engine/kernel/gmm_visits.h"
#include "engine/kernel/vmem.h"

enum { LANES = 128, VREG = 1024 };

struct constants {
    double mxu_frac, hbm_frac, overlap_frac, step_s, launch_s;
};

static struct constants constants_of(const struct adv_constants *k, enum adv_kernel kernel)
{
    if (kernel == ADV_KERNEL_TGMM)
        return (struct constants){k->tgmm_mxu_frac, k->tgmm_hbm_frac, k->tgmm_overlap_frac, k->tgmm_step_s,
                                  k->tgmm_launch_s};
    return (struct constants){k->gmm_mxu_frac, k->gmm_hbm_frac, k->gmm_overlap_frac, k->gmm_step_s,
                              k->gmm_launch_s};
}

static adv_code check_groups(const struct adv_gmm_shape *s, adv_err *err)
{
    int64_t sum = 0;
    for (int g = 0; g < s->num_groups; g++) {
        if (s->group_sizes[g] < 0 || s->group_sizes[g] > ADV_KERNEL_SIZE_MAX)
            return adv_err_add(err, ADV_E_RANGE, "/shape/group_sizes", "0 or more", "group %d has %ld rows",
                               g, (long)s->group_sizes[g]);
        sum += s->group_sizes[g];
    }
    if (sum > s->m)
        return adv_err_add(err, ADV_E_RANGE, "/shape/group_sizes", "sizes that sum to m",
                           "the groups hold %ld rows, m is %ld", (long)sum, (long)s->m);
    return ADV_OK;
}

adv_code adv_gmm_check_version(enum adv_kernel kernel, const struct adv_gmm_shape *s, adv_err *err)
{
    if (kernel != ADV_KERNEL_TGMM || s->version != 2) return ADV_OK;
    return adv_err_add(err, ADV_E_UNSUPPORTED, "/shape/version", "version 1",
                       "version 2 of the grouped matmul is known only forward: no timing and no description "
                       "of its transposed product is published");
}

static adv_code check_shape(enum adv_kernel kernel, const struct adv_gmm_shape *s, adv_err *err)
{
    adv_code code = adv_gmm_check_version(kernel, s, err), found;
    if ((found = adv_core_check_size(err, "/shape/m", s->m))) code = found;
    if ((found = adv_core_check_size(err, "/shape/k", s->k))) code = found;
    if ((found = adv_core_check_size(err, "/shape/n", s->n))) code = found;
    if (s->num_groups < 1 || s->num_groups > ADV_LIMIT_GROUPS)
        return adv_err_add(err, ADV_E_RANGE, "/shape/num_groups", "1..4096", "num_groups is %d",
                           s->num_groups);
    if (s->distribution == ADV_GROUPS_GIVEN && (found = check_groups(s, err))) code = found;
    return code;
}

static adv_code check_tile(const struct adv_gmm_shape *s, const struct adv_gmm_tile *t, adv_err *err)
{
    adv_code code = ADV_OK;
    const struct {
        const char *pointer;
        int tile;
        int64_t dim;
    } tiles[] = {{"/tile/tile_m", t->tile_m, s->m},
                 {"/tile/tile_k", t->tile_k, s->k},
                 {"/tile/tile_n", t->tile_n, s->n}};
    for (int i = 0; i < 3; i++)
        if (tiles[i].tile < 1 || tiles[i].tile > ADV_GMM_TILE_MAX)
            code =
                adv_err_add(err, ADV_E_ILLEGAL, tiles[i].pointer,
                            "1..65536, a multiple of 128 or the whole axis", "the tile is %d", tiles[i].tile);
    if (t->input_buffer_count < 1 || t->input_buffer_count > 8)
        code = adv_err_add(err, ADV_E_ILLEGAL, "/tile/input_buffer_count", "2, 3 or 4",
                           "input_buffer_count is %d", t->input_buffer_count);
    return code;
}

/* One kind of grid step: its work, and how many there are. DMA of the next step's blocks overlaps with
 * compute. */
struct steps {
    double count, bytes;
};

/* The whole grid: steps of up to three kinds, each computing one tile product and the vector work beside it.
 */
struct work {
    struct steps kinds[3];
    double steps, flops;
    double fill;             /* array time over that of a full pipeline */
    double vector_s, tail_s; /* per step */
    const char *tail;        /* what tail_s is called */
    double row_bytes, weight_bytes, out_bytes;
};

/* Grid (n tiles, visits, k tiles). With one k tile the weights stay while the group does and a row tile while
 * the tile does: a step that enters a group waits for a whole weight tile, because blocks are fetched one
 * step ahead. With several k tiles both are loaded at every step. DMA moves only what lies inside the arrays,
 * compute runs over whole tiles. */
static struct work gmm_work(const struct adv_kernel_machine *machine, const struct adv_gmm_shape *s,
                            const struct adv_gmm_tile *t, const struct adv_gmm_visits *v)
{
    const double n_tiles = (double)adv_div_up(s->n, t->tile_n), k_tiles = (double)adv_div_up(s->k, t->tile_k);
    const double tm = t->tile_m, k = (double)s->k, n = (double)s->n;
    const double lhs = tm * k * adv_format_bytes(s->lhs) / k_tiles;
    const double rhs = k * n * adv_format_bytes(s->rhs) / (k_tiles * n_tiles);
    const double out = v->m_tiles / v->visits * tm * n * adv_format_bytes(s->out) / (k_tiles * n_tiles);
    struct work w = {
        .steps = n_tiles * v->visits * k_tiles, .row_bytes = lhs, .weight_bytes = rhs, .out_bytes = out};
    if (k_tiles > 1.0) {
        w.kinds[0] = (struct steps){w.steps, lhs + rhs + out};
    } else {
        const double shared = adv_max(0.0, v->visits - v->m_tiles); /* group starts inside a row tile */
        w.kinds[0] = (struct steps){n_tiles * (v->visits - v->nonempty), lhs + out};
        w.kinds[1] = (struct steps){n_tiles * shared, rhs + out};
        w.kinds[2] = (struct steps){n_tiles * adv_max(0.0, v->nonempty - shared), lhs + rhs + out};
    }
    w.flops = adv_core_padded_flops(machine->chip, tm, t->tile_k, t->tile_n);
    const struct adv_constants *c = machine->constants;
    w.fill = adv_max(1.0, c->gmm_weight_rows /
                              tm); /* short row tiles leave the array waiting for the next weight tile */
    w.vector_s =
        tm * t->tile_n / k_tiles / VREG * (c->gmm_mask_vreg_s + s->scale_blocks * c->gmm_scale_vreg_s);
    w.tail = "contraction_tail";
    if (s->k % LANES) w.tail_s = (tm + t->tile_n) * t->tile_k / k_tiles / VREG * c->gmm_tail_vreg_s;
    return w;
}

/* Past double buffering row tiles are asked for early enough to spread over the visits, shared ones included.
 */
static bool spreads_rows(const struct adv_gmm_tile *tile)
{
    return tile->input_buffer_count > 2;
}

/* Grid (n tiles, k tiles, visits); empty groups are visited to write zeros. The contraction runs over rows.
 */
static struct work tgmm_work(const struct adv_kernel_machine *machine, const struct adv_gmm_shape *s,
                             const struct adv_gmm_tile *t, const struct adv_gmm_visits *v)
{
    const double n_tiles = (double)adv_div_up(s->n, t->tile_n), k_tiles = (double)adv_div_up(s->k, t->tile_k);
    const double tm = t->tile_m, k = (double)s->k, n = (double)s->n, passes = n_tiles * k_tiles;
    const double in = tm * (k / k_tiles * adv_format_bytes(s->lhs) + n / n_tiles * adv_format_bytes(s->rhs));
    const double out = k * n * adv_format_bytes(s->out) / passes;
    const double out_share = out * (double)s->num_groups / v->visits;
    struct work w = {.steps = passes * (v->visits + v->empty), .row_bytes = in, .out_bytes = out_share};
    const double shared = adv_max(0.0, v->visits - v->m_tiles);
    if (spreads_rows(t)) {
        const double visits = v->m_tiles + shared;
        w.row_bytes = in * v->m_tiles / visits;
        w.kinds[0] = (struct steps){passes * visits, w.row_bytes + out_share};
    } else {
        w.kinds[0] = (struct steps){passes * v->m_tiles, in + out_share};
        w.kinds[1] = (struct steps){passes * shared, out_share};
    }
    const struct adv_constants *c = machine->constants;
    /* a tile that groups share is computed once for its rows and once more, or in part, per further group */
    const double more = shared * adv_min(1.0, c->tgmm_shared_rows / tm);
    w.flops = adv_core_padded_flops(machine->chip, t->tile_k, t->tile_m, t->tile_n) * (v->m_tiles + more) /
              adv_max(1.0, v->m_tiles + shared);
    const double out_vregs = (double)t->tile_k * t->tile_n / VREG;
    w.fill = 1.0;
    w.vector_s = tm * t->tile_k / VREG * c->tgmm_transpose_vreg_s + out_vregs * c->tgmm_accumulate_vreg_s +
                 out_vregs * (double)s->num_groups / v->visits * c->tgmm_store_vreg_s;
    /* rhs rows that end inside a register are shifted and masked, in every tile that is loaded (kernel rows
       of 2880 columns, and steps of a model whose experts are 704 wide, agree on it); those of lhs are
       transposed anyway */
    if (s->n % LANES) w.tail_s = tm * t->tile_n / VREG * c->tgmm_tail_vreg_s;
    w.tail = "column_tail";
    return w;
}

static void residual_copy(const struct adv_kernel_machine *machine, const struct adv_gmm_shape *s,
                          struct adv_kernel_time *time)
{
    const double bytes = adv_gmm_residual_bytes(s);
    const double copy_s = adv_stream_time_s(machine, bytes);
    adv_kernel_part_add(time, "residual_copy", copy_s);
    time->time_s += copy_s;
    time->hbm_bytes += bytes;
}

static double array_rate(const struct adv_kernel_machine *machine, struct constants c,
                         const struct adv_gmm_shape *shape)
{
    return c.mxu_frac * adv_core_peak_flops_per_s(machine->chip) *
           adv_core_rate_factor(machine->chip, shape->lhs, shape->rhs);
}

static struct work work_of(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                           const struct adv_gmm_shape *shape, const struct adv_gmm_tile *tile)
{
    struct adv_gmm_visits visits;
    adv_gmm_count_visits(shape, tile->tile_m, &visits);
    return kernel == ADV_KERNEL_TGMM ? tgmm_work(machine, shape, tile, &visits)
                                     : gmm_work(machine, shape, tile, &visits);
}

void adv_gmm_unit_of(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                     const struct adv_gmm_shape *shape, const struct adv_gmm_tile *tile,
                     struct adv_gmm_unit *unit)
{
    const struct constants c = constants_of(machine->constants, kernel);
    const struct work w = work_of(machine, kernel, shape, tile);
    *unit = (struct adv_gmm_unit){
        .n_tiles = adv_div_up(shape->n, tile->tile_n),
        .k_tiles = adv_div_up(shape->k, tile->tile_k),
        .row_bytes = w.row_bytes,
        .weight_bytes = w.weight_bytes,
        .out_bytes = w.out_bytes,
        .bytes_per_s = c.hbm_frac * adv_core_hbm_bytes_per_s(machine->chip),
        .mxu_s = w.flops / array_rate(machine, c, shape) * w.fill,
        .vector_s = w.vector_s + w.tail_s,
        .step_s = c.step_s,
        .overlap_frac = c.overlap_frac,
    };
    unit->streams_all = kernel == ADV_KERNEL_TGMM ? spreads_rows(tile) : unit->k_tiles > 1;
}

/* Adds up the grid: each kind of step takes the longer of compute and DMA, and a share of the shorter. */
static void sum_steps(const struct adv_kernel_machine *machine, const struct work *w, struct constants c,
                      const struct adv_gmm_shape *shape, struct adv_kernel_time *time)
{
    const double rate = array_rate(machine, c, shape);
    const double bw = c.hbm_frac * adv_core_hbm_bytes_per_s(machine->chip);
    const double mxu_s = w->flops / rate, filled_s = mxu_s * w->fill;
    const double compute_s = filled_s + w->vector_s + w->tail_s;
    double count = 0.0, exposed_s = 0.0, dma_total_s = 0.0;
    for (int i = 0; i < 3; i++) {
        const double dma_s = w->kinds[i].bytes / bw;
        count += w->kinds[i].count;
        dma_total_s += w->kinds[i].count * dma_s;
        exposed_s += w->kinds[i].count * adv_gmm_exposed_s(dma_s, compute_s, c.overlap_frac);
        time->hbm_bytes += w->kinds[i].count * w->kinds[i].bytes;
    }
    const double steps_s = w->steps * c.step_s;
    time->mxu_busy_s = count * mxu_s;
    time->time_s = count * compute_s + exposed_s + steps_s;
    time->bound = dma_total_s > count * compute_s ? ADV_RES_HBM : ADV_RES_MXU;
    if (steps_s > adv_max(dma_total_s, count * compute_s)) time->bound = ADV_RES_LATENCY;
    adv_kernel_part_add(time, "mxu", count * mxu_s);
    adv_kernel_part_add(time, "weight_load", count * (filled_s - mxu_s));
    adv_kernel_part_add(time, "vector", count * w->vector_s);
    adv_kernel_part_add(time, w->tail, count * w->tail_s);
    adv_kernel_part_add(time, "dma_exposed", exposed_s);
    adv_kernel_part_add(time, "grid_steps", steps_s);
}

adv_code adv_gmm_time(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                      const struct adv_gmm_shape *shape, const struct adv_gmm_tile *tile,
                      struct adv_kernel_time *time, adv_err *err)
{
    const adv_code bad_shape = check_shape(kernel, shape, err);
    if (bad_shape) return bad_shape;
    if (shape->version == 2) {
        adv_gmm_v2(machine, shape, time);
        if (shape->return_residuals) residual_copy(machine, shape, time);
        time->vmem_limit_bytes = adv_gmm_v2_limit_bytes(machine);
        time->fits_vmem = adv_vmem_compiles(machine->chip, kernel, time->vmem_bytes, time->vmem_limit_bytes);
        time->extrapolated = machine->constants->gmm2_measured < 0.5;
        return ADV_OK;
    }
    const adv_code bad_tile = check_tile(shape, tile, err);
    if (bad_tile) return bad_tile;
    const struct constants c = constants_of(machine->constants, kernel);
    const struct work w = work_of(machine, kernel, shape, tile);
    *time = (struct adv_kernel_time){.grid_steps = w.steps};
    sum_steps(machine, &w, c, shape, time);
    adv_kernel_part_add(time, "launch", c.launch_s);
    time->time_s += c.launch_s;
    if (shape->return_residuals && kernel == ADV_KERNEL_GMM) residual_copy(machine, shape, time);
    time->vmem_bytes = adv_vmem_gmm_bytes(machine->chip, kernel, shape, tile);
    time->vmem_limit_bytes = adv_core_vmem_limit_bytes(machine);
    time->fits_vmem = adv_vmem_compiles(machine->chip, kernel, time->vmem_bytes, time->vmem_limit_bytes);
    time->extrapolated = machine->constants->gmm_measured < 0.5;
    return ADV_OK;
}

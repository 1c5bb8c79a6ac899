#include <math.h>

#include "engine/base/limits.h"
#include "engine/kernel/core.h"
#include "engine/kernel/splash.h"
#include "engine/kernel/timeline.h"

struct walk {
    const struct adv_kernel_machine *machine;
    const struct adv_attention_shape *shape;
    struct adv_splash_unit unit;
    struct adv_timeline_pen pen;
    double dma_frac;                            /* of what a step moves by itself */
    double first_in_s, last_out_s;              /* of the steps drawn so far */
    int64_t call, tiles_per_call;               /* of keys; one call without a ring */
    int64_t kv_head, kv_block;                  /* of the last step: what is still in VMEM */
    double pending_in_bytes, pending_out_bytes; /* of key blocks without a step of their own */
    long looked;                                /* tiles asked for, also those outside the mask */
    long sought;                                /* and those asked for the end of a key block */
    long rows;                                  /* of tiles that were worked out */
};

enum { ROWS_UNASKED = 1 << 14 }; /* worked out between two questions to the budget: about 0.3 ms */

/* extra_s: what a step costs for its place in its row. */
static bool draw(struct walk *walk, const int64_t at[ADV_TIMELINE_AXES], bool masked, double extra_s,
                 double in_bytes, double out_bytes)
{
    const struct adv_splash_unit *u = &walk->unit;
    const double vector_s = (u->vector_s + u->rescale_s) / u->cores, mxu_s = u->mxu_s / u->cores;
    const double mask_s = masked || u->mask_all ? u->mask_s / u->cores : 0.0;
    struct adv_timeline_cost cost = {.lead_s = (u->step_s + extra_s) / u->cores,
                                     .in_s = walk->dma_frac * adv_splash_dma_s(walk->machine, in_bytes),
                                     .out_s = walk->dma_frac * adv_splash_dma_s(walk->machine, out_bytes),
                                     .mxu_s = mxu_s,
                                     .vector_s = mask_s + vector_s};
    cost.compute_s = adv_splash_compute_s(vector_s, mxu_s, mask_s);
    cost.wait_s = walk->pen.wait_frac * (cost.in_s + cost.out_s);
    if (walk->pen.steps == 0.0) walk->first_in_s = cost.in_s;
    walk->last_out_s = cost.out_s;
    return adv_timeline_draw(&walk->pen, at, &cost);
}

static bool in_row(const struct adv_splash_row *row, int64_t kv)
{
    return kv >= row->first && kv <= row->last && !(kv >= row->hole_first && kv <= row->hole_last);
}

static bool is_partial(const struct adv_splash_row *row, int64_t kv)
{
    return kv < row->full_first || kv > row->full_last;
}

/* The part of a row of tiles that the call at hand has keys for; false: none. */
static bool row_of_call(struct walk *walk, int64_t q, struct adv_splash_row *row)
{
    const int64_t from = walk->call * walk->tiles_per_call, to = from + walk->tiles_per_call - 1;
    if (++walk->rows % ROWS_UNASKED == 0 && adv_budget_over(walk->machine->budget))
        walk->looked = walk->sought = ADV_LIMIT_TIMELINE_WALK; /* the walk ends */
    adv_splash_row_tiles(walk->shape, walk->unit.block_q, walk->unit.block_kv, q, row);
    row->first = adv_max_i(row->first, from);
    row->last = adv_min_i(row->last, to);
    const bool starts_in_hole = row->first >= row->hole_first && row->first <= row->hole_last;
    const bool ends_in_hole = row->last >= row->hole_first && row->last <= row->hole_last;
    if (starts_in_hole) row->first = row->hole_last + 1;
    if (ends_in_hole) row->last = row->hole_first - 1;
    return row->first <= row->last;
}

/* Grid (heads, query blocks, key blocks). */
static bool walk_queries(struct walk *walk, int64_t head, int64_t kv_head)
{
    const struct adv_splash_unit *u = &walk->unit;
    for (int64_t q = 0; q < walk->shape->q_len / u->block_q; q++) {
        struct adv_splash_row row;
        if (++walk->looked > ADV_LIMIT_TIMELINE_WALK) return false;
        if (!row_of_call(walk, q, &row)) continue;
        for (int64_t kv = row.first; kv <= row.last; kv++) {
            if (!in_row(&row, kv)) continue;
            const bool first = kv == row.first;
            const bool kept = u->keeps_blocks && kv_head == walk->kv_head && kv == walk->kv_block;
            const int64_t at[ADV_TIMELINE_AXES] = {head, q, kv, walk->call};
            if (!draw(walk, at, is_partial(&row, kv),
                      (first ? 0.0 : u->carry_s) + (kv == row.last ? u->outer_s : 0.0),
                      (kept ? 0.0 : u->each_in_bytes) + (first ? u->outer_in_bytes : 0.0),
                      u->each_out_bytes + (kv == row.last ? u->outer_out_bytes : 0.0)))
                return false;
            walk->kv_head = kv_head;
            walk->kv_block = kv;
        }
    }
    return true;
}

/* The last query block with a tile of key block `kv`; -1: none has one. */
static int64_t last_query_of(struct walk *walk, int64_t kv)
{
    int64_t q = walk->shape->q_len / walk->unit.block_q - 1;
    for (struct adv_splash_row row; q >= 0 && walk->sought < ADV_LIMIT_TIMELINE_WALK; q--, walk->sought++)
        if (row_of_call(walk, q, &row) && in_row(&row, kv)) break;
    return q;
}

/* One key block: its keys come with its first step, their gradients go with its last. */
static bool walk_key_block(struct walk *walk, int64_t head, int64_t kv)
{
    const struct adv_splash_unit *u = &walk->unit;
    const int64_t last = last_query_of(walk, kv);
    walk->pending_in_bytes += u->outer_in_bytes;
    walk->pending_out_bytes += u->outer_out_bytes;
    for (int64_t q = 0; q <= last; q++) {
        struct adv_splash_row row;
        if (++walk->looked > ADV_LIMIT_TIMELINE_WALK) return false;
        if (!row_of_call(walk, q, &row) || !in_row(&row, kv)) continue;
        const int64_t at[ADV_TIMELINE_AXES] = {head, q, kv, walk->call};
        const double out_bytes = q == last ? walk->pending_out_bytes : 0.0;
        const bool more = draw(walk, at, is_partial(&row, kv), 0.0, u->each_in_bytes + walk->pending_in_bytes,
                               u->each_out_bytes + out_bytes);
        walk->pending_in_bytes = 0.0;
        if (q == last) walk->pending_out_bytes = 0.0;
        if (!more) return false;
    }
    return true;
}

/* Grid (heads, key blocks, query blocks): keys and their gradients move once per key block. */
static bool walk_keys(struct walk *walk, int64_t head)
{
    const int64_t from = walk->call * walk->tiles_per_call;
    for (int64_t kv = from; kv < from + walk->tiles_per_call; kv++) {
        if (++walk->looked > ADV_LIMIT_TIMELINE_WALK) return false;
        if (!walk_key_block(walk, head, kv)) return false;
    }
    return true;
}

/* Every call walks all heads. */
static bool walk_calls(struct walk *walk)
{
    const struct adv_attention_shape *shape = walk->shape;
    const int64_t shared = shape->q_heads / shape->kv_heads;
    const int64_t heads = (int64_t)shape->batch * shape->q_heads;
    const int64_t calls = shape->kv_len / walk->unit.block_kv / walk->tiles_per_call;
    for (walk->call = 0; walk->call < calls; walk->call++) {
        walk->kv_head = -1; /* nothing of another call's keys is kept */
        for (int64_t head = 0; head < heads; head++)
            if (walk->unit.keys_outside ? !walk_keys(walk, head) : !walk_queries(walk, head, head / shared))
                return false;
    }
    /* key blocks past the last step: nothing computes while they move */
    walk->pen.now_s += walk->pen.wait_frac * walk->dma_frac *
                       adv_splash_dma_s(walk->machine, walk->pending_in_bytes + walk->pending_out_bytes);
    return true;
}

/* Walks the grid without drawing, for what its first and last steps move, key blocks without steps included,
 * and for a ring: blocks that the closed form keeps from one row to the next are not kept across its calls,
 * so what steps move by themselves is brought to what it counts. */
static void walk_dry(struct walk *walk, double dma_s)
{
    struct walk dry = *walk;
    struct adv_timeline nothing = {.capacity = 0};
    dry.pen = adv_timeline_pen_of(&nothing, 0.0, 0.0, 0.0);
    if (!walk_calls(&dry)) return;
    const double moved_s = nothing.omitted_s[ADV_LANE_DMA_IN] + nothing.omitted_s[ADV_LANE_DMA_OUT] +
                           adv_splash_dma_s(walk->machine, dry.pending_in_bytes + dry.pending_out_bytes);
    if (walk->shape->context_ring && moved_s > 0.0) walk->dma_frac = dma_s / moved_s;
    walk->first_in_s = walk->dma_frac * dry.first_in_s;
    walk->last_out_s = walk->dma_frac * dry.last_out_s;
}

static void start_pen(struct walk *walk, const struct adv_splash_work *work, double end_s,
                      struct adv_timeline *timeline)
{
    const struct adv_splash_unit *u = &walk->unit;
    const double dma_s = adv_splash_dma_s(walk->machine, work->hbm_bytes);
    walk->dma_frac = 1.0;
    walk->first_in_s = adv_splash_dma_s(walk->machine, u->each_in_bytes + u->outer_in_bytes);
    walk->last_out_s = adv_splash_dma_s(walk->machine, u->each_out_bytes + u->outer_out_bytes);
    if (walk->shape->context_ring || u->keys_outside) walk_dry(walk, dma_s);
    walk->pen = adv_timeline_pen_of(timeline, work->steps, end_s, dma_s);
    adv_timeline_share_waits(&walk->pen, adv_splash_stall_s(walk->machine, work), dma_s, walk->first_in_s,
                             walk->last_out_s);
}

adv_code adv_splash_timeline(const struct adv_kernel_machine *machine,
                             const struct adv_kernel_request *request, struct adv_timeline *timeline,
                             adv_err *err)
{
    const struct adv_attention_shape *shape = &request->attention;
    const struct adv_splash_call call = {machine, request->kernel, shape, &request->tile.attention,
                                         &request->attention_flags};
    struct adv_kernel_time time;
    const adv_code bad = adv_splash_time(machine, call.kernel, shape, call.tile, call.flags, &time, err);
    if (bad) return bad;
    if (shape->batch != floor(shape->batch))
        return adv_err_add(err, ADV_E_RANGE, "/shape/batch", "a whole number",
                           "a timeline walks whole sequences, batch is %g", shape->batch);
    struct walk walk = {.machine = machine, .shape = shape, .kv_head = -1, .kv_block = -1};
    adv_splash_unit_of(&call, &walk.unit);
    walk.tiles_per_call = adv_splash_call_keys(shape) / walk.unit.block_kv;
    const struct adv_splash_work work = adv_splash_sum(&walk.unit, shape);
    const double end_s = adv_timeline_inside_s(&time);
    timeline->axes[0] = "head";
    timeline->axes[1] = "query_block";
    timeline->axes[2] = "key_block";
    if (walk.tiles_per_call * walk.unit.block_kv < shape->kv_len) timeline->axes[3] = "shard";
    start_pen(&walk, &work, end_s, timeline);
    adv_timeline_close(&walk.pen, walk_calls(&walk), end_s);
    return adv_budget_over(machine->budget) ? adv_budget_refuse(err) : ADV_OK;
}

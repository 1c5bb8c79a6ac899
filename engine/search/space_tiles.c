#include "engine/search/space_tiles.h"

#include "engine/base/units.h"
#include "engine/kernel/family.h"
#include "engine/kernel/tune.h"
#include "engine/kernel/tune_space.h"
#include "engine/kernel/vmem.h"
#include "engine/spec/plan_rules.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

enum {
    MEMO_ROWS = 96, /* shapes a search meets: context degrees x VMEM limits; later ones are tuned again */
    LISTED = 96,    /* tiles kept per kernel: enough to hold the best of each of the 8 layouts */
    LAYOUTS = 8,
    TUNE_GROUPS = 8, /* expert tiles depend on rows per group, not on how many groups there are */
};

struct attention_key {
    int64_t q_len, kv_len;
    int context_shards, vmem_kib, dq_reduction_steps;
    bool load_balanced, ring, max_logit, scheduler, fused, tokamax;
};
struct attention_row {
    struct attention_key key;
    bool tuned, found; /* tuned: false while a thread is at it */
    struct adv_splash_blocks blocks[2];
    enum adv_layout q_layout, k_layout, v_layout;
};

struct expert_key {
    int64_t rows_per_group, input, width;
    int vmem_kib, version;
    enum adv_format format;
};
struct expert_row {
    struct expert_key key;
    bool tuned; /* as above */
    bool found[2][ADV_GMM_PASSES];
    struct adv_gmm_blocks blocks[2][ADV_GMM_PASSES];
};

struct adv_tile_memo {
    const struct adv_model *model;
    const struct adv_cluster *cluster;
    const struct adv_constants *constants;
    struct adv_tile_pins pins;
    atomic_int attention_known, experts_known; /* rows before these are tuned and read without the lock */
    pthread_mutex_t lock;                      /* of all below */
    pthread_cond_t tuned;
    int attention_count, expert_count;
    struct attention_row attention[MEMO_ROWS];
    struct expert_row experts[MEMO_ROWS];
};

struct adv_tile_memo *adv_tile_memo_create(const struct adv_model *model, const struct adv_cluster *cluster,
                                           const struct adv_constants *constants,
                                           const struct adv_tile_pins *pins, struct adv_arena *arena)
{
    struct adv_tile_memo *memo = adv_arena_alloc(arena, sizeof *memo);
    if (!memo) return NULL;
    memo->model = model;
    memo->cluster = cluster;
    memo->constants = constants;
    if (pins) memo->pins = *pins;
    (void)pthread_mutex_init(&memo->lock, NULL);
    (void)pthread_cond_init(&memo->tuned, NULL);
    return memo;
}

static struct adv_kernel_machine machine_of(const struct adv_tile_memo *memo, int vmem_kib)
{
    return (struct adv_kernel_machine){&memo->cluster->chip, memo->constants, vmem_kib * ADV_KIB, false,
                                       NULL};
}

static bool reads_local(const struct adv_tile_memo *memo, const struct adv_layer *layer)
{
    return !memo->pins.one_set && adv_layer_has_local_tiles(layer);
}

/* The commonest layer that reads the tiles of sa_* ([0]) or of local_sa_* ([1]); NULL when the model has
 * none.
 */
static const struct adv_layer *layer_of(const struct adv_tile_memo *memo, bool local)
{
    const struct adv_model *model = memo->model;
    const struct adv_layer *best = NULL;
    for (int i = 0; i < model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &model->layers[i];
        if (layer->attention == ADV_ATTENTION_LINEAR || reads_local(memo, layer) != local) continue;
        if (!best || layer->count > best->count) best = layer;
    }
    return best;
}

static struct adv_attention_shape shape_of(const struct adv_layer *layer, const struct attention_key *key)
{
    bool window = layer->attention == ADV_ATTENTION_WINDOW || layer->attention == ADV_ATTENTION_COMPRESSED;
    return (struct adv_attention_shape){
        .batch = 1,
        .q_heads = layer->q_heads,
        .kv_heads = layer->kv_heads,
        .q_len = key->q_len,
        .kv_len = key->kv_len,
        .head_dim_qk = layer->head_dim_qk,
        .head_dim_v = layer->head_dim_v,
        .causal = true,
        .window = window ? layer->window_tokens : 0,
        .chunk = layer->attention == ADV_ATTENTION_CHUNKED ? layer->window_tokens : 0,
        .context_shards = key->context_shards,
        .context_load_balanced = key->load_balanced,
        .context_ring = key->ring,
        .dtype = ADV_FORMAT_BF16,
    };
}

static int layout_index(const struct adv_attention_tile *tile)
{
    return (tile->q_layout == ADV_LAYOUT_SEQ_MINOR) << 2 | (tile->k_layout == ADV_LAYOUT_SEQ_MINOR) << 1 |
           (tile->v_layout == ADV_LAYOUT_SEQ_MINOR);
}

/* The best tile of one kernel for each layout; time 0 = none listed. */
struct by_layout {
    double time_s[LAYOUTS];
    struct adv_splash_blocks blocks[LAYOUTS];
};

static void keep_best(const struct adv_attention_tile *tile, const struct adv_kernel_time *time,
                      struct by_layout *best)
{
    const int at = layout_index(tile);
    if (!time->fits_vmem || (best->time_s[at] > 0 && best->time_s[at] <= time->time_s)) return;
    best->time_s[at] = time->time_s;
    best->blocks[at] = tile->blocks;
}

static bool has_any(const struct by_layout *best)
{
    bool any = false;
    for (int i = 0; i < LAYOUTS; i++) any = any || best->time_s[i] > 0;
    return any;
}

/* The masks that a plan hands to tokamax's kernel, for the layers that share a set of tiles. */
struct masks {
    const struct adv_tile_memo *memo;
    const struct adv_plan *plan;
    bool local, any;
};

static struct masks masks_of(const struct adv_tile_memo *memo, const struct adv_plan *plan, bool local)
{
    struct masks masks = {memo, plan, local, false};
    const struct adv_model *model = memo->model;
    for (int i = 0; i < model->layer_kinds_count; i++)
        masks.any |=
            reads_local(memo, &model->layers[i]) == local && adv_plan_shards_masks(plan, &model->layers[i]);
    return masks;
}

static bool takes_tile(const struct masks *masks, enum adv_kernel kernel,
                       const struct adv_splash_blocks *tile)
{
    const bool forward = kernel == ADV_KERNEL_SPLASH_FWD_RESIDUALS;
    const int queries = forward ? tile->block_q : tile->block_q_dkv;
    const int keys = forward ? tile->block_kv : tile->block_kv_dkv;
    for (int i = 0; masks->any && i < masks->memo->model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &masks->memo->model->layers[i];
        if (reads_local(masks->memo, layer) == masks->local && adv_plan_shards_masks(masks->plan, layer) &&
            adv_plan_odd_masks(masks->plan, layer, queries, keys) > 0)
            return false;
    }
    return true;
}

/* Of all tiles of the space with the pinned members put into them, those whose masks the context axis
 * divides; of the wide space where none is. */
static void tune_around_pins(const struct adv_tile_memo *memo, const struct adv_kernel_machine *machine,
                             const struct adv_kernel_request *request, const struct masks *masks,
                             struct by_layout *best)
{
    struct adv_attention_tile tiles[ADV_SPLASH_SPACE_MAX];
    const struct adv_kernel_family *family = adv_kernel_family_of(request->kernel);
    for (int wide = 0; wide < 2 && !has_any(best); wide++) {
        const int count = family->list_tiles(machine, request, wide == 1, tiles);
        for (int i = 0; i < count; i++) {
            enum adv_layout *const layouts[3] = {&tiles[i].q_layout, &tiles[i].k_layout, &tiles[i].v_layout};
            struct adv_kernel_time time;
            for (int l = 0; l < 3; l++)
                if (memo->pins.has_layout[l]) *layouts[l] = memo->pins.layout[l];
            adv_tile_pins_set_blocks(&memo->pins.blocks[masks->local], &tiles[i].blocks);
            if (!takes_tile(masks, request->kernel, &tiles[i].blocks)) continue;
            if (adv_splash_time(machine, request->kernel, &request->attention, &tiles[i],
                                &request->attention_flags, &time, NULL) == ADV_OK)
                keep_best(&tiles[i], &time, best);
        }
    }
}

static void tune(const struct adv_tile_memo *memo, enum adv_kernel kernel, const struct adv_layer *layer,
                 const struct attention_key *key, const struct masks *masks, struct by_layout *best)
{
    struct adv_kernel_machine machine = machine_of(memo, key->vmem_kib);
    struct adv_attention_flags flags = {
        .max_logit_constant = key->max_logit,
        .soft_cap = memo->model->attention_soft_cap > 0.0,
        .dq_reduction_steps = key->dq_reduction_steps,
        .use_experimental_scheduler = key->scheduler,
    };
    struct adv_attention_tile tiles[LISTED];
    struct adv_kernel_time times[LISTED];
    const struct adv_kernel_request request = {
        .kernel = kernel, .attention = shape_of(layer, key), .attention_flags = flags};
    struct adv_ranking ranking = {.top_k = LISTED, .tiles = tiles, .times = times};
    *best = (struct by_layout){0};
    if (memo->pins.any || masks->any) {
        tune_around_pins(memo, &machine, &request, masks, best);
        return;
    }
    if (adv_tune(&machine, &request, &ranking, NULL) != ADV_OK) return;
    for (int i = 0; i < ranking.count; i++) keep_best(&tiles[i], &times[i], best);
}

/* Which kernels a training step runs, and which members of the blocks each one decides. */
static void merge_blocks(enum adv_kernel kernel, const struct adv_splash_blocks *from,
                         struct adv_splash_blocks *into)
{
    if (kernel == ADV_KERNEL_SPLASH_FWD_RESIDUALS) {
        into->block_q = from->block_q;
        into->block_kv = from->block_kv;
        into->block_kv_compute = from->block_kv_compute;
    } else if (kernel == ADV_KERNEL_SPLASH_BWD_DQ) {
        into->block_q_dq = from->block_q_dq;
        into->block_kv_dq = from->block_kv_dq;
    } else {
        into->block_q_dkv = from->block_q_dkv;
        into->block_kv_dkv = from->block_kv_dkv;
        into->block_kv_dkv_compute = from->block_kv_dkv_compute;
    }
}

enum { TUNED_KERNELS = 3 };

/* All kernels of the global and local layers under one choice of layouts (MaxText has one set for forward and
 * backward): the layout with the least total time, layers weighted by their count. */
static void tune_row(const struct adv_tile_memo *memo, const struct adv_plan *plan, struct attention_row *row)
{
    const enum adv_kernel fused[] = {ADV_KERNEL_SPLASH_FWD_RESIDUALS, ADV_KERNEL_SPLASH_BWD_FUSED};
    const enum adv_kernel split[] = {ADV_KERNEL_SPLASH_FWD_RESIDUALS, ADV_KERNEL_SPLASH_BWD_DKV,
                                     ADV_KERNEL_SPLASH_BWD_DQ};
    const enum adv_kernel *kernels = row->key.fused ? fused : split;
    int kernels_count = row->key.fused ? 2 : 3;
    struct by_layout best[2][TUNED_KERNELS];
    const struct adv_layer *layers[2] = {layer_of(memo, false), layer_of(memo, true)};
    for (int local = 0; local < 2; local++) {
        const struct masks masks = masks_of(memo, plan, local == 1);
        for (int k = 0; layers[local] && k < kernels_count; k++)
            tune(memo, kernels[k], layers[local], &row->key, &masks, &best[local][k]);
    }
    double least_s = 0;
    int chosen = -1;
    for (int layout = 0; layout < LAYOUTS; layout++) {
        double total_s = 0;
        bool complete = layers[0] || layers[1];
        for (int local = 0; local < 2; local++) {
            for (int k = 0; layers[local] && k < kernels_count; k++) {
                complete = complete && best[local][k].time_s[layout] > 0;
                total_s += layers[local]->count * best[local][k].time_s[layout];
            }
        }
        if (!complete || (chosen >= 0 && total_s >= least_s)) continue;
        chosen = layout;
        least_s = total_s;
    }
    row->found = chosen >= 0;
    if (!row->found) return;
    for (int local = 0; local < 2; local++) {
        row->blocks[local] = plan->family.blocks[local];
        for (int k = 0; layers[local] && k < kernels_count; k++)
            merge_blocks(kernels[k], &best[local][k].blocks[chosen], &row->blocks[local]);
    }
    if (!layers[0]) row->blocks[0] = row->blocks[1]; /* local_sa_* inherit, so one set of keys says it */
    if (!layers[1]) row->blocks[1] = row->blocks[0];
    row->q_layout = chosen & 4 ? ADV_LAYOUT_SEQ_MINOR : ADV_LAYOUT_HEAD_DIM_MINOR;
    row->k_layout = chosen & 2 ? ADV_LAYOUT_SEQ_MINOR : ADV_LAYOUT_HEAD_DIM_MINOR;
    row->v_layout = chosen & 1 ? ADV_LAYOUT_SEQ_MINOR : ADV_LAYOUT_HEAD_DIM_MINOR;
}

static bool same_attention(const struct attention_key *a, const struct attention_key *b)
{
    return a->q_len == b->q_len && a->kv_len == b->kv_len && a->context_shards == b->context_shards &&
           a->vmem_kib == b->vmem_kib && a->dq_reduction_steps == b->dq_reduction_steps &&
           a->load_balanced == b->load_balanced && a->ring == b->ring && a->max_logit == b->max_logit &&
           a->scheduler == b->scheduler && a->fused == b->fused && a->tokamax == b->tokamax;
}

/* The row of `key`, tuned: what nobody tuned before is tuned here, beside what others tune. */
static struct attention_row attention_row(struct adv_tile_memo *memo, const struct attention_key *key,
                                          const struct adv_plan *plan)
{
    struct attention_row *row = NULL, own = {.key = *key, .tuned = true};
    const int known = atomic_load_explicit(&memo->attention_known, memory_order_acquire);
    for (int i = 0; i < known; i++)
        if (same_attention(&memo->attention[i].key, key)) return memo->attention[i];
    (void)pthread_mutex_lock(&memo->lock);
    for (int i = 0; i < memo->attention_count && !row; i++)
        if (same_attention(&memo->attention[i].key, key)) row = &memo->attention[i];
    if (row) {
        while (!row->tuned) (void)pthread_cond_wait(&memo->tuned, &memo->lock);
        own = *row;
        (void)pthread_mutex_unlock(&memo->lock);
        return own;
    }
    if (memo->attention_count < MEMO_ROWS) {
        row = &memo->attention[memo->attention_count++];
        *row = (struct attention_row){.key = *key};
    }
    (void)pthread_mutex_unlock(&memo->lock);
    tune_row(memo, plan, &own);
    if (!row) return own;
    (void)pthread_mutex_lock(&memo->lock);
    *row = own;
    int tuned = atomic_load_explicit(&memo->attention_known, memory_order_relaxed);
    while (tuned < memo->attention_count && memo->attention[tuned].tuned) tuned++;
    atomic_store_explicit(&memo->attention_known, tuned, memory_order_release);
    (void)pthread_cond_broadcast(&memo->tuned);
    (void)pthread_mutex_unlock(&memo->lock);
    return own;
}

static bool apply_attention(struct adv_tile_memo *memo, struct adv_plan *plan)
{
    bool ulysses = plan->family.cp_strategy == ADV_CP_ULYSSES; /* sequences are whole while attention runs */
    int context = adv_plan_sequence_shards(plan);
    int shards = ulysses ? 1 : context;
    struct attention_key key = {
        plan->family.seq_len / shards,
        plan->family.seq_len,
        shards,
        plan->flags.scoped_vmem_limit_kib,
        plan->family.dq_reduction_steps,
        plan->family.cp_load_balance,
        adv_plan_circulates_keys(plan),
        plan->family.max_logit_estimate > 0,
        plan->family.use_splash_scheduler,
        plan->family.use_fused_bwd || plan->family.use_tokamax_splash,
        plan->family.use_tokamax_splash,
    };
    const struct attention_row row = attention_row(memo, &key, plan);
    if (!row.found) return false;
    plan->family.blocks[0] = row.blocks[0];
    plan->family.blocks[1] = row.blocks[1];
    plan->family.q_layout = row.q_layout;
    plan->family.k_layout = row.k_layout;
    plan->family.v_layout = row.v_layout;
    return true;
}

static const struct adv_layer *expert_layer(const struct adv_model *model)
{
    for (int i = 0; i < model->layer_kinds_count; i++)
        if (model->layers[i].experts > 0) return &model->layers[i];
    return NULL;
}

/* MaxText's names for the tile of one pass: batch_seq the rows, embed_dim and mlp_dim whatever the pass
 * contracts. */
static struct adv_gmm_blocks named_tile(int matrix, int pass, const struct adv_gmm_tile *tile)
{
    bool contracts_embed = pass == ADV_GMM_DRHS ? matrix == 0 : (matrix == 0) == (pass == ADV_GMM_FWD);
    return (struct adv_gmm_blocks){
        .batch_seq = tile->tile_m,
        .embed_dim = contracts_embed ? tile->tile_k : tile->tile_n,
        .mlp_dim = contracts_embed ? tile->tile_n : tile->tile_k,
    };
}

static struct adv_gmm_tile tile_named(int matrix, int pass, const struct adv_gmm_blocks *blocks)
{
    const struct adv_gmm_tile in_order = {blocks->batch_seq, blocks->embed_dim, blocks->mlp_dim, 2};
    const struct adv_gmm_blocks there = named_tile(matrix, pass, &in_order);
    return (struct adv_gmm_tile){blocks->batch_seq, there.embed_dim, there.mlp_dim, 2};
}

struct expert_best {
    double time_s;
    bool *found;
    struct adv_gmm_blocks *blocks;
};

static void keep_if_best(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                         int matrix, int pass, struct adv_gmm_tile *tile, struct expert_best *best)
{
    struct adv_kernel_time time;
    tile->input_buffer_count = 2; /* MaxText has no key for more */
    if (adv_gmm_time(machine, request->kernel, &request->gmm, tile, &time, NULL) ||
        !adv_vmem_compiles(machine->chip, request->kernel, time.vmem_bytes, time.vmem_limit_bytes) ||
        time.time_s >= best->time_s)
        return;
    best->time_s = time.time_s;
    *best->found = true;
    *best->blocks = named_tile(matrix, pass, tile);
}

static void tune_expert_pass(const struct adv_kernel_machine *machine,
                             const struct adv_kernel_request *request, int matrix, int pass,
                             const struct adv_gmm_blocks *pins, struct expert_best *best)
{
    enum { SHORT_LIST = 16 };
    struct adv_gmm_tile tiles[ADV_GMM_SPACE_MAX];
    struct adv_kernel_time times[SHORT_LIST];
    struct adv_ranking ranking = {.top_k = SHORT_LIST, .tiles = tiles, .times = times};
    if (!adv_tile_pins_gmm(pins)) {
        if (adv_tune(machine, request, &ranking, NULL) != ADV_OK) return;
    } else {
        ranking.count = adv_kernel_family_of(request->kernel)->list_tiles(machine, request, false, tiles);
    }
    for (int i = 0; i < ranking.count; i++) {
        struct adv_gmm_blocks blocks = named_tile(matrix, pass, &tiles[i]);
        adv_tile_pins_set_gmm(pins, &blocks);
        tiles[i] = tile_named(matrix, pass, &blocks);
        keep_if_best(machine, request, matrix, pass, &tiles[i], best);
    }
}

static void tune_experts(const struct adv_tile_memo *memo, struct expert_row *row)
{
    struct adv_kernel_machine machine = machine_of(memo, row->key.vmem_kib);
    int64_t emb = row->key.input, width = row->key.width;
    for (int matrix = 0; matrix < 2; matrix++) {
        for (int pass = 0; pass < ADV_GMM_PASSES; pass++) {
            const struct adv_gmm_blocks *pins = &memo->pins.gmm_blocks[matrix][pass];
            int64_t in = matrix == 0 ? emb : width, out = matrix == 0 ? width : emb;
            struct adv_gmm_shape shape = {
                .m = adv_round_up(row->key.rows_per_group * TUNE_GROUPS, adv_max_i(1, pins->batch_seq)),
                .k = pass == ADV_GMM_DLHS ? out : in,
                .n = pass == ADV_GMM_DLHS ? in : out,
                .num_groups = TUNE_GROUPS,
                .distribution = ADV_GROUPS_MULTINOMIAL,
                .rhs_transposed = pass == ADV_GMM_DLHS,
                .lhs = row->key.format,
                .rhs = row->key.format,
                .out = ADV_FORMAT_BF16,
                .version = row->key.version,
            };
            const bool transposed = pass == ADV_GMM_DRHS && shape.version == 1; /* as in cost/moe.c */
            const struct adv_kernel_request request = {
                .kernel = transposed ? ADV_KERNEL_TGMM : ADV_KERNEL_GMM, .gmm = shape};
            struct expert_best best = {(double)INFINITY, &row->found[matrix][pass],
                                       &row->blocks[matrix][pass]};
            tune_expert_pass(&machine, &request, matrix, pass, pins, &best);
        }
    }
}

static int64_t power_of_two_near(double value)
{
    int64_t power = 64;
    while (power < 8192 && (double)power * 1.5 < value) power *= 2;
    return power;
}

/* Tiles are tuned for a round number of rows. Rows are padded to the row tile of wi's forward pass; those of
 * the other passes shrink to what cuts them evenly, too (plan_rules_tiles.c). */
static void cut_rows_evenly(double rows, struct adv_plan *plan)
{
    const int64_t padded =
        adv_round_up((int64_t)(rows + 0.5), adv_max_i(1, plan->family.gmm_blocks[0][0].batch_seq));
    for (int i = 0; i < 2 * ADV_GMM_PASSES; i++) {
        struct adv_gmm_blocks *blocks = &plan->family.gmm_blocks[i / ADV_GMM_PASSES][i % ADV_GMM_PASSES];
        if (blocks->batch_seq < padded) blocks->batch_seq = (int)adv_gcd(blocks->batch_seq, padded);
    }
}

static bool same_experts(const struct expert_key *a, const struct expert_key *b)
{
    return a->rows_per_group == b->rows_per_group && a->input == b->input && a->width == b->width &&
           a->vmem_kib == b->vmem_kib && a->version == b->version && a->format == b->format;
}

/* As attention_row. */
static struct expert_row expert_row(struct adv_tile_memo *memo, const struct expert_key *key)
{
    struct expert_row *row = NULL, own = {.key = *key, .tuned = true};
    const int known = atomic_load_explicit(&memo->experts_known, memory_order_acquire);
    for (int i = 0; i < known; i++)
        if (same_experts(&memo->experts[i].key, key)) return memo->experts[i];
    (void)pthread_mutex_lock(&memo->lock);
    for (int i = 0; i < memo->expert_count && !row; i++)
        if (same_experts(&memo->experts[i].key, key)) row = &memo->experts[i];
    if (row) {
        while (!row->tuned) (void)pthread_cond_wait(&memo->tuned, &memo->lock);
        own = *row;
        (void)pthread_mutex_unlock(&memo->lock);
        return own;
    }
    if (memo->expert_count < MEMO_ROWS) {
        row = &memo->experts[memo->expert_count++];
        *row = (struct expert_row){.key = *key};
    }
    (void)pthread_mutex_unlock(&memo->lock);
    tune_experts(memo, &own);
    if (!row) return own;
    (void)pthread_mutex_lock(&memo->lock);
    *row = own;
    int tuned = atomic_load_explicit(&memo->experts_known, memory_order_relaxed);
    while (tuned < memo->expert_count && memo->experts[tuned].tuned) tuned++;
    atomic_store_explicit(&memo->experts_known, tuned, memory_order_release);
    (void)pthread_cond_broadcast(&memo->tuned);
    (void)pthread_mutex_unlock(&memo->lock);
    return own;
}

static bool apply_experts(struct adv_tile_memo *memo, struct adv_plan *plan)
{
    const struct adv_layer *layer = expert_layer(memo->model);
    bool fp8 = plan->family.quantization == ADV_QUANT_FP8_FULL;
    bool all = true;
    if (!layer || !adv_plan_reads_expert_tiles(plan)) return true;
    int tp = plan->family.ici[ADV_AXIS_TENSOR] * plan->family.ici[ADV_AXIS_TENSOR_SEQUENCE];
    double groups = adv_max(1, (double)layer->experts / plan->family.ici[ADV_AXIS_EXPERT]);
    double rows = adv_plan_expert_rows(plan, layer);
    struct expert_key key = {
        power_of_two_near(rows / groups),
        layer->moe_input_dim,
        layer->moe_mlp_dim / tp,
        plan->flags.scoped_vmem_limit_kib,
        plan->family.moe == ADV_MOE_GMM_V2 ? 2 : 1,
        fp8 ? ADV_FORMAT_FP8 : ADV_FORMAT_BF16,
    };
    const struct expert_row row = expert_row(memo, &key);
    for (int i = 0; i < 2 * ADV_GMM_PASSES; i++) {
        const int matrix = i / ADV_GMM_PASSES, pass = i % ADV_GMM_PASSES;
        if (row.found[matrix][pass]) plan->family.gmm_blocks[matrix][pass] = row.blocks[matrix][pass];
        all = all && row.found[matrix][pass];
    }
    if (key.version == 1 && adv_plan_degree(plan, ADV_AXIS_EXPERT) == 1) cut_rows_evenly(rows, plan);
    for (int i = 0; i < 2 * ADV_GMM_PASSES; i++)
        adv_tile_pins_set_gmm(&memo->pins.gmm_blocks[i / ADV_GMM_PASSES][i % ADV_GMM_PASSES],
                              &plan->family.gmm_blocks[i / ADV_GMM_PASSES][i % ADV_GMM_PASSES]);
    return all;
}

bool adv_tile_memo_apply(struct adv_tile_memo *memo, struct adv_plan *plan)
{
    const bool attends = plan->family.attention != ADV_ATTENTION_IMPL_FLASH || apply_attention(memo, plan);
    return apply_experts(memo, plan) && attends;
}

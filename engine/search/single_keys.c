#include "engine/search/single_keys.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "engine/hardware/mesh.h"
#include "engine/search/batch.h"
#include "engine/search/choices.h"
#include "engine/search/remat_space.h"

enum { KEYS = 128, VALUES = 16, VALUE_BYTES = 8, STAGES_LEAST = 2 };

/* What has to be so for a key to be read at all: without it, a plan that changes the key is predicted like
 * the one that does not, with a key to spare (a property test holds the cost model to it). */
enum need {
    NEEDS_NOTHING,
    NEEDS_CUSTOM_REMAT,
    NEEDS_CONTEXT,
    NEEDS_STAGES,
    NEEDS_EXPERTS,
    NEEDS_EXPERT_TILES,
    NEEDS_SPLIT_BACKWARD
};

/* One key: where it lives in a plan, and what it may become. */
struct key {
    size_t offset, bytes;
    bool in_local_blocks; /* the tile of local layers follows */
    bool is_policy;
    enum need need;
    int count;
    unsigned char values[VALUES][VALUE_BYTES];
};

struct walk {
    struct adv_pricer *pricer;
    const struct adv_advise_request *request;
    const struct adv_plan *baseline;
    double baseline_batch, workload_batch;
    void (*found)(void *context, const struct adv_plan *plan);
    void *context;
    int keys_count;
    struct key keys[KEYS];
    int mesh_end, batch_end; /* keys from here on do not change the mesh, nor the batch */
    long visits, visits_most;
};

/* The key of the next value; its own value of the baseline is never added. NULL: pinned, or no room. */
static struct key *open_key(struct walk *walk, const char *name, size_t offset, size_t bytes)
{
    if (walk->keys_count == KEYS || adv_request_pins(walk->request, name)) return NULL;
    struct key *key = &walk->keys[walk->keys_count++];
    *key = (struct key){.offset = offset, .bytes = bytes};
    return key;
}

static void add_value(const struct walk *walk, struct key *key, const void *value)
{
    if (!key || key->count == VALUES) return;
    if (!memcmp((const char *)walk->baseline + key->offset, value, key->bytes)) return;
    memcpy(key->values[key->count++], value, key->bytes);
}

static void add_ints(const struct walk *walk, struct key *key, const int *values, int count)
{
    for (int i = 0; i < count; i++) add_value(walk, key, &values[i]);
}

#define OPEN(name, member)                                                                                   \
    open_key(walk, name, offsetof(struct adv_plan, member), sizeof walk->baseline->member)

static void list_mesh(struct walk *walk)
{
    const struct adv_cluster *cluster = &walk->request->cluster;
    for (int network = 0; network < 2; network++) {
        int whole = network ? cluster->slices : cluster->devices_per_slice;
        for (int axis = 0; axis < ADV_AXIS_COUNT; axis++) {
            const int *now = network ? walk->baseline->dcn : walk->baseline->ici;
            if (!walk->request->axis_allowed[axis] && now[axis] == 1) continue;
            char name[ADV_LIMIT_NAME];
            (void)snprintf(name, sizeof name, "%s_%s_parallelism", network ? "dcn" : "ici",
                           adv_axis_key((enum adv_axis)axis));
            size_t start = network ? offsetof(struct adv_plan, dcn) : offsetof(struct adv_plan, ici);
            struct key *key = open_key(walk, name, start + (size_t)axis * sizeof(int), sizeof(int));
            for (int degree = 1; degree <= whole; degree++)
                if (whole % degree == 0) add_value(walk, key, &degree);
        }
    }
}

static void list_batch(struct walk *walk)
{
    struct adv_batch_split splits[ADV_BATCH_SPLITS];
    int count = adv_batch_splits(walk->request, splits, NULL);
    struct key *size = OPEN("per_device_batch_size", per_device_batch_size);
    for (int i = 0; i < count; i++) add_value(walk, size, &splits[i].per_device_batch_size);
    struct key *steps = OPEN("gradient_accumulation_steps", gradient_accumulation_steps);
    for (int i = 0; i < count; i++) add_value(walk, steps, &splits[i].gradient_accumulation_steps);
    for (int power = -3; power <= 3; power++) { /* of the baseline's own batch */
        double scaled = walk->baseline->per_device_batch_size * exp2(power);
        int scaled_steps = (int)(walk->baseline->gradient_accumulation_steps * exp2(power));
        add_value(walk, size, &scaled);
        if (scaled_steps >= 1) add_value(walk, steps, &scaled_steps);
    }
}

static void list_remat(struct walk *walk)
{
    struct adv_remat_space space;
    adv_remat_space_build(walk->request, &space);
    struct key *policy = OPEN("remat_policy", policy);
    if (policy) policy->is_policy = true;
    for (int i = 0; i < ADV_POLICY_COUNT; i++) {
        enum adv_policy value = (enum adv_policy)i;
        if (i != ADV_POLICY_NONE) add_value(walk, policy, &value);
    }
    for (int i = -1; i < space.units_count; i++) { /* -1: the layer input */
        if (i < 0 && !space.input_may_offload) continue;
        enum adv_tensor tensor = i < 0 ? ADV_TENSOR_DECODER_LAYER_INPUT : space.units[i].tensor;
        size_t at = offsetof(struct adv_plan, placements) + (size_t)tensor * sizeof(enum adv_placement);
        struct key *key = open_key(walk, adv_tensor_name(tensor), at, sizeof(enum adv_placement));
        if (!key) continue;
        key->need = NEEDS_CUSTOM_REMAT; /* MaxText would not look at it */
        bool custom = walk->baseline->policy == ADV_POLICY_CUSTOM;
        for (int p = i < 0 ? ADV_PLACE_DEVICE : ADV_PLACE_REMAT; p <= ADV_PLACE_OFFLOAD; p++) {
            enum adv_placement value = (enum adv_placement)p;
            bool usual = p == (i < 0 ? ADV_PLACE_DEVICE : ADV_PLACE_REMAT);
            if (custom) {
                add_value(walk, key, &value);
            } else if (!usual && key->count < VALUES) { /* beside a new remat_policy=custom */
                memcpy(key->values[key->count++], &value, sizeof value);
            }
        }
    }
}

static void list_blocks(struct walk *walk)
{
    static const int sizes[] = {256, 512, 1024, 2048, 4096, 8192};
    enum { SIZES = sizeof sizes / sizeof *sizes };
#define BLOCK(member)                                                                                        \
    {                                                                                                        \
        "sa_" #member, offsetof(struct adv_plan, blocks[0].member),                                          \
            offsetof(struct adv_plan, blocks[1].member)                                                      \
    }
    static const struct {
        const char *name;
        size_t global, local;
    } blocks[] = {BLOCK(block_q),      BLOCK(block_kv),   BLOCK(block_kv_compute),     BLOCK(block_q_dkv),
                  BLOCK(block_kv_dkv), BLOCK(block_q_dq), BLOCK(block_kv_dkv_compute), BLOCK(block_kv_dq)};
#undef BLOCK
    const char *plan = (const char *)walk->baseline;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        struct key *key = open_key(walk, blocks[i].name, blocks[i].global, sizeof(int));
        if (!key) continue;
        key->in_local_blocks = !memcmp(plan + blocks[i].global, plan + blocks[i].local, sizeof(int));
        if (strstr(blocks[i].name, "_dq")) key->need = NEEDS_SPLIT_BACKWARD;
        for (int s = 0; s < SIZES; s++)
            if (sizes[s] <= walk->baseline->seq_len) add_value(walk, key, &sizes[s]);
    }
}

static void list_expert_tiles(struct walk *walk)
{
    static const int sizes[] = {128, 256, 512, 1024, 2048, 4096};
    static const char *const passes[ADV_GMM_PASSES] = {"fwd", "dlhs", "drhs"};
    static const char *const sides[] = {"batch_seq", "embed_dim", "mlp_dim"};
    if (!adv_model_has_experts(&walk->request->model)) return;
    for (int i = 0; i < 2 * ADV_GMM_PASSES * 3; i++) {
        char name[ADV_LIMIT_NAME];
        (void)snprintf(name, sizeof name, "%s_tile_%s_%s", i / 9 ? "wo" : "wi", passes[i / 3 % 3],
                       sides[i % 3]);
        struct key *key = open_key(
            walk, name, offsetof(struct adv_plan, gmm_blocks) + (size_t)i * sizeof(int), sizeof(int));
        if (key) key->need = NEEDS_EXPERT_TILES;
        add_ints(walk, key, sizes, sizeof sizes / sizeof *sizes);
    }
}

static void list_bool(struct walk *walk, const char *name, size_t offset, enum need need)
{
    const bool values[] = {false, true};
    struct key *key = open_key(walk, name, offset, sizeof(bool));
    if (key) key->need = need;
    for (int i = 0; i < 2; i++) add_value(walk, key, &values[i]);
}

/* Kernels that are one key away from the baseline's. Nobody leaves a kernel for ragged dot, nor one of the
 * dropless ones for the einsums: those keys are not tried. */
static void list_grouped_matmul(struct walk *walk)
{
    static const struct {
        enum adv_moe_impl from, to;
        const char *name;
    } steps[] = {{ADV_MOE_MEGABLOX, ADV_MOE_TOKAMAX, "use_tokamax_gmm"},
                 {ADV_MOE_TOKAMAX, ADV_MOE_MEGABLOX, "use_tokamax_gmm"},
                 {ADV_MOE_RAGGED_DOT, ADV_MOE_TOKAMAX, "use_tokamax_gmm"},
                 {ADV_MOE_RAGGED_DOT, ADV_MOE_MEGABLOX, "megablox"}};
    if (!adv_model_has_experts(&walk->request->model)) return;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (steps[i].from != walk->baseline->moe) continue;
        struct key *key = open_key(walk, steps[i].name, offsetof(struct adv_plan, moe), sizeof steps[i].to);
        add_value(walk, key, &steps[i].to);
    }
}

static void list_kernels(struct walk *walk)
{
    static const struct {
        const char *name;
        size_t offset;
        enum need need;
    } switches[] = {
        {"use_tokamax_splash", offsetof(struct adv_plan, use_tokamax_splash), NEEDS_NOTHING},
        {"sa_use_fused_bwd_kernel", offsetof(struct adv_plan, use_fused_bwd), NEEDS_NOTHING},
        {"use_iota_embed", offsetof(struct adv_plan, use_iota_embed), NEEDS_NOTHING},
        {"optimizer_memory_host_offload", offsetof(struct adv_plan, optimizer_host_offload), NEEDS_NOTHING},
        {"use_ring_of_experts", offsetof(struct adv_plan, use_ring_of_experts), NEEDS_EXPERTS},
        {"context_parallel_load_balance", offsetof(struct adv_plan, cp_load_balance), NEEDS_CONTEXT},
    };
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        list_bool(walk, switches[i].name, switches[i].offset, switches[i].need);
    const char *two_stage = adv_model_has_experts(&walk->request->model)
                                ? "moe_fsdp_use_two_stage_all_gather"
                                : "dense_fsdp_use_two_stage_all_gather";
    const int *ici = walk->baseline->ici; /* without both axes the key says nothing */
    if (ici[ADV_AXIS_FSDP] > 1 && ici[ADV_AXIS_FSDP_TRANSPOSE] > 1)
        list_bool(walk, two_stage, offsetof(struct adv_plan, two_stage_gather), NEEDS_NOTHING);
    static const int tilings[] = {1, 2, 4, 8, 16};
    add_ints(walk, OPEN("num_vocab_tiling", num_vocab_tiling), tilings, 5);
    struct key *strategy = OPEN("context_parallel_strategy", cp_strategy);
    if (strategy) strategy->need = NEEDS_CONTEXT;
    for (int i = ADV_CP_ALL_GATHER; i <= ADV_CP_USP; i++) {
        enum adv_cp_strategy value = (enum adv_cp_strategy)i;
        add_value(walk, strategy, &value);
    }
    struct key *layouts[] = {OPEN("sa_q_layout", q_layout), OPEN("sa_k_layout", k_layout),
                             OPEN("sa_v_layout", v_layout)};
    for (int i = 0; i < 3; i++)
        for (int l = ADV_LAYOUT_HEAD_DIM_MINOR; l <= ADV_LAYOUT_SEQ_MINOR; l++) {
            enum adv_layout value = (enum adv_layout)l;
            add_value(walk, layouts[i], &value);
        }
    list_grouped_matmul(walk);
}

static void list_pipeline(struct walk *walk)
{
    struct key *depth = OPEN("num_layers_per_pipeline_stage", layers_per_stage);
    struct key *micro = OPEN("num_pipeline_microbatches", pipeline_microbatches);
    if (depth) depth->need = NEEDS_STAGES;
    if (micro) micro->need = NEEDS_STAGES;
    int pipelined = adv_plan_pipelined_layers(walk->baseline, &walk->request->model);
    for (int stages = STAGES_LEAST; stages <= pipelined; stages++) {
        if (pipelined % stages != 0) continue;
        int layers = pipelined / stages, twice = 2 * stages;
        add_value(walk, depth, &layers);
        add_value(walk, micro, &stages);
        add_value(walk, micro, &twice);
    }
    int one = 1;
    add_value(walk, depth, &one);
}

static void list_formats(struct walk *walk)
{
    if (!walk->request->workload.any_quantization) return;
    static const enum adv_quantization formats[] = {ADV_QUANT_NONE, ADV_QUANT_INT8, ADV_QUANT_FP8_FULL};
    struct key *key = OPEN("quantization", quantization);
    for (int i = 0; i < 3; i++) add_value(walk, key, &formats[i]);
    list_bool(walk, "use_qwix_quantization", offsetof(struct adv_plan, use_qwix), NEEDS_NOTHING);
}

/* The flags that a prediction reads; fusion of other collectives follows that of gathers there.
 */
static void list_flags(struct walk *walk)
{
    static const int limits[] = {0, 49152, 61440, 65536, 81920, 98304};
    static const size_t offsets[] = {
        offsetof(struct adv_plan, flags.sc_all_gather), offsetof(struct adv_plan, flags.sc_reduce_scatter),
        offsetof(struct adv_plan, flags.sc_all_reduce), offsetof(struct adv_plan, flags.cf_all_gather),
        offsetof(struct adv_plan, flags.async_all_gather)};
    add_ints(walk, OPEN("", flags.scoped_vmem_limit_kib), limits, sizeof limits / sizeof *limits);
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        struct key *key = open_key(walk, "", offsets[i], 1);
        for (signed char value = 0; value <= 1; value++) add_value(walk, key, &value);
    }
}

/* Keys without another value only cost time. */
static void drop_idle(struct walk *walk)
{
    int left = 0;
    for (int i = 0; i < walk->keys_count; i++)
        if (walk->keys[i].count > 0) walk->keys[left++] = walk->keys[i];
    walk->keys_count = left;
}

static void set(const struct key *key, int value, struct adv_plan *plan)
{
    memcpy((char *)plan + key->offset, key->values[value], key->bytes);
    if (key->in_local_blocks)
        memcpy((char *)plan + key->offset + sizeof plan->blocks[0], key->values[value], key->bytes);
    if (key->is_policy) adv_policy_placements(plan->policy, plan->placements);
}

static bool right_batch(const struct walk *walk, const struct adv_plan *plan)
{
    double batch = adv_plan_global_batch(plan, &walk->request->cluster);
    return batch == walk->baseline_batch || batch == walk->workload_batch;
}

static void offer(struct walk *walk, const struct adv_plan *plan, int keys_left)
{
    const struct adv_cluster *cluster = &walk->request->cluster;
    if (!right_batch(walk, plan) || adv_plan_broken_rule(plan, &walk->request->model, cluster)) return;
    struct adv_plan split = *plan;
    if (memcmp(plan->ici, walk->baseline->ici, sizeof plan->ici) != 0 && !plan->allow_split_physical_axes) {
        struct adv_mesh mesh;
        if (adv_mesh_place(cluster, plan, &mesh, NULL) != ADV_OK) return;
        split.allow_split_physical_axes = mesh.split_axes_count > 0;
        if (split.allow_split_physical_axes && keys_left == 0) return; /* that is one key more */
    }
    walk->found(walk->context, &split);
}

/* Degrees that do not multiply to the devices are no mesh. */
static bool right_mesh(const struct walk *walk, const struct adv_plan *plan)
{
    long ici = 1, dcn = 1;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        ici *= plan->ici[i];
        dcn *= plan->dcn[i];
    }
    return ici == walk->request->cluster.devices_per_slice && dcn == walk->request->cluster.slices;
}

static bool is_read(const struct key *key, const struct adv_plan *plan)
{
    switch (key->need) {
    case NEEDS_CUSTOM_REMAT:
        return plan->policy == ADV_POLICY_CUSTOM;
    case NEEDS_CONTEXT:
        return adv_plan_degree(plan, ADV_AXIS_CONTEXT) > 1 || adv_plan_degree(plan, ADV_AXIS_ULYSSES) > 1;
    case NEEDS_STAGES:
        return adv_plan_degree(plan, ADV_AXIS_STAGE) > 1;
    case NEEDS_EXPERTS:
        return adv_plan_degree(plan, ADV_AXIS_EXPERT) > 1;
    case NEEDS_EXPERT_TILES:
        return adv_plan_reads_expert_tiles(plan);
    case NEEDS_SPLIT_BACKWARD:
        return !plan->use_fused_bwd && !plan->use_tokamax_splash;
    case NEEDS_NOTHING:
        break;
    }
    return true;
}

/* Sets up to `left` of the keys from `from` on, in all ways. What no later key can put right is not gone
 * into: a mesh of other devices, and another batch. With visits_most set it only counts. */
static void descend(struct walk *walk, const struct adv_plan *plan, int from, int left)
{
    bool counts = walk->visits_most > 0;
    walk->visits++;
    if (!counts) offer(walk, plan, left);
    for (int k = from; left > 0 && k < walk->keys_count && !walk->pricer->spent; k++) {
        const struct key *key = &walk->keys[k];
        if (k >= walk->mesh_end && !right_mesh(walk, plan)) return;
        if (k >= walk->batch_end && !right_batch(walk, plan)) return;
        if (!is_read(key, plan)) continue;
        for (int value = 0; value < key->count; value++) {
            struct adv_plan changed = *plan;
            if (counts && walk->visits > walk->visits_most) return;
            set(key, value, &changed);
            descend(walk, &changed, k + 1, left - 1);
        }
    }
}

/* The most keys up to which all plans can be gone through. */
static int depth_of(struct walk *walk, int keys)
{
    int depth = 0;
    walk->visits_most = ADV_SINGLE_KEYS_VISITS;
    while (depth < keys && depth < walk->keys_count) {
        walk->visits = 0;
        descend(walk, walk->baseline, 0, depth + 1);
        if (walk->visits > walk->visits_most) break;
        depth++;
    }
    walk->visits_most = 0;
    return depth < walk->keys_count ? depth : keys;
}

int adv_single_keys_visit(struct adv_pricer *pricer, const struct adv_plan *baseline, int keys,
                          struct adv_arena *arena, void (*found)(void *context, const struct adv_plan *plan),
                          void *context)
{
    struct walk *walk = adv_arena_alloc(arena, sizeof *walk);
    if (!walk) return 0;
    *walk = (struct walk){.pricer = pricer,
                          .request = pricer->request,
                          .baseline = baseline,
                          .found = found,
                          .context = context};
    struct adv_batch_split split[ADV_BATCH_SPLITS];
    walk->baseline_batch = walk->workload_batch = adv_plan_global_batch(baseline, &pricer->request->cluster);
    if (adv_batch_splits(pricer->request, split, NULL) > 0)
        walk->workload_batch = split[0].per_device_batch_size * split[0].gradient_accumulation_steps *
                               pricer->request->cluster.devices;
    list_remat(walk); /* the policy before the tensors it decides about */
    list_mesh(walk);
    drop_idle(walk);
    walk->mesh_end = walk->keys_count;
    list_batch(walk);
    drop_idle(walk);
    walk->batch_end = walk->keys_count;
    list_kernels(walk);
    list_pipeline(walk);
    list_blocks(walk);
    list_formats(walk);
    list_expert_tiles(walk); /* behind what decides whether they are read */
    list_flags(walk);
    bool room = walk->keys_count < KEYS;
    drop_idle(walk);
    int depth = depth_of(walk, keys);
    descend(walk, baseline, 0, depth);
    return pricer->spent || !room ? 0 : depth;
}

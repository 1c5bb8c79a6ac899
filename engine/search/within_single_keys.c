#include "engine/search/within_changes.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "engine/hardware/mesh.h"
#include "engine/maxtext/keys.h"
#include "engine/maxtext/names.h"
#include "engine/search/space_batch.h"
#include "engine/search/space_choices.h"
#include "engine/search/remat_space.h"

enum { KEYS = 128, VALUES = 16, VALUE_BYTES = 8, STAGES_LEAST = 2 };

/* One key: where it lives in a plan, and what it may become. */
struct key {
    const struct adv_key *row; /* NULL: an XLA flag */
    size_t offset, bytes;
    bool in_local_blocks; /* the tile of local layers follows */
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

static struct key *open_row(struct walk *walk, const struct adv_key *row)
{
    struct key *key = open_key(walk, row->name, row->plan_at, row->plan_bytes);
    if (key) key->row = row;
    return key;
}

static void add_value(const struct walk *walk, struct key *key, const void *value)
{
    if (!key || key->count == VALUES) return;
    if (!memcmp((const char *)walk->baseline + key->offset, value, key->bytes)) return;
    memcpy(key->values[key->count++], value, key->bytes);
}

static void add_number(const struct walk *walk, struct key *key, double number)
{
    unsigned char value[VALUE_BYTES];
    if (!key) return;
    adv_key_put(key->row, value, key->bytes, number);
    add_value(walk, key, value);
}

static void add_values(const struct walk *walk, struct key *key)
{
    for (int i = 0; key && i < key->row->values_count; i++) add_number(walk, key, key->row->values[i]);
}

static void try_listed(struct walk *walk, const struct adv_key *row)
{
    add_values(walk, open_row(walk, row));
}

/* Tiles up to the sequence; those of local layers follow where they do now. */
static void try_up_to_seq(struct walk *walk, const struct adv_key *row)
{
    struct key *key = open_row(walk, row);
    const char *global = (const char *)walk->baseline + row->plan_at;
    if (!key) return;
    key->in_local_blocks = !memcmp(global, global + sizeof walk->baseline->family.blocks[0], sizeof(int));
    for (int i = 0; i < row->values_count; i++)
        if (row->values[i] <= (double)walk->baseline->family.seq_len) add_number(walk, key, row->values[i]);
}

static void try_if_experts(struct walk *walk, const struct adv_key *row)
{
    if (adv_model_has_experts(&walk->request->model)) try_listed(walk, row);
}

static void try_if_format_open(struct walk *walk, const struct adv_key *row)
{
    if (walk->request->workload.any_quantization) try_listed(walk, row);
}

/* Without both axes the key says nothing. One of the two keys is enough: they say the same. */
static void try_if_two_stages(struct walk *walk, const struct adv_key *row)
{
    const int *ici = walk->baseline->family.ici;
    enum adv_key_of of = adv_model_has_experts(&walk->request->model) ? ADV_OF_EXPERTS : ADV_OF_DENSE;
    if (row->of == of && ici[ADV_AXIS_FSDP] > 1 && ici[ADV_AXIS_FSDP_TRANSPOSE] > 1) try_listed(walk, row);
}

static void try_policies(struct walk *walk, const struct adv_key *row)
{
    struct key *key = open_row(walk, row);
    for (int i = 0; i < ADV_POLICY_COUNT; i++)
        if (i != ADV_POLICY_NONE) add_number(walk, key, i);
}

/* In the order of the remat space, which says where a tensor may go. */
static void try_places(struct walk *walk, const struct adv_key *row)
{
    struct adv_remat_space space;
    bool custom = walk->baseline->policy == ADV_POLICY_CUSTOM;
    if (row->plan_at != offsetof(struct adv_plan, placements)) return; /* all with the first */
    adv_remat_space_build(walk->request, walk->pricer->constants, &space);
    for (int i = -1; i < space.units_count; i++) { /* -1: the layer input */
        if (i < 0 && !space.input_may_offload) continue;
        struct key *key = open_row(walk, i < 0 ? row : adv_key_find(adv_tensor_name(space.units[i].tensor)));
        for (int p = i < 0 ? (int)space.input_stays : ADV_PLACE_REMAT; key && p <= ADV_PLACE_OFFLOAD; p++) {
            if (custom)
                add_number(walk, key, p);
            else if (p != (int)key->row->usual && key->count < VALUES) /* beside a new remat_policy=custom */
                adv_key_put(key->row, key->values[key->count++], key->bytes, p);
        }
    }
}

static void try_degrees(struct walk *walk, const struct adv_key *row)
{
    bool is_dcn = row->of == ADV_OF_SLICES;
    const struct adv_plan *baseline = walk->baseline;
    const int *degrees = is_dcn ? baseline->family.dcn : baseline->family.ici;
    int whole = is_dcn ? walk->request->cluster.slices : walk->request->cluster.devices_per_slice;
    ptrdiff_t axis = (const int *)(const void *)((const char *)baseline + row->plan_at) - degrees;
    if (!walk->request->axis_allowed[axis] && degrees[axis] == 1) return;
    struct key *key = open_row(walk, row);
    for (int degree = 1; degree <= whole; degree++)
        if (whole % degree == 0) add_number(walk, key, degree);
}

static void try_batches(struct walk *walk, const struct adv_key *row)
{
    struct adv_batch_split splits[ADV_BATCH_SPLITS];
    int count = adv_batch_splits(walk->request, splits, NULL);
    struct key *key = open_row(walk, row);
    for (int i = 0; i < count; i++) add_number(walk, key, splits[i].per_device_batch_size);
    for (int power = -3; power <= 3; power++) /* of the baseline's own batch */
        add_number(walk, key, walk->baseline->family.per_device_batch_size * exp2(power));
}

static void try_steps(struct walk *walk, const struct adv_key *row)
{
    struct adv_batch_split splits[ADV_BATCH_SPLITS];
    int count = adv_batch_splits(walk->request, splits, NULL);
    struct key *key = open_row(walk, row);
    for (int i = 0; i < count; i++) add_number(walk, key, splits[i].gradient_accumulation_steps);
    for (int power = -3; power <= 3; power++) {
        int steps = (int)(walk->baseline->family.gradient_accumulation_steps * exp2(power));
        if (steps >= 1) add_number(walk, key, steps);
    }
}

static void try_stage_depths(struct walk *walk, const struct adv_key *row)
{
    struct key *key = open_row(walk, row);
    int layers = adv_plan_pipelined_layers(walk->baseline, &walk->request->model);
    for (int stages = STAGES_LEAST; stages <= layers; stages++)
        if (layers % stages == 0) add_number(walk, key, layers / stages);
    add_number(walk, key, 1);
}

static void try_microbatches(struct walk *walk, const struct adv_key *row)
{
    struct key *key = open_row(walk, row);
    int layers = adv_plan_pipelined_layers(walk->baseline, &walk->request->model);
    for (int stages = STAGES_LEAST; stages <= layers; stages++) {
        if (layers % stages != 0) continue;
        add_number(walk, key, stages);
        add_number(walk, key, 2 * stages);
    }
}

/* Kernels that are one key away from the baseline's. Nobody leaves a kernel for ragged dot, nor one of the
 * dropless ones for the einsums: those keys are not tried. */
static void try_grouped_matmuls(struct walk *walk, const struct adv_key *row)
{
    static const struct {
        enum adv_moe_impl from, to;
        const char *name;
    } steps[] = {{ADV_MOE_MEGABLOX, ADV_MOE_TOKAMAX, ADV_NAME_USE_TOKAMAX_GMM},
                 {ADV_MOE_TOKAMAX, ADV_MOE_MEGABLOX, ADV_NAME_USE_TOKAMAX_GMM},
                 {ADV_MOE_RAGGED_DOT, ADV_MOE_TOKAMAX, ADV_NAME_USE_TOKAMAX_GMM},
                 {ADV_MOE_RAGGED_DOT, ADV_MOE_MEGABLOX, ADV_NAME_MEGABLOX}};
    if (!adv_model_has_experts(&walk->request->model)) return;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (steps[i].from == walk->baseline->family.moe && strcmp(steps[i].name, row->name) == 0)
            add_value(walk, open_row(walk, row), &steps[i].to);
}

/* Opens the keys of these turns, with their values. */
static void list_turns(struct walk *walk, int first, int last)
{
    static void (*const tries[])(struct walk * walk, const struct adv_key *row) = {
        [ADV_TRIES_LISTED] = try_listed,
        [ADV_TRIES_UP_TO_SEQ] = try_up_to_seq,
        [ADV_TRIES_IF_EXPERTS] = try_if_experts,
        [ADV_TRIES_IF_FORMAT_OPEN] = try_if_format_open,
        [ADV_TRIES_IF_TWO_STAGES] = try_if_two_stages,
        [ADV_TRIES_POLICIES] = try_policies,
        [ADV_TRIES_PLACES] = try_places,
        [ADV_TRIES_DEGREES] = try_degrees,
        [ADV_TRIES_BATCHES] = try_batches,
        [ADV_TRIES_STEPS] = try_steps,
        [ADV_TRIES_STAGE_DEPTHS] = try_stage_depths,
        [ADV_TRIES_MICROBATCHES] = try_microbatches,
        [ADV_TRIES_GROUPED_MATMULS] = try_grouped_matmuls,
    };
    for (int turn = first; turn <= last; turn++)
        for (int i = 0; i < adv_keys_count; i++)
            if (adv_keys[i].turn == turn) tries[adv_keys[i].tries](walk, &adv_keys[i]);
}

/* The flags that a prediction reads; fusion of other collectives follows that of gathers there.
 */
static void list_flags(struct walk *walk)
{
    static const int limits[] = {0, 49152, 61440, 65536, 81920, 98304};
    static const size_t offsets[] = {
        offsetof(struct adv_plan, flags.sc_all_gather),
        offsetof(struct adv_plan, flags.sc_reduce_scatter),
        offsetof(struct adv_plan, flags.sc_all_reduce),
        offsetof(struct adv_plan, flags.cf_all_gather),
        offsetof(struct adv_plan, flags.async_all_gather),
        offsetof(struct adv_plan, flags.host_transfer_pipelining),
        offsetof(struct adv_plan, flags.sc_2d_all_gather), /* where they matter */
        offsetof(struct adv_plan, flags.sc_3d_all_gather)};
    enum { FLAGS = sizeof offsets / sizeof *offsets, OF_AXES = 2 };
    struct key *limit =
        open_key(walk, "", offsetof(struct adv_plan, flags.scoped_vmem_limit_kib), sizeof *limits);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) add_value(walk, limit, &limits[i]);
    const struct adv_flags *ignored = &walk->request->cluster.chip.ignored_flags;
    const int count = ignored->sc_all_gather == ADV_FLAG_IGNORED_ALONE ? FLAGS : FLAGS - OF_AXES;
    for (int i = 0; i < count; i++) {
        const size_t at = offsets[i] - offsetof(struct adv_plan, flags);
        if (((const char *)ignored)[at] == ADV_FLAG_IGNORED) continue;
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
        memcpy((char *)plan + key->offset + sizeof plan->family.blocks[0], key->values[value], key->bytes);
    if (key->row && key->row->tries == ADV_TRIES_POLICIES)
        adv_policy_placements(plan->policy, plan->placements);
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
    if (memcmp(plan->family.ici, walk->baseline->family.ici, sizeof plan->family.ici) != 0 &&
        !plan->family.allow_split_physical_axes) {
        struct adv_mesh mesh;
        if (adv_mesh_place(cluster, plan, &mesh, NULL) != ADV_OK) return;
        split.family.allow_split_physical_axes = mesh.needs_split;
        if (split.family.allow_split_physical_axes && keys_left == 0) return; /* that is one key more */
    }
    walk->found(walk->context, &split);
}

/* Degrees that do not multiply to the devices are no mesh. */
static bool right_mesh(const struct walk *walk, const struct adv_plan *plan)
{
    long ici = 1, dcn = 1;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        ici *= plan->family.ici[i];
        dcn *= plan->family.dcn[i];
    }
    return ici == walk->request->cluster.devices_per_slice && dcn == walk->request->cluster.slices;
}

/* Sets up to `left` of the keys from `from` on, in all ways. Combinations that no later key can put right are
 * not gone into: a mesh of other devices, and another batch. With visits_most set it only counts. */
static void descend(struct walk *walk, const struct adv_plan *plan, int from, int left)
{
    bool counts = walk->visits_most > 0;
    walk->visits++;
    if (!counts) offer(walk, plan, left);
    for (int k = from; left > 0 && k < walk->keys_count && !walk->pricer->spent; k++) {
        const struct key *key = &walk->keys[k];
        if (k >= walk->mesh_end && !right_mesh(walk, plan)) return;
        if (k >= walk->batch_end && !right_batch(walk, plan)) return;
        if (key->row && !adv_key_is_read(key->row, plan)) continue;
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
    list_turns(walk, ADV_TURN_REMAT, ADV_TURN_MESH);
    drop_idle(walk);
    walk->mesh_end = walk->keys_count;
    list_turns(walk, ADV_TURN_BATCH, ADV_TURN_BATCH);
    drop_idle(walk);
    walk->batch_end = walk->keys_count;
    list_turns(walk, ADV_TURN_BATCH + 1, ADV_TURN_LAST);
    list_flags(walk);
    bool room = walk->keys_count < KEYS;
    drop_idle(walk);
    int depth = depth_of(walk, keys);
    descend(walk, baseline, 0, depth);
    return pricer->spent || !room ? 0 : depth;
}

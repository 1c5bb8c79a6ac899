#include "engine/search/space_meshes.h"

#include <limits.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/search/space_choices.h"

/* Axes whose ICI degree is enumerated, in this order; fsdp takes what is left of the slice. */
static const enum adv_axis searched[] = {
    ADV_AXIS_FSDP_TRANSPOSE,  ADV_AXIS_STAGE,   ADV_AXIS_EXPERT,  ADV_AXIS_TENSOR,
    ADV_AXIS_TENSOR_SEQUENCE, ADV_AXIS_CONTEXT, ADV_AXIS_ULYSSES, ADV_AXIS_DATA,
};
enum { SEARCHED = sizeof searched / sizeof *searched };
/* Of the memory that is left, that the list may have. While it grows there are two of it. */
enum { LIST_PART = 8 };

enum { DIVISORS = 128 }; /* no slice of fewer than 83,160 devices has more */

/* Two context axes are published for sequences far beyond this; below, one is never short of shards. */
static const int64_t usp_least_seq_len = 32768;

/* fsdp_transpose keeps the width of experts sharded that XLA multiplies itself: up to what published steps
 * have. Grouped matmuls gather it as they gather fsdp. Then it serves to gather in two stages (beside data
 * and pipeline axes, by two), and beside experts that are sharded by their number over fsdp. */
static const int most_width_shards = 8, most_gather_stages = 2;

static int most_transposed(const struct adv_advise_request *request)
{
    const struct adv_plan *base = &request->workload.base;
    if (!adv_model_has_experts(&request->model)) return 1;
    /* where fsdp cannot take them, it is the only axis that shards as fsdp does */
    if (request->axis_pinned[ADV_AXIS_FSDP] || !request->axis_allowed[ADV_AXIS_FSDP])
        return most_width_shards;
    return base->family.moe == ADV_MOE_DENSE || adv_space_divides_experts(base) ? most_width_shards
                                                                                : most_gather_stages;
}

bool adv_space_divides_experts(const struct adv_plan *base)
{
    return base->family.shard_exp_on_fsdp || base->family.use_2d_fsdp_sharding ||
           base->family.rule != ADV_RULE_DEFAULT || base->family.quantization_static;
}

struct listing {
    const struct adv_advise_request *request;
    struct adv_arena *arena;
    struct adv_mesh_list *list;
    int capacity;
    short ici[ADV_AXIS_COUNT];
    int divisors[DIVISORS], divisors_count; /* of the devices that axes share, smallest first */
    adv_code code;
};

/* Ring attention has no kernel for windows and chunks, and for MLA only without packing, which only a
 * pin turns off. */
bool adv_space_offers_strategy(const struct adv_model *model, const struct adv_plan *base,
                               enum adv_cp_strategy strategy)
{
    for (int i = 0; i < model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &model->layers[i];
        bool plain = layer->attention == ADV_ATTENTION_FULL &&
                     (layer->kv_lora_rank == 0 || (strategy == ADV_CP_RING && !base->family.packing));
        if (strategy != ADV_CP_ALL_GATHER && !plain) return false;
    }
    return true;
}

/* Whether a degree of an axis is worth offering at all: divisibility that no other choice can repair. */
static bool degree_possible(const struct adv_advise_request *request, enum adv_axis axis, int degree)
{
    const struct adv_model *model = &request->model;
    if (degree == 1) return true;
    if (axis == ADV_AXIS_FSDP_TRANSPOSE) return degree <= most_transposed(request);
    if (axis == ADV_AXIS_EXPERT) return adv_model_has_experts(model);
    /* of several slices pipelines go between them: stages need the links least */
    if (axis == ADV_AXIS_STAGE) return degree <= model->layers_count && request->cluster.slices == 1;
    if (axis == ADV_AXIS_CONTEXT) return request->workload.seq_len % degree == 0;
    if (axis == ADV_AXIS_ULYSSES)
        return request->workload.seq_len >= usp_least_seq_len &&
               adv_space_offers_strategy(model, &request->workload.base, ADV_CP_USP);
    /* tensor_sequence moves the same bytes and shards the same matmuls as tensor: offered where tensor is not
     */
    if (axis == ADV_AXIS_TENSOR_SEQUENCE && request->axis_allowed[ADV_AXIS_TENSOR]) return false;
    if (axis == ADV_AXIS_TENSOR || axis == ADV_AXIS_TENSOR_SEQUENCE) {
        for (int i = 0; i < model->layer_kinds_count; i++)
            if (model->layers[i].kv_heads > 0 && model->layers[i].kv_heads % degree != 0) return false;
    }
    return true;
}

/* fsdp_transpose is for plans that do not shard the width (tensor) or the layers (stage) already, unless it
 * is pinned: so are all published ones, and beside tensor XLA holds whole stacks of experts (cost/memory.c).
 */
static bool shards_width_twice(const struct adv_advise_request *request, const short *ici)
{
    return ici[ADV_AXIS_FSDP_TRANSPOSE] > 1 && !request->axis_pinned[ADV_AXIS_FSDP_TRANSPOSE] &&
           ici[ADV_AXIS_TENSOR] * ici[ADV_AXIS_TENSOR_SEQUENCE] * ici[ADV_AXIS_STAGE] > 1;
}

static void add(struct listing *listing)
{
    struct adv_mesh_list *list = listing->list;
    if (adv_budget_over(listing->request->budget)) listing->code = ADV_E_TIMEOUT;
    if (list->count == list->most) {
        list->left_out++;
        return;
    }
    if (list->count == listing->capacity) {
        int capacity = listing->capacity > 0 ? 2 * listing->capacity : 256;
        if (capacity > list->most) capacity = list->most;
        short(*larger)[ADV_AXIS_COUNT] = adv_arena_grow(listing->arena, list->ici, (size_t)listing->capacity,
                                                        (size_t)capacity, sizeof *larger);
        if (!larger) {
            listing->code = ADV_E_MEMORY;
            return;
        }
        list->ici = larger;
        listing->capacity = capacity;
    }
    memcpy(list->ici[list->count++], listing->ici, sizeof listing->ici);
}

/* fsdp takes the `left` devices. */
static void close_mesh(struct listing *listing, int left)
{
    const struct adv_advise_request *request = listing->request;
    const bool pinned = request->axis_pinned[ADV_AXIS_FSDP];
    if (pinned && request->workload.base.family.ici[ADV_AXIS_FSDP] != left) return;
    if (!pinned && !request->axis_allowed[ADV_AXIS_FSDP] && left > 1) return;
    bool stands_for_fsdp = left == 1 && !pinned && !request->axis_pinned[ADV_AXIS_FSDP_TRANSPOSE] &&
                           request->axis_allowed[ADV_AXIS_FSDP];
    if (stands_for_fsdp && listing->ici[ADV_AXIS_FSDP_TRANSPOSE] > 1) return; /* fsdp says the same */
    if (shards_width_twice(request, listing->ici)) return;
    listing->ici[ADV_AXIS_FSDP] = (short)left;
    add(listing);
}

static void over_axes(struct listing *listing, int at, int left)
{
    const struct adv_advise_request *request = listing->request;
    if (at == SEARCHED) {
        close_mesh(listing, left);
        return;
    }
    const enum adv_axis axis = searched[at];
    for (int i = 0; i < listing->divisors_count && listing->divisors[i] <= left && listing->code == ADV_OK;
         i++) {
        const int degree = listing->divisors[i];
        if (left % degree != 0) continue;
        bool wanted = request->axis_pinned[axis] ? degree == request->workload.base.family.ici[axis]
                                                 : degree == 1 || (request->axis_allowed[axis] &&
                                                                   degree_possible(request, axis, degree));
        if (!wanted) continue;
        listing->ici[axis] = (short)degree;
        over_axes(listing, at + 1, left / degree);
    }
    listing->ici[axis] = 1;
}

adv_code adv_space_meshes(const struct adv_advise_request *request, struct adv_arena *arena,
                          struct adv_mesh_list *list)
{
    struct listing listing = {.request = request, .arena = arena, .list = list, .code = ADV_OK};
    int left = request->cluster.devices_per_slice;
    const size_t most = (arena->limit_bytes - arena->used_bytes) / LIST_PART / sizeof *list->ici;
    *list = (struct adv_mesh_list){.most = most < INT_MAX / 2 ? (int)most : INT_MAX / 2};
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        listing.ici[i] = 1;
        bool enumerated = i == ADV_AXIS_FSDP;
        for (int s = 0; s < SEARCHED; s++) enumerated = enumerated || searched[s] == (enum adv_axis)i;
        if (enumerated || !request->axis_pinned[i]) continue;
        int degree = request->workload.base.family.ici[i];
        if (degree < 1 || left % degree != 0) return ADV_OK; /* no mesh holds this pin */
        listing.ici[i] = (short)degree;
        left /= degree;
    }
    listing.divisors_count = adv_divisors(left, DIVISORS, listing.divisors);
    over_axes(&listing, 0, left);
    return listing.code;
}

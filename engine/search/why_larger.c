#include "engine/search/why.h"

#include <limits.h>
#include <stdio.h>

#include "engine/base/arena.h"
#include "engine/cost/estimate.h"
#include "engine/rank/rank.h"
#include "engine/search/frugal.h"

enum { LARGEST_TIMES = 64 };

/* Share of memory up to which the rough count of frugal.h is trusted to sort families. */
static const double trusted_frac = 0.7;

/* The most even shape of so many chips, as the request's cluster. False: the catalog has none. */
static bool with_chips(const struct adv_advise_request *request, int chips, struct adv_cluster *cluster)
{
    int axes = request->cluster.chip.ici_axes >= 3 ? 3 : 2, longest = INT_MAX;
    *cluster = request->cluster;
    for (int i = 0; i < request->shapes_count; i++) {
        int dims[3], most = 0;
        if (!adv_cluster_parse_shape(request->shapes[i], axes, dims) || dims[0] * dims[1] * dims[2] != chips)
            continue;
        for (int k = 0; k < 3; k++) most = dims[k] > most ? dims[k] : most;
        if (most >= longest) continue;
        longest = most;
        for (int k = 0; k < 3; k++) cluster->dims[k] = dims[k];
    }
    cluster->accelerator[0] = '\0';
    return longest < INT_MAX &&
           adv_cluster_build(cluster, request->shapes, request->shapes_count, NULL) == ADV_OK;
}

static bool holds(const struct adv_advise_request *request, const struct adv_constants *constants,
                  struct adv_arena *arena)
{
    struct adv_space space;
    struct adv_remat_space open;
    struct adv_frugal frugal[ADV_FRUGAL_PLANS];
    bool found = false;
    if (adv_space_build(request, constants, arena, &space, NULL) != ADV_OK) return false;
    adv_remat_space_build(request, constants, &open);
    int count = adv_frugal_families(&space, trusted_frac, frugal);
    for (int i = 0; i < count && !found; i++) {
        struct adv_plan plan;
        struct adv_estimate estimate;
        struct adv_estimate_input input = {&request->model, &request->cluster, constants, &plan,
                                           ADV_FLOPS_CAUSAL_HALF};
        adv_frugal_plan(&space, &open, &frugal[i], &plan);
        found = adv_estimate_plan(&input, &estimate, NULL, NULL) == ADV_OK &&
                adv_rank_fits_share(&estimate, (struct adv_rank_share){request->memory_frac,
                                                                       adv_rank_memory_frac(&estimate)});
    }
    return found;
}

void adv_larger_slice(const struct adv_advise_request *request, const struct adv_constants *constants,
                      char *text, size_t text_bytes)
{
    struct adv_arena arena;
    adv_arena_init(&arena, ADV_LIMIT_ARENA_BYTES);
    struct adv_advise_request *larger = adv_arena_alloc(&arena, sizeof *larger);
    bool found = false;
    text[0] = '\0';
    for (int times = 2; larger && times <= LARGEST_TIMES && !found; times *= 2) {
        *larger = *request;
        struct adv_arena each;
        if (!with_chips(request, times * request->cluster.chips_per_slice, &larger->cluster)) continue;
        adv_arena_init(&each, ADV_LIMIT_ARENA_BYTES);
        found = holds(larger, constants, &each);
        adv_arena_free(&each);
    }
    if (found)
        (void)snprintf(text, text_bytes, " (%s, %d devices%s, would hold it)", larger->cluster.topology,
                       larger->cluster.devices_per_slice, larger->cluster.slices > 1 ? " a slice" : "");
    adv_arena_free(&arena);
}

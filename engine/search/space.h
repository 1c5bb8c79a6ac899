/* space.h: the families of plans a request allows: everything but remat, vocabulary tiling and memory
 * offload.
 *
 * A family fixes mesh (ICI and DCN), context strategy, pipeline shape, batch and accumulation, number format
 * and the expert exchange; what is left open inside (remat_space.h) trades time for memory. Families are
 * enumerated completely in a fixed order; a family that breaks a legality rule or cannot be placed on the
 * torus is counted, never built, and so are those that the request's memory has no room for.
 */
#pragma once

#include "engine/base/arena.h"
#include "engine/catalog/constants.h"
#include "engine/search/space_tiles.h"
#include "engine/spec/request.h"

struct adv_family {
    short ici[ADV_AXIS_COUNT], dcn[ADV_AXIS_COUNT];
    double per_device_batch_size;
    int gradient_accumulation_steps;
    int pipeline_microbatches, layers_per_stage;
    unsigned char cp_strategy, quantization;
    bool split_axes, ring_of_experts, two_stage_gather;
    /* the earlier family that is no slower and needs no more weights, -1: none is known; `deeper`: the
     * difference is at least what adv_pipeline_deeper_s says */
    int bounded_by;
    bool deeper;
};

struct adv_space {
    const struct adv_advise_request *request;
    const struct adv_constants *constants;
    struct adv_plan base;     /* the request's base plan with the house choices (space_choices.h) */
    bool fp8_through_tokamax; /* fp8_full takes tokamax's grouped matmuls: see space_plan.c */
    bool may_shard_experts;   /* over fsdp, where that halves what fp8_full gathers: see space_plan.c */
    struct adv_rule_list mesh_rules, batch_rules; /* ADV_RULES_OF_MESH, ADV_RULES_OF_BATCH */
    struct adv_tile_pins tile_pins;
    struct adv_tile_memo *tiles;
    struct adv_family *families;
    int families_count;
    long considered, illegal;     /* combinations looked at, and those that are no plans */
    long left_out;                /* legal ones without room, at the end of the order; a mesh counts once */
    const char *most_broken_rule; /* the rule that forbade most combinations, NULL when none did */
};

/* Enumerates, and leaves room in the arena for bounds (bounds.h) and the rest of the search.
 * ADV_E_REQUEST_MEMORY: there is room for no family. ADV_E_INVALID: the workload's batch is not a whole
 * number of sequences. An empty space is not an error. */
ADV_MUST_CHECK adv_code adv_space_build(const struct adv_advise_request *request,
                                        const struct adv_constants *constants, struct adv_arena *arena,
                                        struct adv_space *space, adv_err *err);

/* Writes the family's members, and tiles tuned for its shapes, into `plan` (a copy of the base; remat
 * untouched). False: a kernel has no tile that compiles, or none that is legal with the pinned ones. */
bool adv_space_plan(const struct adv_space *space, const struct adv_family *family, struct adv_plan *plan);

/* Its two steps: what all batches on one mesh have in common, into a copy of the base; then the batch, its
 * number format and the exchange of experts. */
void adv_space_write_mesh(const struct adv_space *space, const struct adv_family *family,
                          struct adv_plan *plan);
void adv_space_write_batch(const struct adv_space *space, const struct adv_family *family,
                           struct adv_plan *plan);

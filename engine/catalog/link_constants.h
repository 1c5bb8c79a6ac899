/* link_constants.h: the constants of collectives, host link and DCN: X(member, unit, what). Owner:
 * engine/hardware. Values: catalog/data/link_constants.json, fitted to the collective rows of
 * tests/data/microbench.json only. */
#pragma once

#define ADV_LINK_CONSTANTS(X)                                                                                \
    X(all_gather_launch_s, "s", "fixed cost of an all-gather or reduce-scatter, hops not counted")           \
    X(all_reduce_launch_s, "s", "fixed cost of an all-reduce, hops not counted")                             \
    X(all_reduce_multi_axis_frac, "frac",                                                                    \
      "all-reduce over several torus axes: achieved over measured links")                                    \
    X(all_to_all_launch_s, "s", "fixed cost of an all-to-all, hops not counted")                             \
    X(all_to_all_frac, "frac", "all-to-all: achieved over the bisection of measured links")                  \
    X(permute_launch_s, "s", "fixed cost of a collective permute, hops not counted")                         \
    X(permute_link_frac, "frac", "collective permute: achieved over one measured link")                      \
    X(dcn_launch_s, "s", "fixed cost of one collective between slices")                                      \
    X(dcn_achieved_frac, "frac", "DCN bandwidth of a chip: achieved over planned")

#include "tests/accuracy/parameters.h"

#include <stddef.h>
#include <string.h>

#define ALL_CHIPS                                                                                            \
    {                                                                                                        \
        "tpu7x", "v6e", "v5p", "v5e", "v4"                                                                   \
    }

const struct parameter parameters[] = {
    /* dense matmul rate inside a step: isolated matmuls reach 0.83 (tpu7x) and 0.90 (v6e) of peak; on v5p,
     * v5e and v4 what the compiler's cycles say of the matmuls of a step (tests/compile/cycles.md) */
    {"step_matmul_frac", {"tpu7x"}, 0.76, 0.10, 0.4, 1.0},
    {"step_matmul_frac", {"v6e"}, 0.78, 0.10, 0.4, 1.0},
    {"step_matmul_frac", {"v5p"}, 0.95, 0.10, 0.4, 1.0},
    {"step_matmul_frac", {"v5e"}, 0.96, 0.10, 0.4, 1.0},
    {"step_matmul_frac", {"v4"}, 0.93, 0.10, 0.4, 1.0},
    {"overlap_offload_exposed_frac", {"tpu7x"}, 0.15, 0.4, 0.0, 1.0},
    {"overlap_fusion_exposed_frac", {"v6e"}, 0.85, 0.3, 0.0, 1.0},
    {"overlap_offload_exposed_frac", {"v6e"}, 0.3, 0.5, 0.0, 1.0},
    {"overlap_fusion_exposed_frac", {"v5p"}, 0.6, 0.5, 0.0, 1.0},
    {"overlap_fusion_exposed_frac", {"v5e"}, 0.4, 0.5, 0.0, 1.0},
    {"tensor_exposed_frac", {"v5p"}, 0.75, 0.5, 0.0, 1.0},
    {"tensor_exposed_frac", {"v5e"}, 0.33, 0.5, 0.0, 1.0},
    {"transpose_exposed_frac", {"tpu7x"}, 0.3, 0.5, 0.0, 1.0},
    {"step_attention_factor", {"v5p", "v5e", "v4"}, 1.0, 0.10, 0.7, 1.5},
    {"slots_exposed_frac", ALL_CHIPS, 0.7, 0.5, 0.1, 1.0},
    /* a device of one core runs the kernel as it was timed; v5p and v4 have two, of which the isolated kernel
       used one */
    {"step_gmm_factor", {"tpu7x", "v6e", "v5e"}, 1.0, 0.04, 0.6, 1.6},
    {"step_gmm_factor", {"v5p", "v4"}, 0.6, 0.3, 0.4, 1.6},
    {"step_tokamax_factor", ALL_CHIPS, 1.1, 0.2, 0.6, 2.0},
    /* the others have what the compiler takes their HBM to reach */
    {"step_elementwise_frac", {"tpu7x", "v6e"}, 0.87, 0.10, 0.4, 1.0},
    {"step_gather_frac", ALL_CHIPS, 0.40, 0.5, 0.05, 0.9},
    {"step_lowp_gain_frac", ALL_CHIPS, 0.95, 0.05, 0.6, 1.0},
    {"software_early_frac", {"tpu7x"}, 0.03, 0.7, 0.0, 0.2},
    {"dcn_exposed_frac", ALL_CHIPS, 0.3, 0.7, 0.01, 1.0},
    {"dcn_lockstep_frac", ALL_CHIPS, 0.015, 0.7, 0.0, 0.1},
    {"dcn_straggler_frac", ALL_CHIPS, 0.015, 0.5, 0.0, 0.1},
    {"ring_step_s", {"v5p"}, 50e-6, 0.7, 1e-6, 1e-3},
    {"collective_launch_s", ALL_CHIPS, 50e-6, 0.7, 1e-6, 3e-4},
};
const int parameters_count = sizeof parameters / sizeof parameters[0];

#define CONSTANT_ROW(name, unit, what) {#name, offsetof(struct adv_constants, name)},
static const struct {
    const char *name;
    size_t offset;
} constant_rows[] = {ADV_KERNEL_CONSTANTS(CONSTANT_ROW) ADV_LINK_CONSTANTS(CONSTANT_ROW)
                         ADV_STEP_CONSTANTS(CONSTANT_ROW)};

double *constant_by_name(struct adv_constants *constants, const char *name)
{
    for (size_t i = 0; i < sizeof constant_rows / sizeof constant_rows[0]; i++)
        if (strcmp(constant_rows[i].name, name) == 0)
            return (double *)(void *)((char *)constants + constant_rows[i].offset);
    return NULL;
}

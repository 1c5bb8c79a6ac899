#include "tests/accuracy/derive_kernels.h"

#include <math.h>
#include <string.h>

#define ROW(name, unit, what) {#name, unit, offsetof(struct adv_constants, name)},
static const struct adv_kernel_constant constants[] = {ADV_KERNEL_CONSTANTS(ROW)};
#undef ROW

enum scale { SAME, CLOCK, BANDWIDTH, WRAPPER, FORWARD };

/* First match wins. "" as chip: any generation. */
static const struct rule {
    const char *chip, *prefix, *donor;
    enum scale scale;
    double factor;
    const char *how;
} rules[] = {
    {"", "splash_bwd_wrapper_frac", "tpu7x", WRAPPER, 1.0, "in the ratio of the forward wrappers"},
    {"", "splash_bwd_reduction_frac", "tpu7x", WRAPPER, 1.0, "in the ratio of the forward wrappers"},
    {"", "splash_bwd_narrow_row_s", "tpu7x", BANDWIDTH, 1.0, "scaled with HBM bandwidth"},
    {"", "splash_bwd_old_narrow_row_s", "tpu7x", SAME, 0.0, "no older timings of this generation"},
    {"", "splash_old_wrapper_factor", "tpu7x", SAME, 0.0, "no older timings of this generation"},
    /* between the clock ratio, 1.26, and the array's own bound, 1.12 */
    {"v6e", "splash_bwd_vreg_s", "tpu7x", SAME, 1.15,
     "between the ratio of the clocks and that of the arrays"},
    {"", "splash_bwd_step_s", "tpu7x", SAME, 1.0, "copied"},
    {"", "splash_bwd_mxu_frac", "tpu7x", FORWARD, 1.0, "the generation's own forward rate"},
    {"", "splash_bwd_", "tpu7x", CLOCK, 1.0, "scaled with the clock"},
    {"", "splash_max_logit_frac", "tpu7x", SAME, 1.0, "copied"},
    {"", "splash_imem_pairs", "tpu7x", SAME, 1.0, "copied"},
    {"", "splash_imem_pair_s", "tpu7x", SAME, 1.0, "copied"},
    {"", "gmm_scale_vreg_s", "tpu7x", CLOCK, 1.0, "scaled with the clock"},
    {"v6e", "gmm_tail_vreg_s", "tpu7x", CLOCK, 1.0, "scaled with the clock"},
    {"v5e", "gmm_tail_vreg_s", "tpu7x", CLOCK, 1.0, "scaled with the clock"},
    {"v6e", "splash_fwd_rescale_vreg_s", "tpu7x", SAME, 0.0, "not seen in the timings"},
    {"v5p", "splash_fwd_rescale_vreg_s", "tpu7x", SAME, 0.0, "not seen in the timings"},
    {"v5p", "splash_fwd_vreg_s", "v6e", CLOCK, 1.0, "scaled with the clock"},
    {"v5p", "splash_fwd_operand_vreg_s", "v6e", CLOCK, 1.0, "scaled with the clock"},
    {"", "splash_fwd_step_s", "v5p", SAME, 1.0, "copied"},
    {"", "splash_fwd_carry_s", "v5p", CLOCK, 1.0, "scaled with the clock"},
    {"", "splash_fwd_", "v5p", CLOCK, 1.0, "scaled with the clock"},
    {"", "splash_", "v5p", SAME, 1.0, "copied"},
    {"", "attention_xla_wide_moves", "tpu7x", SAME, 0.0, "not seen in the timings"},
    {"", "attention_xla_bias_even_passes", "tpu7x", SAME, 0.0, "not seen in the timings"},
    {"", "attention_xla_bias_held_bytes", "v6e", SAME, 0.0, "not seen in the timings"},
    {"", "attention_xla_far_frac", "v6e", SAME, 0.0, "not seen in the timings"},
    {"v4", "attention_xla_", "v5p", SAME, 1.0, "copied"},
    {"v5e", "attention_xla_", "v5p", SAME, 1.0, "copied"},
    {"", "gmm_xla_dense_frac", "v5p", SAME, 1.0, "copied"},
    {"", "gmm_xla_copy_factor", "tpu7x", SAME, 0.0, "at the rate of the HBM"},
    {"v5p", "tgmm_xla_accumulate_vreg_s", "v5e", CLOCK, 1.0, "scaled with the clock"},
    {"v4", "tgmm_xla_accumulate_vreg_s", "v5e", CLOCK, 1.0, "scaled with the clock"},
    {"", "gmm2_step_s", "v6e", SAME, 1.0, "copied"},
    {"", "gmm2_", "v6e", SAME, 1.0, "copied"},
    {"v4", "gmm_mask_vreg_s", "v5p", CLOCK, 1.0, "scaled with the clock"},
    {"v4", "gmm_tail_vreg_s", "v5p", CLOCK, 1.0, "scaled with the clock"},
    {"v4", "gmm_", "v5p", SAME, 1.0, "copied"},
    {"v6e", "tgmm_tail_vreg_s", "tpu7x", CLOCK, 1.0, "scaled with the clock"},
    {"v5p", "tgmm_tail_vreg_s", "tpu7x", CLOCK, 1.0, "scaled with the clock"},
    {"v4", "tgmm_transpose_vreg_s", "v5p", CLOCK, 1.0, "scaled with the clock"},
    {"v4", "tgmm_accumulate_vreg_s", "v5p", CLOCK, 1.0, "scaled with the clock"},
    {"v4", "tgmm_store_vreg_s", "v5p", CLOCK, 1.0, "scaled with the clock"},
    {"v4", "tgmm_tail_vreg_s", "v5p", CLOCK, 1.0, "scaled with the clock"},
    {"v4", "tgmm_", "v5p", SAME, 1.0, "copied"},
    {"v5e", "tgmm_transpose_vreg_s", "v5p", CLOCK, 1.0, "scaled with the clock"},
    {"v5e", "tgmm_accumulate_vreg_s", "v5p", CLOCK, 1.0, "scaled with the clock"},
    {"v5e", "tgmm_tail_vreg_s", "v5p", CLOCK, 1.0, "scaled with the clock"},
    {"v5e", "tgmm_", "v5p", SAME, 1.0, "copied"},
    {"", "xent_fwd_vreg_s", "tpu7x", CLOCK, 1.0, "scaled with the clock"},
    {"", "xent_bwd_vreg_s", "tpu7x", CLOCK, 1.0, "scaled with the clock"},
    {"", "xent_", "tpu7x", SAME, 1.0, "copied"},
    {"", "matmul_launch_s", "tpu7x", SAME, 1.0, "copied"},
    {"", "matmul_overlap_bytes", "tpu7x", SAME, 1.0, "copied"},
    {"", "matmul_row_s", "tpu7x", CLOCK, 1.0, "scaled with the clock"},
};

int adv_kernel_constants_count(void)
{
    return (int)(sizeof constants / sizeof constants[0]);
}

const struct adv_kernel_constant *adv_kernel_constant_at(int index)
{
    return &constants[index];
}

static double value_of(const struct adv_constants *from, const struct adv_kernel_constant *constant)
{
    double value;
    memcpy(&value, (const char *)from + constant->offset, sizeof value);
    return value;
}

static double scale_of(enum scale scale, const struct adv_derive_chip *from, const struct adv_derive_chip *to)
{
    if (scale == CLOCK && to->chip->clock_hz > 0.0 && from->chip->clock_hz > 0.0)
        return from->chip->clock_hz / to->chip->clock_hz;
    if (scale == BANDWIDTH)
        return from->chip->hbm_bytes_per_s_per_chip / from->chip->devices_per_chip /
               (to->chip->hbm_bytes_per_s_per_chip / to->chip->devices_per_chip);
    if (scale == FORWARD) return to->constants->splash_mxu_frac / from->constants->splash_bwd_mxu_frac;
    if (scale == WRAPPER) return to->constants->splash_wrapper_frac / from->constants->splash_wrapper_frac;
    return 1.0;
}

bool adv_derive_kernel_constant(const struct adv_derive_chip *chips, int chips_count, int to, int index,
                                const char **donor, const char **how)
{
    const struct adv_kernel_constant *constant = &constants[index];
    const char *name = chips[to].chip->name;
    if (strcmp(constant->unit, "flag") == 0) return false;
    for (size_t r = 0; r < sizeof rules / sizeof rules[0]; r++) {
        const struct rule *rule = &rules[r];
        if (rule->chip[0] && strcmp(rule->chip, name) != 0) continue;
        if (strncmp(constant->name, rule->prefix, strlen(rule->prefix)) != 0) continue;
        for (int i = 0; i < chips_count; i++) {
            if (strcmp(chips[i].chip->name, rule->donor) != 0) continue;
            if (i == to) return false;
            double value = value_of(chips[i].constants, constant) * rule->factor *
                           scale_of(rule->scale, &chips[i], &chips[to]);
            if (rule->factor == 0.0) value = strcmp(constant->unit, "factor") == 0 ? 1.0 : 0.0;
            if (strcmp(constant->unit, "frac") == 0) value = fmin(1.0, value);
            memcpy((char *)chips[to].constants + constant->offset, &value, sizeof value);
            *donor = rule->donor;
            *how = rule->how;
            return true;
        }
    }
    return false;
}

#include "engine/hardware/roofline.h"

#include <math.h>

double adv_roofline_ici_intensity(const struct adv_chip *chip, int axes, bool achieved)
{
    double link = achieved ? chip->ici_link_achieved_bytes_per_s : chip->ici_link_bytes_per_s;
    return chip->peak_bf16_flops_per_s_per_chip / (2.0 * axes * link);
}

double adv_roofline_min_expert_mlp_dim(const struct adv_chip *chip, int expert_parallelism, bool achieved)
{
    return adv_roofline_ici_intensity(chip, 1, achieved) * expert_parallelism / 4.0;
}

double adv_roofline_context_intensity(double seq_len, double q_heads, double kv_heads,
                                      int context_parallelism)
{
    return seq_len * q_heads / (kv_heads * context_parallelism);
}

double adv_roofline_mxu_utilisation(const struct adv_chip *chip, double size)
{
    return size / (chip->mxu_rows * ceil(size / chip->mxu_rows));
}

/* roofline.h: the arithmetic intensities behind sharding rules, for explanations and bounds.
 *
 * An intensity is FLOP per byte; in bf16 (2 FLOP per multiply-add, 2 bytes per value) it is also the number
 * of tokens or of columns at which computing takes as long as communicating. Per chip unless the name says
 * device. `achieved` selects measured links instead of the specification; the chip names both. NAN where the
 * chip lacks the number. Rules: jax-ml scaling book, MaxText sharding guide; each is a bound of bandwidth,
 * latency is not in it.
 */
#pragma once

#include "engine/spec/chip.h"

/* Peak bf16 over `axes` wrapped torus axes (2 links each): 11,535 for one axis of tpu7x, 12,817 achieved. */
double adv_roofline_ici_intensity(const struct adv_chip *chip, int axes, bool achieved);

/* Expert parallelism by all-to-all on one ring: the experts' mlp dimension above which it hides (4 M / EP).
 */
double adv_roofline_min_expert_mlp_dim(const struct adv_chip *chip, int expert_parallelism, bool achieved);

/* Context parallelism: FLOP per byte of the K and V gather; compare with adv_roofline_ici_intensity. */
double adv_roofline_context_intensity(double seq_len, double q_heads, double kv_heads,
                                      int context_parallelism);

/* Share of the matrix unit a contraction (or output) of `size` uses: size over size rounded up to a whole
 * unit. */
double adv_roofline_mxu_utilisation(const struct adv_chip *chip, double size);

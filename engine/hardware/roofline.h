/* roofline.h: the arithmetic intensities behind sharding rules, for explanations and bounds.
 *
 * An intensity is FLOP per byte; in bf16 (2 FLOP per multiply-add, 2 bytes per value) it is also the number
 * of tokens or of columns at which computing takes as long as communicating. Per chip unless the name says
 * device. `achieved` selects measured links instead of the specification; the chip names both. NAN where the
 * chip lacks the number. Rules: jax-ml scaling book, MaxText sharding guide; each is a bound of bandwidth,
 * latency is not in it.
 */
#ifndef ADV_HARDWARE_ROOFLINE_H
#define ADV_HARDWARE_ROOFLINE_H

#include "engine/spec/chip.h"

/* Peak bf16 over `axes` wrapped torus axes (2 links each): 11,535 for one axis of tpu7x, 12,817 achieved. */
double adv_roofline_ici_intensity(const struct adv_chip *chip, int axes, bool achieved);

/* Peak bf16 over the die-to-die link, both directions: 1,922 on tpu7x, a sixth of one axis. */
double adv_roofline_d2d_intensity(const struct adv_chip *chip);

/* Peak bf16 over HBM: 313 on tpu7x, 359 achieved. */
double adv_roofline_hbm_intensity(const struct adv_chip *chip, bool achieved);

/* Peak bf16 over DCN: the tokens per slice above which the gradient all-reduce hides (184,560 on tpu7x). */
double adv_roofline_dcn_intensity(const struct adv_chip *chip);

/* FSDP, data and context parallelism: tokens per chip above which weight gathers hide. sparsity: experts /
 * active. */
double adv_roofline_min_tokens_per_chip(const struct adv_chip *chip, int axes, double sparsity,
                                        bool achieved);

/* Tensor parallelism over one torus axis: the mlp dimension above which it hides (46,140 for 4 on tpu7x), and
 * the largest degree that hides for a given mlp dimension (2.49 for 28,672). */
double adv_roofline_min_mlp_dim(const struct adv_chip *chip, int tensor_parallelism, bool achieved);
double adv_roofline_max_tensor_parallelism(const struct adv_chip *chip, double mlp_dim, bool achieved);

/* Tensor parallelism of 2 on the core pair: the mlp dimension above which it hides. */
double adv_roofline_min_mlp_dim_on_cores(const struct adv_chip *chip);

/* Expert parallelism by all-to-all on one ring: the experts' mlp dimension above which it hides (4 M / EP).
 */
double adv_roofline_min_expert_mlp_dim(const struct adv_chip *chip, int expert_parallelism, bool achieved);

/* Context parallelism: FLOP per byte of the K and V gather; compare with adv_roofline_ici_intensity. */
double adv_roofline_context_intensity(double seq_len, double q_heads, double kv_heads,
                                      int context_parallelism);

/* Share of the matrix unit a contraction (or output) of `size` uses: size over size rounded up to a whole
 * unit. */
double adv_roofline_mxu_utilisation(const struct adv_chip *chip, double size);

#endif

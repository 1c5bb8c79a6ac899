/* kernel_constants.h: the constants of kernel simulation: X(member, unit, what). Owner: engine/kernel.
 *
 * All are of one TensorCore of the generation. "vreg" = 1024 f32 elements (8 sublanes x 128 lanes); in
 * attention one vreg of work is 1024 (query, key) pairs. A constant belongs to a generation and a kernel,
 * never to a shape.
 */
#pragma once

#define ADV_KERNEL_CONSTANTS(X)                                                                              \
    X(matmul_peak_frac, "frac", "best dense XLA matmul over peak, large aligned shapes")                     \
    X(matmul_launch_s, "s", "fixed cost of one XLA operation: a matmul, a copy, a kernel's call")            \
    X(matmul_overlap_bytes, "bytes", "operand bytes a matmul must move before its pipeline is full")         \
    X(matmul_row_s, "s", "per row of a matmul's result that nothing hides")                                  \
    X(splash_mxu_frac, "frac", "MXU issue rate inside attention over peak, operands padded to the array")    \
    X(splash_wrapper_frac, "frac", "bandwidth of the transposes around forward over specification")          \
    X(splash_old_wrapper_factor, "factor", "forward transposes before mid-2026 over current ones")           \
    X(splash_max_logit_frac, "frac", "vector work left when the running maximum is a constant")              \
    X(splash_fwd_vreg_s, "s", "vector work of forward softmax per vreg of scores")                           \
    X(splash_fwd_operand_vreg_s, "s",                                                                        \
      "operand traffic per vreg of scores and 256 head columns of each operand")                             \
    X(splash_fwd_mask_vreg_s, "s", "extra per vreg of a partly masked forward block")                        \
    X(splash_fwd_rescale_vreg_s, "s", "accumulator rescale per vreg and compute sub-block")                  \
    X(splash_fwd_step_s, "s", "one grid step of the forward kernel")                                         \
    X(splash_fwd_carry_s, "s", "per 1024 query rows of a step that continues a query block")                 \
    X(splash_fetch_s, "s", "latency of a grid step's block fetch, forward and backward")                     \
    X(splash_imem_pairs, "pairs",                                                                            \
      "scores of a forward block whose unrolled body fills the instruction memory")                          \
    X(splash_imem_pair_s, "s", "reloading the body's rest, per pair beyond and step")                        \
    X(splash_bwd_mxu_frac, "frac", "MXU issue rate inside the backward kernels over peak")                   \
    X(splash_bwd_vreg_s, "s", "vector work of the fused backward per vreg of scores")                        \
    X(splash_bwd_operand_vreg_s, "s",                                                                        \
      "operand traffic per vreg of scores and 256 head columns of each operand")                             \
    X(splash_bwd_mask_vreg_s, "s", "extra per vreg of a partly masked backward block")                       \
    X(splash_bwd_step_s, "s", "one grid step of the fused backward kernel")                                  \
    X(splash_bwd_wrapper_frac, "frac", "bandwidth of the transposes around backward over specification")     \
    X(splash_bwd_reduction_frac, "frac", "bandwidth of the sum of dQ partials over specification")           \
    X(splash_bwd_narrow_row_s, "s", "wrapper cost per query row when 128 does not divide the head size")     \
    X(splash_bwd_old_narrow_row_s, "s", "more of it before mid-2026")                                        \
    X(attention_xla_frac, "frac", "bandwidth of XLA attention's score traffic over specification")           \
    X(attention_xla_tile_rows, "rows", "of one operand that its products hold while they read the other")    \
    X(attention_xla_row_moves, "factor", "times its inputs and outputs are moved around it")                 \
    X(attention_xla_cast_moves, "factor", "times float16 ones are moved besides")                            \
    X(attention_xla_wide_moves, "moves", "of heads wider than 128 besides, in either pass")                  \
    X(attention_xla_mask_bytes, "bytes", "of a causal mask in each pass over the scores, per score")         \
    X(attention_xla_bias_passes, "factor", "passes over the scores that a bias adds to the forward pass")    \
    X(attention_xla_bias_even_passes, "passes", "more of them with an even number of blocks of 512 keys")    \
    X(attention_xla_bias_held_bytes, "bytes", "of a bias that stay in VMEM from one sequence to the next")   \
    X(attention_xla_far_frac, "frac", "by which scores beyond the first 4 GiB take longer")                  \
    X(gmm_mxu_frac, "frac", "MXU rate of grouped matmul over one core's peak")                               \
    X(gmm_hbm_frac, "frac", "DMA bandwidth of grouped matmul over specification")                            \
    X(gmm_overlap_frac, "frac", "share of the shorter of compute and DMA that is not hidden")                \
    X(gmm_step_s, "s", "one grid step of grouped matmul")                                                    \
    X(gmm_launch_s, "s", "fixed cost of one grouped matmul: launch and group metadata")                      \
    X(gmm_weight_rows, "rows", "rows of lhs that hide the load of one weight tile into the MXU")             \
    X(gmm_mask_vreg_s, "s", "row-masked store per vreg of a visited output tile")                            \
    X(gmm_scale_vreg_s, "s", "scaling and adding one partial product of a quantised operand, per vreg")      \
    X(gmm_tail_vreg_s, "s", "masking both operands of a contraction tail, per vreg")                         \
    X(tgmm_mxu_frac, "frac", "MXU rate of transposed grouped matmul over one core's peak")                   \
    X(tgmm_hbm_frac, "frac", "DMA bandwidth of transposed grouped matmul over specification")                \
    X(tgmm_overlap_frac, "frac", "share of the shorter of compute and DMA that is not hidden")               \
    X(tgmm_step_s, "s", "one grid step of transposed grouped matmul")                                        \
    X(tgmm_launch_s, "s", "fixed cost of one transposed grouped matmul")                                     \
    X(tgmm_shared_rows, "rows", "of a row tile, that a further group in it pays the array for at most")      \
    X(tgmm_transpose_vreg_s, "s", "masking and transposing a row tile of lhs, per vreg")                     \
    X(tgmm_accumulate_vreg_s, "s", "read, add, write of the accumulator per visit, per vreg")                \
    X(tgmm_store_vreg_s, "s", "cast and store of a finished group's tile, per vreg")                         \
    X(tgmm_tail_vreg_s, "s", "per vreg of lhs that meets a last column tile which ends inside a register")   \
    X(gmm2_mxu_frac, "frac", "MXU rate of grouped matmul version 2 over one core's peak")                    \
    X(gmm2_hbm_frac, "frac", "its DMA bandwidth over specification")                                         \
    X(gmm2_overlap_frac, "frac", "share of the shorter of its compute and row traffic that is not hidden")   \
    X(gmm2_step_s, "s", "one of its row tiles")                                                              \
    X(gmm2_imem_macs, "multiply-adds", "of a tile whose unrolled body fills the instruction memory")         \
    X(gmm2_imem_mac_s, "s", "reloading the body's rest, per multiply-add beyond and row tile")               \
    X(gmm_xla_frac, "frac", "MXU rate of XLA's ragged dot over the device's peak")                           \
    X(gmm_xla_dense_frac, "frac", "MXU rate over the peak of the cores at work where it is dense")           \
    X(gmm_xla_out_vreg_s, "s", "masked store of XLA's ragged dot, per vreg of a visited output tile")        \
    X(gmm_xla_overlap_frac, "frac", "share of the shorter of its compute and DMA that is not hidden")        \
    X(gmm_xla_copy_factor, "factor", "time of transposing the weights first over moving their bytes")        \
    X(tgmm_xla_accumulate_vreg_s, "s", "adding a visit to the gradient's accumulator, per vreg")             \
    X(gmm_xla_dense, "flag",                                                                                 \
      "1: XLA multiplies all rows by every group's weights unless they are transposed")                      \
    X(gmm_xla_late, "flag", "1: XLA's ragged dot is known in the lowering of August 2026")                   \
    X(xent_step_s, "s", "one grid step of the fused logits and loss")                                        \
    X(xent_overlap_frac, "frac", "share of the shorter of its compute and DMA that is not hidden")           \
    X(xent_mxu_frac, "frac", "MXU rate of the fused logits and loss over one core's peak")                   \
    X(xent_bwd_mxu_frac, "frac", "MXU rate of its backward pass")                                            \
    X(xent_hbm_frac, "frac", "its DMA bandwidth over specification")                                         \
    X(xent_fwd_vreg_s, "s", "its forward vector work per vreg of logits")                                    \
    X(xent_bwd_vreg_s, "s", "its backward vector work per vreg of logits")                                   \
    X(splash_keys_head_minor, "flag",                                                                        \
      "1: published winners keep keys of whole lanes along the head (v6e: 35 of 37); 0: along the sequence") \
    X(splash_fwd_measured, "flag", "1: forward attention was measured on this generation")                   \
    X(splash_bwd_measured, "flag", "1: backward attention was measured on this generation")                  \
    X(gmm_measured, "flag", "1: grouped matmul was measured on this generation")                             \
    X(gmm2_measured, "flag", "1: grouped matmul version 2 was measured on this generation")                  \
    X(xent_measured, "flag", "1: the fused loss was measured on this generation")                            \
    X(attention_xla_measured, "flag", "1: XLA attention was measured on this generation")                    \
    X(attention_xla_bwd_measured, "flag", "1: its backward pass was measured on this generation")            \
    X(matmul_measured, "flag", "1: dense matmul was measured on this generation, in bfloat16")

/* kernel_constants.h: the constants of kernel simulation: X(member, unit, what). Owner: engine/kernel. */
#ifndef ADV_CATALOG_KERNEL_CONSTANTS_H
#define ADV_CATALOG_KERNEL_CONSTANTS_H

#define ADV_KERNEL_CONSTANTS(X)                                                                              \
    X(matmul_peak_frac, "frac", "best dense XLA matmul over peak, large aligned shapes")                     \
    X(matmul_launch_s, "s", "fixed cost of one XLA matmul")                                                  \
    X(hbm_copy_launch_s, "s", "fixed cost of one streaming HBM operation")

#endif

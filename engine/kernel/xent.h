/* xent.h: one grid step of the fused loss, from which its timeline is made. */
#ifndef ADV_KERNEL_XENT_H
#define ADV_KERNEL_XENT_H

#include "engine/kernel/kernel.h"

/* Grid (token blocks, vocabulary blocks, stages, width blocks). The one stage forward makes logits, a product
 * a step; backward makes them again, then dx and dW in a second stage, two products a step. */
struct adv_xent_unit {
    int64_t b_tiles, v_tiles, h_tiles;
    int stages;
    double product_s;        /* of one step's tiles */
    double vector_s;         /* of a block of logits, when they are whole */
    double step_s;           /* of every step */
    double w_s;              /* DMA of every step */
    double x_s;              /* DMA of every step; of a token block's first when one block is as wide as x */
    double gradient_s;       /* DMA out of every step of the second stage: tiles of dx and dW */
    double dma_s, exposed_s; /* of the whole grid; the second does not hide behind compute */
};

/* Shape and tile already checked. */
void adv_xent_unit_of(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                      const struct adv_xent_shape *shape, const struct adv_xent_tile *tile,
                      struct adv_xent_unit *unit);

#endif

/* splash.h: one grid step of any splash kernel, from which its timeline is made; adv_splash_time is in
 * kernel.h. */
#ifndef ADV_KERNEL_SPLASH_H
#define ADV_KERNEL_SPLASH_H

#include "engine/kernel/splash_work.h"

void adv_splash_unit_of(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                        const struct adv_attention_shape *shape, const struct adv_attention_tile *tile,
                        const struct adv_attention_flags *flags, struct adv_splash_unit *unit);

#endif

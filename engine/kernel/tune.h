/* tune.h: the tuner of all kernels: goes through the tiles that a family lists, and ranks those that fit. */
#pragma once

#include "engine/kernel/family.h"

/* Fills `ranking`: exact over the space. ADV_E_ILLEGAL, no legal tile: names the largest buffer of the
 * smallest one, and a limit or a space that would do. */
ADV_MUST_CHECK adv_code adv_tune(const struct adv_kernel_machine *machine,
                                 const struct adv_kernel_request *request, struct adv_ranking *ranking,
                                 adv_err *err);

/* The smallest larger limit under which tuning finds something at least a thousandth faster than `than_s`,
 * and what: of the tiles of the space that do not fit, with every number of buffers, the one with the lowest
 * limit (the fastest of those) that the device has VMEM for. False: there is none, or the shape is not legal.
 */
bool adv_tune_next_better(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                          double than_s, struct adv_kernel_tile *tile, struct adv_kernel_time *time,
                          double *limit_kib);

/* advise_kernel.h: the kernel half of the pipeline: a decoded kernel request in, simulated times out. */
#ifndef ADV_ADVISE_KERNEL_H
#define ADV_ADVISE_KERNEL_H

#include "engine/base/arena.h"
#include "engine/json/encode_kernel.h"

/* ADV_E_ILLEGAL: the tiles do not go together (pointers below /tile). Over VMEM is a result, and a warning
 * (`warnings` may be NULL) that names the largest buffer and what would make the tile fit. */
ADV_MUST_CHECK adv_code adv_kernel_simulate(const struct adv_kernel_request *request,
                                            struct adv_kernel_time *time, adv_err *err, adv_err *warnings);

/* The same request step by step; *time is its simulation. The caller sets steps and capacity. */
ADV_MUST_CHECK adv_code adv_kernel_timeline(const struct adv_kernel_request *request,
                                            const struct adv_kernel_time *time, struct adv_timeline *timeline,
                                            adv_err *err);

/* The best legal tiles, fastest first, in tuning->choices (in `arena`, at most request->top_k), MaxText's
 * default tiles, and the next better tile under a higher VMEM limit. The request was decoded for tuning: its
 * kernel has tiles to choose. ADV_E_ILLEGAL: no tile fits. */
ADV_MUST_CHECK adv_code adv_kernel_tune(const struct adv_kernel_request *request, struct adv_arena *arena,
                                        struct adv_kernel_tuning *tuning, adv_err *err);

#endif

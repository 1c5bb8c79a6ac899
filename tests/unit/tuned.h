/* tuned.h: the tuner asked by shape. Include after cmocka. */
#pragma once

#include "engine/kernel/tune.h"

static inline adv_code tune(const struct adv_kernel_machine *machine,
                            const struct adv_kernel_request *request, struct adv_ranking *ranking, int *found,
                            long *evaluated, adv_err *err)
{
    const adv_code code = adv_tune(machine, request, ranking, err);
    *found = ranking->count;
    *evaluated = ranking->evaluated_count;
    return code;
}

static inline adv_code tune_splash(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                                   const struct adv_attention_shape *shape,
                                   const struct adv_attention_flags *flags, int top_k,
                                   struct adv_attention_tile *tiles, struct adv_kernel_time *times,
                                   int *found, long *evaluated, adv_err *err)
{
    const struct adv_kernel_request request = {
        .kernel = kernel, .attention = *shape, .attention_flags = *flags, .wide_tiles = machine->wide_tiles};
    struct adv_ranking ranking = {.top_k = top_k, .tiles = tiles, .times = times};
    return tune(machine, &request, &ranking, found, evaluated, err);
}

static inline adv_code tune_gmm(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                                const struct adv_gmm_shape *shape, int top_k, struct adv_gmm_tile *tiles,
                                struct adv_kernel_time *times, int *found, long *evaluated, adv_err *err)
{
    const struct adv_kernel_request request = {
        .kernel = kernel, .gmm = *shape, .wide_tiles = machine->wide_tiles};
    struct adv_ranking ranking = {.top_k = top_k, .tiles = tiles, .times = times};
    return tune(machine, &request, &ranking, found, evaluated, err);
}

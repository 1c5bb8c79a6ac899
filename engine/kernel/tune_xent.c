#include "engine/kernel/tune.h"

#include <math.h>

#include "engine/kernel/core.h"
#include "engine/kernel/legal.h"
#include "engine/kernel/tune_space.h"

/* No tile fits: names the buffers of the smallest, and whether the wide space has a smaller one. */
static adv_code no_tile(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                        const struct adv_xent_shape *shape, struct adv_xent_tile tiles[ADV_XENT_SPACE_MAX],
                        int count, adv_err *err)
{
    struct adv_tune_refusal refusal = {.limit_bytes = 0.0};
    struct adv_vmem_part parts[ADV_VMEM_PARTS];
    struct adv_kernel_time time;
    struct adv_xent_tile least[2];
    if (count == 0) return adv_legal_tunable(kernel, NULL, NULL, shape, machine->wide_tiles, err);
    for (int wide = 0; wide < 2; wide++) { /* the second time for the wide space */
        if (wide) count = adv_xent_space(shape, true, tiles);
        least[wide] = tiles[0];
        for (int i = 1; i < count; i++)
            if (adv_vmem_xent_bytes(kernel, &tiles[i]) < adv_vmem_xent_bytes(kernel, &least[wide]))
                least[wide] = tiles[i];
        const adv_code bad = adv_xent_time(machine, kernel, shape, &least[wide], &time, err);
        if (bad) return bad;
    }
    refusal.limit_bytes = time.vmem_limit_bytes;
    refusal.wide_fits = !machine->wide_tiles && time.fits_vmem;
    const int parts_count = adv_vmem_xent_parts(kernel, &least[0], parts);
    return adv_tune_refuse(machine, kernel, &refusal, parts, parts_count, err);
}

adv_code adv_xent_tune(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                       const struct adv_xent_shape *shape, int top_k, struct adv_xent_tile *tiles,
                       struct adv_kernel_time *times, int *found_count, long *evaluated_count, adv_err *err)
{
    struct adv_tune_best best = {.top_k = top_k, .times = times};
    struct adv_xent_tile space[ADV_XENT_SPACE_MAX];
    const int count = adv_xent_space(shape, machine->wide_tiles, space);
    *found_count = 0;
    for (int i = 0; i < count; i++) {
        struct adv_kernel_time time;
        const adv_code bad = adv_xent_time(machine, kernel, shape, &space[i], &time, err);
        if (bad) return bad;
        if (!time.fits_vmem) continue;
        const int at = adv_tune_insert(&best, time.time_s, sizeof space[i], (char *)tiles);
        if (at < 0) continue;
        tiles[at] = space[i];
        times[at] = time;
    }
    *evaluated_count = count;
    *found_count = best.count;
    return best.count > 0 ? ADV_OK : no_tile(machine, kernel, shape, space, count, err);
}

bool adv_xent_next_better(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                          const struct adv_xent_shape *shape, double than_s, struct adv_xent_tile *tile,
                          struct adv_kernel_time *time, double *limit_kib)
{
    struct adv_xent_tile space[ADV_XENT_SPACE_MAX];
    const int count = adv_xent_space(shape, machine->wide_tiles, space);
    *limit_kib = (double)INFINITY;
    for (int i = 0; i < count; i++) {
        struct adv_kernel_time found;
        if (adv_xent_time(machine, kernel, shape, &space[i], &found, NULL)) continue;
        const double needed = adv_vmem_needed_limit_kib(machine->chip, kernel, found.vmem_bytes);
        if (found.fits_vmem ||
            !adv_tune_is_next(machine, needed, found.time_s, than_s, *limit_kib, time->time_s))
            continue;
        *limit_kib = needed;
        *tile = space[i];
        *time = found;
    }
    return isfinite(*limit_kib);
}

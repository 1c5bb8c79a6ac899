#include "engine/kernel/tune.h"

#include <stddef.h>
#include <stdio.h>

#include "engine/kernel/core.h"
#include "engine/kernel/legal.h"
#include "engine/kernel/tune_choice.h"
#include "engine/kernel/tune_space.h"

/* The tile of a space that needs least VMEM. */
static int smallest_splash(enum adv_kernel kernel, const struct adv_attention_shape *shape,
                           const struct adv_attention_tile *tiles, int count)
{
    int smallest = 0;
    for (int i = 1; i < count; i++)
        if (adv_vmem_splash_bytes(kernel, shape, &tiles[i]) <
            adv_vmem_splash_bytes(kernel, shape, &tiles[smallest]))
            smallest = i;
    return smallest;
}

static adv_code no_splash_tile(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                               const struct adv_attention_shape *shape,
                               struct adv_attention_tile tiles[ADV_SPLASH_SPACE_MAX], int count, adv_err *err)
{
    struct adv_vmem_part parts[ADV_VMEM_PARTS];
    if (count == 0) return adv_legal_attention_tunable(shape, err);
    const struct adv_attention_tile least = tiles[smallest_splash(kernel, shape, tiles, count)];
    const int wide_count = machine->wide_tiles ? 0 : adv_splash_space(kernel, shape, true, tiles);
    const bool wide_fits =
        wide_count > 0 &&
        adv_vmem_compiles(
            machine->chip, kernel,
            adv_vmem_splash_bytes(kernel, shape, &tiles[smallest_splash(kernel, shape, tiles, wide_count)]),
            adv_core_vmem_limit_bytes(machine));
    const int parts_count = adv_vmem_splash_parts(kernel, shape, &least, parts);
    const struct adv_tune_refusal refusal = {.wide_fits = wide_fits,
                                             .limit_bytes = adv_core_vmem_limit_bytes(machine)};
    return adv_tune_refuse(machine, kernel, &refusal, parts, parts_count, err);
}

/* Of equals the first evaluated stays: puts the parts of each key block in the order winners like them. */
static void favour_parts(const struct adv_chip *chip, enum adv_kernel kernel,
                         struct adv_attention_tile *space, int count)
{
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && adv_tune_same_pair(&space[j].blocks, &space[j - 1].blocks) &&
                        adv_tune_part_share(chip, kernel, &space[j].blocks) >
                            adv_tune_part_share(chip, kernel, &space[j - 1].blocks);
             j--) {
            const struct adv_attention_tile later = space[j];
            space[j] = space[j - 1];
            space[j - 1] = later;
        }
}

/* The space in the order in which equals are preferred, with the layouts the chip's winners have. */
static int splash_space(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                        const struct adv_attention_shape *shape,
                        struct adv_attention_tile space[ADV_SPLASH_SPACE_MAX])
{
    const int count = adv_splash_space(kernel, shape, machine->wide_tiles, space);
    const bool keys_along_head =
        machine->constants->splash_keys_head_minor > 0.5 && shape->head_dim_qk % 128 == 0;
    favour_parts(machine->chip, kernel, space, count);
    for (int i = 0; keys_along_head && i < count; i++) space[i].k_layout = ADV_LAYOUT_HEAD_DIM_MINOR;
    return count;
}

adv_code adv_splash_tune(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                         const struct adv_attention_shape *shape, const struct adv_attention_flags *flags,
                         int top_k, struct adv_attention_tile *tiles, struct adv_kernel_time *times,
                         int *found_count, long *evaluated_count, adv_err *err)
{
    struct adv_tune_best best = {.top_k = top_k, .times = times};
    struct adv_attention_tile space[ADV_SPLASH_SPACE_MAX];
    const int count = splash_space(machine, kernel, shape, space);
    *found_count = 0;
    for (int i = 0; i < count; i++) {
        struct adv_kernel_time time;
        if (adv_budget_over(machine->budget)) return adv_budget_refuse(err);
        const adv_code bad = adv_splash_time(machine, kernel, shape, &space[i], flags, &time, err);
        if (bad) return bad;
        if (!time.fits_vmem) continue;
        const int at = adv_tune_insert(&best, time.time_s, sizeof space[i], (char *)tiles);
        if (at < 0) continue;
        tiles[at] = space[i];
        times[at] = time;
    }
    *evaluated_count = count;
    *found_count = best.count;
    return best.count > 0 ? ADV_OK : no_splash_tile(machine, kernel, shape, space, count, err);
}

bool adv_splash_next_better(const struct adv_kernel_machine *machine,
                            const struct adv_kernel_request *request, double than_s,
                            struct adv_kernel_tile *tile, struct adv_kernel_time *time, double *limit_kib)
{
    struct adv_attention_tile space[ADV_SPLASH_SPACE_MAX];
    const int count = splash_space(machine, request->kernel, &request->attention, space);
    *limit_kib = (double)INFINITY;
    for (int i = 0; i < count; i++) {
        struct adv_kernel_time found;
        if (adv_budget_over(machine->budget)) return false;
        if (adv_splash_time(machine, request->kernel, &request->attention, &space[i],
                            &request->attention_flags, &found, NULL))
            continue;
        const double needed = adv_vmem_needed_limit_kib(machine->chip, request->kernel, found.vmem_bytes);
        if (found.fits_vmem ||
            !adv_tune_is_next(machine, needed, found.time_s, than_s, *limit_kib, time->time_s))
            continue;
        *limit_kib = needed;
        tile->attention = space[i];
        *time = found;
    }
    return isfinite(*limit_kib);
}

/* The tile with the buffers that are likely best. input_buffer_count 0: not even two fit. */
static struct adv_gmm_tile deepest(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                                   const struct adv_gmm_shape *shape, double limit, struct adv_gmm_tile tile)
{
    tile.input_buffer_count = adv_tune_likes_buffers(machine, kernel) ? ADV_TUNE_BUFFERS_MOST : 2;
    while (tile.input_buffer_count >= 2 &&
           !adv_vmem_compiles(machine->chip, kernel, adv_vmem_gmm_bytes(machine->chip, kernel, shape, &tile),
                              limit))
        tile.input_buffer_count--;
    if (tile.input_buffer_count < 2) tile.input_buffer_count = 0;
    return tile;
}

static adv_code no_gmm_tile(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                            const struct adv_gmm_shape *shape, struct adv_gmm_tile tiles[ADV_GMM_SPACE_MAX],
                            int count, adv_err *err)
{
    char hint[ADV_LIMIT_NAME];
    if (count == 0) return adv_legal_gmm_tunable(shape, machine->wide_tiles, err);
    int least = 0;
    for (int i = 0; i < count; i++) {
        tiles[i].input_buffer_count = 2;
        if (adv_vmem_gmm_bytes(machine->chip, kernel, shape, &tiles[i]) <
            adv_vmem_gmm_bytes(machine->chip, kernel, shape, &tiles[least]))
            least = i;
    }
    const struct adv_gmm_tile smaller = {16, tiles[least].tile_k, tiles[least].tile_n, 2};
    const bool wide_fits =
        !machine->wide_tiles && tiles[least].tile_m > 16 && shape->m % 16 == 0 &&
        adv_vmem_compiles(machine->chip, kernel, adv_vmem_gmm_bytes(machine->chip, kernel, shape, &smaller),
                          adv_core_vmem_limit_bytes(machine));
    (void)snprintf(hint, sizeof hint, "a k of %ld, which 128 divides, can be cut",
                   (long)adv_round_up(shape->k, 128));
    struct adv_vmem_part parts[ADV_VMEM_PARTS];
    const int parts_count = adv_vmem_gmm_parts(machine->chip, kernel, shape, &tiles[least], parts);
    const struct adv_tune_refusal refusal = {.wide_fits = wide_fits,
                                             .other_hint = shape->k % 128 ? hint : NULL,
                                             .limit_bytes = adv_core_vmem_limit_bytes(machine)};
    return adv_tune_refuse(machine, kernel, &refusal, parts, parts_count, err);
}

adv_code adv_gmm_tune(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                      const struct adv_gmm_shape *shape, int top_k, struct adv_gmm_tile *tiles,
                      struct adv_kernel_time *times, int *found_count, long *evaluated_count, adv_err *err)
{
    struct adv_tune_best best = {.top_k = top_k, .times = times};
    const double limit = adv_core_vmem_limit_bytes(machine);
    struct adv_gmm_tile space[ADV_GMM_SPACE_MAX];
    const int count = adv_gmm_space(shape, machine->wide_tiles, space);
    *found_count = 0;
    for (int i = 0; i < count; i++) {
        const struct adv_gmm_tile tile = deepest(machine, kernel, shape, limit, space[i]);
        if (tile.input_buffer_count == 0) continue;
        struct adv_kernel_time time;
        if (adv_budget_over(machine->budget)) return adv_budget_refuse(err);
        const adv_code bad = adv_gmm_time(machine, kernel, shape, &tile, &time, err);
        if (bad) return bad;
        const int at = adv_tune_insert(&best, time.time_s, sizeof tile, (char *)tiles);
        if (at < 0) continue;
        tiles[at] = tile;
        times[at] = time;
    }
    *evaluated_count = count;
    *found_count = best.count;
    return best.count > 0 ? ADV_OK : no_gmm_tile(machine, kernel, shape, space, count, err);
}

bool adv_gmm_next_better(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                         double than_s, struct adv_kernel_tile *tile, struct adv_kernel_time *time,
                         double *limit_kib)
{
    const struct adv_gmm_shape *shape = &request->gmm;
    const enum adv_kernel kernel = request->kernel;
    struct adv_gmm_tile space[ADV_GMM_SPACE_MAX];
    const int count = adv_gmm_space(shape, machine->wide_tiles, space);
    const double now = adv_core_vmem_limit_bytes(machine);
    *limit_kib = (double)INFINITY;
    for (int i = 0; i < count * (ADV_TUNE_BUFFERS_MOST - 1); i++) { /* every tile, with 2, 3 and 4 buffers */
        struct adv_gmm_tile candidate = space[i / (ADV_TUNE_BUFFERS_MOST - 1)];
        candidate.input_buffer_count = 2 + i % (ADV_TUNE_BUFFERS_MOST - 1);
        const double bytes = adv_vmem_gmm_bytes(machine->chip, kernel, shape, &candidate);
        const double needed = adv_vmem_needed_limit_kib(machine->chip, kernel, bytes);
        struct adv_kernel_time found;
        if (adv_budget_over(machine->budget)) return false;
        if (needed > *limit_kib || adv_vmem_compiles(machine->chip, kernel, bytes, now) ||
            adv_gmm_time(machine, kernel, shape, &candidate, &found, NULL))
            continue;
        if (!adv_tune_is_next(machine, needed, found.time_s, than_s, *limit_kib, time->time_s)) continue;
        *limit_kib = needed;
        tile->gmm = candidate;
        *time = found;
    }
    return isfinite(*limit_kib);
}

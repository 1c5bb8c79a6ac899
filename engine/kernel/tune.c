#include "engine/kernel/tune.h"

#include <math.h>
#include <stdio.h>

#include "engine/base/list.h"
#include "engine/base/units.h"
#include "engine/kernel/core.h"
#include "engine/kernel/family.h"
#include "engine/kernel/tune_space.h"
#include "engine/kernel/xent.h"

/* The tiles of one kernel, of its family each. */
union space {
    struct adv_attention_tile attention[ADV_SPLASH_SPACE_MAX];
    struct adv_gmm_tile gmm[ADV_GMM_SPACE_MAX];
    struct adv_xent_tile xent[ADV_XENT_SPACE_MAX];
};

/* What is tuned. */
struct search {
    const struct adv_kernel_machine *machine;
    const struct adv_kernel_request *request;
    const struct adv_kernel_family *family;
    double limit_bytes;
};

static struct search search_of(const struct adv_kernel_machine *machine,
                               const struct adv_kernel_request *request)
{
    const struct adv_kernel_family *family = adv_kernel_family_of(request->kernel);
    const double share = family->vmem_limit_frac;
    return (struct search){machine, request, family,
                           share > 0.0 ? adv_core_vmem_limit_or(machine, share)
                                       : adv_core_vmem_limit_bytes(machine)};
}

static double bytes_of(const struct search *search, const struct adv_kernel_tile *tile)
{
    struct adv_vmem_part parts[ADV_VMEM_PARTS];
    return adv_vmem_sum(parts,
                        search->family->vmem_parts(search->machine->chip, search->request, tile, parts));
}

static bool compiles(const struct search *search, const struct adv_kernel_tile *tile)
{
    return adv_vmem_compiles(search->machine->chip, search->request->kernel, bytes_of(search, tile),
                             search->limit_bytes);
}

/* Does the kernel gain from more than two buffers of what it streams? The transposed grouped matmul on arrays
 * of 256: 51 of 74 published winners of tpu7x and v6e take all that fit, up to four, and 13 one less; none of
 * v5p and v5e takes more than two. Others have two almost always (231 of 248). */
static bool likes_buffers(const struct search *search)
{
    return search->request->kernel == ADV_KERNEL_TGMM && search->machine->chip->mxu_rows >= 256.0;
}

/* The number of buffers that is likely best, where there is one to choose; false: not even two fit. */
static bool choose_buffers(const struct search *search, struct adv_kernel_tile *tile)
{
    if (!search->family->has_buffers) return true;
    int *buffers = &tile->gmm.input_buffer_count;
    for (*buffers = likes_buffers(search) ? ADV_TUNE_BUFFERS_MOST : 2; *buffers >= 2; --*buffers)
        if (compiles(search, tile)) return true;
    return false;
}

/* The tile of a space that needs least VMEM. */
static struct adv_kernel_tile smallest(const struct search *search, const union space *space, int count)
{
    struct adv_kernel_tile least = {0}, tile = {0};
    double least_bytes = (double)INFINITY;
    for (int i = 0; i < count; i++) {
        adv_kernel_tile_take(search->family, space, i, &tile);
        if (search->family->has_buffers) tile.gmm.input_buffer_count = 2;
        const double bytes = bytes_of(search, &tile);
        if (bytes >= least_bytes) continue;
        least_bytes = bytes;
        least = tile;
    }
    return least;
}

/* Says how the smallest tile would fit: a limit the device has VMEM for, tiles the space leaves out. */
static void write_hint(const struct search *search, double limit_kib, bool wide_fits,
                       char hint[ADV_LIMIT_DETAIL])
{
    const int64_t k = search->request->gmm.k;
    const char *wide = wide_fits ? "\"wide\": true" : "";
    if (limit_kib * ADV_KIB <= adv_vmem_capacity_bytes(search->machine->chip))
        (void)snprintf(hint, ADV_LIMIT_DETAIL, "scoped_vmem_limit_kib %.0f%s%s", limit_kib,
                       wide_fits ? ", or " : "", wide);
    else if (search->family->has_buffers && k % 128)
        (void)snprintf(hint, ADV_LIMIT_DETAIL, "a k of %ld, which 128 divides, can be cut",
                       (long)adv_round_up(k, 128));
    else
        (void)snprintf(hint, ADV_LIMIT_DETAIL, "%s%s", wide,
                       wide_fits ? "" : "a smaller shape: the chip has not enough VMEM for any limit");
}

/* Why no tile fits; `space` is overwritten. */
static adv_code refuse(const struct search *search, union space *space, int count, adv_err *err)
{
    const struct adv_kernel_machine *machine = search->machine;
    const enum adv_kernel kernel = search->request->kernel;
    struct adv_vmem_part parts[ADV_VMEM_PARTS];
    char hint[ADV_LIMIT_DETAIL];
    if (count == 0) return search->family->tunable(search->request, err);
    const struct adv_kernel_tile least = smallest(search, space, count);
    bool wide_fits = false;
    if (!machine->wide_tiles) {
        const int wide_count = search->family->list_tiles(machine, search->request, true, space);
        const struct adv_kernel_tile wide = smallest(search, space, wide_count);
        wide_fits = compiles(search, &wide);
    }
    const int parts_count = search->family->vmem_parts(machine->chip, search->request, &least, parts);
    const double bytes = adv_vmem_sum(parts, parts_count);
    int largest = 0;
    for (int i = 1; i < parts_count; i++)
        if (parts[i].bytes > parts[largest].bytes) largest = i;
    const double limit_kib = adv_vmem_needed_limit_kib(machine->chip, kernel, bytes);
    write_hint(search, limit_kib, wide_fits, hint);
    return adv_err_add(
        err, ADV_E_ILLEGAL, "/scoped_vmem_limit_kib", hint,
        "no tile fits: the smallest needs a limit of %.0f KiB (%.0f KiB by a formula that over-counts), the "
        "limit is %.0f KiB; its largest buffer is %s with %.0f KiB",
        limit_kib, ceil(bytes / ADV_KIB), search->limit_bytes / ADV_KIB, parts[largest].name,
        ceil(parts[largest].bytes / ADV_KIB));
}

static void insert(struct adv_ranking *ranking, const struct adv_kernel_tile *tile,
                   const struct adv_kernel_time *time)
{
    const struct adv_kernel_family *family = ranking->family;
    int at = ranking->count;
    while (at > 0 && time->time_s < ranking->times[at - 1].time_s) at--;
    int tiles_count = ranking->count;
    void *place = adv_list_open(ranking->tiles, family->tile_bytes, &tiles_count, ranking->top_k, at);
    if (!place) return;
    memcpy(place, (const char *)tile + family->tile_offset, family->tile_bytes);
    (void)adv_list_open(ranking->times, sizeof *time, &ranking->count, ranking->top_k, at);
    ranking->times[at] = *time;
}

adv_code adv_tune(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                  struct adv_ranking *ranking, adv_err *err)
{
    const struct search search = search_of(machine, request);
    const struct adv_kernel_family *family = search.family;
    struct adv_kernel_tile tile = {0};
    union space space;
    const int count = family->list_tiles(machine, request, machine->wide_tiles, &space);
    ranking->family = family;
    ranking->count = 0;
    for (int i = 0; i < count; i++) {
        struct adv_kernel_time time;
        adv_kernel_tile_take(family, &space, i, &tile);
        if (!choose_buffers(&search, &tile)) continue;
        if (adv_budget_over(machine->budget)) return adv_budget_refuse(err);
        const adv_code bad = family->time(machine, request, &tile, &time, err);
        if (bad) return bad;
        if (time.fits_vmem) insert(ranking, &tile, &time);
    }
    ranking->evaluated_count = count;
    return ranking->count > 0 ? ADV_OK : refuse(&search, &space, count, err);
}

bool adv_tune_next_better(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                          double than_s, struct adv_kernel_tile *tile, struct adv_kernel_time *time,
                          double *limit_kib)
{
    const struct search search = search_of(machine, request);
    const int numbers = search.family->has_buffers ? ADV_TUNE_BUFFERS_MOST - 1 : 1; /* 2, 3 and 4 buffers */
    struct adv_kernel_tile candidate = {0};
    union space space;
    const int count = search.family->list_tiles(machine, request, machine->wide_tiles, &space);
    *limit_kib = (double)INFINITY;
    for (int i = 0; i < count * numbers; i++) {
        struct adv_kernel_time found;
        adv_kernel_tile_take(search.family, &space, i / numbers, &candidate);
        if (search.family->has_buffers) candidate.gmm.input_buffer_count = 2 + i % numbers;
        const double bytes = bytes_of(&search, &candidate);
        const double needed = adv_vmem_needed_limit_kib(machine->chip, request->kernel, bytes);
        if (adv_budget_over(machine->budget)) return false;
        if (needed > *limit_kib || needed * ADV_KIB > adv_vmem_capacity_bytes(machine->chip) ||
            adv_vmem_compiles(machine->chip, request->kernel, bytes, search.limit_bytes) ||
            search.family->time(machine, request, &candidate, &found, NULL) ||
            found.time_s > than_s * (1.0 - 1e-3) || (needed == *limit_kib && found.time_s >= time->time_s))
            continue;
        *limit_kib = needed;
        *tile = candidate;
        *time = found;
    }
    return isfinite(*limit_kib);
}

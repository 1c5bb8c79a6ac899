#include "engine/kernel/tune.h"

#include <math.h>
#include <stdio.h>

#include "engine/base/list.h"
#include "engine/base/units.h"

int adv_tune_insert(struct adv_tune_best *best, double time_s, size_t tile_bytes, char *tiles)
{
    int at = best->count;
    while (at > 0 && time_s < best->times[at - 1].time_s) at--;
    if (at >= best->top_k) return -1;
    int tiles_count = best->count;
    (void)adv_list_open(tiles, tile_bytes, &tiles_count, best->top_k, at);
    (void)adv_list_open(best->times, sizeof *best->times, &best->count, best->top_k, at);
    return at;
}

bool adv_tune_likes_buffers(const struct adv_kernel_machine *machine, enum adv_kernel kernel)
{
    return kernel == ADV_KERNEL_TGMM && machine->chip->mxu_rows >= 256.0;
}

/* Says how the smallest tile would fit: a limit the device has VMEM for, tiles the space leaves out. */
static void write_hint(char *hint, size_t size, const struct adv_kernel_machine *machine, double limit_kib,
                       bool wide_fits)
{
    const double capacity_kib = adv_vmem_capacity_bytes(machine->chip) / ADV_KIB;
    const char *wide = wide_fits ? "\"wide\": true" : "";
    if (limit_kib <= capacity_kib)
        (void)snprintf(hint, size, "scoped_vmem_limit_kib %.0f%s%s", limit_kib, wide_fits ? ", or " : "",
                       wide);
    else
        (void)snprintf(hint, size, "%s%s", wide,
                       wide_fits ? "" : "a smaller shape: the chip has not enough VMEM for any limit");
}

bool adv_tune_is_next(const struct adv_kernel_machine *machine, double limit_kib, double time_s,
                      double than_s, double best_kib, double best_s)
{
    if (limit_kib * ADV_KIB > adv_vmem_capacity_bytes(machine->chip)) return false;
    if (time_s > than_s * (1.0 - 1e-3)) return false;
    return limit_kib < best_kib || (limit_kib == best_kib && time_s < best_s);
}

adv_code adv_tune_refuse(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                         const struct adv_tune_refusal *refusal, const struct adv_vmem_part *parts,
                         int parts_count, adv_err *err)
{
    double bytes = 0.0;
    int largest = 0;
    for (int i = 0; i < parts_count; i++) {
        bytes += parts[i].bytes;
        if (parts[i].bytes > parts[largest].bytes) largest = i;
    }
    char hint[ADV_LIMIT_DETAIL];
    const double limit_kib = adv_vmem_needed_limit_kib(machine->chip, kernel, bytes);
    write_hint(hint, sizeof hint, machine, limit_kib, refusal->wide_fits);
    const bool limit_helps = limit_kib * ADV_KIB <= adv_vmem_capacity_bytes(machine->chip);
    return adv_err_add(
        err, ADV_E_ILLEGAL, "/scoped_vmem_limit_kib",
        !limit_helps && refusal->other_hint ? refusal->other_hint : hint,
        "no tile fits: the smallest needs a limit of %.0f KiB (%.0f KiB by a formula that over-counts), the "
        "limit is %.0f KiB; its largest buffer is %s with %.0f KiB",
        limit_kib, ceil(bytes / ADV_KIB), refusal->limit_bytes / ADV_KIB, parts[largest].name,
        ceil(parts[largest].bytes / ADV_KIB));
}

#include "engine/cost/over_vmem.h"

#include <stdio.h>

#include "engine/base/units.h"
#include "engine/kernel/vmem.h"

bool adv_over_vmem_find(const struct adv_ledger *ledger, const struct adv_chip *chip,
                        const struct adv_flags *flags, struct adv_over_vmem *found)
{
    const double set_kib = flags->scoped_vmem_limit_kib;
    const double limit = set_kib > 0.0 ? set_kib * ADV_KIB : chip->vmem_scoped_default_bytes;
    const struct adv_kernel_use *worst = NULL;
    for (int i = 0; ledger && i < ledger->kernels_count; i++) {
        const struct adv_kernel_use *use = &ledger->kernels[i];
        if (adv_vmem_compiles(chip, use->kernel, use->vmem_bytes, limit)) continue;
        if (!worst || use->vmem_bytes > worst->vmem_bytes) worst = use;
    }
    if (!worst) return false;
    found->needed_kib = adv_vmem_needed_limit_kib(chip, worst->kernel, worst->vmem_bytes);
    found->can_raise = found->needed_kib * ADV_KIB <= adv_vmem_capacity_bytes(chip);
    found->remedy = found->can_raise ? "raise xla_tpu_scoped_vmem_limit_kib, or take smaller tiles"
                                     : "take smaller tiles";
    const double core_bytes = adv_vmem_capacity_bytes(chip);
    (void)snprintf(found->detail, sizeof found->detail,
                   "%s with tiles %s needs about %.0f KiB of VMEM, %s %.0f KiB: it does not compile",
                   adv_kernel_name(worst->kernel), worst->tile, found->needed_kib,
                   limit > core_bytes ? "a core has" : "the limit is", adv_min(limit, core_bytes) / ADV_KIB);
    return true;
}

void adv_over_vmem_report(const struct adv_ledger *ledger, const struct adv_chip *chip,
                          const struct adv_flags *flags, adv_code code, adv_err *findings)
{
    struct adv_over_vmem found;
    if (!adv_over_vmem_find(ledger, chip, flags, &found)) return;
    (void)adv_err_add_rule(findings, code, "kernel-over-vmem", "/config", found.remedy, "%s", found.detail);
}

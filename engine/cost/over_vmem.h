/* over_vmem.h: the one judgement on kernels that do not compile for want of VMEM; estimate's warnings, its
 * advice and lint all tell it. */
#pragma once

#include "engine/cost/ledger.h"
#include "engine/spec/plan.h"

/* The kernel that is furthest over the limit. */
struct adv_over_vmem {
    double needed_kib; /* a limit that would be enough */
    bool can_raise;    /* the core has that much */
    char detail[ADV_LIMIT_DETAIL];
    const char *remedy; /* static */
};

/* False: all kernels of the ledger fit under the plan's limit (or the chip's default). */
bool adv_over_vmem_find(const struct adv_ledger *ledger, const struct adv_chip *chip,
                        const struct adv_flags *flags, struct adv_over_vmem *found);

/* The same as a finding of rule "kernel-over-vmem" at /config, with `code`. */
void adv_over_vmem_report(const struct adv_ledger *ledger, const struct adv_chip *chip,
                          const struct adv_flags *flags, adv_code code, adv_err *findings);

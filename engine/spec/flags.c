#include "engine/spec/flags.h"

#include <stddef.h>

void adv_flags_unset(struct adv_flags *flags)
{
    *flags = (struct adv_flags){0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0};
}

void adv_flags_overlay(struct adv_flags *flags, const struct adv_flags *from)
{
    enum { FIRST = offsetof(struct adv_flags, sc_all_gather) };
    enum { LAST = offsetof(struct adv_flags, host_offload_scheduling) };
    const signed char *given = (const signed char *)from;
    if (from->scoped_vmem_limit_kib > 0) flags->scoped_vmem_limit_kib = from->scoped_vmem_limit_kib;
    for (int i = FIRST; i <= LAST; i++)
        if (given[i] >= 0) ((signed char *)flags)[i] = given[i];
}

bool adv_flags_lack_axes(const struct adv_flags *flags, int axes)
{
    return (axes == 2 && flags->sc_2d_all_gather != 1) || (axes >= 3 && flags->sc_3d_all_gather != 1);
}

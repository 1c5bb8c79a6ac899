#include "engine/kernel/kernel.h"

const char *adv_kernel_name(enum adv_kernel kernel)
{
#define NAME(id, name, formula) name,
    static const char *const names[] = {ADV_KERNEL_TABLE(NAME)};
#undef NAME
    return (unsigned)kernel < ADV_KERNEL_COUNT ? names[kernel] : "unknown";
}

const char *adv_resource_name(enum adv_resource resource)
{
    static const char *const names[ADV_RES_COUNT] = {"mxu", "vpu", "hbm", "ici", "dcn", "pcie", "latency"};
    return (unsigned)resource < ADV_RES_COUNT ? names[resource] : "unknown";
}

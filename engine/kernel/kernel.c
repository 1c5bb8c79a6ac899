#include "engine/kernel/kernel.h"

#include "engine/kernel/core.h"

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

double adv_stream_time_s(const struct adv_kernel_machine *machine, double hbm_bytes)
{
    if (!(hbm_bytes > 0.0)) return 0.0;
    const double bw = machine->chip->hbm_achieved_frac * adv_core_hbm_bytes_per_s(machine->chip);
    return machine->constants->matmul_launch_s + hbm_bytes / bw;
}

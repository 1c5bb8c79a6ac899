#include "engine/kernel/kernel.h"

#include "engine/base/text.h"
#include "engine/kernel/core.h"

#define NAME(id, name, formula) name,
ADV_NAMES(adv_kernel_name, enum adv_kernel, ADV_KERNEL_TABLE(NAME))
ADV_NAMES(adv_resource_name, enum adv_resource, "mxu", "vpu", "hbm", "ici", "dcn", "pcie", "latency")

double adv_stream_time_s(const struct adv_kernel_machine *machine, double hbm_bytes)
{
    if (!(hbm_bytes > 0.0)) return 0.0;
    const double bw = machine->chip->hbm_achieved_frac * adv_core_hbm_bytes_per_s(machine->chip);
    return machine->constants->matmul_launch_s + hbm_bytes / bw;
}

#include "engine/hardware/host.h"

double adv_host_bytes_per_s_per_device(const struct adv_cluster *cluster)
{
    return cluster->chip.pcie_bytes_per_s_per_chip / cluster->chip.devices_per_chip;
}

double adv_host_transfer_s(const struct adv_cluster *cluster, const struct adv_constants *constants,
                           double bytes_per_device, double transfers)
{
    if (bytes_per_device <= 0.0) return 0.0;
    return bytes_per_device / adv_host_bytes_per_s_per_device(cluster) + transfers * constants->pcie_launch_s;
}

double adv_host_dram_bytes_per_device(const struct adv_cluster *cluster)
{
    return cluster->chip.host_dram_bytes_per_host /
           (cluster->chip.chips_per_host * cluster->chip.devices_per_chip);
}

/* host.h: the PCIe link between a chip and its host, for offloaded activations and optimizer state.
 *
 * Both devices of a tpu7x chip share the link. The chip's pcie_bytes_per_s_per_chip is a planning value: no
 * measurement is published (microbench row m0053). Directions are independent: add up what goes one way only.
 * Thread safe.
 */
#ifndef ADV_HARDWARE_HOST_H
#define ADV_HARDWARE_HOST_H

#include "engine/catalog/constants.h"
#include "engine/spec/cluster.h"

/* Seconds to move `bytes_per_device` in one direction, while every device of the chip does the same;
 * `transfers` is how many pieces it comes in. 0 for no bytes. */
double adv_host_transfer_s(const struct adv_cluster *cluster, const struct adv_constants *constants,
                           double bytes_per_device, double transfers);

/* Bandwidth of one device in one direction with its chip's other devices busy too. */
double adv_host_bytes_per_s_per_device(const struct adv_cluster *cluster);

/* Host memory available to one device's offloaded data. */
double adv_host_dram_bytes_per_device(const struct adv_cluster *cluster);

#endif

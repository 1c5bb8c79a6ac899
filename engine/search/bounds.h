/* bounds.h: what can be said of a family without pricing it. */
#ifndef ADV_SEARCH_BOUNDS_H
#define ADV_SEARCH_BOUNDS_H

#include "engine/spec/cluster.h"
#include "engine/spec/model.h"
#include "engine/spec/plan.h"

/* HBM that no choice of remat, offload of activations or tiling gives back: this device's weights and, unless
 * they live on the host, optimizer moments. Proof: adv_estimate_plan's peaks are sums of non-negative parts,
 * and weights are part of each of them (at the update even when parameters are offloaded); moments are part
 * of the loss and backward peaks unless offloaded. So a family whose value is above the device's memory holds
 * no plan that fits. */
double adv_bound_hbm_bytes_per_device(const struct adv_plan *plan, const struct adv_model_params *params);

#endif

/* step.h: what a step adds around its layers: embedding and head, optimizer update, slices, early compilers.
 */
#pragma once

#include "engine/cost/context.h"
#include "engine/cost/layer.h"

/* ---- Embedding, logits, loss and multi-token prediction. */

/* Embedding lookup (one-hot matmul or gather), head matmuls, cross-entropy, and the head's own weight
 * collectives. */
void adv_cost_head(const struct adv_cost *cost, struct adv_account *account);

/* Multi-token prediction modules: one more layer of the last kind, its 2E -> E projection and a head pass
 * each. */
ADV_MUST_CHECK adv_code adv_cost_mtp(const struct adv_cost *cost, struct adv_account *account, adv_err *err);

/* ---- The optimizer update of a step: weights, gradients and moments through HBM, and over the host
 * link what is kept on the host. */

/* HBM bytes per parameter of the plan's update: weights read and written, gradient read twice (norm, update),
 * moments read and written; moments of the share `moments` of the parameters. */
double adv_cost_update_bytes_per_param(const struct adv_plan *plan, double moments);

/* shard_params: parameters that a device updates. Loads of weights hide behind what the account holds: call
 * it behind the layers. */
void adv_cost_update(const struct adv_cost *cost, double shard_params, struct adv_account *account);

/* ---- What several slices add to a step: gradients and weights over the network between them, and
 * waiting for the slowest. */

/* dense, experts: parameters of a device. The slices wait for each other in proportion to what the account
 * holds: call it last. */
void adv_cost_slices(const struct adv_cost *cost, double dense, double experts, struct adv_account *account);

/* ---- How much longer a step took with the compilers of a generation's first months. */

/* A dated factor of the generation on all that the account holds, only for runs that say how old their
 * software is. */
void adv_cost_software_age(const struct adv_cost *cost, struct adv_account *account);

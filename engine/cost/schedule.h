/* schedule.h: communication of the layers against the compute of the layers.
 *
 * Weight gathers run one layer ahead of their use and gradient scatters one layer behind, so they can hide
 * behind a layer's compute; what runs out of compute is exposed, and a share of hidden collectives still
 * costs the TensorCore (HBM contention, fused steps), by generation and XLA flags. Tensor, context and expert
 * collectives sit on the critical path between operations.
 */
#pragma once

#include "engine/cost/passes.h"

/* Weights: all-gather forward and backward, reduce-scatter of gradients behind the backward pass. What is
 * exposed lengthens the passes in `time`, so that resources scheduled later can hide behind it: a pass takes
 * as long as its busiest resource, never the sum of two shortfalls. */
void adv_schedule_weights(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                          struct adv_layer_time *time, struct adv_account *account);

/* Tensor-parallel all-gathers and reduce-scatters around attention and feed-forward. */
void adv_schedule_tensor(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                         struct adv_account *account);

/* fsdp_transpose beside fsdp: the width of dense feed-forwards (and of experts, see expert_width_shards)
 * stays sharded over it, so the tokens of its group are gathered before and scattered behind each of them,
 * unless the weights are gathered in two stages. Seen in the published steps that combine both. */
void adv_schedule_transpose(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                            struct adv_account *account);

/* Context: keys and values gathered, passed around the ring, or heads traded (Ulysses). */
void adv_schedule_context(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                          struct adv_layer_time *time, struct adv_account *account);

/* Expert dispatch and combine. */
void adv_schedule_experts(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                          struct adv_account *account);

/* Saved tensors that go to the host and come back, behind passes that other resources have lengthened:
 * schedule last. */
void adv_schedule_offload(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                          const struct adv_layer_time *time, struct adv_account *account);

/* What that adds to the step. */
double adv_schedule_offload_s(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                              const struct adv_layer_time *time);

/* Idle stages and the hand-over of microbatches, around what the account holds: call it behind the layers,
 * before embedding and head, which run outside the pipeline. */
void adv_schedule_pipeline(const struct adv_cost *cost, struct adv_account *account);

/* Once per optimizer step: gradient reduction over data and slices, optimizer, stragglers. */
void adv_schedule_step(const struct adv_cost *cost, const struct adv_model_params *params,
                       struct adv_account *account);

/* Exposed seconds of `collective_s` behind `compute_s` under these flags. */
double adv_schedule_exposed_s(const struct adv_cost *cost, double gather_s, double scatter_s,
                              double compute_s);

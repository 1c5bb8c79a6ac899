/* head.h: embedding, logits, loss and multi-token prediction. */
#ifndef ADV_COST_HEAD_H
#define ADV_COST_HEAD_H

#include "engine/cost/layer.h"

/* Embedding lookup (one-hot matmul or gather), head matmuls, cross-entropy, and the head's own weight
 * collectives. */
void adv_cost_head(const struct adv_cost *cost, struct adv_account *account);

/* Multi-token prediction modules: one more layer of the last kind, its 2E -> E projection and a head pass
 * each. */
ADV_MUST_CHECK adv_code adv_cost_mtp(const struct adv_cost *cost, struct adv_account *account, adv_err *err);

#endif

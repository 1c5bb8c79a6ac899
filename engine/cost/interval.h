/* interval.h: how sure a prediction is: the 90 % interval and the confidence, from cross-validated residuals.
 */
#pragma once

#include "engine/cost/context.h"
#include "engine/cost/estimate.h"

/* Regimes whose residuals are spread differently from those of a dense model in bf16 at a shorter context:
 * the bit, the constant with the ratio of the spreads, that with the number of models in the regime that are
 * published on the generation, the words. */
#define ADV_REGIMES(X)                                                                                       \
    X(EXPERTS, interval_experts_ratio, interval_experts_models, "experts")                                   \
    X(LONG_CONTEXT, interval_long_context_ratio, interval_long_context_models, "32k context or more")        \
    X(EIGHT_BIT, interval_8bit_ratio, interval_8bit_models, "8-bit matmuls")

#define ADV_REGIME_BIT(name, constant, models, words) ADV_REGIME_##name,
enum adv_regime { ADV_REGIMES(ADV_REGIME_BIT) ADV_REGIME_COUNT };
#undef ADV_REGIME_BIT

/* The regimes a plan of this model is in: bit 1u << enum adv_regime. */
unsigned adv_regimes_of(const struct adv_model *model, const struct adv_plan *plan);

/* Sets step_time_low_s, step_time_high_s, confidence and confidence_why of `estimate` (step_time_s must be
 * set). */
void adv_interval_apply(const struct adv_cost *cost, struct adv_estimate *estimate);

/* The same without the words, for the search: confidence_why stays as it is. */
void adv_interval_apply_numbers(const struct adv_cost *cost, struct adv_estimate *estimate);

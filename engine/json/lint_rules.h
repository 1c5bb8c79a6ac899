/* lint_rules.h: keys of a configuration that MaxText's validators refuse together.
 *
 * A table of "when these hold, one of those must", each row with the line of MaxText that says so. It is for
 * what no plan is made of (kernel switches, data, checkpoints); the rules of plans are in spec/plan_rules.h.
 */
#pragma once

#include "engine/catalog/catalog.h"
#include "engine/json/json_read.h"
#include "engine/spec/request.h"

/* Adds a finding to `errors` for every rule that `config` breaks: at /config/<key>, or at /model where the
 * key is one of `model_keys`, which say a model without a name. A key that is left out has the value of the
 * file of `model_name` (NULL: none), else MaxText's default; a rule with a key of no known value is not
 * checked. Thread safe. */
void adv_lint_rules(const struct adv_catalog *catalog, const char *model_name, const json_t *config,
                    const struct adv_pin *model_keys, int model_keys_count, adv_err *errors);

/* The same of the keys that go with a plan, as warnings: of the rules with a key of `config` or of
 * `model_keys`. What was warned of is not repeated. */
void adv_lint_rules_warn(const struct adv_catalog *catalog, const char *model_name,
                         const struct adv_config *config, const struct adv_pin *model_keys,
                         int model_keys_count, adv_err *warnings);

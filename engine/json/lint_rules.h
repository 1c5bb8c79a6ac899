/* lint_rules.h: keys of a configuration that MaxText's validators refuse together.
 *
 * A table of "when these hold, one of those must", each row with the line of MaxText that says so. It is for
 * what no plan is made of (kernel switches, data, checkpoints); the rules of plans are in spec/plan_rules.h.
 */
#pragma once

#include "engine/catalog/catalog.h"
#include "engine/json/json_read.h"

/* Adds a finding at /config/<key> to `errors` for every rule that `config` breaks. A key that it leaves out
 * has the value of the file of `model_name` (NULL: none), else MaxText's default; a rule with a key of no
 * known value is not checked. Thread safe. */
void adv_lint_rules(const struct adv_catalog *catalog, const char *model_name, const json_t *config,
                    adv_err *errors);

/* needs.h: what MaxText asks for beside the dimensions of some models, and XLA beside some flags; several
 * answers tell it. */
#pragma once

#include "engine/catalog/catalog.h"
#include "engine/maxtext/read.h"

/* Warns of keys that a run of the model needs and `config` lacks or sets otherwise, and of what they cost
 * that nobody has measured. */
void adv_needs_warn(const struct adv_model *model, int64_t seq_len, const struct adv_config *config,
                    adv_err *warnings);

/* Warns where MaxText refuses to scan layers that pictures would go into. adv_lint_rules says it of a
 * configuration alone. */
void adv_deepstack_warn(const struct adv_model *model, const struct adv_plan *plan,
                        const struct adv_config *config, adv_err *warnings);

/* adv_software_warn_gathers over the axes that the plan's gathers span on the cluster. */
void adv_gathers_warn(const struct adv_catalog *catalog, const struct adv_software *software,
                      const struct adv_cluster *cluster, const struct adv_plan *plan, const char *at,
                      adv_err *warnings);

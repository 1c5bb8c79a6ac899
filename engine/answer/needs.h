/* needs.h: what MaxText asks for beside the dimensions of some models; estimates and lint both tell it. */
#pragma once

#include "engine/maxtext/read.h"

/* Warns of keys that a run of the model needs and `config` lacks or sets otherwise, and of what they cost
 * that nobody has measured. */
void adv_needs_warn(const struct adv_model *model, int64_t seq_len, const struct adv_config *config,
                    adv_err *warnings);

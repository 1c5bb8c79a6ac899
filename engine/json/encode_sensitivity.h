/* encode_sensitivity.h: member "sensitivities" of an advise answer (search.sensitivities). */
#ifndef ADV_JSON_ENCODE_SENSITIVITY_H
#define ADV_JSON_ENCODE_SENSITIVITY_H

#include "engine/explain/sensitivity.h"
#include "engine/json/encode_common.h"

/* {"rates": [...], "batch": [...], "break_evens": [...]}; a new reference. */
json_t *adv_encode_sensitivities(const struct adv_sensitivities *found);

#endif

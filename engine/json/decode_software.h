/* decode_software.h: the member "software" of a request: the releases that a plan is for. */
#ifndef ADV_JSON_DECODE_SOFTWARE_H
#define ADV_JSON_DECODE_SOFTWARE_H

#include "engine/catalog/releases.h"
#include "engine/json/json_read.h"

/* {maxtext?, jax?, libtpu?}; what is not said is the pinned release, and a jax that is said brings the libtpu
 * that it asks for. A MaxText whose keys are not known is a finding that lists the known ones. */
void adv_decode_software(const struct adv_catalog *catalog, const json_t *root, struct adv_software *software,
                         adv_err *err);

#endif

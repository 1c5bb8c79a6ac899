/* encode_catalog.h: inside GET /v1/catalog/…: one pair of functions per collection. Entry: adv_catalog_json
 * (advise.h). Lists hold what a chooser needs, entries everything; every number stands beside its source,
 * date and confidence. */
#ifndef ADV_JSON_ENCODE_CATALOG_H
#define ADV_JSON_ENCODE_CATALOG_H

#include "engine/json/encode_common.h"

/* {"value", "unit", "source", "date", "confidence", "note"?} */
json_t *adv_encode_sourced(double value, const struct adv_provenance *provenance);
/* "source", "date", "confidence", "note"? as members of `object`: the pedigree of all its numbers. */
void adv_encode_set_provenance(json_t *object, const struct adv_provenance *provenance);

json_t *adv_encode_catalog_models(const struct adv_catalog *catalog);
json_t *adv_encode_catalog_model(const struct adv_catalog *catalog, const char *name); /* NULL: unknown */
json_t *adv_encode_catalog_kernels(const struct adv_catalog *catalog);
json_t *adv_encode_catalog_kernel(const struct adv_catalog *catalog, const char *name);
json_t *adv_encode_catalog_keys(const struct adv_catalog *catalog);
json_t *adv_encode_catalog_key(const struct adv_catalog *catalog, const char *name);

#endif

/* yaml_json.h: a YAML document as JSON text, for the OpenAPI description: written as YAML, served as JSON.
 *
 * The core schema's plain scalars (null, true, false, numbers) become JSON's, everything else a string. No
 * anchors. */
#ifndef ADV_SERVER_YAML_JSON_H
#define ADV_SERVER_YAML_JSON_H

#include <stddef.h>

#include "engine/base/err.h"
#include "engine/base/text.h"

/* Appends to `json`. ADV_E_SYNTAX with line and column; ADV_E_UNSUPPORTED for anchors and aliases. */
ADV_MUST_CHECK adv_code adv_yaml_to_json(const char *yaml, size_t yaml_bytes, struct adv_text *json,
                                         adv_err *err);

#endif

/* decode_flags.h: XLA flags as a list or as one LIBTPU_INIT_ARGS string, and what of them changes the
 * prediction.
 *
 * Every flag is kept for the answer in the spelling "--xla_…=value". Flags the catalog has never seen, the
 * same flag with two values, and flags that contradict each other are warnings: libtpu decides, not the
 * engine.
 */
#ifndef ADV_JSON_DECODE_FLAGS_H
#define ADV_JSON_DECODE_FLAGS_H

#include "engine/base/arena.h"
#include "engine/catalog/catalog.h"
#include "engine/json/json_read.h"
#include "engine/spec/request.h"

/* `json` may be NULL (no flags). Pointers are below `at` ("/xla_flags"). ADV_E_INVALID: not an array of
 * strings or a string; a value that is not a number where one is needed. ADV_E_TOO_LARGE: more than
 * ADV_LIMIT_XLA_FLAGS. Unknown flags are errors when `strict`. Texts in `config` live in `arena`. */
ADV_MUST_CHECK adv_code adv_decode_flags(const struct adv_catalog *catalog, const json_t *json,
                                         const char *at, bool strict, struct adv_arena *arena,
                                         struct adv_flags *flags, struct adv_config *config, adv_err *err,
                                         adv_err *warnings);

#endif

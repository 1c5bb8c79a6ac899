/* decode_members.h: members that requests of several kinds have: the releases that a plan is for, what an
 * answer has beside what it always has, mesh axes, the rows of groups, XLA flags. Wrong members add findings,
 * all at once. Thread safe.
 */
#pragma once

#include <jansson.h>

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/catalog/catalog.h"
#include "engine/catalog/releases.h"
#include "engine/json/json_read.h"
#include "engine/spec/kernel_shape.h"
#include "engine/spec/request.h"

/* "software": {maxtext?, jax?, libtpu?}; what is not said is the pinned release, and a jax that is said
 * brings the libtpu that it asks for. A MaxText whose keys are not known is a finding that lists the known
 * ones. */
void adv_decode_software(const struct adv_catalog *catalog, const json_t *root, struct adv_software *software,
                         adv_err *err);

enum {
    ADV_INCLUDES_OF_PLAN =
        ADV_INCLUDE_TIMELINE | ADV_INCLUDE_ROOFLINE | ADV_INCLUDE_LINKS | ADV_INCLUDE_SCALING
};

/* "include": bits of enum adv_include, of those in `allowed`; a finding for each other element. 0: asks for
 * nothing. */
unsigned adv_decode_include(const json_t *root, unsigned allowed, adv_err *err);

/* Sets request->axis_allowed from `search` (may be NULL): those named, all where none are. A finding for each
 * name that is none, with the nearest. */
void adv_decode_axes(const json_t *search, struct adv_advise_request *request, adv_err *err);

/* Finds pinned ICI degrees that no mesh of the slice can hold, and says which degree would do instead. The
 * degrees of axes without a pin become 1. After pins, axes and cluster were decoded. */
void adv_decode_check_pinned_axes(struct adv_advise_request *request, adv_err *err);

/* `group_sizes` or `group_distribution` of `shape` into *gmm, whose m and num_groups are read already (0:
 * unknown). Findings: sizes that are no numbers of rows (the first few by their place), not one per group, or
 * not adding up to m; a distribution that is unknown. A distribution beside sizes is a warning; `warnings`
 * may be NULL. Sizes live in `arena`; sizes that are refused leave *gmm with its distribution. */
void adv_decode_groups(const json_t *shape, struct adv_arena *arena, struct adv_gmm_shape *gmm, adv_err *err,
                       adv_err *warnings);

/* XLA flags as a list or as one LIBTPU_INIT_ARGS string; each is kept for the answer in the spelling
 * "--xla_…=value". Flags that the catalog has never seen, the same flag with two values, and flags that
 * contradict each other are warnings: libtpu decides, not the engine. `json` may be NULL (no flags). Pointers
 * are below `at` ("/xla_flags"). ADV_E_INVALID: not an array of strings or a string; a value that is not a
 * number where one is needed. ADV_E_TOO_LARGE: more than ADV_LIMIT_XLA_FLAGS. Unknown flags are errors when
 * `strict`. Texts in `config` live in `arena`. */
ADV_MUST_CHECK adv_code adv_decode_flags(const struct adv_catalog *catalog, const json_t *json,
                                         const char *at, bool strict, struct adv_arena *arena,
                                         struct adv_flags *flags, struct adv_config *config, adv_err *err,
                                         adv_err *warnings);

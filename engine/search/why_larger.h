/* why_larger.h: a larger slice of the same chip that holds a request which does not fit its own. */
#ifndef ADV_SEARCH_WHY_LARGER_H
#define ADV_SEARCH_WHY_LARGER_H

#include "engine/catalog/constants.h"
#include "engine/spec/request.h"

/* Doubles the slice (in its most even catalog shape) until one of the plans that need least memory there
 * (frugal.h) fits, and writes " (4x8, 32 devices, would hold it)"; "" when none up to 64 times the size
 * does. That plan is estimated, so the slice is enough; a smaller one between two sizes may be, too. */
void adv_larger_slice(const struct adv_advise_request *request, const struct adv_constants *constants,
                      char *text, size_t text_bytes);

#endif

/* recipe_body.h: a body that is a recipe becomes the plain request that it means, before anything else is
 * done with it: what is computed, kept and stored is that request. */
#pragma once

#include "server/exchange.h"

/* The body of a request of estimate, advise or lint: text with what the query gives beside it, or JSON with a
 * member `recipe`, is replaced; other JSON stays as it is and takes no query. */
ADV_MUST_CHECK adv_code adv_recipe_body(struct adv_exchange *exchange, adv_err *err);

/* room.h: how a request's memory is shared between the search and the telling of its answer.
 *
 * Ranked plans, the front and near misses are told after the search, each with its configuration, numbers and
 * advice. What that takes at most is kept back; of a space that does not fit in the rest a part is searched.
 */
#pragma once

#include "engine/base/arena.h"
#include "engine/search/search.h"

/* adv_search_run, which leaves room for telling. ADV_E_REQUEST_MEMORY where the arena's cap is too small;
 * ADV_E_MEMORY then means that the system has none. */
ADV_MUST_CHECK adv_code adv_room_search(const struct adv_advise_request *request,
                                        const struct adv_reread *baseline,
                                        const struct adv_constants *constants, struct adv_arena *arena,
                                        struct adv_search_result *result, adv_err *err);

/* Warns where only a part of the space was searched, and says what to narrow. */
void adv_room_warn(const struct adv_advise_request *request, const struct adv_search_result *result,
                   adv_err *warnings);

/* ADV_E_REQUEST_MEMORY as the only finding where `code` is ADV_E_MEMORY because of the arena's cap: asked
 * again there would be as little. Else `code`, and the findings are as they were. */
adv_code adv_room_judge(adv_code code, const struct adv_arena *arena, adv_err *err);

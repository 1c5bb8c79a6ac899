/* sweep_check.h: mistakes of a sweep that are told before it is taken, not by its items one after another.
 *
 * Requests are only read here, not priced. What is not looked at fails in its turn.
 */
#pragma once

#include "engine/json/sweep_request.h"
#include "server/exchange.h"

/* Adds what the engine refuses of the first listed requests; of a grid, of its first item, and of each
 * further value of an axis that is refused beside every combination of the other axes: a value that goes with
 * some of them is no mistake. An axis of several values over a key that MaxText does not have is one: nothing
 * changes with it. Findings are at their places in the sweep. Ends early with the request's
 * budget. Thread safe. */
void adv_sweep_check(struct adv_exchange *exchange, const struct adv_sweep_request *request, adv_err *err);

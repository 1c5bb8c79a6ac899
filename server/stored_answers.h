/* stored_answers.h: answers of stored runs, found again by their question: after a restart, or by another
 * daemon on the same database. Only for what takes longer to compute than to find (advise, tune).
 *
 * A question is known by a digest over its canonical text, the engine, the catalog with the calibration in
 * force, and the token's project. A database that is slow is no obstacle: one look-up waits and takes 0.25 s
 * each at most, and after one that failed there are none for five seconds. Thread safe.
 */
#pragma once

#include "engine/json/question.h"
#include "server/answer_cache.h"
#include "server/exchange.h"

/* The digest of the request's question; "" where its answer is not found again. */
void adv_stored_answers_digest(const struct adv_exchange *exchange, const struct adv_question *question,
                               char digest[ADV_SHA256_HEX]);

/* Whether a look-up may be tried now. */
bool adv_stored_answers_open(struct adv_app *app);

/* None for five seconds: one has failed, or has found no worker in time. */
void adv_stored_answers_pause(struct adv_app *app);

/* true: the answer, whose `json` the caller frees. On a worker that has a database. */
bool adv_stored_answers_find(struct adv_exchange *exchange, const char digest[ADV_SHA256_HEX],
                             struct adv_answer *answer);

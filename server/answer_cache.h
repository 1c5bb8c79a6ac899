/* answer_cache.h: answers kept in memory by their question, so that asking again costs no engine.
 *
 * A question is a text: the canonical one of json/question.h, or a body as it came, which finds its answer
 * without being read. Kinds of requests do not meet. The memory is bounded; the answers that were not asked
 * for longest go first. All answers are of one engine, catalog and calibration: whoever changes one of them
 * calls adv_answer_cache_forget. Thread safe.
 */
#pragma once

#include <stdint.h>

#include "engine/advise.h"
#include "server/sha256.h"

struct adv_answer_cache;

/* An answer that is kept; const, and there until it is released. */
struct adv_cached {
    struct adv_answer answer; /* wants_store, label, git_ref are not of the question, and empty */
    char *coded;              /* the JSON in gzip; NULL = it gains nothing */
    size_t coded_bytes;
    char tag[ADV_SHA256_HEX]; /* entity tag */
};

enum adv_question_form { ADV_QUESTION_CANONICAL, ADV_QUESTION_AS_SENT };

struct adv_question_key {
    int kind; /* enum adv_request_kind */
    enum adv_question_form form;
    const char
        *project; /* of the token: its calibration may count where the text names no project; "" = none */
    const char *text;
    size_t text_bytes;
};

/* NULL when memory is exhausted; `limit_bytes` 0 keeps nothing. */
struct adv_answer_cache *adv_answer_cache_new(size_t limit_bytes);
void adv_answer_cache_free(struct adv_answer_cache *cache); /* after all releases; NULL is fine */

/* The answer, to be released; NULL = not there. */
const struct adv_cached *adv_answer_cache_find(struct adv_answer_cache *cache,
                                               const struct adv_question_key *key);
void adv_answer_cache_release(struct adv_answer_cache *cache,
                              const struct adv_cached *cached); /* NULL is fine */

/* Counts what was forgotten: read it before the answer is computed. */
uint64_t adv_answer_cache_epoch(struct adv_answer_cache *cache);

/* Copies and keeps an answer, unless something was forgotten since `epoch`. What is returned is to be
 * released; NULL: it is not kept. */
const struct adv_cached *adv_answer_cache_keep(struct adv_answer_cache *cache,
                                               const struct adv_question_key *key,
                                               const struct adv_answer *answer, uint64_t epoch);

/* The same answer under one more key. */
void adv_answer_cache_alias(struct adv_answer_cache *cache, const struct adv_question_key *key,
                            const struct adv_cached *cached, uint64_t epoch);

/* All of them: another calibration is active. */
void adv_answer_cache_forget(struct adv_answer_cache *cache);

size_t adv_answer_cache_bytes(struct adv_answer_cache *cache);

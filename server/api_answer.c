#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/json/question.h"
#include "server/answer_cache.h"
#include "server/api.h"
#include "server/calibrations.h"
#include "server/keep.h"
#include "server/monotonic.h"
#include "server/recipe_body.h"
#include "server/routes.h"
#include "server/stored_answers.h"

#define LONGEST_KEY     255
#define LOOK_UP_WAIT_MS 250  /* for a worker that looks up a stored answer; then it is computed */
#define TRY_WAIT_MS     1000 /* for one that stores what may go unstored */

adv_code adv_api_read_key(const struct adv_exchange *exchange, struct adv_idempotency *idempotency,
                          adv_err *err)
{
    const char *key = exchange->headers[ADV_HEADER_IDEMPOTENCY_KEY];
    memset(idempotency, 0, sizeof *idempotency);
    if (!key) return ADV_OK;
    size_t length = strlen(key);
    bool good = length > 0 && length <= LONGEST_KEY;
    for (size_t i = 0; i < length && good; i++) good = key[i] > ' ' && key[i] < 0x7f;
    if (!good)
        return adv_err_add(err, ADV_E_BAD_REQUEST, "/headers/Idempotency-Key", NULL,
                           "an Idempotency-Key has 1 to %d visible ASCII characters", LONGEST_KEY);
    idempotency->principal = exchange->principal;
    idempotency->key = key;
    /* The same body sent to another operation is another request. */
    struct adv_text text = adv_text_empty(ADV_LIMIT_BODY_BYTES + 256);
    adv_text_format(&text, "%s\n", exchange->route->path);
    adv_text_append_bytes(&text, adv_exchange_body(exchange), exchange->body_bytes);
    const bool whole = !text.overflow;
    if (whole) adv_sha256_hex(text.data, text.length_bytes, idempotency->body_digest);
    adv_text_free(&text);
    return whole ? ADV_OK : adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the request");
}

/* Fills the reply from an earlier answer with the key; a database that is away is no obstacle. */
static adv_code replay(struct adv_exchange *exchange, const struct adv_idempotency *idempotency, adv_err *err)
{
    enum adv_store_outcome outcome = ADV_STORE_UNKNOWN_KEY;
    char *response = NULL;
    adv_err ignored = adv_err_empty();
    if (!idempotency->key || !exchange->db ||
        adv_store_key_find(exchange->db, idempotency, &outcome, &response, &ignored))
        return ADV_OK;
    if (outcome == ADV_STORE_OTHER_BODY)
        return adv_err_add(err, ADV_E_INVALID, "/headers/Idempotency-Key", "use a new key for a new request",
                           "the key was used with another request");
    if (outcome != ADV_STORE_REPLAYED) return ADV_OK;
    adv_reply_json(exchange, 200, response, strlen(response));
    adv_reply_header(exchange, "Idempotency-Replayed", "true");
    return ADV_OK;
}

/* The state that an answer to be stored, or one with an idempotency key, carries from worker to worker. */
struct pending {
    struct adv_idempotency idempotency;
    struct adv_answer answer;      /* its document is held by the exchange */
    char question[ADV_SHA256_HEX]; /* digest; "" = not looked up among stored answers */
    bool looked_up;
};

/* On a worker that has a database: the reply waits for the commit, and nobody else does. */
static adv_code store_and_reply(struct adv_exchange *exchange, adv_err *err)
{
    const struct pending *pending = exchange->state;
    const struct adv_idempotency *idempotency = &pending->idempotency;
    struct adv_text response = adv_text_empty(ADV_LIMIT_STORED_BYTES);
    enum adv_store_outcome outcome = ADV_STORE_SAVED;
    char run_id[ADV_UUID_BYTES];
    adv_code code = adv_keep(
        exchange, (enum adv_request_kind)exchange->route->kind,
        &(struct adv_asked){
            .request = exchange->body,
            .question = pending->question[0] && !pending->answer.verify_top ? pending->question : NULL},
        &pending->answer, idempotency->key ? idempotency : NULL, &response, run_id, &outcome, err);
    if (!code && outcome != ADV_STORE_UNKNOWN_KEY) {
        if (pending->answer.verify_top > 0 && run_id[0])
            adv_api_verify_behind(exchange, run_id, &pending->answer, &response);
        if (response.overflow) adv_text_free(&response);
        adv_reply_json(exchange, 200, response.data, response.length_bytes);
        return ADV_OK;
    }
    adv_text_free(&response);
    /* the key was taken while we computed: that answer counts */
    if (!code) code = replay(exchange, idempotency, err);
    if (code || exchange->reply.status) return code;
    return adv_err_add(err, ADV_E_CONFLICT, "/headers/Idempotency-Key", "send it again",
                       "a request with this key is being answered");
}

/* ADV_E_FORBIDDEN: the token may not store. */
static adv_code refuse_store(adv_err *err)
{
    return adv_err_add(err, ADV_E_FORBIDDEN, "/store",
                       "leave \"store\" out, or use a token with the scope write",
                       "the token may not store runs");
}

adv_code adv_api_run_engine(struct adv_exchange *exchange, int kind, const char *json, size_t json_bytes,
                            struct adv_answer *answer, adv_err *err)
{
    struct adv_metrics *metrics = &exchange->app->metrics;
    memset(answer, 0, sizeof *answer);
    int64_t start_us = adv_monotonic_us();
    adv_code code =
        adv_answer_within(adv_calibrations_catalog(exchange->app, json, json_bytes, exchange->project),
                          (enum adv_request_kind)kind, json, json_bytes, &exchange->budget, answer, err);
    int64_t elapsed_us = adv_monotonic_us() - start_us;
    adv_metrics_add(metrics, ADV_COUNTER_ENGINE_US, (uint64_t)elapsed_us);
    if (code) return code;
    adv_answer_set_elapsed(answer, (double)elapsed_us * 1e-6);
    if (answer->evaluations > 0)
        adv_metrics_add(metrics, ADV_COUNTER_EVALUATIONS, (uint64_t)answer->evaluations);
    if (!answer->wants_store || (exchange->scopes & ADV_SCOPE_WRITE)) return ADV_OK;
    adv_answer_free(answer);
    return refuse_store(err);
}

/* Hands out a kept answer without copying it: it is held until the exchange ends. */
static void reply_cached(struct adv_exchange *exchange, const struct adv_cached *cached, bool is_hit)
{
    exchange->cached = cached;
    adv_reply_header(exchange, "Cache-Control", "no-cache");
    if (is_hit) adv_reply_header(exchange, "Cache-Status", "tpu-advisor; hit");
    if (adv_reply_not_modified(exchange, cached->tag)) return;
    adv_reply_constant(exchange, 200, "application/json", cached->answer.json, cached->answer.json_bytes);
    exchange->reply.coded = cached->coded;
    exchange->reply.coded_bytes = cached->coded_bytes;
}

/* The body as it came, as a key. */
static struct adv_question_key key_as_sent(const struct adv_exchange *exchange)
{
    return (struct adv_question_key){exchange->route->kind, ADV_QUESTION_AS_SENT, exchange->project,
                                     adv_exchange_body(exchange), exchange->body_bytes};
}

bool adv_api_answer_at_once(struct adv_exchange *exchange)
{
    if (exchange->query_count || exchange->query_overflow || exchange->headers[ADV_HEADER_IDEMPOTENCY_KEY])
        return false;
    const struct adv_question_key key = key_as_sent(exchange);
    const struct adv_cached *cached = adv_answer_cache_find(exchange->app->answers, &key);
    if (!cached) return false;
    adv_metrics_add(&exchange->app->metrics, ADV_COUNTER_CACHE_HITS, 1);
    reply_cached(exchange, cached, true);
    return true;
}

/* An answer to be stored is a copy of the kept one, under the names of this request. */
static adv_code copy_cached(const struct adv_cached *cached, const struct adv_question *question,
                            struct adv_answer *answer, adv_err *err)
{
    *answer = cached->answer;
    answer->wants_store = question->wants_store;
    answer->store_may_fail = question->store_may_fail;
    memcpy(answer->label, question->label, sizeof answer->label);
    memcpy(answer->git_ref, question->git_ref, sizeof answer->git_ref);
    answer->json = malloc(cached->answer.json_bytes + 1);
    if (!answer->json) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the answer");
    memcpy(answer->json, cached->answer.json, cached->answer.json_bytes + 1);
    return ADV_OK;
}

/* What follows of the request, and where. */
static adv_code go_on(struct adv_exchange *exchange, adv_handler *next, int place)
{
    exchange->next = next;
    exchange->next_place = place;
    return ADV_OK;
}

static adv_handler compute;

/* On a worker that has a database, or in vain: what was found is kept, and found there. */
static adv_code look_up_stored(struct adv_exchange *exchange, adv_err *err)
{
    struct pending *pending = exchange->state;
    struct adv_answer_cache *answers = exchange->app->answers;
    struct adv_question question;
    struct adv_answer answer;
    const uint64_t epoch = adv_answer_cache_epoch(answers);
    (void)err;
    if (exchange->refused) adv_stored_answers_pause(exchange->app);
    if (!exchange->refused && adv_question_read(exchange->body, exchange->body_bytes, &question)) {
        if (adv_stored_answers_find(exchange, pending->question, &answer)) {
            const struct adv_question_key key = {exchange->route->kind, ADV_QUESTION_CANONICAL,
                                                 exchange->project, question.text, question.text_bytes};
            adv_answer_cache_release(answers, adv_answer_cache_keep(answers, &key, &answer, epoch));
            adv_metrics_add(&exchange->app->metrics, ADV_COUNTER_CACHE_STORED, 1);
            free(answer.json);
        }
        adv_question_free(&question);
    }
    exchange->refused = false;
    return go_on(exchange, compute, (int)exchange->route->place);
}

/* Whether the answer may be a stored run's, which is not known yet; the handler goes on there then. */
static bool goes_to_look_up(struct adv_exchange *exchange, const struct adv_question *question, bool is_hit)
{
    struct pending *pending = exchange->state;
    if (pending->looked_up) return false;
    pending->looked_up = true;
    adv_stored_answers_digest(exchange, question, pending->question);
    if (is_hit || !pending->question[0] || !adv_stored_answers_open(exchange->app)) return false;
    exchange->next_wait_ms = LOOK_UP_WAIT_MS;
    return go_on(exchange, look_up_stored, ADV_ROUTE_STORE) == ADV_OK;
}

/* The answer to a question that was read: kept ones are not computed. *cached is to be released, or NULL. */
static adv_code answer_question(struct adv_exchange *exchange, const struct adv_question *question,
                                const struct adv_cached **cached, bool *is_hit, adv_err *err)
{
    struct pending *pending = exchange->state;
    struct adv_answer_cache *answers = exchange->app->answers;
    const struct adv_question_key key = {exchange->route->kind, ADV_QUESTION_CANONICAL, exchange->project,
                                         question->text, question->text_bytes};
    const struct adv_question_key sent = key_as_sent(exchange);
    const uint64_t epoch = adv_answer_cache_epoch(answers);
    *cached = adv_answer_cache_find(answers, &key);
    *is_hit = *cached != NULL;
    if (goes_to_look_up(exchange, question, *is_hit)) return ADV_OK;
    adv_metrics_add(&exchange->app->metrics, *is_hit ? ADV_COUNTER_CACHE_HITS : ADV_COUNTER_CACHE_MISSES, 1);
    adv_code code = ADV_OK;
    if (!*is_hit) {
        code = adv_api_run_engine(exchange, exchange->route->kind, exchange->body, exchange->body_bytes,
                                  &pending->answer, err);
        if (!code) *cached = adv_answer_cache_keep(answers, &key, &pending->answer, epoch);
    } else if (question->wants_store && !(exchange->scopes & ADV_SCOPE_WRITE)) {
        code = refuse_store(err);
    } else if (question->wants_store) {
        code = copy_cached(*cached, question, &pending->answer, err);
    }
    if (*cached && !code && !question->wants_store) adv_answer_cache_alias(answers, &sent, *cached, epoch);
    return code;
}

/* Replies, or goes on where there is a database. */
static void end_answer(struct adv_exchange *exchange, const struct adv_cached *cached, bool is_hit)
{
    struct adv_answer *answer = &((struct pending *)exchange->state)->answer;
    if (answer->wants_store) {
        adv_answer_cache_release(exchange->app->answers, cached);
        exchange->held = answer->json;
        if (answer->store_may_fail) exchange->next_wait_ms = TRY_WAIT_MS;
        (void)go_on(exchange, store_and_reply, ADV_ROUTE_STORE);
    } else if (cached) {
        free(answer->json);
        reply_cached(exchange, cached, is_hit);
    } else {
        adv_reply_json(exchange, 200, answer->json, answer->json_bytes);
    }
}

/* On a worker of the engine. */
static adv_code compute(struct adv_exchange *exchange, adv_err *err)
{
    struct pending *pending = exchange->state;
    struct adv_question question;
    const struct adv_cached *cached = NULL;
    bool is_hit = false;
    if (exchange->refused) return adv_api_refuse_busy(exchange, err);
    const char *body = adv_exchange_body(exchange);
    adv_code code = ADV_OK;
    /* A lint has no names of its own: every member of its document is linted. */
    if (exchange->route->kind != ADV_REQUEST_LINT &&
        adv_question_read(body, exchange->body_bytes, &question)) {
        code = answer_question(exchange, &question, &cached, &is_hit, err);
        adv_question_free(&question);
    } else { /* no JSON object, or a mistake: the engine says which */
        code = adv_api_run_engine(exchange, exchange->route->kind, body, exchange->body_bytes,
                                  &pending->answer, err);
    }
    if (exchange->next) return ADV_OK; /* to where there is a database */
    if (code)
        adv_answer_cache_release(exchange->app->answers, cached);
    else
        end_answer(exchange, cached, is_hit);
    return code;
}

/* Begins on a worker of the engine, or, with a key, on one that has a database. */
adv_code adv_api_answer(struct adv_exchange *exchange, adv_err *err)
{
    struct pending *pending = adv_arena_alloc(&exchange->arena, sizeof *pending);
    exchange->state = pending;
    if (!pending) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the request");
    adv_code code = adv_recipe_body(exchange, err);
    if (!code) code = adv_api_read_key(exchange, &pending->idempotency, err);
    if (code) return code;
    if (exchange->route->kind == ADV_REQUEST_ADVISE && adv_api_wants_async(exchange))
        return go_on(exchange, adv_api_answer_async, ADV_ROUTE_STORE);
    if (!pending->idempotency.key) return compute(exchange, err);
    code = replay(exchange, &pending->idempotency, err);
    return code || exchange->reply.status ? code : go_on(exchange, compute, (int)exchange->route->place);
}

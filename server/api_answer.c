#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/advise.h"
#include "engine/json/question.h"
#include "server/api.h"
#include "server/calibrations.h"
#include "server/json_text.h"
#include "server/keep.h"
#include "server/monotonic.h"
#include "server/routes.h"
#include "server/store_verifications.h"

#define LONGEST_KEY      255
#define LOOK_UP_WAIT_MS  250 /* for a worker that looks up a stored answer; then it is computed */
#define LOOK_UP_LIMIT_MS 250
#define PAUSE_US         5000000
#define TRY_WAIT_MS      1000 /* for one that stores what may go unstored */

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
    /* The same body sent to another operation, or of another run, is another request. */
    struct adv_text text = adv_text_empty(ADV_LIMIT_BODY_BYTES + 4096);
    adv_text_format(&text, "%s\n", exchange->route->path);
    for (int i = 0; i < ADV_LIMIT_ROUTE_PARAMETERS && exchange->parameters[i]; i++)
        adv_text_format(&text, "%s\n", exchange->parameters[i]);
    adv_text_append_bytes(&text, adv_exchange_body(exchange), exchange->body_bytes);
    const bool whole = !text.overflow;
    if (whole) adv_sha256_hex(text.data, text.length_bytes, idempotency->body_digest);
    adv_text_free(&text);
    return whole ? ADV_OK : adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the request");
}

/* An answer that sent plans to the compiler names the verification, which its row does not. */
static void name_verification(struct adv_exchange *exchange, const struct adv_idempotency *idempotency,
                              struct adv_text *json)
{
    static const char wish[] = "\"verify\"";
    char run_id[ADV_UUID_BYTES], id[ADV_UUID_BYTES] = "", members[96];
    adv_err ignored = adv_err_empty(); /* the run is named, and lists its verifications */
    if (!memmem(exchange->body, exchange->body_bytes, wish, sizeof wish - 1) ||
        adv_store_key_run(exchange->db, idempotency, run_id, &ignored) ||
        adv_verification_newest_id(exchange->db, run_id, id, &ignored) || !id[0])
        return;
    struct adv_text named = adv_text_empty(ADV_LIMIT_STORED_BYTES);
    (void)snprintf(members, sizeof members, "\"verification_id\":\"%s\"", id);
    adv_json_text_extend(&named, json->data, json->length_bytes, members);
    adv_text_free(json);
    *json = named;
}

adv_code adv_api_replay(struct adv_exchange *exchange, const struct adv_idempotency *idempotency,
                        adv_err *err)
{
    enum adv_store_outcome outcome = ADV_STORE_UNKNOWN_KEY;
    char *response = NULL;
    adv_err ignored = adv_err_empty();
    if (!idempotency->key || !exchange->db ||
        adv_store_key_find(exchange->db, idempotency, &outcome, &response, &ignored))
        return ADV_OK;
    if (outcome == ADV_STORE_OTHER_BODY) return adv_store_refuse_key(err);
    if (outcome != ADV_STORE_REPLAYED) return ADV_OK;
    struct adv_text json = adv_text_empty(ADV_LIMIT_STORED_BYTES);
    adv_text_append(&json, response);
    free(response);
    if (!json.overflow) name_verification(exchange, idempotency, &json);
    if (json.overflow) adv_text_free(&json);
    adv_reply_json(exchange, 200, json.data, json.length_bytes);
    adv_reply_header(exchange, "Idempotency-Replayed", "true");
    return ADV_OK;
}

/* The answer of an earlier request with the key, whether that was stored or is a sweep. */
static adv_code replay_any(struct adv_exchange *exchange, const struct adv_idempotency *idempotency,
                           adv_err *err)
{
    const adv_code code = adv_api_replay(exchange, idempotency, err);
    return code || exchange->reply.status ? code : adv_api_replay_sweep(exchange, idempotency, err);
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
    const bool is_found_again = pending->question[0] && !pending->answer.verify_top;
    struct adv_kept kept = {.kind = (enum adv_request_kind)exchange->route->kind,
                            .request = exchange->body,
                            .question = is_found_again ? pending->question : NULL,
                            .idempotency = idempotency->key ? idempotency : NULL};
    adv_code code = adv_keep(exchange, &pending->answer, &kept, err);
    if (!code && kept.outcome != ADV_STORE_UNKNOWN_KEY) {
        adv_err unqueued = adv_err_empty();
        if (kept.run_id[0] && adv_keep_verify(exchange->app, exchange->db, exchange->principal, kept.run_id,
                                              &pending->answer, &kept.response, &unqueued))
            adv_api_warn(exchange, "verification not queued", &unqueued);
        if (kept.response.overflow) adv_text_free(&kept.response);
        adv_reply_json(exchange, 200, kept.response.data, kept.response.length_bytes);
        return ADV_OK;
    }
    adv_text_free(&kept.response);
    /* the key was taken while we computed: that answer counts */
    if (!code) code = replay_any(exchange, idempotency, err);
    if (code || exchange->reply.status) return code;
    return adv_store_refuse_pending_key(err);
}

/* ADV_E_FORBIDDEN: the token may not store. */
static adv_code refuse_store(adv_err *err)
{
    return adv_err_add(err, ADV_E_FORBIDDEN, "/store",
                       "leave \"store\" out, or use a token with the scope write",
                       "the token may not store runs");
}

/* The project is read out of the request only where it matters. */
static adv_code require_calibrations(const struct adv_exchange *exchange, const char *json, size_t json_bytes,
                                     adv_err *err)
{
    struct adv_question question;
    if (adv_calibrations_known(exchange->app)) return ADV_OK;
    if (exchange->project[0] || !adv_question_read(json, json_bytes, &question))
        return adv_calibrations_require(exchange->app, exchange->project, err);
    const adv_code code = adv_calibrations_require(exchange->app, question.project, err);
    adv_question_free(&question);
    return code;
}

adv_code adv_api_run_engine(struct adv_exchange *exchange, int kind, const char *json, size_t json_bytes,
                            struct adv_answer *answer, adv_err *err)
{
    struct adv_metrics *metrics = &exchange->app->metrics;
    memset(answer, 0, sizeof *answer);
    adv_code code = require_calibrations(exchange, json, json_bytes, err);
    if (code) return code;
    int64_t start_us = adv_monotonic_us();
    code = adv_answer_within(adv_calibrations_catalog(exchange->app, json, json_bytes, exchange->project),
                             (enum adv_request_kind)kind, json, json_bytes, &exchange->budget, answer, err);
    int64_t elapsed_us = adv_monotonic_us() - start_us;
    adv_metrics_add(metrics, ADV_COUNTER_ENGINE_US, (uint64_t)elapsed_us);
    if (code) return code;
    adv_answer_set_elapsed(answer, (double)elapsed_us * 1e-6);
    if (answer->evaluations > 0)
        adv_metrics_add(metrics, ADV_COUNTER_EVALUATIONS, (uint64_t)answer->evaluations);
    code = adv_keep_within("token", exchange->project, answer, err);
    if (!code && answer->wants_store && !(exchange->scopes & ADV_SCOPE_WRITE)) code = refuse_store(err);
    if (code) adv_answer_free(answer);
    return code;
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

/* ---- answers of stored runs, found again by their question: after a restart, or by another daemon on the
 * same database. Only for what takes longer to compute than to find (advise, tune). A question is known by a
 * digest over its canonical text, the engine, the catalog with the calibration in force, and the token's
 * project. A database that is slow is no obstacle: one look-up waits and takes 0.25 s each at most, and after
 * one that failed there are none for five seconds. ---- */

/* The digest of the request's question; "" where its answer is not found again. */
static void digest_of(const struct adv_exchange *exchange, const struct adv_question *question,
                      char digest[ADV_SHA256_HEX])
{
    const int kind = exchange->route->kind;
    digest[0] = '\0';
    if (!exchange->app->database || (kind != ADV_REQUEST_ADVISE && kind != ADV_REQUEST_TUNE)) return;
    const struct adv_catalog *catalog =
        adv_calibrations_catalog(exchange->app, exchange->body, exchange->body_bytes, exchange->project);
    struct adv_text text = adv_text_empty(ADV_LIMIT_BODY_BYTES + 1024);
    adv_text_format(&text, "%d\n%s\n%s\n%s\n%s\n", kind, adv_engine_version(), adv_catalog_hash(catalog),
                    adv_catalog_calibration(catalog), exchange->project);
    adv_text_append_bytes(&text, question->text, question->text_bytes);
    if (!text.overflow) adv_sha256_hex(text.data, text.length_bytes, digest);
    adv_text_free(&text);
}

/* Whether a look-up may be tried now. */
static bool may_look_up(struct adv_app *app)
{
    return app->database && adv_database_is_readable(app->database) && app->config.cache_mib > 0 &&
           adv_monotonic_us() >= atomic_load(&app->look_up_from_us);
}

static void pause_look_ups(struct adv_app *app)
{
    atomic_store(&app->look_up_from_us, adv_monotonic_us() + PAUSE_US);
}

/* Another calibration may have come into force between the digest and the answer: the answer says which it
 * is. */
static bool is_of_today(const struct adv_exchange *exchange, const struct adv_answer *answer)
{
    const struct adv_catalog *catalog =
        adv_calibrations_catalog(exchange->app, exchange->body, exchange->body_bytes, exchange->project);
    char said[160];
    (void)snprintf(said, sizeof said, "\"calibration\":\"%s\"", adv_catalog_calibration(catalog));
    return strstr(answer->json, said) != NULL;
}

/* true: the answer, whose `json` the caller frees. */
static bool find_stored(struct adv_exchange *exchange, const char digest[ADV_SHA256_HEX],
                        struct adv_answer *answer)
{
    struct adv_app *app = exchange->app;
    adv_err err = adv_err_empty();
    bool found = false;
    adv_db_limit(exchange->db, LOOK_UP_LIMIT_MS);
    const adv_code code = adv_store_run_find_answer(exchange->db, digest, &found, answer, &err);
    adv_db_limit(exchange->db, 0);
    if (code) pause_look_ups(app);
    if (code || !found) return false;
    if (is_of_today(exchange, answer)) return true;
    free(answer->json);
    answer->json = NULL;
    return false;
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
    if (exchange->refused) pause_look_ups(exchange->app);
    if (!exchange->refused && adv_question_read(exchange->body, exchange->body_bytes, &question)) {
        if (find_stored(exchange, pending->question, &answer)) {
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
    digest_of(exchange, question, pending->question);
    if (is_hit || !pending->question[0] || !may_look_up(exchange->app)) return false;
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

static bool is_json(const struct adv_exchange *exchange)
{
    static const char json[] = "application/json";
    const char *type = exchange->headers[ADV_HEADER_CONTENT_TYPE];
    return !type || (strncasecmp(type, json, sizeof json - 1) == 0 &&
                     strchr("; \t", type[sizeof json - 1])); /* or its end, which strchr finds too */
}

static bool has_recipe(const struct adv_exchange *exchange)
{
    static const char *const members[] = {"\"recipe\"", "\"hf_config\"",
                                          "\"model_type\""}; /* of a catalog's model */
    bool found = false;
    for (size_t i = 0; exchange->body && i < sizeof members / sizeof *members; i++)
        found = found || memmem(exchange->body, exchange->body_bytes, members[i], strlen(members[i]));
    return found;
}

/* Said to be JSON, and a text of another kind: a recipe under the wrong type is not guessed at. */
static bool is_other_text(const struct adv_exchange *exchange)
{
    static const char *const words[] = {"null", "true", "false"};
    const char *at = exchange->body ? exchange->body : "";
    at += strspn(at, " \t\r\n\xef\xbb\xbf");
    bool other = *at && !strchr("{[\"-0123456789", *at);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        other = other && strncmp(at, words[i], strlen(words[i])) != 0;
    return other;
}

/* A recipe becomes the plain request that it means, before anything else is done with it: what is computed,
 * kept and stored is that request. It comes as text, with what the query gives beside it, or as JSON with a
 * member `recipe`; other JSON stays as it is and takes no query. */
static adv_code read_recipe(struct adv_exchange *exchange, adv_err *err)
{
    const int kind = exchange->route->kind;
    const bool reads = kind == ADV_REQUEST_ESTIMATE || kind == ADV_REQUEST_ADVISE || kind == ADV_REQUEST_LINT;
    struct adv_given_member given[ADV_LIMIT_QUERY];
    const bool as_json = !reads || is_json(exchange);
    /* Beside a recipe, which names there are is the engine's to say. */
    adv_code code = adv_exchange_check_query(exchange, as_json ? "" : NULL, err);
    if (code) return code;
    if (reads && as_json && is_other_text(exchange))
        return adv_err_add(err, ADV_E_SYNTAX, "",
                           "send a recipe as text/x-shellscript or application/yaml, or as the member recipe",
                           "the body is not valid JSON");
    if (!reads || (as_json && !has_recipe(exchange))) return ADV_OK;
    for (int i = 0; i < exchange->query_count; i++)
        given[i] = (struct adv_given_member){exchange->query[i].name, exchange->query[i].value};
    char *json = NULL;
    size_t json_bytes = 0;
    code =
        adv_request_expand(exchange->app->catalog, (enum adv_request_kind)kind, adv_exchange_body(exchange),
                           exchange->body_bytes, given, exchange->query_count, &json, &json_bytes, err);
    if (code) return code;
    free(exchange->body);
    exchange->body = json;
    exchange->body_bytes = json_bytes;
    return ADV_OK;
}

/* Begins on a worker of the engine, or, with a key, on one that has a database. */
adv_code adv_api_answer(struct adv_exchange *exchange, adv_err *err)
{
    struct pending *pending = adv_arena_alloc(&exchange->arena, sizeof *pending);
    exchange->state = pending;
    if (!pending) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the request");
    adv_code code = read_recipe(exchange, err);
    if (!code) code = adv_api_read_key(exchange, &pending->idempotency, err);
    if (code) return code;
    if (exchange->route->kind == ADV_REQUEST_ADVISE && adv_api_wants_async(exchange))
        return go_on(exchange, adv_api_answer_async, ADV_ROUTE_STORE);
    if (!pending->idempotency.key) return compute(exchange, err);
    code = replay_any(exchange, &pending->idempotency, err);
    return code || exchange->reply.status ? code : go_on(exchange, compute, (int)exchange->route->place);
}

/* exchange.h: one request and its reply, as handlers see them. Knows nothing of the HTTP library.
 *
 * A handler reads the request members and fills the reply by the functions below, exactly once. It may run on
 * an HTTP thread (routes that never wait) or on a worker. Everything allocated from `arena` lives as long as
 * the exchange.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/budget.h"
#include "engine/base/err.h"
#include "server/documents.h"
#include "server/trace.h"

#define ADV_LIMIT_REQUEST_ID       129 /* 128 characters and the NUL; a traceparent has 55 */
#define ADV_LIMIT_REPLY_HEADERS    8   /* the fullest reply has 5 */
#define ADV_LIMIT_ROUTE_PARAMETERS 2
#define ADV_LIMIT_QUERY            16 /* query parameters of one request; /v1/runs takes 8 */

struct adv_app;
struct adv_cached;
struct adv_db;
struct adv_route;
struct adv_exchange;

/* What answers a request. ADV_OK: the reply is filled, or `next` says what follows; else the findings are the
 * reply. */
typedef adv_code adv_handler(struct adv_exchange *exchange, adv_err *err);

/* Request headers that handlers may look at; copied before the handler runs. */
#define ADV_HEADER_TABLE(X)                                                                                  \
    X(ACCEPT, "Accept")                                                                                      \
    X(ACCEPT_ENCODING, "Accept-Encoding")                                                                    \
    X(AUTHORIZATION, "Authorization")                                                                        \
    X(CONTENT_ENCODING, "Content-Encoding")                                                                  \
    X(CONTENT_TYPE, "Content-Type")                                                                          \
    X(HOST, "Host")                                                                                          \
    X(IDEMPOTENCY_KEY, "Idempotency-Key")                                                                    \
    X(IF_MATCH, "If-Match")                                                                                  \
    X(IF_NONE_MATCH, "If-None-Match")                                                                        \
    X(LAST_EVENT_ID, "Last-Event-ID")                                                                        \
    X(ORIGIN, "Origin")                                                                                      \
    X(PREFER, "Prefer")                                                                                      \
    X(REQUEST_ID, "X-Request-Id")                                                                            \
    X(REQUEST_TIMEOUT, "Request-Timeout")                                                                    \
    X(SEC_FETCH_SITE, "Sec-Fetch-Site")                                                                      \
    X(TRACEPARENT, "traceparent")
#define ADV_HEADER_ENUM(name, text) ADV_HEADER_##name,
enum adv_header { ADV_HEADER_TABLE(ADV_HEADER_ENUM) ADV_HEADER_COUNT };
#undef ADV_HEADER_ENUM

struct adv_reply {
    int status; /* 0 = not filled yet */
    const char *content_type;
    char *body;
    size_t body_bytes;
    char *owned;       /* the body where it was malloc'ed; NULL = it lasts */
    bool is_gzip;      /* the body is coded */
    bool varies;       /* with Accept-Encoding */
    const char *coded; /* the body in gzip, made before and as lasting; NULL = coded when it is wanted */
    size_t coded_bytes;
    int headers_count;
    struct {
        const char *name;
        char value[256];
    } headers[ADV_LIMIT_REPLY_HEADERS];
};

struct adv_exchange {
    struct adv_app *app;
    struct adv_arena arena;
    char request_id[ADV_LIMIT_REQUEST_ID];
    struct adv_trace trace;
    const char *method, *path;
    const struct adv_route *route;
    const char *parameters[ADV_LIMIT_ROUTE_PARAMETERS]; /* in the order of the template */
    const char *headers[ADV_HEADER_COUNT];              /* NULL when absent */
    int query_count;
    struct {
        const char *name, *value;
    } query[ADV_LIMIT_QUERY];
    bool query_overflow;
    unsigned scopes;       /* what the token may; see tokens.h */
    const char *principal; /* the token's name, "" without tokens */
    const char *project;   /* the only one that the token sees; "" = all */
    char *body;            /* NUL-terminated; NULL when there is none */
    size_t body_bytes;
    struct adv_budget budget; /* what the engine may spend on it, and whether somebody still waits */
    struct adv_db *db;        /* of the worker that runs the handler; NULL when there is no store */
    /* A handler that is not done says what follows, and where (enum adv_route_place), instead of replying. */
    adv_handler *next;
    int next_place;
    int next_wait_ms; /* how long `next` may wait for a worker there before it counts as refused; 0 = as long
                         as any request, which is answered 503 then */
    int wait_s;       /* of who has asked too often: until the next request is answered */
    bool refused;     /* there was no room there: `next` runs here, without a database, and replies */
    void *state;      /* of the handler, in the arena */
    void *held;       /* malloc'ed, freed with the exchange, by `drop` where it holds more: */
    void (*drop)(void *held);        /* NULL: free */
    const struct adv_cached *cached; /* the kept answer that the reply is; released with the exchange */
    struct adv_reply reply;
};

/* The value of a query parameter, or NULL. */
const char *adv_exchange_query(const struct adv_exchange *exchange, const char *name);

/* The body, "" when there is none. */
static inline const char *adv_exchange_body(const struct adv_exchange *exchange)
{
    return exchange->body ? exchange->body : "";
}

/* Whether `word` is one of those of the list, which blanks or commas separate. `compare`: strncmp or
 * strncasecmp. */
bool adv_exchange_lists(const char *list, const char *word, size_t length,
                        int (*compare)(const char *, const char *, size_t));

/* ADV_E_BAD_REQUEST: the query has a name that is not among `allowed` (separated by blanks; NULL: all are),
 * or has one twice. */
ADV_MUST_CHECK adv_code adv_exchange_check_query(const struct adv_exchange *exchange, const char *allowed,
                                                 adv_err *err);

/* Whether the Accept header allows `type` ("application/json"; parameters after it do not count); true when
 * there is none. */
bool adv_exchange_accepts(const struct adv_exchange *exchange, const char *type);

/* Which of the types the client likes best; of equals the first. -1: none. */
int adv_exchange_preferred(const struct adv_exchange *exchange, const char *const *types, int count);

/* Replies. `body` must be malloc'ed and is taken over, also on failure; NULL becomes a 503. */
void adv_reply_json(struct adv_exchange *exchange, int status, char *body, size_t body_bytes);
void adv_reply_text(struct adv_exchange *exchange, int status, const char *content_type, char *body,
                    size_t body_bytes);
/* `body` outlives the exchange. */
void adv_reply_constant(struct adv_exchange *exchange, int status, const char *content_type, const void *body,
                        size_t body_bytes);
/* The same for a document made at the start, with its tag: 304 to who has it. */
void adv_reply_document(struct adv_exchange *exchange, const char *content_type,
                        const struct adv_document *document);
void adv_reply_empty(struct adv_exchange *exchange, int status);
void adv_reply_header(struct adv_exchange *exchange, const char *name, const char *format, ...)
    ADV_PRINTF(3, 4);

/* Problem documents (RFC 9457); the status follows from the first finding's code. 503 brings Retry-After, of
 * an hour where no database is configured, and so does 429 where wait_s is set. To who listens for events,
 * what has Retry-After but for the database that is not there is told as one, "away": the stream goes on. */
void adv_reply_problem(struct adv_exchange *exchange, const adv_err *err);
/* The same of one finding. Returns false: the check that it ends has failed. */
bool adv_reply_error(struct adv_exchange *exchange, adv_code code, const char *pointer, const char *hint,
                     const char *format, ...) ADV_PRINTF(5, 6);

/* Whether the value of If-Match or If-None-Match (NULL: none) names the entity tag; "*" names every one. Weak
 * tags (W/"…") do in If-None-Match only (RFC 9110, 13.1). */
bool adv_tags_name(const char *tags, const char *tag, bool takes_weak);

/* Sets ETag (a strong one, `tag` without quotes). true when If-None-Match names it and the reply is a
 * finished 304. */
ADV_MUST_CHECK bool adv_reply_not_modified(struct adv_exchange *exchange, const char *tag);

/* Codes the body of a filled reply where the client takes gzip and something is gained; the entity tag then
 * says so. Takes a millisecond for 100 kB that were not coded before. */
void adv_reply_encode(struct adv_exchange *exchange);

/* Gives back an owned body and forgets the headers: the reply can be filled again. */
void adv_reply_clear(struct adv_reply *reply);

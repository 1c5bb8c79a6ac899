/* code.h: the one list of outcomes.
 *
 * A row gives the code, the HTTP status the server answers with, the slug of the problem type
 * (https://tpu-advisor.dev/problems/<slug>) and its title. Adding an outcome = adding a row.
 */
#pragma once

#define ADV_CODE_TABLE(X)                                                                                    \
    X(ADV_OK, 200, "ok", "OK")                                                                               \
    X(ADV_E_SYNTAX, 400, "malformed-document", "The document cannot be parsed")                              \
    X(ADV_E_BAD_REQUEST, 400, "bad-request", "The request is not valid HTTP for this resource")              \
    X(ADV_E_INVALID, 422, "invalid-request", "The request has members that are missing, unknown or wrong")   \
    X(ADV_E_ILLEGAL, 422, "illegal-configuration", "The configuration breaks a legality rule")               \
    X(ADV_E_RANGE, 422, "out-of-range", "A value is outside its range")                                      \
    X(ADV_E_UNSUPPORTED, 422, "unsupported", "The engine has no model for this and does not guess")          \
    X(ADV_E_REQUEST_MEMORY, 422, "request-memory", "The answer needs more memory than a request has")        \
    X(ADV_E_UNAUTHORIZED, 401, "unauthorized", "A valid bearer token is needed")                             \
    X(ADV_E_FORBIDDEN, 403, "forbidden", "The token lacks the scope")                                        \
    X(ADV_E_NOT_FOUND, 404, "not-found", "There is no such resource")                                        \
    X(ADV_E_METHOD, 405, "method-not-allowed", "The resource does not take this method")                     \
    X(ADV_E_NOT_ACCEPTABLE, 406, "not-acceptable", "No representation matches the Accept header")            \
    X(ADV_E_CONFLICT, 409, "conflict", "The request conflicts with the current state")                       \
    X(ADV_E_PRECONDITION, 412, "precondition-failed",                                                        \
      "The resource is not in the state the request asks for")                                               \
    X(ADV_E_TOO_LARGE, 413, "too-large", "The request is larger than the limit")                             \
    X(ADV_E_MEDIA_TYPE, 415, "unsupported-media-type", "The body's media type is not accepted")              \
    X(ADV_E_HOST, 421, "misdirected", "The daemon does not go by this name")                                 \
    X(ADV_E_RATE, 429, "too-many-requests", "More requests than the rate limit allows")                      \
    X(ADV_E_HEAD, 431, "head-too-large", "The request's line and headers are larger than the limit")         \
    X(ADV_E_TIMEOUT, 503, "deadline", "The request took longer than its deadline")                           \
    X(ADV_E_BUSY, 503, "busy", "All workers are busy and the queue is full")                                 \
    X(ADV_E_STORE, 503, "store-unavailable", "The database cannot be reached")                               \
    X(ADV_E_MEMORY, 503, "out-of-memory", "There is not enough memory now")                                  \
    X(ADV_E_IO, 500, "io", "A file cannot be read or written")                                               \
    X(ADV_E_INTERNAL, 500, "internal", "The program has a bug")

#define ADV_CODE_ENUM(code, status, slug, title) code,
typedef enum { ADV_CODE_TABLE(ADV_CODE_ENUM) ADV_CODE_COUNT } adv_code;
#undef ADV_CODE_ENUM

int adv_code_http_status(adv_code code);
const char *adv_code_slug(adv_code code);
const char *adv_code_title(adv_code code);

/* Result must be looked at. */
#define ADV_MUST_CHECK                        __attribute__((warn_unused_result))
#define ADV_PRINTF(format_index, first_index) __attribute__((format(printf, format_index, first_index)))

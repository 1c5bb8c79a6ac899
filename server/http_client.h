/* http_client.h: one request over HTTP or HTTPS, for the commands that ask a daemon. Certificates and names
 * are checked against the system's authorities. A connection per request.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"

#define ADV_LIMIT_URL_BYTES 512

struct adv_client_answer {
    int status;
    int retry_after_s;                  /* 0 = not said */
    char media_type[64];                /* "" = not said; of the body, without its parameters */
    char location[ADV_LIMIT_URL_BYTES]; /* "" = not said; where a redirect leads, which is not followed */
    bool unanswered; /* with ADV_E_IO: the connection was refused, or ended before a byte of an answer: to ask
                        again under the same key may go well */
    char *body;      /* NUL-terminated, malloc'ed; freed by the caller */
    size_t body_bytes;
};

/* `url`: http://host[:port][/path] or https://…; `path` is added to it. `token` NULL: none is sent; `json`
 * NULL: a GET, else a POST of it, under the Idempotency-Key `key` unless that is NULL. ADV_E_IO: nobody
 * answered, or not in HTTP; ADV_E_INVALID: no URL, or a token with line breaks, blanks or the like. */
ADV_MUST_CHECK adv_code adv_client_ask(const char *url, const char *path, const char *token, const char *json,
                                       const char *key, int timeout_s, struct adv_client_answer *answer,
                                       adv_err *err);

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/advise.h"
#include "server/api.h"
#include "server/app.h"
#include "server/json_text.h"

#define MESSAGE_LIMIT_BYTES (2u * 1024u * 1024u)
#define ANSWER_LIMIT_BYTES  (16u * 1024u * 1024u)

/* The pasted message alone is the same as a document with nothing else. */
static void wrap(const struct adv_exchange *exchange, struct adv_text *json)
{
    const char *type = exchange->headers[ADV_HEADER_CONTENT_TYPE];
    const char *body = adv_exchange_body(exchange);
    if (type && strncasecmp(type, "text/plain", strlen("text/plain")) == 0) {
        adv_text_append(json, "{");
        adv_json_text_string(json, "message", body);
        adv_text_append(json, "}");
    } else {
        adv_text_append_bytes(json, body, exchange->body_bytes);
    }
}

adv_code adv_api_explain_oom(struct adv_exchange *exchange, adv_err *err)
{
    struct adv_text json = adv_text_empty(MESSAGE_LIMIT_BYTES), answer = adv_text_empty(ANSWER_LIMIT_BYTES);
    char *found = NULL;
    wrap(exchange, &json);
    adv_code code = json.overflow
                        ? adv_err_add(err, ADV_E_TOO_LARGE, "/message", NULL, "the message is too long")
                        : adv_explain_oom(exchange->app->catalog, json.data ? json.data : "",
                                          json.length_bytes, &exchange->budget, &found, err);
    if (!code) adv_text_append(&answer, found);
    free(found);
    adv_text_free(&json);
    return adv_api_reply_printed(exchange, 200, code, &answer);
}

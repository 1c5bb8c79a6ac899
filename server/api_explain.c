#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/advise.h"
#include "engine/json/question.h"
#include "server/api.h"
#include "server/app.h"
#include "server/calibrations.h"
#include "server/json_text.h"
#include "server/keep.h"

#define MESSAGE_LIMIT_BYTES (2u * 1024u * 1024u)

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
    struct adv_text json = adv_text_empty(MESSAGE_LIMIT_BYTES);
    char *found = NULL;
    struct adv_answer named = {0};
    wrap(exchange, &json);
    const char *document = json.data ? json.data : "";
    adv_code code = json.overflow
                        ? adv_err_add(err, ADV_E_TOO_LARGE, "/message", NULL, "the message is too long")
                        : ADV_OK;
    if (!code) {
        adv_question_project_in(document, json.length_bytes, "request", named.project);
        adv_err refused = adv_err_empty();
        code = adv_keep_within("token", exchange->project, &named, &refused);
        adv_err_merge(err, &refused, "/request");
    }
    const char *project = exchange->project[0] ? exchange->project : named.project;
    if (!code) {
        adv_err unknown = adv_err_empty();
        code = adv_calibrations_require(exchange->app, project, &unknown);
        adv_err_merge(err, &unknown, "/request");
    }
    if (!code)
        code = adv_explain_oom(adv_calibrations_of(exchange->app, project), document, json.length_bytes,
                               &exchange->budget, &found, err);
    if (!code) adv_reply_json(exchange, 200, found, strlen(found));
    adv_text_free(&json);
    return code;
}

#include "server/recipe_body.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/advise.h"
#include "server/app.h"
#include "server/routes.h"

static bool is_json(const struct adv_exchange *exchange)
{
    static const char json[] = "application/json";
    const char *type = exchange->headers[ADV_HEADER_CONTENT_TYPE];
    return !type || (strncasecmp(type, json, sizeof json - 1) == 0 &&
                     strspn(type + sizeof json - 1, "; \t") == (type[sizeof json - 1] ? 1 : 0));
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

adv_code adv_recipe_body(struct adv_exchange *exchange, adv_err *err)
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

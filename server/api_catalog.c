#include <string.h>

#include "engine/advise.h"
#include "server/api.h"
#include "server/app.h"

static const char *const no_query[] = {NULL};

void adv_api_catalog_list(struct adv_exchange *exchange)
{
    if (!adv_exchange_check_query(exchange, no_query)) return;
    int index = adv_documents_collection(exchange->parameters[0]);
    if (index < 0) {
        adv_reply_error(exchange, ADV_E_NOT_FOUND, "", "models, chips, topologies, kernels, keys",
                        "the catalog has no collection '%.64s'", exchange->parameters[0]);
        return;
    }
    adv_reply_document(exchange, "application/json", &exchange->app->documents->collections[index]);
}

void adv_api_catalog_entry(struct adv_exchange *exchange)
{
    if (!adv_exchange_check_query(exchange, no_query)) return;
    adv_err err = adv_err_empty();
    struct adv_answer answer = {0};
    if (adv_catalog_json(exchange->app->catalog, exchange->parameters[0], exchange->parameters[1], &answer,
                         &err)) {
        adv_reply_problem(exchange, &err);
        return;
    }
    char tag[ADV_SHA256_HEX];
    adv_sha256_hex(answer.json, answer.json_bytes, tag);
    adv_reply_header(exchange, "Cache-Control", "no-cache");
    if (adv_reply_not_modified(exchange, tag)) {
        adv_answer_free(&answer);
        return;
    }
    adv_reply_json(exchange, 200, answer.json, answer.json_bytes);
}

#include <string.h>

#include "engine/advise.h"
#include "server/api.h"
#include "server/app.h"

adv_code adv_api_catalog_list(struct adv_exchange *exchange, adv_err *err)
{
    int index = adv_documents_collection(exchange->parameters[0]);
    if (index < 0)
        return adv_err_add(err, ADV_E_NOT_FOUND, "", "models, chips, topologies, kernels, keys",
                           "the catalog has no collection '%.64s'", exchange->parameters[0]);
    adv_reply_document(exchange, "application/json", &exchange->app->documents->collections[index]);
    return ADV_OK;
}

adv_code adv_api_catalog_entry(struct adv_exchange *exchange, adv_err *err)
{
    struct adv_answer answer = {0};
    const adv_code code = adv_catalog_json(exchange->app->catalog, exchange->parameters[0],
                                           exchange->parameters[1], &answer, err);
    if (code) return code;
    char tag[ADV_SHA256_HEX];
    adv_sha256_hex(answer.json, answer.json_bytes, tag);
    adv_reply_header(exchange, "Cache-Control", "no-cache");
    if (adv_reply_not_modified(exchange, tag))
        adv_answer_free(&answer);
    else
        adv_reply_json(exchange, 200, answer.json, answer.json_bytes);
    return ADV_OK;
}

#include <string.h>

#include "engine/json/decode_gate.h"
#include "server/api.h"
#include "server/app.h"
#include "server/json_text.h"
#include "server/store_baselines.h"

#define BASELINE_LIMIT_BYTES 4096

static const char *const no_query[] = {NULL};

static void reply_baseline(struct adv_exchange *exchange, int status)
{
    adv_err err;
    adv_err_init(&err);
    struct adv_baseline baseline;
    if (adv_store_baseline_get(exchange->db, exchange->parameters[0], exchange->parameters[1], false,
                               &baseline, &err)) {
        adv_reply_problem(exchange, &err);
        return;
    }
    struct adv_text json;
    adv_text_init(&json, BASELINE_LIMIT_BYTES);
    adv_text_append(&json, "{");
    adv_json_text_string(&json, "project", exchange->parameters[0]);
    adv_json_text_string(&json, "label", exchange->parameters[1]);
    adv_json_text_string(&json, "run_id", baseline.run_id);
    adv_json_text_string(&json, "updated_at", baseline.updated_at);
    adv_text_append(&json, "}");
    if (json.overflow) adv_text_free(&json);
    adv_reply_json(exchange, status, json.data, json.length_bytes);
}

void adv_api_baseline_get(struct adv_exchange *exchange)
{
    if (adv_exchange_check_query(exchange, no_query)) reply_baseline(exchange, 200);
}

void adv_api_baseline_put(struct adv_exchange *exchange)
{
    if (!adv_exchange_check_query(exchange, no_query)) return;
    adv_err err;
    adv_err_init(&err);
    for (int i = 0; i < 2; i++)
        if (strlen(exchange->parameters[i]) >= ADV_LIMIT_NAME)
            (void)adv_err_add(&err, ADV_E_INVALID, i ? "/path/label" : "/path/project", NULL,
                              "longer than %d bytes", ADV_LIMIT_NAME - 1);
    char run_id[ADV_LIMIT_NAME];
    bool created = false;
    adv_code code =
        adv_decode_run_id(exchange->body ? exchange->body : "", exchange->body_bytes, run_id, &err);
    if (!code && !err.code)
        code = adv_store_baseline_put(exchange->db, exchange->parameters[0], exchange->parameters[1], run_id,
                                      &created, &err);
    if (code || err.code)
        adv_reply_problem(exchange, &err);
    else
        reply_baseline(exchange, created ? 201 : 200);
}

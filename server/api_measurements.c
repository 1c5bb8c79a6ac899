#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/json/decode_bodies.h"
#include "server/api.h"
#include "server/json_text.h"
#include "server/sha256.h"
#include "server/store_measurements.h"
#include "server/store_runs.h"

#define MEASUREMENT_LIMIT_BYTES 4096
#define CLOCK_LIMIT_BYTES       64
#define LIST_LIMIT_BYTES        (8u * 1024u * 1024u)
#define LOG_SOURCE              "MaxText log"
#define AHEAD_MINUTES           5      /* what clocks may be apart */
#define FIRST_YEAR              "2018" /* nobody but Google had a TPU before: a time that nobody has set */

static bool is_log(const struct adv_exchange *exchange)
{
    const char *type = exchange->headers[ADV_HEADER_CONTENT_TYPE];
    return type && !adv_exchange_lists("application/json", type, strcspn(type, "; \t"), strncasecmp);
}

/* A query parameter as a text of the measurement of a log. */
static void take_query(struct adv_exchange *exchange, const char *name, char *text, size_t size, adv_err *err)
{
    const char *value = adv_exchange_query(exchange, name);
    if (!value) return;
    if (value[0] == '\0' || strlen(value) >= size)
        (void)adv_err_add(err, ADV_E_BAD_REQUEST, strcmp(name, "at") == 0 ? "/query/at" : "/query/source",
                          NULL, "%s has 1 to %zu bytes", name, size - 1);
    else if (adv_text_has_control(value))
        (void)adv_err_add(err, ADV_E_BAD_REQUEST, "/query/source", NULL, "%s has control characters", name);
    else
        memcpy(text, value, strlen(value) + 1);
}

static adv_code read_log(struct adv_exchange *exchange, const struct adv_measured_plan *plan,
                         struct adv_measured *measured, adv_err *err)
{
    memset(measured, 0, sizeof *measured);
    memcpy(measured->source, LOG_SOURCE, sizeof LOG_SOURCE);
    take_query(exchange, "source", measured->source, sizeof measured->source, err);
    take_query(exchange, "at", measured->at, sizeof measured->at, err);
    if (measured->at[0] && !adv_looks_like_time(measured->at))
        (void)adv_err_add(err, ADV_E_BAD_REQUEST, "/query/at", "2026-11-21 or 2026-11-21T05:00:00Z",
                          "at is not a time");
    adv_code code =
        adv_measured_from_log(adv_exchange_body(exchange), exchange->body_bytes, plan, measured, err);
    return err->code ? err->code : code;
}

/* A measurement of the future would be the latest for ever: in calibrations, drift and gates. One of the year
 * 1 or of 1970, the zero of some languages, would be the first. */
static adv_code check_time(struct adv_exchange *exchange, const char *at, adv_err *err)
{
    bool ahead = false;
    struct adv_text clock = adv_text_empty(CLOCK_LIMIT_BYTES);
    adv_err database = adv_err_empty();
    const char *pointer = is_log(exchange) ? "/query/at" : "/at";
    if (strncmp(at, FIRST_YEAR, sizeof FIRST_YEAR - 1) < 0)
        return adv_err_add(err, ADV_E_RANGE, pointer, "give the time at which it was measured",
                           "%s is before " FIRST_YEAR ", when no step was measured", at);
    const adv_code code =
        adv_store_measurement_is_ahead(exchange->db, at, AHEAD_MINUTES, &ahead, &clock, &database);
    if (code == ADV_E_BAD_REQUEST)
        (void)adv_err_add(err, ADV_E_INVALID, pointer, NULL, "there is no such time in the calendar");
    else if (code)
        adv_err_merge(err, &database, "");
    else if (ahead)
        (void)adv_err_add(
            err, ADV_E_RANGE, pointer,
            "give the time at which it was measured, in UTC or with its offset, and look at the "
            "clock that gave it",
            "%s is more than %d minutes ahead of the database's clock, %s", at, AHEAD_MINUTES,
            clock.data ? clock.data : "");
    adv_text_free(&clock);
    return err->code;
}

/* The plan of the run that is measured. */
static adv_code read_plan(struct adv_exchange *exchange, int rank, struct adv_measured_plan *plan,
                          adv_err *err)
{
    struct adv_stored_run run;
    adv_code code = adv_store_run_get(exchange->db, exchange->parameters[0], &run, err);
    if (code) return code;
    code = adv_decode_measured_plan(run.response, strlen(run.response), rank, plan, err);
    adv_store_run_free(&run);
    return code;
}

/* A log that begins late is of a training that went on from a checkpoint, or the end of a longer log: then
 * what was sent of that before is another measurement of the same steps or of those before them. Nothing in
 * it tells. */
static void note_late_beginning(const struct adv_measured *measured, struct adv_text *json)
{
    char member[512];
    (void)snprintf(
        member, sizeof member,
        "\"note\":\"the log begins with step %.0f. Where it is the end of a longer one, each other part "
        "of that which was sent is a measurement of its own, and the same training counts as often: "
        "DELETE /v1/runs/{id}/measurements/{measurement_id} takes one back\"",
        measured->first_step);
    struct adv_text noted = adv_text_empty(2 * MEASUREMENT_LIMIT_BYTES);
    adv_json_text_extend(&noted, json->data, json->length_bytes, member);
    adv_text_free(json);
    *json = noted;
}

static adv_code store(struct adv_exchange *exchange, int rank, bool *created, struct adv_text *json,
                      adv_err *err)
{
    struct adv_measured_plan plan;
    struct adv_measured measured;
    char beginning[ADV_SHA256_HEX];
    struct adv_measurement_key key = {exchange->parameters[0], rank, NULL};
    adv_code code = read_plan(exchange, rank, &plan, err);
    if (code) return code;
    code = is_log(exchange)
               ? read_log(exchange, &plan, &measured, err)
               : adv_decode_measured(adv_exchange_body(exchange), exchange->body_bytes, &measured, err);
    if (code) return code;
    code = adv_measured_check(&measured, &plan, err);
    if (!code && measured.beginning_bytes > 0) {
        adv_sha256_hex(adv_exchange_body(exchange), measured.beginning_bytes, beginning);
        key.beginning = beginning;
    }
    if (!code && measured.at[0]) code = check_time(exchange, measured.at, err);
    if (code) return code;
    code = adv_store_measurement_save(exchange->db, &key, &measured, &plan, created, json, err);
    if (!code && is_log(exchange) && measured.first_step > ADV_LOG_WARM_UP_STEPS)
        note_late_beginning(&measured, json);
    return code;
}

adv_code adv_api_measurement_post(struct adv_exchange *exchange, adv_err *err)
{
    int rank = 1;
    bool created = false;
    adv_code code = adv_exchange_check_query(exchange, is_log(exchange) ? "rank source at" : "rank", err);
    if (!code) code = adv_api_read_rank(exchange, &rank, err);
    if (code) return code;
    struct adv_text json = adv_text_empty(MEASUREMENT_LIMIT_BYTES);
    code = store(exchange, rank, &created, &json, err);
    return adv_api_reply_printed(exchange, created ? 201 : 200, code, &json);
}

adv_code adv_api_measurements_list(struct adv_exchange *exchange, adv_err *err)
{
    struct adv_measurement_filter filter = {.run_id = exchange->parameters[0],
                                            .after = adv_exchange_query(exchange, "cursor")};
    adv_code code = adv_api_read_page(exchange, NULL, filter.after, &filter.limit_count, err);
    if (!code && adv_exchange_query(exchange, "rank")) code = adv_api_read_rank(exchange, &filter.rank, err);
    if (code) return code;
    struct adv_text json = adv_text_empty(LIST_LIMIT_BYTES);
    code = adv_store_measurements_list(exchange->db, &filter, &json, err);
    return adv_api_reply_page(exchange, code, &json, err);
}

adv_code adv_api_measurement_delete(struct adv_exchange *exchange, adv_err *err)
{
    return adv_api_reply_done(exchange, adv_store_measurement_delete(exchange->db, exchange->parameters[0],
                                                                     exchange->parameters[1], err));
}

adv_code adv_api_accuracy(struct adv_exchange *exchange, adv_err *err)
{
    struct adv_accuracy_filter filter = {.project = adv_exchange_query(exchange, "project"),
                                         .label = adv_exchange_query(exchange, "label"),
                                         .model = adv_exchange_query(exchange, "model"),
                                         .since = adv_exchange_query(exchange, "since"),
                                         .after = adv_exchange_query(exchange, "cursor")};
    adv_code code = adv_api_read_page(exchange, filter.since, filter.after, &filter.limit_count, err);
    if (!code) code = adv_api_read_chip(exchange, &filter.chip, err);
    if (code) return code;
    struct adv_text page = adv_text_empty(LIST_LIMIT_BYTES);
    code = adv_store_accuracy(exchange->db, &filter, &page, err);
    if (!code && page.length_bytes > 0) {
        page.data[--page.length_bytes] = '\0'; /* the } */
        adv_text_append(&page, ",\"memory\":");
        code = adv_store_memory_accuracy(exchange->db, &filter, &page, err);
        adv_text_append(&page, "}");
    }
    return adv_api_reply_page(exchange, code, &page, err);
}

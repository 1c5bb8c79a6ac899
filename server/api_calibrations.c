/* api_calibrations.c: calibrations of projects. A fit goes in steps: the store has the measurements and the
 * requests of their plans, a worker of the engine prices these again, so that what is fitted is today's
 * predictions and not those that were stored, and the store keeps the fit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/json/decode_bodies.h"
#include "engine/json/gate_side.h"
#include "server/api.h"
#include "server/calibration_documents.h"
#include "server/calibrations.h"
#include "server/monotonic.h"
#include "server/routes.h"
#include "server/store_measurements.h"

#define ANSWER_LIMIT_BYTES (4u * ADV_LIMIT_CALIBRATION_BYTES)
#define TEXTS_BYTES        (16u * 1024u * 1024u) /* plans in hand at a time: all of most projects */

/* A plan and the rows of its measurements. */
struct measured_plan {
    int first_row, rows_count;
    bool is_priced;
};

/* A fit on its way from worker to worker. */
struct fitting {
    char project[ADV_LIMIT_NAME];
    struct adv_rows measured; /* holds the texts of `rows` */
    struct adv_calibration_row *rows;
    int rows_count;
    struct adv_calibration_plan *plans; /* those before read_count have been read, or also priced */
    struct measured_plan *measured_plans;
    int plans_count, read_count, priced_count;
    struct adv_rows *texts; /* hold those of the plans that are read and not priced yet */
    int texts_count;
    struct adv_calibration_left_out left_out;
    char first_reason[ADV_LIMIT_DETAIL]; /* why the first of these was left out */
};

static void free_texts(struct fitting *fitting)
{
    for (int i = 0; i < fitting->texts_count; i++) adv_rows_free(&fitting->texts[i]);
    fitting->texts_count = 0;
}

static void free_fitting(void *held)
{
    struct fitting *fitting = held;
    free_texts(fitting);
    free(fitting->texts);
    free(fitting->plans);
    free(fitting->measured_plans);
    free(fitting->rows);
    adv_rows_free(&fitting->measured);
    adv_text_free(&fitting->left_out.plans);
    free(fitting);
}

/* The engine whose predictions are fitted. */
static struct adv_calibration_engine this_engine(const struct adv_exchange *exchange)
{
    return (struct adv_calibration_engine){adv_engine_version(), adv_catalog_hash(exchange->app->catalog)};
}

static adv_code reply_state(struct adv_exchange *exchange, int status, const char *id, adv_err *err)
{
    struct adv_text json = adv_text_empty(ANSWER_LIMIT_BYTES);
    const struct adv_calibration_engine engine = this_engine(exchange);
    return adv_api_reply_printed(exchange, status,
                                 adv_calibration_print(exchange->db, id, &engine, &json, err), &json);
}

/* On a worker that has a database: all plans are read and priced. */
static adv_code save_fit(struct adv_exchange *exchange, adv_err *err)
{
    struct fitting *fitting = exchange->state;
    struct adv_calibration_documents made;
    char id[ADV_UUID_BYTES];
    int count = 0;
    if (exchange->refused) return adv_api_refuse_busy(exchange, err);
    for (int i = 0; i < fitting->plans_count; i++) {
        const struct measured_plan *plan = &fitting->measured_plans[i];
        if (!plan->is_priced) continue;
        memmove(&fitting->rows[count], &fitting->rows[plan->first_row],
                (size_t)plan->rows_count * sizeof *fitting->rows);
        count += plan->rows_count;
    }
    if (count == 0)
        return adv_err_add(
            err, ADV_E_INVALID, "/project", "ask for the plans in today's words, and measure those",
            "none of the measured plans of the project '%.95s' can be fitted; of the first: %s",
            fitting->project, fitting->first_reason);
    adv_code code = adv_calibration_documents_make(fitting->rows, count, &fitting->left_out, &made, err);
    if (!code)
        code = adv_calibration_save(exchange->db,
                                    &(struct adv_new_calibration){.project = fitting->project,
                                                                  .principal = exchange->principal,
                                                                  .engine = this_engine(exchange),
                                                                  .factors = made.factors.data,
                                                                  .fit = made.fit.data},
                                    id, err);
    adv_calibration_documents_free(&made);
    if (code) return code;
    adv_reply_header(exchange, "Location", "/v1/calibrations/%s", id);
    return reply_state(exchange, 201, id, err);
}

/* What the engine predicts of a plan by the published fit. */
static adv_code predict(struct adv_exchange *exchange, const struct adv_calibration_plan *plan,
                        bool is_what_if, struct adv_price *price, adv_err *err)
{
    char *json = NULL;
    if (is_what_if)
        return adv_err_add_rule(err, ADV_E_INVALID, ADV_WHAT_IF_CODE, ADV_WHAT_IF_POINTER, NULL,
                                ADV_WHAT_IF_DETAIL);
    if (!plan->request) return adv_err_add(err, ADV_E_NOT_FOUND, "", NULL, "the run was deleted meanwhile");
    adv_code code =
        adv_gate_ask_again(plan->request, plan->answer, (int)strtol(plan->rank, NULL, 10), "", &json, err);
    if (code) return code;
    code = adv_price_within(exchange->app->catalog, json, strlen(json), &exchange->budget, price, err);
    free(json);
    return code;
}

/* Prices a plan, or leaves it out, which is no error. */
static adv_code price_plan(struct adv_exchange *exchange, struct fitting *fitting, int which, adv_err *err)
{
    const struct adv_calibration_plan *plan = &fitting->plans[which];
    struct measured_plan *measured = &fitting->measured_plans[which];
    struct adv_price price;
    adv_err found = adv_err_empty();
    const adv_code code =
        predict(exchange, plan, fitting->rows[measured->first_row].is_what_if, &price, &found);
    measured->is_priced = code == ADV_OK;
    if (code && adv_code_http_status(code) == 503) { /* it is not the plan's fault */
        adv_err_merge(err, &found, "");
        return code;
    }
    if (code) {
        if (!fitting->left_out.measurements_count)
            (void)snprintf(fitting->first_reason, sizeof fitting->first_reason, "%s",
                           found.findings[0].detail);
        adv_calibration_leave_out(&fitting->left_out, plan, measured->rows_count, &found.findings[0]);
        return ADV_OK;
    }
    struct adv_calibration_row *rows = &fitting->rows[measured->first_row];
    for (int i = 0; i < measured->rows_count; i++) {
        rows[i].published_step_time_s = price.step_time_s;
        rows[i].published_hbm_bytes = price.hbm_bytes_per_device;
    }
    return ADV_OK;
}

static adv_handler read_plans;

/* On a worker of the engine: those that have been read. */
static adv_code price_plans(struct adv_exchange *exchange, adv_err *err)
{
    struct fitting *fitting = exchange->state;
    struct adv_metrics *metrics = &exchange->app->metrics;
    if (exchange->refused) return adv_api_refuse_busy(exchange, err);
    const int64_t start_us = adv_monotonic_us();
    const int first = fitting->priced_count;
    adv_code code = ADV_OK;
    while (!code && fitting->priced_count < fitting->read_count)
        code = price_plan(exchange, fitting, fitting->priced_count++, err);
    adv_metrics_add(metrics, ADV_COUNTER_ENGINE_US, (uint64_t)(adv_monotonic_us() - start_us));
    adv_metrics_add(metrics, ADV_COUNTER_EVALUATIONS, (uint64_t)(fitting->priced_count - first));
    free_texts(fitting);
    if (code) return code;
    exchange->next = fitting->priced_count < fitting->plans_count ? read_plans : save_fit;
    exchange->next_place = ADV_ROUTE_STORE;
    return ADV_OK;
}

/* Plans of one run lie beside each other and share its texts. */
static size_t texts_bytes(const struct adv_calibration_plan *plans, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        if (plans[i].request && (i == 0 || plans[i].request != plans[i - 1].request))
            bytes += strlen(plans[i].request) + strlen(plans[i].answer);
    return bytes;
}

/* On a worker that has a database: as many plans as may be in hand at a time, or all that are left. */
static adv_code read_plans(struct adv_exchange *exchange, adv_err *err)
{
    struct fitting *fitting = exchange->state;
    size_t bytes = 0;
    if (exchange->refused) return adv_api_refuse_busy(exchange, err);
    while (fitting->read_count < fitting->plans_count && bytes < TEXTS_BYTES) {
        struct adv_calibration_plan *plans = &fitting->plans[fitting->read_count];
        const int left = fitting->plans_count - fitting->read_count;
        const int count = left < ADV_LIMIT_CALIBRATION_PLANS ? left : ADV_LIMIT_CALIBRATION_PLANS;
        if (adv_budget_over(&exchange->budget)) return adv_budget_refuse(err);
        const adv_code code =
            adv_calibration_plans(exchange->db, plans, count, &fitting->texts[fitting->texts_count], err);
        if (code) return code;
        fitting->texts_count++;
        fitting->read_count += count;
        bytes += texts_bytes(plans, count);
    }
    exchange->next = price_plans;
    exchange->next_place = ADV_ROUTE_SEARCH;
    return ADV_OK;
}

/* Rows of one plan lie beside each other. */
static adv_code find_plans(struct fitting *fitting, adv_err *err)
{
    const size_t room = (size_t)fitting->rows_count;
    fitting->plans = calloc(room, sizeof *fitting->plans);
    fitting->measured_plans = calloc(room, sizeof *fitting->measured_plans);
    fitting->texts = calloc(room / ADV_LIMIT_CALIBRATION_PLANS + 1, sizeof *fitting->texts);
    if (!fitting->plans || !fitting->measured_plans || !fitting->texts)
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the measured plans");
    for (int i = 0; i < fitting->rows_count; i++) {
        const struct adv_calibration_row *row = &fitting->rows[i];
        if (i == 0 || strcmp(row->run_id, row[-1].run_id) != 0 || strcmp(row->rank, row[-1].rank) != 0) {
            fitting->plans[fitting->plans_count] =
                (struct adv_calibration_plan){.run_id = row->run_id, .rank = row->rank};
            fitting->measured_plans[fitting->plans_count++].first_row = i;
        }
        fitting->measured_plans[fitting->plans_count - 1].rows_count++;
    }
    return ADV_OK;
}

adv_code adv_api_calibration_post(struct adv_exchange *exchange, adv_err *err)
{
    struct fitting *fitting = calloc(1, sizeof *fitting);
    if (!fitting) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the fit");
    adv_text_init(&fitting->left_out.plans, ADV_LIMIT_CALIBRATION_BYTES);
    exchange->state = exchange->held = fitting;
    exchange->drop = free_fitting;
    adv_code code =
        adv_decode_calibration(adv_exchange_body(exchange), exchange->body_bytes, fitting->project, err);
    if (!code)
        code = adv_calibration_rows(exchange->db, fitting->project, &fitting->measured, &fitting->rows,
                                    &fitting->rows_count, err);
    if (code) return code;
    if (fitting->rows_count == 0)
        return adv_err_add(err, ADV_E_INVALID, "/project", "POST /v1/runs/{run_id}/measurements adds one",
                           "the project '%.95s' has no measurements", fitting->project);
    code = find_plans(fitting, err);
    return code ? code : read_plans(exchange, err);
}

adv_code adv_api_calibration_get(struct adv_exchange *exchange, adv_err *err)
{
    return reply_state(exchange, 200, exchange->parameters[0], err);
}

adv_code adv_api_calibrations_list(struct adv_exchange *exchange, adv_err *err)
{
    const char *cursor = adv_exchange_query(exchange, "cursor");
    int limit = 0;
    adv_code code = adv_api_read_page(exchange, NULL, cursor, &limit, err);
    if (code) return code;
    struct adv_text page = adv_text_empty(ADV_LIMIT_CALIBRATION_BYTES);
    const struct adv_calibration_engine engine = this_engine(exchange);
    code = adv_calibrations_list(exchange->db, adv_exchange_query(exchange, "project"), cursor, limit,
                                 &engine, &page, err);
    return adv_api_reply_page(exchange, code, &page, err);
}

static adv_code
change(struct adv_exchange *exchange,
       adv_code (*how)(struct adv_db *db, const char *id, const char *principal, adv_err *err), adv_err *err)
{
    const adv_code code = how(exchange->db, exchange->parameters[0], exchange->principal, err);
    if (code) return code;
    adv_calibrations_refresh(exchange->app);
    return reply_state(exchange, 200, exchange->parameters[0], err);
}

adv_code adv_api_calibration_activate(struct adv_exchange *exchange, adv_err *err)
{
    return change(exchange, adv_calibration_activate, err);
}

adv_code adv_api_calibration_revert(struct adv_exchange *exchange, adv_err *err)
{
    return change(exchange, adv_calibration_revert, err);
}

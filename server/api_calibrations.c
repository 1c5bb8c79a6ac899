#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/calibrate/correction.h"
#include "engine/json/decode_bodies.h"
#include "server/api.h"
#include "server/calibrations.h"
#include "server/json_text.h"
#include "server/store_calibrations.h"

#define CALIBRATION_LIMIT_BYTES (8u * 1024u * 1024u) /* 5,000 rows of at most 0.7 KiB */

/* The measurements of one chip and their fits. */
struct chip_fit {
    struct adv_correction_fit step, hbm;
};

/* The fit over the rows of a chip that have the value; `pairs` has room for all. */
static void fit_rows(const struct adv_calibration_row *rows, int count, bool of_memory,
                     struct adv_correction_row *pairs, struct adv_correction_fit *fit)
{
    int used = 0, run = 0;
    for (int i = 0; i < count; i++) {
        const struct adv_calibration_row *row = &rows[i];
        const double ratio = of_memory ? row->measured_hbm_bytes / row->published_hbm_bytes
                                       : row->measured_step_time_s / row->published_step_time_s;
        run += i > 0 && strcmp(row->run_id, rows[i - 1].run_id) != 0;
        if (isfinite(ratio) && ratio > 0.0) pairs[used++] = (struct adv_correction_row){log(ratio), run};
    }
    adv_correction_fit(pairs, used, of_memory ? ADV_CORRECTION_HBM_TAU : ADV_CORRECTION_STEP_TAU, fit);
}

static void print_fit(struct adv_text *json, const char *name, const struct adv_correction_fit *fit)
{
    adv_text_format(json, ",\"%s\":{\"measurements_count\":%d,\"runs_count\":%d", name, fit->rows_count,
                    fit->runs_count);
    adv_json_text_number(json, "bias_frac", fit->bias_frac);
    adv_json_text_number(json, "spread_frac", fit->spread_frac);
    adv_json_text_number(json, "weight_frac", fit->weight_frac);
    adv_json_text_number(json, "correction_frac", fit->correction_frac);
    adv_json_text_number(json, "mean_abs_error_published_frac", fit->error_before_frac);
    adv_json_text_number(json, "mean_abs_error_calibrated_frac", fit->error_after_frac);
    adv_json_text_number(json, "mean_abs_error_left_out_frac", fit->error_left_out_frac);
    adv_text_append(json, "}");
}

/* The effect of the calibration on one measured plan. */
static void print_row(struct adv_text *json, const struct adv_calibration_row *row,
                      const struct chip_fit *fit)
{
    const double step_s = row->published_step_time_s * (1.0 + fit->step.correction_frac);
    const double bytes = row->published_hbm_bytes * (1.0 + fit->hbm.correction_frac);
    adv_text_format(json, "%s{\"measurement_id\":\"%s\",\"run_id\":\"%s\",\"rank\":%s,\"chip\":",
                    json->length_bytes ? "," : "", row->measurement_id, row->run_id, row->rank);
    adv_json_text_quote(json, row->chip);
    adv_json_text_number(json, "measured_step_time_s", row->measured_step_time_s);
    adv_json_text_number(json, "published_step_time_s", row->published_step_time_s);
    adv_json_text_number(json, "calibrated_step_time_s", step_s);
    adv_json_text_number(json, "error_published_frac",
                         row->published_step_time_s / row->measured_step_time_s - 1.0);
    adv_json_text_number(json, "error_calibrated_frac", step_s / row->measured_step_time_s - 1.0);
    adv_json_text_number(json, "measured_hbm_bytes_per_device", row->measured_hbm_bytes);
    adv_json_text_number(json, "published_hbm_bytes_per_device", row->published_hbm_bytes);
    adv_json_text_number(json, "calibrated_hbm_bytes_per_device", bytes);
    adv_text_append(json, "}");
}

/* {"chips": [...], "rows": [...]} in two parts, and the factors. */
struct documents {
    struct adv_text whole, rows, factors;
};

static void add_chip(struct documents *made, const struct adv_calibration_row *rows, int count,
                     struct adv_correction_row *pairs)
{
    struct chip_fit fit;
    fit_rows(rows, count, false, pairs, &fit.step);
    fit_rows(rows, count, true, pairs, &fit.hbm);
    adv_text_append(&made->whole, made->rows.length_bytes ? ",{\"chip\":" : "{\"chip\":");
    adv_json_text_quote(&made->whole, rows[0].chip);
    print_fit(&made->whole, "step_time", &fit.step);
    print_fit(&made->whole, "hbm", &fit.hbm);
    adv_text_append(&made->whole, "}");
    for (int i = 0; i < count; i++) print_row(&made->rows, &rows[i], &fit);
    if (fit.step.weight_frac <= 0.0 && fit.hbm.weight_frac <= 0.0) return;
    adv_text_append(&made->factors, made->factors.length_bytes > 1 ? "," : "");
    adv_json_text_quote(&made->factors, rows[0].chip);
    adv_text_format(&made->factors, ":{\"step_time_correction_frac\":%.17g,\"hbm_correction_frac\":%.17g}",
                    fit.step.correction_frac, fit.hbm.correction_frac);
}

/* The rows are ordered by chip; there is one. */
static adv_code fit_project(struct adv_exchange *exchange, const char *id, const char *project,
                            const struct adv_calibration_row *rows, int count, adv_err *err)
{
    struct documents made = {adv_text_empty(2 * CALIBRATION_LIMIT_BYTES),
                             adv_text_empty(CALIBRATION_LIMIT_BYTES),
                             adv_text_empty(CALIBRATION_LIMIT_BYTES)};
    struct adv_correction_row *pairs = calloc((size_t)count + 1, sizeof *pairs);
    adv_text_append(&made.whole, "{\"chips\":[");
    adv_text_append(&made.factors, "{");
    for (int first = 0, next; pairs && first < count; first = next) {
        next = first + 1;
        while (next < count && strcmp(rows[next].chip, rows[first].chip) == 0) next++;
        add_chip(&made, rows + first, next - first, pairs);
    }
    adv_text_append(&made.factors, "}");
    adv_text_append(&made.whole, "],\"rows\":[");
    adv_text_append(&made.whole, made.rows.data ? made.rows.data : "");
    adv_text_append(&made.whole, "]}");
    const bool good = pairs && !made.rows.overflow && !made.factors.overflow && !made.whole.overflow;
    const adv_code code = good ? adv_calibration_save(exchange->db, id, project, exchange->principal,
                                                      made.factors.data, made.whole.data, err)
                               : adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the fit");
    adv_text_free(&made.whole);
    adv_text_free(&made.rows);
    adv_text_free(&made.factors);
    free(pairs);
    return code;
}

static adv_code reply_state(struct adv_exchange *exchange, int status, const char *id, adv_err *err)
{
    struct adv_text json = adv_text_empty(2 * CALIBRATION_LIMIT_BYTES);
    return adv_api_reply_printed(exchange, status, adv_calibration_print(exchange->db, id, &json, err),
                                 &json);
}

adv_code adv_api_calibration_post(struct adv_exchange *exchange, adv_err *err)
{
    char project[ADV_LIMIT_NAME] = "", id[ADV_UUID_BYTES];
    struct adv_rows held;
    struct adv_calibration_row *rows = NULL;
    int count = 0;
    adv_code code = adv_decode_calibration(adv_exchange_body(exchange), exchange->body_bytes, project, err);
    if (!code) code = adv_calibration_rows(exchange->db, project, &held, &rows, &count, err);
    if (code) return code;
    adv_uuid_make(id);
    code = count > 0
               ? fit_project(exchange, id, project, rows, count, err)
               : adv_err_add(err, ADV_E_INVALID, "/project", "POST /v1/runs/{run_id}/measurements adds one",
                             "the project '%.95s' has no measurements", project);
    free(rows);
    adv_rows_free(&held);
    if (code) return code;
    adv_reply_header(exchange, "Location", "/v1/calibrations/%s", id);
    return reply_state(exchange, 201, id, err);
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
    struct adv_text page = adv_text_empty(CALIBRATION_LIMIT_BYTES);
    code = adv_calibrations_list(exchange->db, adv_exchange_query(exchange, "project"), cursor, limit, &page,
                                 err);
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

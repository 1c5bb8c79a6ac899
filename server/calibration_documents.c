#include "server/calibration_documents.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/calibrate/correction.h"
#include "server/json_text.h"

/* The measurements of one chip and their fits. */
struct chip_fit {
    struct adv_correction_fit step, hbm;
};

/* The fit over the rows of a chip that have the value; `pairs` has room for all. */
static void fit_rows(const struct adv_calibration_row *rows, int count, bool of_memory,
                     struct adv_correction_row *pairs, struct adv_correction_fit *fit)
{
    int used = 0, run = 0, plan = 0;
    for (int i = 0; i < count; i++) {
        const struct adv_calibration_row *row = &rows[i];
        const double ratio = of_memory ? row->measured_hbm_bytes / row->published_hbm_bytes
                                       : row->measured_step_time_s / row->published_step_time_s;
        const bool of_other_run = i > 0 && strcmp(row->run_id, rows[i - 1].run_id) != 0;
        run += of_other_run;
        plan += of_other_run || (i > 0 && strcmp(row->rank, rows[i - 1].rank) != 0);
        if (isfinite(ratio) && ratio > 0.0)
            pairs[used++] = (struct adv_correction_row){log(ratio), run, plan};
    }
    adv_correction_fit(pairs, used, of_memory ? ADV_CORRECTION_HBM_TAU : ADV_CORRECTION_STEP_TAU, fit);
}

static void print_fit(struct adv_text *json, const char *name, const struct adv_correction_fit *fit)
{
    adv_text_format(json, ",\"%s\":{\"measurements_count\":%d,\"plans_count\":%d,\"runs_count\":%d", name,
                    fit->rows_count, fit->plans_count, fit->runs_count);
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

/* `rows_text`: the members of "rows" until then. */
static void add_chip(struct adv_calibration_documents *made, struct adv_text *rows_text,
                     const struct adv_calibration_row *rows, int count, struct adv_correction_row *pairs)
{
    struct chip_fit fit;
    fit_rows(rows, count, false, pairs, &fit.step);
    fit_rows(rows, count, true, pairs, &fit.hbm);
    adv_text_append(&made->fit, rows_text->length_bytes ? ",{\"chip\":" : "{\"chip\":");
    adv_json_text_quote(&made->fit, rows[0].chip);
    print_fit(&made->fit, "step_time", &fit.step);
    print_fit(&made->fit, "hbm", &fit.hbm);
    adv_text_append(&made->fit, "}");
    for (int i = 0; i < count; i++) print_row(rows_text, &rows[i], &fit);
    if (fit.step.weight_frac <= 0.0 && fit.hbm.weight_frac <= 0.0) return;
    adv_text_append(&made->factors, made->factors.length_bytes > 1 ? "," : "");
    adv_json_text_quote(&made->factors, rows[0].chip);
    adv_text_format(&made->factors, ":{\"step_time_correction_frac\":%.17g,\"hbm_correction_frac\":%.17g}",
                    fit.step.correction_frac, fit.hbm.correction_frac);
}

void adv_calibration_leave_out(struct adv_calibration_left_out *left_out,
                               const struct adv_calibration_plan *plan, int measurements_count,
                               const struct adv_finding *why)
{
    struct adv_text *json = &left_out->plans;
    left_out->measurements_count += measurements_count;
    adv_text_format(json, "%s{\"run_id\":\"%s\",\"rank\":%s,\"measurements_count\":%d",
                    json->length_bytes ? "," : "", plan->run_id, plan->rank, measurements_count);
    adv_json_text_string(json, "pointer", why->pointer);
    adv_json_text_string(json, "code", why->rule ? why->rule : adv_code_slug(why->code));
    adv_json_text_string(json, "detail", why->detail);
    adv_text_append(json, "}");
}

adv_code adv_calibration_documents_make(const struct adv_calibration_row *rows, int count,
                                        const struct adv_calibration_left_out *left_out,
                                        struct adv_calibration_documents *made, adv_err *err)
{
    struct adv_text rows_text = adv_text_empty(ADV_LIMIT_CALIBRATION_BYTES);
    struct adv_correction_row *pairs = calloc((size_t)count + 1, sizeof *pairs);
    made->fit = adv_text_empty(3 * ADV_LIMIT_CALIBRATION_BYTES);
    made->factors = adv_text_empty(ADV_LIMIT_CALIBRATION_BYTES);
    adv_text_append(&made->fit, "{\"chips\":[");
    adv_text_append(&made->factors, "{");
    for (int first = 0, next; pairs && first < count; first = next) {
        next = first + 1;
        while (next < count && strcmp(rows[next].chip, rows[first].chip) == 0) next++;
        add_chip(made, &rows_text, rows + first, next - first, pairs);
    }
    adv_text_append(&made->factors, "}");
    adv_text_format(&made->fit, "],\"left_out_count\":%d,\"left_out\":[", left_out->measurements_count);
    adv_text_append(&made->fit, left_out->plans.data ? left_out->plans.data : "");
    adv_text_append(&made->fit, "],\"rows\":[");
    adv_text_append(&made->fit, rows_text.data ? rows_text.data : "");
    adv_text_append(&made->fit, "]}");
    const bool good = pairs && !rows_text.overflow && !left_out->plans.overflow && !made->factors.overflow &&
                      !made->fit.overflow;
    adv_text_free(&rows_text);
    free(pairs);
    return good ? ADV_OK : adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the fit");
}

void adv_calibration_documents_free(struct adv_calibration_documents *made)
{
    adv_text_free(&made->fit);
    adv_text_free(&made->factors);
}

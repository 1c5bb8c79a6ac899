/* fit_main.c: fits the constants of the whole-step model and writes the accuracy page.
 *
 *   fit_steps ROWS [--write CONSTANTS] [--report PAGE] [--accounts FILE] [--picture SVG] [--leave-one-out]
 *
 * --write fits on all judged rows and rewrites the data file (value, standard error, number of rows); without
 * it the embedded constants are judged as they are. Leaving each model out needs one fit per model.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "engine/catalog/catalog.h"
#include "engine/cost/interval.h"
#include "engine/json/decode_measurements.h"
#include "tests/accuracy/report.h"
#include "tests/accuracy/spread.h"

enum { ROWS_MAX = 1024 };

static char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    (void)fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *text = malloc((size_t)size + 1);
    *bytes = text ? fread(text, 1, (size_t)size, file) : 0;
    if (text) text[*bytes] = '\0';
    (void)fclose(file);
    return text;
}

/* Fits without each model in turn; left_out[i] = error of row i then. */
static void leave_models_out(struct fit *fit, double *left_out)
{
    struct fit trial = *fit;
    struct constants_of_chip *chips = malloc((size_t)fit->chips_count * sizeof *chips);
    struct adv_measurement *rows = malloc((size_t)fit->rows_count * sizeof *rows);
    memcpy(rows, fit->rows, (size_t)fit->rows_count * sizeof *rows);
    trial.rows = rows;
    trial.chips = chips;
    for (int i = 0; i < fit->rows_count; i++) left_out[i] = (double)NAN;
    for (int i = 0; i < fit->rows_count; i++) {
        bool done = false;
        for (int j = 0; j < i; j++) done = done || strcmp(rows[i].family, rows[j].family) == 0;
        if (done) continue;
        memcpy(chips, fit->chips, (size_t)fit->chips_count * sizeof *chips);
        bool use[ROWS_MAX];
        for (int j = 0; j < fit->rows_count; j++)
            use[j] = strcmp(rows[i].family, rows[j].family) != 0 && !isnan(fit->fitted_s[j]);
        fit_solve(&trial, use);
        fit_predict(&trial);
        for (int j = 0; j < fit->rows_count; j++)
            if (strcmp(rows[i].family, rows[j].family) == 0) left_out[j] = rows[j].error_frac;
    }
    free(chips);
    free(rows);
}

static void rows_behind(const struct fit *fit, const struct parameter *parameter, json_t *constant)
{
    int count = 0;
    for (int i = 0; i < fit->rows_count; i++)
        for (int c = 0; c < PARAMETER_CHIPS && parameter->chips[c]; c++)
            count += !isnan(fit->fitted_s[i]) && strcmp(parameter->chips[c], fit->rows[i].chip) == 0;
    (void)json_object_set_new(constant, "rows", json_integer(count));
}

static void set_constant(json_t *constant, double value, double error, const char *kind)
{
    (void)json_object_set_new(constant, "value", json_real(value));
    (void)json_object_set_new(constant, "error", isnan(error) ? json_null() : json_real(error));
    (void)json_object_set_new(constant, "kind", json_string(kind));
    (void)json_object_set_new(constant, "source",
                              json_string("make fit on the published steps in tests/accuracy/e2e.json"));
}

static int write_constants(const char *path, struct fit *fit)
{
    json_error_t problem;
    json_t *root = json_load_file(path, 0, &problem);
    if (!root) {
        (void)fprintf(stderr, "%s:%d: %s\n", path, problem.line, problem.text);
        return 1;
    }
    for (int p = 0; p < parameters_count; p++)
        for (int c = 0; c < PARAMETER_CHIPS && parameters[p].chips[c]; c++) {
            json_t *constant =
                json_object_get(json_object_get(root, parameters[p].chips[c]), parameters[p].constant);
            set_constant(constant, fit->values[p], fit->values[p] * fit->log_error[p], "fitted");
            rows_behind(fit, &parameters[p], constant);
        }
#define REGIME_NAME(name, member, models, words) #member, #models,
    static const char *const interval[] = {"interval_log_sd", ADV_REGIMES(REGIME_NAME)};
#undef REGIME_NAME
    for (int c = 0; c < fit->chips_count; c++)
        for (size_t i = 0; i < sizeof interval / sizeof interval[0]; i++)
            set_constant(json_object_get(json_object_get(root, fit->chips[c].chip), interval[i]),
                         *constant_by_name(&fit->chips[c].constants, interval[i]), (double)NAN, "fitted");
    FILE *out = fopen(path, "w");
    if (!out) return 1;
    const char *member, *name;
    json_t *value, *constant;
    size_t member_index = 0;
    json_object_foreach(root, member, value)
    {
        (void)fprintf(out, "%s\"%s\":", member_index++ ? ",\n" : "{", member);
        if (!json_is_object(value)) {
            (void)fprintf(out, "\"%s\"", json_string_value(value));
            continue;
        }
        size_t index = 0;
        json_object_foreach(value, name, constant)
        {
            char *text = json_dumps(constant, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
            (void)fprintf(out, "%s\"%s\":%s", index++ ? ",\n " : "{", name, text);
            free(text);
        }
        (void)fprintf(out, "}");
    }
    (void)fprintf(out, "\n}\n");
    (void)fclose(out);
    json_decref(root);
    return 0;
}

static void print_rows(const struct fit *fit, const double *left_out)
{
    for (int i = 0; i < fit->rows_count; i++) {
        const struct adv_measurement *row = &fit->rows[i];
        (void)printf("%-58s %8.3f %8.3f %+6.1f%% %+6.1f%% %s %.1f", row->id, row->measured_step_time_s,
                     row->estimate.step_time_s, 100.0 * row->error_frac, 100.0 * left_out[i],
                     adv_fit_name(row->estimate.fit), row->estimate.hbm_bytes_per_device / 1073741824.0);
        for (int t = 0; t < row->ledger.terms_count; t++)
            if (row->ledger.terms[t].exposed_seconds > 0.008 * row->estimate.step_time_s)
                (void)printf(" %s=%.2f", row->ledger.terms[t].name, row->ledger.terms[t].exposed_seconds);
        (void)printf("\n");
    }
}

static const char *option(int argc, char **argv, const char *name)
{
    for (int i = 2; i + 1 < argc && argv[i]; i++)
        if (strcmp(argv[i], name) == 0) return argv[i + 1];
    return NULL;
}

/* The target of each row (solve.h): its time, or the time that `measured_mfu_frac` makes of its FLOPs. */
static void set_fitted(struct fit *fit, const char *text, size_t bytes, double *fitted_s)
{
    json_t *json = json_loadb(text, bytes, 0, NULL);
    fit_predict(fit); /* for the FLOPs */
    for (int i = 0; i < fit->rows_count; i++) {
        const struct adv_estimate *estimate = &fit->rows[i].estimate;
        double mfu = json_number_value(json_object_get(json_array_get(json, (size_t)i), "measured_mfu_frac"));
        fitted_s[i] = fit->rows[i].measured_step_time_s;
        if (isnan(fitted_s[i]) && mfu > 0.0) fitted_s[i] = estimate->mfu_frac * estimate->step_time_s / mfu;
    }
    fit->fitted_s = fitted_s;
    json_decref(json);
}

static int run(int argc, char **argv, struct fit *fit)
{
    static double left_out[ROWS_MAX];
    bool use[ROWS_MAX];
    for (int i = 0; i < fit->rows_count; i++) {
        use[i] = !isnan(fit->fitted_s[i]);
        left_out[i] = (double)NAN;
    }
    const char *constants_path = option(argc, argv, "--write");
    bool leave_out = strcmp(argv[argc - 1], "--leave-one-out") == 0;
    if (leave_out) leave_models_out(fit, left_out);
    if (constants_path || option(argc, argv, "--try")) fit_solve(fit, use);
    if (constants_path) spread_learn(fit, left_out);
    fit_predict(fit);
    print_rows(fit, left_out);
    struct adv_accuracy a = adv_accuracy_of(fit->rows, fit->rows_count, NULL);
    double median, p90, max;
    bool all[ROWS_MAX];
    for (int i = 0; i < fit->rows_count; i++) all[i] = true;
    (void)report_errors(left_out, all, fit->rows_count, &median, &p90, &max);
    (void)printf("%d judged rows: median %.2f %%, p90 %.2f %%, max %.2f %%; left out: median %.2f %%, p90 "
                 "%.2f %%, max %.2f %%; covered %.0f %%\n",
                 a.judged_count, 100.0 * a.median_abs_error_frac, 100.0 * a.p90_abs_error_frac,
                 100.0 * a.max_abs_error_frac, 100.0 * median, 100.0 * p90, 100.0 * max,
                 100.0 * a.interval_coverage_frac);
    for (int p = 0; p < parameters_count; p++)
        (void)printf("  %-32s %-6s %10.4g  (prior %.4g, +-%.0f%%)\n", parameters[p].constant,
                     parameters[p].chips[1] ? "*" : parameters[p].chips[0], fit->values[p],
                     parameters[p].prior, 100.0 * fit->log_error[p]);
    if (constants_path && write_constants(constants_path, fit) != 0) return 1;
    const char *page = option(argc, argv, "--report");
    FILE *out = page ? fopen(page, "w") : NULL;
    if (out) {
        const char *path = option(argc, argv, "--accounts");
        json_error_t problem;
        json_t *accounts = path ? json_load_file(path, 0, &problem) : NULL;
        if (path && !accounts) {
            (void)fprintf(stderr, "%s:%d: %s\n", path, problem.line, problem.text);
            (void)fclose(out);
            return 1;
        }
        report_write(out, fit, left_out, accounts);
        json_decref(accounts);
        (void)fclose(out);
    }
    const char *picture = option(argc, argv, "--picture");
    out = picture ? fopen(picture, "w") : NULL;
    if (out) {
        report_picture(out, fit);
        (void)fclose(out);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        (void)fprintf(stderr, "usage: fit_steps ROWS [--write CONSTANTS] [--report PAGE] [--accounts FILE] "
                              "[--picture SVG] [--leave-one-out]\n");
        return 2;
    }
    adv_err err;
    adv_err_init(&err);
    size_t bytes = 0;
    char *text = read_file(argv[1], &bytes);
    struct adv_catalog *catalog = adv_catalog_load(NULL, &err);
    struct adv_arena arena;
    adv_arena_init(&arena, 512u << 20);
    struct adv_measurement *rows = NULL;
    int count = 0;
    if (!text || !catalog ||
        adv_decode_measurements(catalog, text, bytes, &arena, &rows, &count, &err) != ADV_OK ||
        count > ROWS_MAX) {
        for (int i = 0; i < err.count; i++)
            (void)fprintf(stderr, "%s: %s\n", err.findings[i].pointer, err.findings[i].detail);
        return 1;
    }
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < rows[i].findings_count; k++)
            (void)fprintf(stderr, "%s: %s\n", rows[i].findings[k].pointer, rows[i].findings[k].detail);
        if (rows[i].findings_count > 0) return 1; /* constants come from rows that are beyond doubt */
    }
    static struct constants_of_chip chips[16];
    int chips_count = 0;
    for (int i = 0; i < adv_catalog_tables(catalog)->chips_count && chips_count < 16; i++) {
        const struct adv_catalog_chip *chip = &adv_catalog_tables(catalog)->chips[i];
        if (!chip->chip.is_tpu) continue;
        (void)snprintf(chips[chips_count].chip, sizeof chips[0].chip, "%s", chip->chip.name);
        chips[chips_count++].constants = chip->constants;
    }
    struct fit fit = {.chips = chips, .chips_count = chips_count, .rows = rows, .rows_count = count};
    for (int p = 0; p < parameters_count; p++)
        fit.values[p] =
            *constant_by_name(fit_constants(&fit, parameters[p].chips[0]), parameters[p].constant);
    static double fitted_s[ROWS_MAX];
    set_fitted(&fit, text, bytes, fitted_s);
    int status = run(argc, argv, &fit);
    adv_arena_free(&arena);
    adv_catalog_free(catalog);
    free(text);
    return status;
}

/* fit_main.c: fits the counts of memory_constants.json on compiled steps.
 *
 *   fit_memory [--write CONSTANTS] [--only COUNT,COUNT...] [--rows] ROWS...
 *
 * Levenberg-Marquardt on ln(predicted / compiled) through a pseudo-Huber loss; a count may not be negative.
 * Each count is shared by the generations that its row names. With --only the counts of other names stay what
 * they are. Prints each row's error with --rows.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gsl/gsl_blas.h>
#include <gsl/gsl_multifit_nlinear.h>

#include "engine/cost/fit.h"
#include "tests/compile/fit_parameters.h"
#include "tests/compile/rows.h"

enum { CHIPS_MAX = 8 };
static const double huber_log = 0.03; /* beyond 3 % a residual counts linearly */

static const struct constant {
    const char *name, *unit;
    size_t offset;
}
#define ROW(name, unit, what) {#name, unit, offsetof(struct adv_constants, name)},
constants[] = {ADV_MEMORY_CONSTANTS(ROW)};
#undef ROW
enum { CONSTANTS = sizeof constants / sizeof *constants };

struct chip {
    const char *name;
    struct adv_constants constants;
};

struct problem {
    struct compiled_rows *rows;
    struct chip chips[CHIPS_MAX];
    int chips_count;
    bool *use;
    double *left_out; /* residual of each row when the counts are fitted without it; NAN where not judged */
    int *sort;        /* of each row, of `spreads` */
    bool stays[PARAMETERS]; /* not fitted: each generation keeps its value */
    json_t *present;        /* the constants as they are, with their errors */
    double log_error[PARAMETERS];
};

static double *value_of(struct chip *chip, const char *constant)
{
    static double nowhere;
    for (int i = 0; i < CONSTANTS; i++)
        if (strcmp(constants[i].name, constant) == 0)
            return (double *)(void *)((char *)&chip->constants + constants[i].offset);
    return &nowhere;
}

static struct chip *chip_of(struct problem *problem, const char *name)
{
    for (int i = 0; i < problem->chips_count; i++)
        if (strcmp(problem->chips[i].name, name) == 0) return &problem->chips[i];
    return NULL;
}

static bool is_named(const char *names, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = names; (at = strstr(at, name)); at += length)
        if ((at == names || at[-1] == ',') && (at[length] == ',' || !at[length])) return true;
    return false;
}

/* Marks what stays where only `names` are to be fitted; "none" fits the spreads alone. Exits at a name that
 * no count has. */
static void let_stay(struct problem *problem, const char *names)
{
    char known[4096];
    if (snprintf(known, sizeof known, "%s", names) >= (int)sizeof known) exit(2);
    for (char *rest = known, *name; strcmp(names, "none") != 0 && (name = strtok_r(rest, ",", &rest));) {
        bool is_known = false;
        for (int p = 0; p < PARAMETERS; p++) is_known |= strcmp(parameters[p].constant, name) == 0;
        if (is_known) continue;
        (void)fprintf(stderr, "fit_memory: --only: no count is named %s\n", name);
        exit(2);
    }
    for (int p = 0; p < PARAMETERS; p++) problem->stays[p] = !is_named(names, parameters[p].constant);
}

static void set_values(struct problem *problem, const gsl_vector *x)
{
    for (int p = 0; p < PARAMETERS; p++) {
        if (problem->stays[p]) continue;
        double value = fmin(fmax(gsl_vector_get(x, (size_t)p), 0.0), parameters[p].high);
        for (int c = 0; c < problem->chips_count; c++)
            if (strstr(parameters[p].chips, problem->chips[c].name))
                *value_of(&problem->chips[c], parameters[p].constant) = value;
    }
}

static double soften(double residual)
{
    double s = residual / huber_log;
    return copysign(huber_log * sqrt(2.0 * (sqrt(1.0 + s * s) - 1.0)), residual);
}

/* Models that people train count twice as much as the small ones that take the physics apart. */
static double weight_of(const struct compiled_row *row)
{
    return row->row->model.maxtext_name[0] ? 1.0 : 0.5;
}

static void judge(struct problem *problem, int i)
{
    struct compiled_row *row = &problem->rows->rows[i];
    struct chip *chip = row->row->decoded ? chip_of(problem, row->row->cluster.chip.name) : NULL;
    row->judged = chip && compiled_row_predict(row, &chip->constants);
}

static void predict(struct problem *problem, int i)
{
    struct compiled_row *row = &problem->rows->rows[i];
    if (row->judged) compiled_row_weigh(row, &chip_of(problem, row->row->cluster.chip.name)->constants);
}

static int residuals(const gsl_vector *x, void *data, gsl_vector *f)
{
    struct problem *problem = data;
    set_values(problem, x);
    size_t n = 0;
    for (int i = 0; i < problem->rows->count; i++) {
        if (!problem->use[i]) continue;
        predict(problem, i);
        gsl_vector_set(f, n++, weight_of(&problem->rows->rows[i]) * soften(problem->rows->rows[i].error_log));
    }
    for (int p = 0; p < PARAMETERS; p++) /* a prior counts as one row of 3 % */
        gsl_vector_set(f, n++,
                       0.03 * (gsl_vector_get(x, (size_t)p) - parameters[p].prior) / parameters[p].sd);
    return GSL_SUCCESS;
}

static void solve(struct problem *problem)
{
    size_t rows = 0;
    for (int i = 0; i < problem->rows->count; i++) rows += problem->use[i];
    gsl_multifit_nlinear_parameters settings = gsl_multifit_nlinear_default_parameters();
    settings.h_df = 1e-4;
    gsl_multifit_nlinear_fdf fdf = {
        .f = residuals, .n = rows + PARAMETERS, .p = PARAMETERS, .params = problem};
    gsl_multifit_nlinear_workspace *work =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &settings, fdf.n, fdf.p);
    gsl_vector *start = gsl_vector_alloc(PARAMETERS);
    for (int p = 0; p < PARAMETERS; p++) gsl_vector_set(start, (size_t)p, parameters[p].prior);
    gsl_multifit_nlinear_init(start, &fdf, work);
    int info = 0;
    gsl_multifit_nlinear_driver(60, 1e-6, 1e-6, 1e-6, NULL, NULL, &info, work);
    set_values(problem, gsl_multifit_nlinear_position(work));
    gsl_matrix *covariance = gsl_matrix_alloc(PARAMETERS, PARAMETERS);
    gsl_multifit_nlinear_covar(gsl_multifit_nlinear_jac(work), 0.0, covariance);
    double chi2 = 0.0;
    gsl_blas_ddot(gsl_multifit_nlinear_residual(work), gsl_multifit_nlinear_residual(work), &chi2);
    double scale = chi2 / (double)(fdf.n - fdf.p);
    for (int p = 0; p < PARAMETERS; p++)
        problem->log_error[p] = sqrt(scale * gsl_matrix_get(covariance, (size_t)p, (size_t)p));
    gsl_matrix_free(covariance);
    gsl_vector_free(start);
    gsl_multifit_nlinear_free(work);
}

static void show(const struct problem *problem)
{
    double errors[8192];
    int n = 0;
    for (int i = 0; i < problem->rows->count && n < 8192; i++) {
        const struct compiled_row *row = &problem->rows->rows[i];
        if (row->judged) errors[n++] = fabs(row->error_log);
    }
    double copy[8192];
    memcpy(copy, errors, sizeof copy);
    (void)printf("%d rows: median %.2f %%, p90 %.2f %%, max %.1f %%\n", n, 100 * adv_quantile(copy, n, 0.5),
                 100 * adv_quantile(copy, n, 0.9), 100 * adv_quantile(copy, n, 1.0));
}

static void print_rows(const struct problem *problem)
{
    for (int i = 0; i < problem->rows->count; i++) {
        const struct compiled_row *row = &problem->rows->rows[i];
        if (!row->judged) continue;
        const struct adv_estimate *e = &row->row->estimate;
        (void)printf("%+7.2f %% %8.2f GB compiled %8.2f (loss %.2f backward %.2f update %.2f; %s) %s\n",
                     100 * expm1(row->error_log), row->predicted_bytes / 1e9, row->need_bytes / 1e9,
                     e->loss_peak_bytes / 1e9, e->backward_peak_bytes / 1e9, e->update_peak_bytes / 1e9,
                     json_string_value(json_object_get(row->compiled, "peak_moment"))
                         ? json_string_value(json_object_get(row->compiled, "peak_moment"))
                         : "-",
                     row->row->id);
    }
}

static const struct parameter *parameter_of(const char *constant, const char *chip, int *index)
{
    for (*index = 0; *index < PARAMETERS; ++*index)
        if (strcmp(parameters[*index].constant, constant) == 0 && strstr(parameters[*index].chips, chip))
            return &parameters[*index];
    return NULL;
}

/* Plans are told apart by their layers and by what they put on the host; each sort has a spread of its own.
 */
static const char *const spreads[] = {"memory_log_sd", "mixed_memory_log_sd", "peeled_memory_log_sd",
                                      "unusual_memory_log_sd", "unscanned_memory_log_sd"};
enum { SPREADS = sizeof spreads / sizeof *spreads };

/* Fits on four fifths of the rows in turn and judges the others. */
static void leave_out(struct problem *problem)
{
    enum { FOLDS = 5 };
    for (int i = 0; i < problem->rows->count; i++) problem->left_out[i] = (double)NAN;
    double errors[8192];
    int n = 0;
    for (int fold = 0; fold < FOLDS; fold++) {
        for (int i = 0; i < problem->rows->count; i++)
            problem->use[i] = problem->rows->rows[i].judged && i % FOLDS != fold;
        solve(problem);
        for (int i = fold; i < problem->rows->count; i += FOLDS) {
            predict(problem, i);
            if (!problem->rows->rows[i].judged) continue;
            problem->left_out[i] = problem->rows->rows[i].error_log;
            if (n < 8192) errors[n++] = fabs(problem->left_out[i]);
        }
    }
    for (int i = 0; i < problem->rows->count; i++) problem->use[i] = problem->rows->rows[i].judged;
    (void)printf("%d rows left out: median %.2f %%, p90 %.2f %%\n", n, 100 * adv_quantile(errors, n, 0.5),
                 100 * adv_quantile(errors, n, 0.9));
}

static double normal_cdf(double z)
{
    return 0.5 * erfc(-z / sqrt(2.0));
}

/* Mean of -ln(probability of what the compiler said), by the curve of engine/cost/fit.h. */
static double log_loss(double pressed_sds, double width_sds, const double *sds, const bool *fits, int count)
{
    double sum = 0.0;
    for (int i = 0; i < count; i++) {
        const double p = normal_cdf((sds[i] + pressed_sds) / width_sds);
        sum -= log(fmin(fmax(fits[i] ? p : 1.0 - p, 1e-6), 1.0));
    }
    return sum / count;
}

/* Rounded up, so that it stays above what it is computed from. */
static double thousandths_up(double frac)
{
    return ceil(1e3 * frac) / 1e3;
}

/* Of a limit, beyond what a search fills by default: it counts on bytes that add up until there. Fitted, both
 * come out at 0.90. */
static void hold_pressed_limits(struct problem *problem)
{
    for (int c = 0; c < problem->chips_count; c++) {
        struct adv_constants *k = &problem->chips[c].constants;
        const struct adv_fit_curve plain = adv_fit_curve(k, k->memory_log_sd);
        const struct adv_fit_curve peeled = adv_fit_curve(k, k->peeled_memory_log_sd);
        k->pressed_limit_frac = thousandths_up(adv_fit_limit_frac(&plain, ADV_FIT_SURE_PROBABILITY));
        k->peeled_pressed_limit_frac = thousandths_up(adv_fit_limit_frac(&peeled, ADV_FIT_SURE_PROBABILITY));
    }
}

/* Of the row's generation and sort. */
static double spread_of(struct problem *problem, int i)
{
    const char *chip = problem->rows->rows[i].row->cluster.chip.name;
    return *value_of(chip_of(problem, chip), spreads[problem->sort[i]]);
}

/* Sets the fit curve that makes the verdicts on left-out rows likeliest, of all on a grid. Rows far from the
 * limit say nothing and cost nothing. */
static void find_curve(struct problem *problem)
{
    static double sds[8192];
    static bool fits[8192];
    int n = 0;
    for (int i = 0; i < problem->rows->count && n < 8192; i++) {
        const struct compiled_row *row = &problem->rows->rows[i];
        if (!row->judged || !row->row->model.maxtext_name[0]) continue;
        const double limit = row->row->estimate.hbm_limit_bytes_per_device;
        sds[n] = (log(limit / row->need_bytes) - problem->left_out[i]) / spread_of(problem, i);
        fits[n++] = row->fits;
    }
    enum { STEPS = 60 }; /* of 0.05 */
    double pressed_sds = 0.0, width_sds = 1.0, least = (double)INFINITY;
    for (int i = 0; i <= STEPS; i++)
        for (int j = 2; j <= STEPS; j++) {
            const double loss = log_loss(0.05 * i, 0.05 * j, sds, fits, n);
            if (loss >= least) continue;
            least = loss;
            pressed_sds = 0.05 * i;
            width_sds = 0.05 * j;
        }
    for (int c = 0; c < problem->chips_count; c++) {
        problem->chips[c].constants.fit_pressed_sds = pressed_sds;
        problem->chips[c].constants.fit_width_sds = width_sds;
    }
    hold_pressed_limits(problem);
    (void)printf("fit_pressed_sds %.2f, fit_width_sds %.2f: log loss %.4f of %d rows left out\n", pressed_sds,
                 width_sds, least, n);
}

/* Whether the answer warns that memory of its kind is not modelled: its error says nothing of the others'. */
static bool is_unmodelled(const struct adv_measurement *row)
{
    return row->model.splits_batch || row->plan.family.use_multimodal;
}

static double spread_by(double *errors, double *over, int count)
{
    return fmax(adv_quantile(errors, count, 0.8) / 1.282, adv_quantile(over, count, 0.95) / 1.645);
}

static bool is_unusual(int sort)
{
    return strcmp(spreads[sort], "unusual_memory_log_sd") == 0;
}

/* Multiplies a generation's spreads, of the usual sorts or of unusual steps, by that of its rows of them,
 * each measured in the spread of its sort. */
static void widen_chip(struct problem *problem, struct chip *chip, bool unusual)
{
    double errors[8192], over[8192];
    int n = 0;
    for (int i = 0; i < problem->rows->count && n < 8192; i++) {
        const struct compiled_row *row = &problem->rows->rows[i];
        if (!row->judged || !row->row->model.maxtext_name[0] || is_unmodelled(row->row) ||
            strcmp(row->row->cluster.chip.name, chip->name) != 0 || is_unusual(problem->sort[i]) != unusual)
            continue;
        over[n] = -problem->left_out[i] / spread_of(problem, i);
        errors[n] = fabs(over[n]);
        n++;
    }
    if (n == 0) return;
    const double ratio = spread_by(errors, over, n);
    (void)printf("%s: %.2f of that, %d %s rows\n", chip->name, ratio, n, unusual ? "unusual" : "usual");
    for (int s = 0; s < SPREADS; s++)
        if (is_unusual(s) == unusual) *value_of(chip, spreads[s]) *= ratio;
}

/* Standard deviation of ln(compiled / predicted) of left-out rows of models that people train: the larger of
 * what the 80 % quantile of the errors says, and the 95 % quantile of plans that need more than predicted,
 * since a promise that a plan fits breaks there; times that of the generation. While it is found, each spread
 * of a chip holds its own number: the estimate of a row then says which one is its. */
static void find_spreads(struct problem *problem, double found[SPREADS])
{
    for (int c = 0; c < problem->chips_count; c++)
        for (int s = 0; s < SPREADS; s++) *value_of(&problem->chips[c], spreads[s]) = s + 1;
    for (int s = 0; s < SPREADS; s++) {
        double errors[8192], over[8192];
        int n = 0;
        for (int i = 0; i < problem->rows->count && n < 8192; i++) {
            predict(problem, i);
            const struct compiled_row *row = &problem->rows->rows[i];
            if (!row->judged) continue;
            problem->sort[i] = (int)lround(row->row->estimate.fit_curve.log_sd) - 1;
            if (row->row->model.maxtext_name[0] && problem->sort[i] == s && !is_unmodelled(row->row)) {
                over[n] = -problem->left_out[i];
                errors[n++] = fabs(problem->left_out[i]);
            }
        }
        found[s] = n > 0 ? spread_by(errors, over, n) : 0.05;
        (void)printf("%s: %.4f of %d rows\n", spreads[s], found[s], n);
    }
    for (int c = 0; c < problem->chips_count; c++)
        for (int s = 0; s < SPREADS; s++) *value_of(&problem->chips[c], spreads[s]) = found[s];
    for (int c = 0; c < problem->chips_count; c++)
        for (int unusual = 0; unusual < 2; unusual++) widen_chip(problem, &problem->chips[c], unusual);
    find_curve(problem);
}

/* Found from what is left of the rows, not beside the counts. */
static bool is_found_after(const char *constant)
{
    static const char *const names[] = {"fit_pressed_sds", "fit_width_sds", "pressed_limit_frac",
                                        "peeled_pressed_limit_frac"};
    bool is = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) is |= strcmp(constant, names[i]) == 0;
    for (int s = 0; s < SPREADS; s++) is |= strcmp(constant, spreads[s]) == 0;
    return is;
}

static const char *source_of(const char *constant)
{
    const bool reckoned =
        strcmp(constant, "windowed_bytes_per_flop") == 0 || strcmp(constant, "windowed_devices_most") == 0;
    return reckoned ? "XLA's own reckoning of libtpu 0.0.50.1, read from its log by tests/compile/einsums.py"
                    : "make fit-memory on the compiled steps in tests/compile/truth";
}

/* How sure the value is: as it was found now, or where the count stays, then. */
static void write_error(const struct problem *problem, const struct chip *chip, const char *name, FILE *file)
{
    int p;
    const struct parameter *fitted = parameter_of(name, chip->name, &p);
    const json_t *before = json_object_get(json_object_get(problem->present, chip->name), name);
    const json_t *then = json_object_get(before, "error");
    if (fitted && !problem->stays[p])
        (void)fprintf(file, "%.3g", problem->log_error[p]);
    else if (fitted && json_is_number(then))
        (void)fprintf(file, "%.3g", json_number_value(then));
    else
        (void)fprintf(file, "null");
}

static void write_constants(struct problem *problem, const char *path, const char *date)
{
    FILE *file = fopen(path, "w");
    if (!file) exit(1);
    double found[SPREADS];
    find_spreads(problem, found);
    (void)fprintf(file, "{\"fitted_at\":\"%s\",\n", date);
    for (int c = 0; c < problem->chips_count; c++) {
        struct chip *chip = &problem->chips[c];
        int rows = 0;
        for (int i = 0; i < problem->rows->count; i++)
            rows += problem->rows->rows[i].judged &&
                    strcmp(problem->rows->rows[i].row->cluster.chip.name, chip->name) == 0;
        (void)fprintf(file, "\"%s\":{\n", chip->name);
        for (int i = 0; i < CONSTANTS; i++) {
            int p;
            const char *name = constants[i].name;
            const bool fitted = parameter_of(name, chip->name, &p) || is_found_after(name);
            (void)fprintf(file, " \"%s\":{\"value\":%.5g,\"unit\":\"%s\",\"kind\":\"%s\",\"error\":", name,
                          *value_of(chip, name), constants[i].unit, fitted ? "fitted" : "assumed");
            write_error(problem, chip, name, file);
            (void)fprintf(file, ",\"rows\":%d,\"source\":\"%s\"}%s\n", rows, source_of(name),
                          i + 1 < CONSTANTS ? "," : "}");
        }
        (void)fprintf(file, "%s", c + 1 < problem->chips_count ? ",\n" : "}\n");
    }
    (void)fclose(file);
}

static void judge_all(struct problem *problem)
{
    const size_t rows = (size_t)problem->rows->count;
    problem->use = calloc(rows, sizeof *problem->use);
    problem->left_out = calloc(rows, sizeof *problem->left_out);
    problem->sort = calloc(rows, sizeof *problem->sort);
    for (int i = 0; i < problem->rows->count; i++) {
        judge(problem, i);
        problem->use[i] = problem->rows->rows[i].judged;
    }
}

int main(int argc, char **argv)
{
    adv_err err;
    adv_err_init(&err);
    struct adv_catalog *catalog = adv_catalog_load(NULL, &err);
    if (!catalog) {
        (void)fprintf(stderr, "fit_memory: the catalog: %s\n", err.findings[0].detail);
        return 1;
    }
    char date[16];
    const time_t now = time(NULL);
    (void)strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
    const char *write_to = NULL, *only = NULL;
    bool print = false;
    int first = 1;
    for (; first < argc && argv[first][0] == '-'; first++) {
        if (strcmp(argv[first], "--rows") == 0)
            print = true;
        else if (strcmp(argv[first], "--write") == 0 && first + 1 < argc)
            write_to = argv[++first];
        else if (strcmp(argv[first], "--only") == 0 && first + 1 < argc)
            only = argv[++first];
    }
    static struct compiled_rows rows;
    rows = compiled_rows_load(catalog, argv + first, argc - first);
    static struct problem problem;
    problem.rows = &rows;
    for (int i = 0; i < adv_catalog_tables(catalog)->chips_count; i++) {
        const struct adv_catalog_chip *chip = &adv_catalog_tables(catalog)->chips[i];
        if (chip->chip.is_tpu)
            problem.chips[problem.chips_count++] = (struct chip){chip->chip.name, chip->constants};
    }
    if (only) let_stay(&problem, only);
    problem.present = json_load_file("engine/catalog/data/memory_constants.json", 0, NULL);
    judge_all(&problem);
    show(&problem);
    if (write_to) {
        leave_out(&problem);
        solve(&problem);
        for (int i = 0; i < rows.count; i++) predict(&problem, i);
        show(&problem);
        for (int p = 0; p < PARAMETERS; p++)
            for (int c = 0; c < problem.chips_count; c++)
                if (strstr(parameters[p].chips, problem.chips[c].name)) {
                    (void)printf("%-28s %-22s %8.3f +- %.3f\n", parameters[p].constant, parameters[p].chips,
                                 *value_of(&problem.chips[c], parameters[p].constant), problem.log_error[p]);
                    break;
                }
        write_constants(&problem, write_to, date);
    }
    if (print) print_rows(&problem);
    json_decref(problem.present);
    free(problem.use);
    free(problem.left_out);
    free(problem.sort);
    return 0;
}

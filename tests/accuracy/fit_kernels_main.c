/* fit-kernels: fits the kernel constants to published timings and rewrites
 * engine/catalog/data/kernel_constants.json.
 *
 *   fit-kernels [--group N] [--starts N] [--show] [--no-cross] [--no-fit] [--write OUT] ROWS.json...
 *
 * Each group is fitted by a bounded derivative-free search (NLopt, BOBYQA then subplex) from several starts,
 * then cross-validated: ten folds by shape, each predicted by constants fitted without it. The spread of a
 * constant over the folds is reported as its error. Not part of the daemon.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nlopt.h>

#include "engine/base/hash.h"
#include "tests/accuracy/derive_kernels.h"
#include "tests/accuracy/fit_kernels.h"
#include "engine/calibrate/validate_kernels.h"
#include "engine/catalog/catalog.h"
#include "engine/kernel/family.h"

enum { FOLDS = 10, ROWS_MAX = 8192 };

struct problem {
    const struct adv_fit_group *group;
    struct adv_kernel_machine machine;
    struct adv_constants constants;
    const struct adv_kernel_row *rows[ROWS_MAX];
    int folds[ROWS_MAX];
    int rows_count, skip;
};

static void set_values(struct problem *p, const double *x)
{
    for (int i = 0; i < p->group->constants_count; i++) {
        const struct adv_fit_constant *c = &p->group->constants[i];
        *adv_fit_value(&p->constants, c) = c->low + x[i] * (c->high - c->low);
    }
}

static void get_values(struct problem *p, double *x)
{
    for (int i = 0; i < p->group->constants_count; i++) {
        const struct adv_fit_constant *c = &p->group->constants[i];
        const double at = (*adv_fit_value(&p->constants, c) - c->low) / (c->high - c->low);
        x[i] = fmin(1.0, fmax(0.0, at));
    }
}

static double objective(unsigned n, const double *x, double *gradient, void *data)
{
    struct problem *p = data;
    (void)n;
    (void)gradient;
    set_values(p, x);
    return adv_fit_loss(p->group, &p->machine, p->rows, p->rows_count, p->folds, p->skip);
}

static double run(struct problem *p, nlopt_algorithm algorithm, double *x, int evaluations)
{
    nlopt_opt opt = nlopt_create(algorithm, (unsigned)p->group->constants_count);
    nlopt_set_lower_bounds1(opt, 0.0);
    nlopt_set_upper_bounds1(opt, 1.0);
    nlopt_set_min_objective(opt, objective, p);
    nlopt_set_initial_step1(opt, 0.1);
    nlopt_set_maxeval(opt, evaluations);
    nlopt_set_ftol_rel(opt, 1e-9);
    nlopt_set_xtol_rel(opt, 1e-8);
    double loss = HUGE_VAL;
    if (nlopt_optimize(opt, x, &loss) < 0 && !(loss < HUGE_VAL)) loss = objective(0, x, NULL, p);
    nlopt_destroy(opt);
    return loss;
}

/* One start: from the current values. Several: from fixed points between the bounds, so that the result does
 * not depend on the constants there are. Leaves the best in p->constants. */
static double fit(struct problem *p, int starts)
{
    double best_x[ADV_FIT_CONSTANTS], best = HUGE_VAL;
    unsigned state = 12345;
    double origin[ADV_FIT_CONSTANTS];
    get_values(p, origin);
    for (int i = 0; starts > 1 && i < p->group->constants_count; i++) origin[i] = 0.3;
    for (int s = 0; s < starts; s++) {
        double x[ADV_FIT_CONSTANTS];
        for (int i = 0; i < p->group->constants_count; i++) {
            state = state * 1664525u + 1013904223u;
            const double shake = s == 0 ? 0.0 : ((double)(state >> 8) / 16777216.0 - 0.5) * 0.6;
            x[i] = fmin(1.0, fmax(0.0, origin[i] + shake));
        }
        run(p, NLOPT_LN_SBPLX, x, 3000);
        const double loss = run(p, NLOPT_LN_BOBYQA, x, 1000);
        if (loss < best) {
            best = loss;
            memcpy(best_x, x, sizeof x);
        }
    }
    set_values(p, best_x);
    return best;
}

static char *read_file(const char *path, size_t *length)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    (void)fseek(f, 0, SEEK_END);
    *length = (size_t)ftell(f);
    rewind(f);
    char *text = malloc(*length + 1);
    if (text && fread(text, 1, *length, f) != *length) {
        free(text);
        text = NULL;
    }
    (void)fclose(f);
    return text;
}

static void describe(const struct adv_kernel_row *r, char *text, size_t size)
{
    const struct adv_kernel_family *family = adv_kernel_family_of(r->request.kernel);
    if (family == &adv_family_splash || family == &adv_family_attention_xla) {
        const struct adv_attention_shape *s = &r->request.attention;
        const struct adv_splash_blocks *b = &r->request.tile.attention.blocks;
        const bool backward = !b->block_q;
        (void)snprintf(text, size, "B%.0f H%d/%d T%ld d%d/%d %s L%d%d%d s%d tile %d/%d/%d", s->batch,
                       s->q_heads, s->kv_heads, (long)s->q_len, s->head_dim_qk, s->head_dim_v,
                       s->causal ? "causal" : "full", (int)r->request.tile.attention.q_layout,
                       (int)r->request.tile.attention.k_layout, (int)r->request.tile.attention.v_layout,
                       r->request.attention_flags.use_experimental_scheduler,
                       backward ? b->block_q_dkv : b->block_q, backward ? b->block_kv_dkv : b->block_kv,
                       backward ? b->block_kv_dkv_compute : b->block_kv_compute);
    } else if (family == &adv_family_gmm || family == &adv_family_ragged_dot_xla) {
        (void)snprintf(text, size, "m%ld k%ld n%ld g%d %s%s%s tile %d/%d/%d x%d", (long)r->request.gmm.m,
                       (long)r->request.gmm.k, (long)r->request.gmm.n, r->request.gmm.num_groups,
                       r->request.gmm.distribution == ADV_GROUPS_GIVEN ? "given" : "multi",
                       r->request.gmm.rhs_transposed ? " T" : "",
                       r->request.gmm.return_residuals ? " res" : "", r->request.tile.gmm.tile_m,
                       r->request.tile.gmm.tile_k, r->request.tile.gmm.tile_n,
                       r->request.tile.gmm.input_buffer_count);
    } else if (family == &adv_family_xent) {
        (void)snprintf(text, size, "t%ld e%ld v%ld tile %d/%d/%d", (long)r->request.xent.tokens,
                       (long)r->request.xent.emb_dim, (long)r->request.xent.vocab,
                       r->request.tile.xent.b_block, r->request.tile.xent.h_block,
                       r->request.tile.xent.v_block);
    } else {
        (void)snprintf(text, size, "m%ld k%ld n%ld copy %.0f", (long)r->request.matmul.m,
                       (long)r->request.matmul.k, (long)r->request.matmul.n, r->copy_bytes);
    }
}

static void show(struct problem *p)
{
    for (int i = 0; i < p->rows_count; i++) {
        const struct adv_kernel_row *r = p->rows[i];
        struct adv_kernel_time time;
        adv_err err;
        adv_err_init(&err);
        char text[160];
        describe(r, text, sizeof text);
        if (adv_predict_kernel_row(&p->machine, r, &time, &err)) {
            printf("  %s %s: %s %s\n", r->id, text, err.findings[0].pointer, err.findings[0].detail);
            continue;
        }
        printf("  %+6.1f%% %s %-12s %-62s %9.1f us measured %9.1f |",
               100.0 * (time.time_s / r->measured_s - 1.0), r->id, r->name, text, time.time_s * 1e6,
               r->measured_s * 1e6);
        for (int k = 0; k < time.parts_count; k++)
            printf(" %s %.0f", time.parts[k].name, time.parts[k].time_s * 1e6);
        printf(" %s%s\n", r->commit_date, time.fits_vmem ? "" : " OVER-VMEM");
    }
}

static struct adv_error_summary errors_of(struct problem *p, int only_fold, double *errors, int *count)
{
    for (int i = 0; i < p->rows_count; i++) {
        if (only_fold >= 0 && p->folds[i] != only_fold) continue;
        const double e = adv_fit_log_error(&p->machine, p->rows[i]);
        if (!isnan(e)) errors[(*count)++] = fabs(exp(e) - 1.0);
    }
    static double sorted[ROWS_MAX];
    memcpy(sorted, errors, (size_t)*count * sizeof *sorted);
    return adv_summarize_errors(sorted, *count);
}

/* The fit's knowledge of one constant on one generation. */
struct outcome {
    double error;
    int rows;
    bool fitted;
    const char *source;
};

struct state {
    struct adv_catalog *catalog;
    struct adv_derive_chip chips[8];
    struct adv_constants constants[8];
    struct outcome outcomes[8][128];
    int chips_count;
    const struct adv_kernel_row *rows[ROWS_MAX];
    int rows_count;
};

static int chip_index(const struct state *state, const char *name)
{
    for (int i = 0; i < state->chips_count; i++)
        if (strcmp(state->chips[i].chip->name, name) == 0) return i;
    return -1;
}

static void take_chips(struct state *state)
{
    for (int i = 0; i < adv_catalog_tables(state->catalog)->chips_count && state->chips_count < 8; i++) {
        const struct adv_catalog_chip *chip = &adv_catalog_tables(state->catalog)->chips[i];
        if (!chip->chip.is_tpu) continue;
        state->constants[state->chips_count] = chip->constants;
        state->chips[state->chips_count].chip = &chip->chip;
        state->chips[state->chips_count].constants = &state->constants[state->chips_count];
        state->chips_count++;
    }
}

/* The fold of a row: all rows of a shape are left out together, whatever their date, group sizes or
 * residuals. */
static int fold_of(const struct adv_kernel_row *row)
{
    char key[200];
    const struct adv_kernel_family *family = adv_kernel_family_of(row->request.kernel);
    if (family == &adv_family_splash || family == &adv_family_attention_xla) {
        const struct adv_attention_shape *s = &row->request.attention;
        (void)snprintf(key, sizeof key, "%d %d %ld %d %d", s->q_heads, s->kv_heads, (long)s->q_len,
                       s->head_dim_qk, s->causal);
    } else if (family == &adv_family_gmm || family == &adv_family_ragged_dot_xla) {
        const struct adv_gmm_shape *s = &row->request.gmm;
        (void)snprintf(key, sizeof key, "%ld %ld %ld %d", (long)s->m, (long)s->k, (long)s->n, s->num_groups);
    } else {
        (void)snprintf(key, sizeof key, "%ld %ld %ld %ld %ld %ld %.0f", (long)row->request.matmul.m,
                       (long)row->request.matmul.k, (long)row->request.matmul.n,
                       (long)row->request.xent.tokens, (long)row->request.xent.emb_dim,
                       (long)row->request.xent.vocab, row->copy_bytes);
    }
    return (int)(adv_hash_bytes(ADV_HASH_START, key, strlen(key)) % FOLDS);
}

static struct problem make_problem(const struct state *state, int group)
{
    struct problem p = {.group = adv_fit_group_at(group), .skip = -1};
    const int chip = chip_index(state, p.group->chip);
    p.constants = state->constants[chip];
    p.machine = (struct adv_kernel_machine){.chip = state->chips[chip].chip};
    for (int i = 0; i < state->rows_count; i++) {
        const struct adv_kernel_row *row = state->rows[i];
        if (!adv_fit_uses(p.group, row)) continue;
        p.folds[p.rows_count] = fold_of(row);
        p.rows[p.rows_count++] = row;
    }
    return p;
}

/* Ten fits without a tenth of the shapes each; prints what those miss and leaves each constant's spread in
 * `spread`. */
static void cross_validate(struct problem *p, double *spread)
{
    static double errors[ROWS_MAX];
    double sum[ADV_FIT_CONSTANTS] = {0}, squares[ADV_FIT_CONSTANTS] = {0};
    const struct adv_constants fitted = p->constants;
    struct adv_error_summary s = {0};
    int count = 0;
    for (int f = 0; f < FOLDS; f++) {
        p->constants = fitted;
        p->skip = f;
        fit(p, 1);
        s = errors_of(p, f, errors, &count);
        for (int i = 0; i < p->group->constants_count; i++) {
            const double v = *adv_fit_value(&p->constants, &p->group->constants[i]);
            sum[i] += v;
            squares[i] += v * v;
        }
    }
    p->constants = fitted;
    p->skip = -1;
    for (int i = 0; i < p->group->constants_count; i++) {
        const double mean = sum[i] / FOLDS, variance = fmax(0.0, squares[i] / FOLDS - mean * mean);
        spread[i] = sqrt(variance) * (FOLDS - 1) / sqrt(FOLDS); /* jackknife */
    }
    printf("  left out: median %.2f%% p90 %.2f%% max %.1f%%\n", 100 * s.median_frac, 100 * s.p90_frac,
           100 * s.max_frac);
}

/* True when some group fits the constant on the generation. */
static bool is_fitted(const char *chip, const char *name)
{
    for (int g = 0; g < adv_fit_groups_count(); g++) {
        const struct adv_fit_group *group = adv_fit_group_at(g);
        for (int i = 0; i < group->constants_count && strcmp(group->chip, chip) == 0; i++)
            if (strcmp(group->constants[i].name, name) == 0) return true;
    }
    return false;
}

/* The say of the fits so far about constants that nobody fits on `chip`. */
static void derive(struct state *state, int chip)
{
    const char *donor, *how;
    for (int k = 0; k < adv_kernel_constants_count(); k++)
        if (!is_fitted(state->chips[chip].chip->name, adv_kernel_constant_at(k)->name))
            (void)adv_derive_kernel_constant(state->chips, state->chips_count, chip, k, &donor, &how);
}

static void fit_group(struct state *state, int group, bool do_fit, bool cross, bool list, int starts)
{
    static struct problem p;
    static double errors[ROWS_MAX];
    double spread[ADV_FIT_CONSTANTS] = {0};
    int count = 0;
    if (do_fit) derive(state, chip_index(state, adv_fit_group_at(group)->chip));
    p = make_problem(state, group);
    p.machine.constants = &p.constants;
    if (do_fit && p.rows_count > 0) fit(&p, starts);
    const struct adv_error_summary s = errors_of(&p, -1, errors, &count);
    printf("%d %s %s: %d rows, in sample median %.2f%% p90 %.2f%% max %.1f%%\n", group, p.group->chip,
           p.group->name, s.count, 100 * s.median_frac, 100 * s.p90_frac, 100 * s.max_frac);
    if (list) show(&p);
    if (cross) cross_validate(&p, spread);
    const int chip = chip_index(state, p.group->chip);
    for (int i = 0; i < p.group->constants_count; i++) {
        const struct adv_fit_constant *c = &p.group->constants[i];
        const double value = *adv_fit_value(&p.constants, c);
        printf("  %-28s %.4g  +- %.2g\n", c->name, value, spread[i]);
        *adv_fit_value(&state->constants[chip], c) = value;
        for (int k = 0; k < adv_kernel_constants_count(); k++)
            if (strcmp(adv_kernel_constant_at(k)->name, c->name) == 0)
                state->outcomes[chip][k] = (struct outcome){spread[i], p.rows_count, true, p.group->name};
    }
    (void)fflush(stdout);
}

static double rounded(double value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.4g", value);
    return strtod(text, NULL);
}

/* Fitted values with their errors; derived ones by the rules; the rest as it was in the catalog, "assumed".
 */
static int write_constants(struct state *state, const char *path)
{
    FILE *out = fopen(path, "w");
    if (!out) return 1;
    (void)fprintf(out, "{\n");
    for (int pass = 0; pass < 2; pass++) /* first all derivations, as donors may be derived themselves */
        for (int c = 0; c < state->chips_count; c++) {
            if (pass) (void)fprintf(out, "  \"%s\": {\n", state->chips[c].chip->name);
            const int count = adv_kernel_constants_count();
            for (int k = 0; k < count; k++) {
                const struct adv_kernel_constant *constant = adv_kernel_constant_at(k);
                const struct outcome *o = &state->outcomes[c][k];
                const char *donor = NULL, *how = NULL;
                const bool derived = !o->fitted && adv_derive_kernel_constant(
                                                       state->chips, state->chips_count, c, k, &donor, &how);
                if (!pass) continue;
                double value;
                memcpy(&value, (const char *)&state->constants[c] + constant->offset, sizeof value);
                (void)fprintf(out, "    \"%s\": {\"value\": %.10g, \"unit\": \"%s\", ", constant->name,
                              rounded(value), constant->unit);
                if (o->fitted)
                    (void)fprintf(out,
                                  "\"kind\": \"fitted\", \"error\": %.2g, \"rows\": %d, \"source\": \"%s "
                                  "rows of tests/data/kernel_timings.json\"}",
                                  o->error, o->rows, o->source);
                else if (derived)
                    (void)fprintf(
                        out,
                        "\"kind\": \"borrowed from %s\", \"error\": null, \"rows\": 0, \"source\": \"%s\"}",
                        donor, how);
                else if (strcmp(constant->unit, "flag") == 0)
                    (void)fprintf(out, "\"kind\": \"measured\", \"error\": null, \"rows\": 0, \"source\": "
                                       "\"what the timings show\"}");
                else
                    (void)fprintf(out, "\"kind\": \"assumed\", \"error\": null, \"rows\": 0, \"source\": "
                                       "\"no measurement\"}");
                (void)fprintf(out, "%s\n", k + 1 < count ? "," : "");
            }
            if (pass) (void)fprintf(out, "  }%s\n", c + 1 < state->chips_count ? "," : "");
        }
    (void)fprintf(out, "}\n");
    return fclose(out) ? 1 : 0;
}

static int read_rows(struct state *state, const char *path, struct adv_arena *arena)
{
    size_t length = 0;
    char *text = read_file(path, &length);
    struct adv_kernel_row *rows = NULL;
    int count = 0;
    adv_err err;
    adv_err_init(&err);
    if (!text || adv_decode_kernel_rows(text, length, arena, &rows, &count, &err)) {
        (void)fprintf(stderr, "%s: %s\n", path, err.count ? err.findings[0].detail : "cannot be read");
        free(text);
        return 1;
    }
    for (int k = 0; k < count && state->rows_count < ROWS_MAX; k++)
        state->rows[state->rows_count++] = &rows[k];
    free(text);
    return 0;
}

int main(int argc, char **argv)
{
    int only = -1, starts = 12, status = 0;
    bool list = false, cross = true, do_fit = true;
    const char *out = NULL;
    static struct state state;
    struct adv_arena arena;
    adv_err err;
    adv_arena_init(&arena, (size_t)1 << 30);
    adv_err_init(&err);
    state.catalog = adv_catalog_load(NULL, &err);
    if (!state.catalog) {
        (void)fprintf(stderr, "%s\n", err.findings[0].detail);
        return 1;
    }
    take_chips(&state);
    for (int i = 1; i < argc && !status; i++) {
        if (strcmp(argv[i], "--group") == 0 && i + 1 < argc)
            only = atoi(argv[++i]);
        else if (strcmp(argv[i], "--starts") == 0 && i + 1 < argc)
            starts = atoi(argv[++i]);
        else if (strcmp(argv[i], "--write") == 0 && i + 1 < argc)
            out = argv[++i];
        else if (strcmp(argv[i], "--show") == 0)
            list = true;
        else if (strcmp(argv[i], "--no-cross") == 0)
            cross = false;
        else if (strcmp(argv[i], "--no-fit") == 0)
            do_fit = cross = false;
        else
            status = read_rows(&state, argv[i], &arena);
    }
    for (int g = 0; g < adv_fit_groups_count() && !status; g++)
        if (only < 0 || g == only) fit_group(&state, g, do_fit, cross, list, starts);
    if (out && !status) status = write_constants(&state, out);
    adv_catalog_free(state.catalog);
    adv_arena_free(&arena);
    return status;
}

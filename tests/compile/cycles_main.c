/* cycles_main.c: the engine's formulas for single operations beside what XLA says of them.
 *
 *   cycles_report ROWS... > PAGE    the page: errors per chip and kind of operation, worst rows
 *
 * ROWS are files of tests/compile/cycles.py. Cycles become seconds by the clock of the chip's record.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/calibrate/measurement.h"
#include "engine/cost/step.h"
#include "engine/kernel/kernel.h"

enum { ROWS_MAX = 1024, GROUPS_MAX = 64, ERRORS_MAX = 8192, WORST = 20 };

/* XLA's own cost of an operation is bound by more than the matrix unit below this contraction. */
static const double short_contraction = 1024.0;

struct group {
    char chip[16], what[48];
    double errors[ROWS_MAX];
    int count;
};

struct error {
    char chip[16], what[48], id[96];
    double theirs, ours;
    const char *unit;
};

/* XLA's cost of a pass over an array. */
struct pass {
    char chip[16], what[48];
    double bytes_per_element, ratio; /* of its cycles to its roofline */
};

static struct group groups[GROUPS_MAX];
static struct pass passes[ROWS_MAX];
static int passes_count;
static struct error errors[ERRORS_MAX];
static int groups_count, errors_count;

static struct group *group_of(const char *chip, const char *what)
{
    for (int i = 0; i < groups_count; i++)
        if (strcmp(groups[i].chip, chip) == 0 && strcmp(groups[i].what, what) == 0) return &groups[i];
    if (groups_count == GROUPS_MAX) return NULL;
    struct group *group = &groups[groups_count++];
    (void)snprintf(group->chip, sizeof group->chip, "%s", chip);
    (void)snprintf(group->what, sizeof group->what, "%s", what);
    return group;
}

/* One comparison; `theirs` and `ours` in `unit`. */
static void add(const char *chip, const char *what, const char *id, double ours, double theirs,
                const char *unit)
{
    if (theirs <= 0.0 || ours <= 0.0) return;
    struct group *group = group_of(chip, what);
    if (!group || group->count == ROWS_MAX || errors_count == ERRORS_MAX) return;
    group->errors[group->count++] = log(ours / theirs);
    struct error *error = &errors[errors_count++];
    *error = (struct error){.theirs = theirs, .ours = ours, .unit = unit};
    (void)snprintf(error->chip, sizeof error->chip, "%s", chip);
    (void)snprintf(error->what, sizeof error->what, "%s", what);
    (void)snprintf(error->id, sizeof error->id, "%s", id);
}

static double number(const json_t *row, const char *member)
{
    const json_t *value = json_object_get(row, member);
    return json_is_number(value) ? json_number_value(value) : 0.0;
}

static const char *text(const json_t *row, const char *member)
{
    const char *value = json_string_value(json_object_get(row, member));
    return value ? value : "";
}

static enum adv_format format_of(const char *name)
{
    if (strcmp(name, "int8") == 0) return ADV_FORMAT_INT8;
    if (strncmp(name, "float8", 6) == 0) return ADV_FORMAT_FP8;
    return strcmp(name, "float32") == 0 ? ADV_FORMAT_F32 : ADV_FORMAT_BF16;
}

/* Rows, contraction and columns of the product that the device runs: gradients exchange them. */
struct product {
    double rows, k, n;
};

static bool product_of(const json_t *row, struct product *product)
{
    const json_t *shape = json_object_get(row, "shape");
    const double m = number(shape, "m"), k = number(shape, "k"), n = number(shape, "n");
    const char *kind = text(row, "class");
    if (strcmp(kind, "matmul") == 0)
        *product = (struct product){m, k, n};
    else if (strcmp(kind, "data_gradient") == 0)
        *product = (struct product){m, n, k};
    else if (strcmp(kind, "weight_gradient") == 0)
        *product = (struct product){k, m, n};
    else
        return false;
    return true;
}

static void judge_matmul(const struct adv_catalog_chip *chip, const json_t *row, struct product p)
{
    const json_t *shape = json_object_get(row, "shape");
    const char *name = chip->chip.name, *id = text(row, "id");
    const enum adv_format in = format_of(text(shape, "format")), out = format_of(text(shape, "out"));
    const bool low = in == ADV_FORMAT_INT8 || in == ADV_FORMAT_FP8;
    const double seconds = number(row, "cycles") / chip->chip.clock_hz;
    struct adv_cost cost = {0};
    adv_cost_rates_init(&cost, &chip->chip, &chip->constants,
                        in == ADV_FORMAT_INT8  ? ADV_QUANT_INT8
                        : in == ADV_FORMAT_FP8 ? ADV_QUANT_FP8
                                               : ADV_QUANT_NONE);
    /* a step has no square products of a few hundred rows */
    const bool square = p.rows == p.k && p.k == p.n;
    const char *what = low                                         ? "matmul in a step, 8-bit"
                       : p.k < short_contraction                   ? "matmul in a step, short contraction"
                       : strcmp(text(row, "class"), "matmul") == 0 ? "matmul in a step, forward"
                                                                   : "matmul in a step, gradients";
    if (!square) add(name, what, id, adv_cost_matmul_s(&cost, p.rows, p.k, p.n, low), seconds, "s");

    struct adv_kernel_machine machine = {&chip->chip, &chip->constants, 1024.0 * number(row, "vmem_kib"),
                                         false, NULL};
    struct adv_matmul_shape alone = {(int64_t)p.rows, (int64_t)p.k, (int64_t)p.n, in, in, out};
    struct adv_kernel_time time;
    adv_err err;
    adv_err_init(&err);
    if (square && adv_matmul_time(&machine, &alone, &time, &err) == ADV_OK)
        add(name, "matmul alone, square", id, time.time_s, seconds, "s");
}

/* Bytes that the engine counts for the whole pass, 0 where it has no count of its own. */
static double bytes_of(const struct adv_catalog_chip *chip, const json_t *row)
{
    const json_t *shape = json_object_get(row, "shape");
    const double elements = number(shape, "rows") * number(shape, "columns");
    const struct adv_plan plan = {.family.weight_dtype = ADV_FORMAT_F32,
                                  .family.mu_dtype = ADV_FORMAT_F32,
                                  .family.grad_dtype = ADV_FORMAT_F32,
                                  .family.optimizer = ADV_OPT_ADAMW};
    if (strcmp(text(row, "class"), "adam") == 0)
        return elements * adv_cost_update_bytes_per_param(&plan, 1.0);
    if (strcmp(text(row, "class"), "loss_and_gradient") == 0)
        return elements * chip->constants.cross_entropy_bytes;
    return 0.0;
}

static void judge_pass(const struct adv_catalog_chip *chip, const json_t *row)
{
    const char *name = chip->chip.name, *id = text(row, "id");
    const double bytes = number(row, "hbm_bytes"), roofline_s = number(row, "optimal_s");
    struct adv_cost cost = {0};
    adv_cost_rates_init(&cost, &chip->chip, &chip->constants, ADV_QUANT_NONE);
    add(name, "HBM rate of passes", id, adv_cost_stream_s(&cost, bytes), roofline_s, "s");
    const char *what =
        strcmp(text(row, "class"), "adam") == 0 ? "HBM bytes of the update" : "HBM bytes of the loss";
    add(name, what, id, bytes_of(chip, row), bytes, "bytes");
    if (passes_count == ROWS_MAX) return;
    struct pass *pass = &passes[passes_count++];
    const json_t *shape = json_object_get(row, "shape");
    *pass = (struct pass){.bytes_per_element = bytes / (number(shape, "rows") * number(shape, "columns")),
                          .ratio = number(row, "cycles") / chip->chip.clock_hz / roofline_s};
    (void)snprintf(pass->chip, sizeof pass->chip, "%.15s", name);
    (void)snprintf(pass->what, sizeof pass->what, "%s", text(row, "class"));
}

static void judge_file(const struct adv_catalog *catalog, const char *path)
{
    json_error_t problem;
    json_t *file = json_load_file(path, 0, &problem);
    const struct adv_catalog_chip *chip = file ? adv_catalog_chip(catalog, text(file, "chip")) : NULL;
    if (!chip) {
        (void)fprintf(stderr, "%s: %s\n", path, file ? "no chip of the catalog" : problem.text);
        exit(1);
    }
    (void)printf("- %s: %s, %s; %d rows; %.2f GHz\n", chip->chip.name, text(file, "software"),
                 text(file, "date"), (int)json_array_size(json_object_get(file, "rows")),
                 chip->chip.clock_hz * 1e-9);
    size_t index;
    const json_t *row;
    json_array_foreach(json_object_get(file, "rows"), index, row)
    {
        struct product product;
        if (product_of(row, &product))
            judge_matmul(chip, row, product);
        else
            judge_pass(chip, row);
    }
    json_decref(file);
}

static int by_name(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    int what = strcmp(x->what, y->what);
    return what != 0 ? what : strcmp(x->chip, y->chip);
}

static double abs_quantile(const double *values, int count, double centre, double q)
{
    static double copy[ROWS_MAX];
    for (int i = 0; i < count; i++) copy[i] = fabs(values[i] - centre);
    return 100.0 * expm1(adv_quantile(copy, count, q));
}

static void print_groups(void)
{
    qsort(groups, (size_t)groups_count, sizeof *groups, by_name);
    (void)printf(
        "\n| what | chip | rows | median %% | p90 %% | max %% | bias %% | p90 %% without the bias |\n"
        "| --- | --- | --: | --: | --: | --: | --: | --: |\n");
    for (int i = 0; i < groups_count; i++) {
        struct group *g = &groups[i];
        static double sorted[ROWS_MAX];
        memcpy(sorted, g->errors, (size_t)g->count * sizeof *sorted);
        double middle = adv_quantile(sorted, g->count, 0.5);
        (void)printf("| %s | %s | %d | %.1f | %.1f | %.1f | %+.1f | %.1f |\n", g->what, g->chip, g->count,
                     abs_quantile(g->errors, g->count, 0.0, 0.5), abs_quantile(g->errors, g->count, 0.0, 0.9),
                     abs_quantile(g->errors, g->count, 0.0, 1.0), 100.0 * expm1(middle),
                     abs_quantile(g->errors, g->count, middle, 0.9));
    }
}

static int by_pass(const void *a, const void *b)
{
    const struct pass *x = a, *y = b;
    int what = strcmp(x->what, y->what);
    return what != 0 ? what : strcmp(x->chip, y->chip);
}

static void print_passes(void)
{
    qsort(passes, (size_t)passes_count, sizeof *passes, by_pass);
    (void)printf("\n## Passes\n\n| pass | chip | HBM bytes per element | XLA's cycles over its roofline |\n"
                 "| --- | --- | --: | --: |\n");
    for (int i = 0; i < passes_count; i++)
        (void)printf("| %s | %s | %.2f | %.1f |\n", passes[i].what, passes[i].chip,
                     passes[i].bytes_per_element, passes[i].ratio);
}

static int by_error(const void *a, const void *b)
{
    const struct error *x = a, *y = b;
    double left = fabs(log(x->ours / x->theirs)), right = fabs(log(y->ours / y->theirs));
    if (left != right) return left < right ? 1 : -1;
    int chips = strcmp(x->chip, y->chip);
    return chips != 0 ? chips : strcmp(x->id, y->id);
}

static void print_worst(void)
{
    qsort(errors, (size_t)errors_count, sizeof *errors, by_error);
    (void)printf("\n## Worst matmuls\n\n| chip | row | XLA's microseconds | ours | error %% |\n| --- | --- | "
                 "--: | --: | --: |\n");
    for (int i = 0, printed = 0; i < errors_count && printed < WORST; i++) {
        const struct error *e = &errors[i];
        if (strncmp(e->what, "matmul", 6) != 0) continue;
        printed++;
        (void)printf("| %s | %s | %.1f | %.1f | %+.1f |\n", e->chip, e->id, e->theirs * 1e6, e->ours * 1e6,
                     100.0 * (e->ours / e->theirs - 1.0));
    }
}

int main(int argc, char **argv)
{
    adv_err err;
    adv_err_init(&err);
    struct adv_catalog *catalog = adv_catalog_load(NULL, &err);
    if (!catalog || argc < 2) return 2;
    (void)printf("# Single operations beside the real compiler\n\nWritten by `make cycle-accuracy-update` "
                 "from `tests/compile/cycles`: "
                 "operations that libtpu compiled for one device, without a TPU (`make cycle-truth`). Errors "
                 "are |ours / XLA's - 1|; the "
                 "bias is the median of the signed ones.\n\n"
                 "- Matmuls: our seconds beside XLA's `estimated_cycles` at the clock of `chips.json`. "
                 "Published for v4, v5e and v5p; for "
                 "v6e and tpu7x inferred from the peak, where published timings of matmuls, set against the "
                 "cycles, ask for 1.94 and 1.93 "
                 "GHz: their bias says nothing, the error without it does. Our rate in a step is fitted to "
                 "published steps. A contraction under "
                 "%.0f is a group of its own: XLA counts more than the matrix unit there.\n"
                 "- Passes: XLA's cycles are no measure of what HBM binds. They are one to seven times as "
                 "long as its own roofline, and "
                 "published copies on v6e and tpu7x take 1.15 to 1.2 times the roofline. So passes are "
                 "judged by that roofline (its rate "
                 "is 80 %% of HBM's on v4, 85 %% on v5p, 90 %% on v5e, 100 %% on v6e and tpu7x) and by the "
                 "bytes that the finished program "
                 "moves. On tpu7x two of the three copies of `heads_first` run on a SparseCore: they have no "
                 "cycles, and their bytes count half as much again.\n"
                 "- The loss: our count per logit includes what the matmuls around it write and read, the "
                 "row does not. The update: "
                 "ours reads gradients once more, for the global norm.\n\n",
                 short_contraction);
    for (int i = 1; i < argc; i++) judge_file(catalog, argv[i]);
    print_groups();
    print_passes();
    print_worst();
    adv_catalog_free(catalog);
    return 0;
}

/* report_main.c: the engine's memory beside the real compiler's.
 *
 *   memory_report ROWS... > PAGE
 *
 * the page: bytes and verdicts per chip, family and option, worst rows;
 *
 *   memory_report --explain ID ROWS...
 *
 * one row: our parts beside the buffers that the compiler had at its peak.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/compile/rows.h"

enum { ROWS_MAX = 8192, GROUPS_MAX = 128, WORST = 20 };

struct group {
    char kind[16], name[64];
    double errors[ROWS_MAX];
    int count, covered, verdicts, right;
};

static struct group groups[GROUPS_MAX];
static int groups_count;

static struct group *group_of(const char *kind, const char *name)
{
    for (int i = 0; i < groups_count; i++)
        if (strcmp(groups[i].kind, kind) == 0 && strcmp(groups[i].name, name) == 0) return &groups[i];
    if (groups_count == GROUPS_MAX) return NULL;
    struct group *group = &groups[groups_count++];
    (void)snprintf(group->kind, sizeof group->kind, "%s", kind);
    (void)snprintf(group->name, sizeof group->name, "%s", name);
    return group;
}

static void add(const char *kind, const char *name, const struct compiled_row *row)
{
    struct group *group = group_of(kind, name);
    if (!group) return;
    const struct adv_estimate *e = &row->row->estimate;
    group->errors[group->count++] = row->error_log;
    group->covered +=
        row->need_bytes >= e->hbm_low_bytes_per_device && row->need_bytes <= e->hbm_high_bytes_per_device;
    group->verdicts++;
    group->right += row->fits == (e->fit != ADV_FIT_NO); /* as an answer says it */
}

/* The purpose of a row: the part of its id before the chip, or what kind of row it is. */
static const char *option_of(const struct compiled_row *row)
{
    static const char *const kinds[][2] = {
        {"plan-", "plans of advise"},
        {"recipe-", "published runs"},
        {"family-", "one model of a family"},
        {"routed", "small models with experts"},
        {"off-", "what goes to the host"},
        {"dense", "one setting of a small model"},
        {"quant-", "quantised small models"},
        {"unpipelined-", "host transfers that are not pipelined"},
        {"odd", "one setting of a small model"},
        {"peeled-", "stacks beside tensors on the host"},
        {"blocks-", "stacks of models with blocks of layers"},
        {"head-", "logits and their gradient"},
        {"unscanned-", "layers that are not scanned"},
        {"linear-", "gated delta nets"},
        {"nested-", "blocks with loops of their own"},
        {"user-", "meshes and policies drawn at random"},
        {"tensor-", "tensor parallelism"},
        {"tiled-gather-", "tiles of the vocabulary beside context shards"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(row->row->id, kinds[i][0], strlen(kinds[i][0])) == 0) return kinds[i][1];
    return "others";
}

static void judge(struct compiled_rows *rows, const struct adv_catalog *catalog)
{
    for (int i = 0; i < rows->count; i++) {
        struct compiled_row *row = &rows->rows[i];
        const struct adv_catalog_chip *chip =
            row->row->decoded ? adv_catalog_chip(catalog, row->row->cluster.chip.name) : NULL;
        if (!chip || !compiled_row_predict(row, &chip->constants)) continue;
        add("all", "all rows", row);
        if (row->row->model.maxtext_name[0]) add("all", "models that people train", row);
        add("chip", chip->chip.name, row);
        add("rows", option_of(row), row);
        add("family", row->row->model.maxtext_name[0] ? row->row->model.maxtext_name : "given by dimensions",
            row);
    }
}

static int by_kind(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    int kinds = strcmp(x->kind, y->kind);
    return kinds != 0 ? kinds : strcmp(x->name, y->name);
}

static double abs_quantile(const double *errors, int count, double q)
{
    static double copy[ROWS_MAX];
    for (int i = 0; i < count; i++) copy[i] = fabs(errors[i]);
    return 100.0 * expm1(adv_quantile(copy, count, q));
}

static void print_groups(void)
{
    qsort(groups, (size_t)groups_count, sizeof *groups, by_kind);
    (void)printf("| by | | rows | median %% | p90 %% | max %% | bias %% | inside the interval %% | verdict "
                 "right %% |\n"
                 "| --- | --- | --: | --: | --: | --: | --: | --: | --: |\n");
    for (int i = 0; i < groups_count; i++) {
        struct group *g = &groups[i];
        double middle = 100.0 * expm1(adv_quantile(g->errors, g->count, 0.5));
        (void)printf("| %s | %s | %d | %.1f | %.1f | %.1f | %+.1f | %.0f | %.0f |\n", g->kind, g->name,
                     g->count, abs_quantile(g->errors, g->count, 0.5), abs_quantile(g->errors, g->count, 0.9),
                     abs_quantile(g->errors, g->count, 1.0), middle, 100.0 * g->covered / g->count,
                     100.0 * g->right / g->verdicts);
    }
}

/* fit_probability beside what the compiler took, and the mean of -ln(probability of its verdict). */
static void print_certainty(const struct compiled_rows *rows)
{
    static const double from[] = {0.0, 0.1, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 1.01};
    enum { BINS = sizeof from / sizeof *from - 1 };
    struct {
        int rows, taken;
        double said;
    } bins[BINS] = {{0}};
    double loss = 0.0;
    int judged = 0;
    for (int i = 0; i < rows->count; i++) {
        const struct compiled_row *row = &rows->rows[i];
        if (!row->judged) continue;
        const double said = row->row->estimate.fit_probability;
        int bin = 0;
        while (bin + 1 < BINS && said >= from[bin + 1]) bin++;
        bins[bin].rows++;
        bins[bin].taken += row->fits;
        bins[bin].said += said;
        loss -= log(fmax(row->fits ? said : 1.0 - said, 1e-6));
        judged++;
    }
    (void)printf("\n## How sure a plan fits\n\n| fit_probability from | rows | on average %% | the compiler "
                 "took %% |\n| --: | --: | --: | --: |\n");
    for (int bin = 0; bin < BINS; bin++)
        if (bins[bin].rows)
            (void)printf("| %g | %d | %.1f | %.1f |\n", from[bin], bins[bin].rows,
                         100.0 * bins[bin].said / bins[bin].rows, 100.0 * bins[bin].taken / bins[bin].rows);
    (void)printf("\nLog loss of the verdicts: %.4f.\n", loss / judged);
}

/* Whether stacks of [tokens, emb] are copied where adv_memory_turns_emb says so. */
static void print_copies(struct compiled_rows *rows, const struct adv_catalog *catalog)
{
    int counts[2][2][2] = {{{0}}}, right = 0, shown = 0; /* by windowed, said, done */
    for (int i = 0; i < rows->count; i++) {
        struct compiled_row *row = &rows->rows[i];
        if (!row->judged) continue;
        const struct compiled_turn turn =
            compiled_row_turn(row, &adv_catalog_chip(catalog, row->row->cluster.chip.name)->constants);
        if (!turn.shown) continue;
        counts[turn.windowed][turn.says][turn.does]++;
        right += turn.says == turn.does;
        shown++;
    }
    (void)printf("\n## Stacks of [tokens, emb] that are copied whole beside transfers\n\n| weights | "
                 "layouts | steps | copied |\n| --- | --- | --: | --: |\n");
    for (int windowed = 0; windowed < 2; windowed++)
        for (int says = 0; says < 2; says++)
            (void)printf("| %s | %s | %d | %d |\n", windowed ? "windowed einsums" : "gathered whole",
                         says ? "unlike" : "alike", counts[windowed][says][0] + counts[windowed][says][1],
                         counts[windowed][says][1]);
    (void)printf("\nCopies as the layouts say: %.3f of %d steps.\n", (double)right / shown, shown);
}

/* One line of what was predicted of drawn rows when nothing had been fitted to them: first plans of jobs
 * (rank 1), or configurations that nobody advised (no rank). */
static void print_drawn_kind(const struct compiled_rows *rows, const char *kind, int rank)
{
    static double errors[ROWS_MAX];
    double sum = 0.0;
    int count = 0, taken = 0;
    for (int i = 0; i < rows->count && count < ROWS_MAX; i++) {
        const struct compiled_row *row = &rows->rows[i];
        if (!row->drawn || isnan(row->need_bytes)) continue;
        if (json_integer_value(json_object_get(row->drawn, "rank")) != rank) continue;
        const double said = json_number_value(json_object_get(row->drawn, "predicted_bytes_per_device"));
        sum += json_number_value(json_object_get(row->drawn, "fit_probability"));
        taken += row->fits;
        errors[count++] = log(said / row->need_bytes);
    }
    if (count > 0)
        (void)printf("| %s | %d | %d | %.1f | %.1f | %.1f | %.1f |\n", kind, count, taken, sum,
                     abs_quantile(errors, count, 0.5), abs_quantile(errors, count, 0.9),
                     abs_quantile(errors, count, 1.0));
}

static void print_drawn(const struct compiled_rows *rows)
{
    (void)printf("\n## As predicted before it was compiled\n\nDrawn at random (`cases.py plans`, "
                 "`cases.py configurations`), by what the engine said before anything was fitted to it.\n\n"
                 "| drawn | rows | the compiler took | expected | median %% | p90 %% | max %% |\n"
                 "| --- | --: | --: | --: | --: | --: | --: |\n");
    print_drawn_kind(rows, "first plans of jobs", 1);
    print_drawn_kind(rows, "configurations nobody advised", 0);
}

static int by_error(const void *a, const void *b)
{
    const struct compiled_row *x = a, *y = b;
    double left = fabs(x->error_log), right = fabs(y->error_log);
    return left != right ? (left < right ? 1 : -1) : strcmp(x->row->id, y->row->id);
}

static void print_worst(struct compiled_rows *rows)
{
    static struct compiled_row sorted[ROWS_MAX];
    int count = 0;
    for (int i = 0; i < rows->count && count < ROWS_MAX; i++)
        if (rows->rows[i].judged) sorted[count++] = rows->rows[i];
    qsort(sorted, (size_t)count, sizeof *sorted, by_error);
    (void)printf("\n## Worst rows\n\n| row | compiled GB | predicted GB | error %% |\n| --- "
                 "| --: | --: | --: |\n");
    for (int i = 0; i < count && i < WORST; i++)
        (void)printf("| %s | %.2f | %.2f | %+.1f |\n", sorted[i].row->id, sorted[i].need_bytes * 1e-9,
                     sorted[i].predicted_bytes * 1e-9, 100.0 * expm1(sorted[i].error_log));
}

static void print_refusals(const struct compiled_rows *rows)
{
    int judged = 0, refused = 0, unknown = 0;
    for (int i = 0; i < rows->count; i++) {
        judged += rows->rows[i].judged;
        if (isnan(rows->rows[i].need_bytes))
            refused++;
        else if (!rows->rows[i].judged)
            unknown++;
    }
    (void)printf(
        "\n%d rows are judged; %d were refused by MaxText itself, %d the engine does not estimate.\n", judged,
        refused, unknown);
}

static int explain(const struct compiled_rows *rows, const char *id)
{
    for (int i = 0; i < rows->count; i++) {
        const struct compiled_row *row = &rows->rows[i];
        if (strcmp(row->row->id, id) != 0 || !row->judged) continue;
        (void)printf("%s: compiled %.3f GB, predicted %.3f GB (%+.1f %%)\n", id, row->need_bytes * 1e-9,
                     row->predicted_bytes * 1e-9, 100.0 * expm1(row->error_log));
        (void)printf("\nours\n");
        for (int p = 0; p < row->row->ledger.memory_count; p++) {
            const struct adv_memory_part *part = &row->row->ledger.memory[p];
            (void)printf("  %10.1f MB %-9s %s\n", part->bytes_per_device * 1e-6, adv_memory_at_name(part->at),
                         part->name);
        }
        const json_t *peak = json_object_get(row->compiled, "peak_moment");
        (void)printf("\nthe compiler's, at its peak (%s), beside %.1f MB of arguments\n",
                     json_is_string(peak) ? json_string_value(peak) : "unknown", row->argument_bytes * 1e-6);
        size_t index;
        json_t *buffer;
        json_array_foreach(json_object_get(row->compiled, "buffers_at_peak"), index, buffer)(void)
            printf("  %10.1f MB %2d x %-28s %s\n", json_number_value(json_object_get(buffer, "bytes")) * 1e-6,
                   (int)json_integer_value(json_object_get(buffer, "count")),
                   json_string_value(json_object_get(buffer, "shape")),
                   json_string_value(json_object_get(buffer, "operation")));
        return 0;
    }
    (void)fprintf(stderr, "no judged row %s\n", id);
    return 1;
}

int main(int argc, char **argv)
{
    adv_err err;
    adv_err_init(&err);
    struct adv_catalog *catalog = adv_catalog_load(NULL, &err);
    bool explains = argc > 2 && strcmp(argv[1], "--explain") == 0;
    int first = explains ? 3 : 1;
    if (!catalog || argc <= first) return 2;
    struct compiled_rows rows = compiled_rows_load(catalog, argv + first, argc - first);
    judge(&rows, catalog);
    if (explains) return explain(&rows, argv[2]);
    (void)printf(
        "# Memory beside the real compiler\n\nWritten by `make memory-accuracy-update` from "
        "`tests/compile/truth`: steps "
        "compiled with the releases of `server/verifier/versions.json`, without a TPU. Errors are |predicted "
        "/ "
        "compiled - 1|. The counts of "
        "`memory_constants.json` are fitted on these rows. `fits` is the answer's: true for tight plans "
        "too.\n\n");
    print_groups();
    print_certainty(&rows);
    print_drawn(&rows);
    print_worst(&rows);
    print_copies(&rows, catalog);
    print_refusals(&rows);
    adv_catalog_free(catalog);
    return 0;
}

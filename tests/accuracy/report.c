#include "tests/accuracy/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/accuracy/spread.h"

enum { ROWS_MAX = 1024, WORST = 12, TERMS_SHOWN = 7 };

int report_errors(const double *errors, const bool *keep, int count, double *median, double *p90, double *max)
{
    double absolute[ROWS_MAX];
    int n = 0;
    for (int i = 0; i < count && n < ROWS_MAX; i++)
        if (keep[i] && !isnan(errors[i])) absolute[n++] = fabs(errors[i]);
    *median = adv_quantile(absolute, n, 0.5);
    *p90 = adv_quantile(absolute, n, 0.9);
    *max = adv_quantile(absolute, n, 1.0);
    return n;
}

static void line(FILE *out, const char *name, const struct fit *fit, const double *left_out, const bool *keep)
{
    double in_sample[ROWS_MAX];
    for (int i = 0; i < fit->rows_count; i++) in_sample[i] = fit->rows[i].error_frac;
    double median, p90, max, left_median, left_p90, left_max;
    int n = report_errors(in_sample, keep, fit->rows_count, &median, &p90, &max);
    (void)report_errors(left_out, keep, fit->rows_count, &left_median, &left_p90, &left_max);
    struct adv_accuracy accuracy = adv_accuracy_of(fit->rows, fit->rows_count, keep);
    int covered = 0, left = 0;
    for (int i = 0; i < fit->rows_count; i++) {
        if (!keep[i] || isnan(left_out[i])) continue;
        covered += spread_covers(&fit->rows[i], left_out[i]);
        left++;
    }
    if (n == 0) return;
    (void)fprintf(out, "| %s | %d | %.1f | %.1f | %.1f | %+.1f | %.1f | %.1f | %.1f | %.0f | ±%.0f |\n", name,
                  n, 100.0 * median, 100.0 * p90, 100.0 * max, 100.0 * accuracy.bias_frac,
                  100.0 * left_median, 100.0 * left_p90, 100.0 * left_max, 100.0 * covered / fmax(left, 1),
                  100.0 * accuracy.interval_half_width_frac);
}

static void head(FILE *out, const char *what)
{
    (void)fprintf(out,
                  "\n| %s | rows | median | p90 | max | bias | left out: median | p90 | max | inside the "
                  "interval | interval |\n"
                  "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n",
                  what);
}

static const char *row_chip(const struct adv_measurement *row)
{
    return row->cluster.chip.name;
}

static const char *row_family(const struct adv_measurement *row)
{
    return row->family;
}

static const char *row_format(const struct adv_measurement *row)
{
    return row->format;
}

/* The year whose software ran. */
static const char *row_year(const struct adv_measurement *row)
{
    static const char *const years[] = {"2023", "2024", "2025", "2026"};
    const int last = (int)(sizeof years / sizeof *years) - 1;
    const double date = row->plan.family.software_date;
    return isnan(date) ? "unknown" : years[(int)fmin(fmax(date - 2023.0, 0.0), last)];
}

/* One line for each distinct value of `key`, in order of first appearance. */
static void groups(FILE *out, const char *what, const struct fit *fit, const double *left_out,
                   const char *(*key)(const struct adv_measurement *))
{
    head(out, what);
    for (int i = 0; i < fit->rows_count; i++) {
        bool first = true;
        for (int j = 0; j < i; j++) first = first && strcmp(key(&fit->rows[i]), key(&fit->rows[j])) != 0;
        if (!first) continue;
        bool keep[ROWS_MAX];
        for (int j = 0; j < fit->rows_count; j++)
            keep[j] = strcmp(key(&fit->rows[i]), key(&fit->rows[j])) == 0;
        line(out, key(&fit->rows[i]), fit, left_out, keep);
    }
}

static int by_exposed(const void *a, const void *b)
{
    double x = ((const struct adv_term *)a)->exposed_seconds;
    double y = ((const struct adv_term *)b)->exposed_seconds;
    return (x < y) - (x > y);
}

/* The physics known to be missing where the row whose id starts like this resists:
 * tests/accuracy/resisting.json.
 */
static const char *missing_in(const json_t *accounts, const char *id)
{
    size_t index;
    json_t *account;
    json_array_foreach(accounts, index, account)
    {
        const char *rows = json_string_value(json_object_get(account, "rows"));
        if (rows && strncmp(id, rows, strlen(rows)) == 0)
            return json_string_value(json_object_get(account, "missing"));
    }
    return "No account of it yet.";
}

static void worst(FILE *out, const struct fit *fit, const double *left_out, const json_t *accounts)
{
    bool shown[ROWS_MAX] = {false};
    (void)fprintf(out, "\n## Rows that resist\n\nThe largest left-out errors, with the largest terms of "
                       "their ledger (seconds exposed).\n\n"
                       "| row | measured s | predicted s | error | left out | ledger | what is missing |\n"
                       "| --- | --: | --: | --: | --: | --- | --- |\n");
    for (int k = 0; k < WORST; k++) {
        int at = -1;
        for (int i = 0; i < fit->rows_count; i++)
            if (!shown[i] && !isnan(left_out[i]) && (at < 0 || fabs(left_out[i]) > fabs(left_out[at])))
                at = i;
        if (at < 0) return;
        shown[at] = true;
        const struct adv_measurement *row = &fit->rows[at];
        struct adv_ledger ledger = row->ledger;
        qsort(ledger.terms, (size_t)ledger.terms_count, sizeof ledger.terms[0], by_exposed);
        (void)fprintf(out, "| %s | %.3f | %.3f | %+.1f %% | %+.1f %% |", row->id, row->measured_step_time_s,
                      row->estimate.step_time_s, 100.0 * row->error_frac, 100.0 * left_out[at]);
        for (int t = 0; t < ledger.terms_count && t < TERMS_SHOWN; t++)
            (void)fprintf(out, "%s%s %.2f", t ? ", " : " ", ledger.terms[t].name,
                          ledger.terms[t].exposed_seconds);
        (void)fprintf(out, " | %s |\n", missing_in(accounts, row->id));
    }
}

void report_write(FILE *out, const struct fit *fit, const double *left_out, const json_t *accounts)
{
    bool all[ROWS_MAX];
    for (int i = 0; i < fit->rows_count; i++) all[i] = true;
    struct adv_accuracy accuracy = adv_accuracy_of(fit->rows, fit->rows_count, NULL);
    struct adv_pair_order ranking = adv_pair_order_of(fit->rows, fit->rows_count, 0.03);
    (void)fprintf(out,
                  "# Accuracy of predicted step times\n\nGenerated by `make accuracy` from "
                  "tests/accuracy/e2e.json; do not edit. "
                  "Errors are |predicted / measured - 1| in percent.\n\"Left out\" repeats the whole "
                  "fit without the row's model, on all chips, "
                  "and predicts it then: at best what a user with a new model sees, because terms and "
                  "priors were revised "
                  "while looking at these rows. Memory verdicts are on the rows they were set on, and the "
                  "intervals, which hold the left-out predictions, are half as wide again as those errors "
                  "asked for, up to 14 %%.\n");
    head(out, "all");
    line(out, "all chips", fit, left_out, all);
    (void)fprintf(out,
                  "\n%d of %d rows that ran are predicted to fit or to be tight. Of %d pairs of plans of one "
                  "model and chip whose measured times per "
                  "token differ by more than 3 %%, %d are ordered right.\n",
                  accuracy.fits_count, fit->rows_count, ranking.pairs_count, ranking.right_count);
    groups(out, "chip", fit, left_out, row_chip);
    groups(out, "model", fit, left_out, row_family);
    groups(out, "format", fit, left_out, row_format);
    groups(out, "year of the result", fit, left_out, row_year);
    worst(out, fit, left_out, accounts);
    (void)fprintf(
        out,
        "\n## Fitted constants\n\nStandard errors and sources: engine/catalog/data/step_constants.json.\n\n"
        "| constant | chips | value | prior |\n| --- | --- | --: | --: |\n");
    for (int p = 0; p < parameters_count; p++) {
        (void)fprintf(out, "| %s |", parameters[p].constant);
        for (int c = 0; c < PARAMETER_CHIPS && parameters[p].chips[c]; c++)
            (void)fprintf(out, " %s", parameters[p].chips[c]);
        (void)fprintf(out, " | %.4g | %.4g |\n", fit->values[p], parameters[p].prior);
    }
}

void report_picture(FILE *out, const struct fit *fit)
{
    static const char *const colours[] = {"#1b6ef3", "#d9480f", "#2b8a3e", "#862e9c", "#5c940d"};
    const double size = 560.0, margin = 50.0;
    const double low = log10(0.4), high = log10(150.0);
    (void)fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 660 640\" "
                       "font-family=\"sans-serif\" font-size=\"12\">\n"
                       "<rect width=\"660\" height=\"640\" fill=\"white\"/>\n");
    for (int decade = 0; decade <= 2; decade++) {
        double at = (decade - low) / (high - low) * size;
        (void)fprintf(out,
                      "<path d=\"M%.1f %.1fV%.1fM%.1f %.1fH%.1f\" stroke=\"#ddd\"/><text x=\"%.1f\" "
                      "y=\"%.1f\">%g s</text><text x=\"8\" y=\"%.1f\">%g s</text>\n",
                      margin + at, margin, margin + size, margin, margin + size - at, margin + size,
                      margin + at - 8.0, margin + size + 16.0, pow(10.0, decade), margin + size - at + 4.0,
                      pow(10.0, decade));
    }
    (void)fprintf(out,
                  "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#999\"/><text x=\"250\" y=\"636\">measured step "
                  "time</text>"
                  "<text x=\"60\" y=\"30\">predicted step time against measured, log scales</text>\n",
                  margin, margin + size, margin + size, margin);
    for (int i = 0; i < fit->rows_count; i++) {
        const struct adv_measurement *row = &fit->rows[i];
        if (isnan(row->error_frac)) continue;
        int colour = 0;
        for (int c = 0; c < fit->chips_count; c++)
            if (strcmp(fit->chips[c].chip, row_chip(row)) == 0) colour = c % 5;
        double x = margin + (log10(row->measured_step_time_s) - low) / (high - low) * size;
        double y = margin + size - (log10(row->estimate.step_time_s) - low) / (high - low) * size;
        (void)fprintf(out,
                      "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\" fill-opacity=\"0.6\"><title>%s: "
                      "%.3g s, predicted %.3g s</title></circle>\n",
                      x, y, colours[colour], row->id, row->measured_step_time_s, row->estimate.step_time_s);
    }
    for (int c = 0; c < fit->chips_count && c < 5; c++)
        (void)fprintf(out,
                      "<circle cx=\"70\" cy=\"%d\" r=\"5\" fill=\"%s\"/><text x=\"82\" y=\"%d\">%s</text>\n",
                      60 + 18 * c, colours[c], 64 + 18 * c, fit->chips[c].chip);
    (void)fprintf(out, "</svg>\n");
}

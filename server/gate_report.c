/* gate_report.c: a verdict as JSON, Markdown and JUnit. */
#include "server/gate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "server/json_text.h"

#define REPORT_LIMIT_BYTES (256u * 1024u) /* of one form: two dozen lines, with names of clients' */

void adv_gate_print_engine(const struct adv_gate_numbers *numbers, struct adv_text *text)
{
    adv_json_text_raw(text, "engine", "{");
    adv_json_text_string(text, "version", numbers->engine_version);
    adv_json_text_string(text, "catalog_hash", numbers->catalog_hash);
    adv_json_text_string(text, "calibration", numbers->calibration);
    adv_text_append(text, "}");
}

static void print_numbers(struct adv_text *text, const struct adv_gate_numbers *numbers)
{
    adv_json_text_number(text, "step_time_s", numbers->step_time_s);
    adv_json_text_number(text, "step_time_low_s", numbers->step_time_low_s);
    adv_json_text_number(text, "step_time_high_s", numbers->step_time_high_s);
    adv_json_text_number(text, "tokens_per_step", numbers->tokens_per_step);
    adv_json_text_number(text, "time_per_token_s", numbers->step_time_s / numbers->tokens_per_step);
    adv_json_text_number(text, "tokens_per_s_per_chip", numbers->tokens_per_s_per_chip);
    adv_json_text_number(text, "usd_per_billion_tokens", numbers->usd_per_billion_tokens);
    adv_json_text_number(text, "hbm_bytes_per_device", numbers->hbm_bytes_per_device);
    adv_json_text_bool(text, "fits", numbers->fits);
    adv_json_text_string(text, "fit_verdict", numbers->fit_verdict);
    adv_json_text_number(text, "fit_probability", numbers->fit_probability);
    adv_gate_print_engine(numbers, text);
}

static void print_side(struct adv_text *text, const char *name, const struct adv_gate_side *side)
{
    adv_json_text_raw(text, name, "{");
    adv_json_text_string(text, "run_id", side->run_id[0] ? side->run_id : NULL);
    adv_json_text_string(text, "model", side->now.model);
    adv_json_text_number(text, "sequence_length", side->now.sequence_tokens);
    print_numbers(text, &side->now);
    adv_json_text_string(text, "compiler_verdict", side->word.known ? side->word.verdict : NULL);
    adv_json_text_number(text, "compiled_hbm_bytes_per_device",
                         side->word.known ? side->word.compiled_hbm_bytes_per_device : (double)NAN);
    adv_json_text_string(text, "compiler_versions", side->word.known ? side->word.versions : NULL);
    adv_json_text_bool(text, "reevaluated", side->reevaluated);
    adv_json_text_raw(text, "as_stored", side->reevaluated ? "{" : NULL);
    if (side->reevaluated) {
        print_numbers(text, &side->stored);
        adv_text_append(text, "}");
    }
    adv_text_append(text, "}");
}

static void print_said(struct adv_text *text, const char *name, const struct adv_gate_said *list, int count)
{
    adv_json_text_raw(text, name, "[");
    for (int i = 0; i < count; i++) {
        adv_text_append(text, i ? ",{" : "{");
        adv_json_text_string(text, "code", list[i].code);
        adv_json_text_string(text, "detail", list[i].detail);
        adv_text_append(text, "}");
    }
    adv_text_append(text, "]");
}

/* The other forms of the report, as strings. */
static void print_reports(const struct adv_gate_report *report, struct adv_text *text)
{
    struct adv_text markdown = adv_text_empty(REPORT_LIMIT_BYTES), junit;
    adv_text_init(&junit, REPORT_LIMIT_BYTES);
    adv_gate_print_markdown(report, &markdown);
    adv_gate_print_junit(report, &junit);
    adv_json_text_raw(text, "reports", "{");
    adv_json_text_string(text, "markdown", markdown.overflow ? "" : markdown.data);
    adv_json_text_string(text, "junit", junit.overflow ? "" : junit.data);
    adv_text_append(text, "}");
    adv_text_free(&markdown);
    adv_text_free(&junit);
}

void adv_gate_print_json(const struct adv_gate_report *report, struct adv_text *text)
{
    const struct adv_gate_verdict *verdict = report->verdict;
    adv_text_append(text, "{");
    adv_json_text_string(text, "verdict", verdict->pass ? "pass" : "fail");
    print_said(text, "reasons", verdict->reasons, verdict->reasons_count);
    print_said(text, "notes", verdict->notes, verdict->notes_count);
    print_side(text, "baseline", report->baseline);
    print_side(text, "candidate", report->candidate);
    for (int i = 0; i < ADV_GATE_LIMITS; i++) {
        static const char *const names[] = {
            [ADV_GATE_STEP_TIME] = "step_time_increase_frac",
            [ADV_GATE_TIME_PER_TOKEN] = "time_per_token_increase_frac",
            [ADV_GATE_TOKENS_PER_CHIP] = "tokens_per_s_per_chip_increase_frac",
            [ADV_GATE_USD_PER_TOKEN] = "usd_per_token_increase_frac",
            [ADV_GATE_HBM] = "hbm_increase_frac",
        };
        adv_json_text_number(text, names[i], verdict->change_frac[i]);
    }
    adv_json_text_raw(text, "limits", "{");
    for (int i = 0; i < ADV_GATE_LIMITS; i++)
        adv_json_text_number(text, adv_gate_limit_member((enum adv_gate_limit)i), report->limits->frac[i]);
    adv_json_text_bool(text, "must_fit", report->limits->must_fit);
    adv_json_text_bool(text, "must_compile", report->limits->must_compile);
    adv_text_append(text, "}");
    if (report->reports) print_reports(report, text);
    adv_json_text_raw(text, "compare", report->compare);
    adv_gate_print_engine(&report->baseline->now, text); /* the candidate's, too */
    adv_text_append(text, "}");
}

static void print_row(struct adv_text *text, const char *title, const char *unit, double from, double to)
{
    if (isnan(from) && isnan(to)) return;
    adv_text_format(text, "| %s | %.5g %s | %.5g %s | %+.2f %% |\n", title, from, unit, to, unit,
                    100.0 * (to / from - 1.0));
}

/* The real compiler's side, where it was asked. */
static void print_words(const struct adv_gate_report *report, struct adv_text *text)
{
    const struct adv_verification_word *from = &report->baseline->word, *to = &report->candidate->word;
    if (!from->known && !to->known) return;
    adv_text_format(text, "| compiler's verdict | %s | %s | |\n", from->known ? from->verdict : "not asked",
                    to->known ? to->verdict : "not asked");
    const double before = from->known ? from->compiled_hbm_bytes_per_device : (double)NAN;
    const double after = to->known ? to->compiled_hbm_bytes_per_device : (double)NAN;
    if (isfinite(before) && isfinite(after))
        print_row(text, "compiled HBM per device", "GiB", before / ADV_GIB, after / ADV_GIB);
    else if (isfinite(after))
        adv_text_format(text, "| compiled HBM per device | | %.5g GiB | |\n", after / ADV_GIB);
}

static const char *fit_name(const struct adv_gate_numbers *numbers)
{
    return !numbers->fits ? "no" : adv_gate_is_tight(numbers) ? "tight" : "yes";
}

/* With what it was compared: who reads the report has not made the call. */
static void print_baseline(const struct adv_gate_side *baseline, struct adv_text *text)
{
    const struct adv_gate_numbers *from = &baseline->now;
    adv_text_format(text, "Against run %s, stored at %s", baseline->run_id, baseline->created_at);
    if (baseline->git_ref[0]) adv_text_append(text, ", git_ref ");
    adv_markdown_text(text, baseline->git_ref, ADV_MARKDOWN_MARKS);
    adv_text_append(text, ": ");
    adv_markdown_text(text, from->model, ADV_MARKDOWN_MARKS);
    adv_text_format(text, " on %d x %s %s\n\n", from->slices, from->chip, from->topology);
}

void adv_gate_print_markdown(const struct adv_gate_report *report, struct adv_text *text)
{
    const struct adv_gate_verdict *verdict = report->verdict;
    const struct adv_gate_numbers *from = &report->baseline->now, *to = &report->candidate->now;
    adv_text_format(text, "## TPU Advisor: %s\n\n", verdict->pass ? "pass" : "fail");
    print_baseline(report->baseline, text);
    for (int i = 0; i < verdict->reasons_count + verdict->notes_count; i++) {
        const int note = i - verdict->reasons_count;
        adv_text_append(text, note < 0 ? "- " : "- Note: ");
        adv_markdown_text(text, note < 0 ? verdict->reasons[i].detail : verdict->notes[note].detail,
                          ADV_MARKDOWN_MARKS);
        adv_text_append(text, "\n");
    }
    if (verdict->reasons_count + verdict->notes_count) adv_text_append(text, "\n");
    adv_text_append(text, "| | baseline | candidate | change |\n| --- | ---: | ---: | ---: |\n");
    print_row(text, "time per million tokens", "s", 1e6 * from->step_time_s / from->tokens_per_step,
              1e6 * to->step_time_s / to->tokens_per_step);
    print_row(text, "tokens per second and chip", "", from->tokens_per_s_per_chip, to->tokens_per_s_per_chip);
    print_row(text, "dollars per billion tokens", "", from->usd_per_billion_tokens,
              to->usd_per_billion_tokens);
    print_row(text, "step time", "s", from->step_time_s, to->step_time_s);
    print_row(text, "tokens per step", "", from->tokens_per_step, to->tokens_per_step);
    print_row(text, "HBM per device", "GiB", from->hbm_bytes_per_device / ADV_GIB,
              to->hbm_bytes_per_device / ADV_GIB);
    adv_text_format(text, "| fits | %s | %s | |\n| fit probability | %.3g | %.3g | |\n", fit_name(from),
                    fit_name(to), from->fit_probability, to->fit_probability);
    print_words(report, text);
}

struct junit_case {
    const char *code, *name;
    bool checked;
};

static void print_case(const struct junit_case *one, const struct adv_gate_verdict *verdict,
                       struct adv_text *text)
{
    if (!one->checked) return;
    adv_text_format(text, "  <testcase classname=\"check\" name=\"%s\">", one->name);
    for (int r = 0; r < verdict->reasons_count; r++) {
        if (strcmp(verdict->reasons[r].code, one->code) != 0) continue;
        adv_text_append(text, "<failure message=\"");
        adv_xml_text(text, verdict->reasons[r].detail);
        adv_text_append(text, "\"/>");
    }
    adv_text_append(text, "</testcase>\n");
}

void adv_gate_print_junit(const struct adv_gate_report *report, struct adv_text *text)
{
    static const char *const names[] = {
        [ADV_GATE_STEP_TIME] = "the step is not slower than allowed",
        [ADV_GATE_TIME_PER_TOKEN] = "a token takes no more time than allowed",
        [ADV_GATE_TOKENS_PER_CHIP] = "a chip trains no fewer tokens than allowed",
        [ADV_GATE_USD_PER_TOKEN] = "a token costs no more than allowed",
        [ADV_GATE_HBM] = "memory has not grown more than allowed",
    };
    const struct adv_gate_verdict *verdict = report->verdict;
    struct junit_case cases[ADV_GATE_REASONS] = {
        {"does_not_fit", "the candidate fits in memory", report->limits->must_fit},
        {"kernel_over_vmem", "the candidate's kernels fit in VMEM", report->limits->must_fit},
        {"does_not_compile", "the real compiler takes the candidate", report->limits->must_compile}};
    int checked = 2 * report->limits->must_fit + report->limits->must_compile;
    for (int i = 0; i < ADV_GATE_LIMITS; i++) {
        cases[i + 3] = (struct junit_case){adv_gate_limit_code((enum adv_gate_limit)i), names[i],
                                           !isnan(report->limits->frac[i])};
        checked += cases[i + 3].checked;
    }
    adv_text_format(text,
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"tpu-advisor\" "
                    "tests=\"%d\" failures=\"%d\">\n",
                    checked, verdict->reasons_count);
    for (int i = 0; i < ADV_GATE_REASONS; i++) print_case(&cases[i], verdict, text);
    if (verdict->notes_count) adv_text_append(text, "  <system-out>");
    for (int i = 0; i < verdict->notes_count; i++) {
        adv_xml_text(text, verdict->notes[i].detail);
        adv_text_append(text, "\n");
    }
    adv_text_append(text, verdict->notes_count ? "</system-out>\n</testsuite>\n" : "</testsuite>\n");
}

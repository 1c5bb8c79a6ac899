#include "server/gate.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "server/json_text.h"

#define SLACK_FRAC 1e-12 /* rounding of a quotient must not fail a candidate that equals its limit */

static void add_reason(struct adv_gate_verdict *verdict, const char *code, const char *format, ...)
    ADV_PRINTF(3, 4);
static void add_reason(struct adv_gate_verdict *verdict, const char *code, const char *format, ...)
{
    int index = verdict->reasons_count++;
    verdict->pass = false;
    verdict->reasons[index].code = code;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(verdict->reasons[index].detail, sizeof verdict->reasons[index].detail, format, args);
    va_end(args);
}

static bool exceeds(double increase_frac, double limit_frac)
{
    return !isnan(limit_frac) && !(increase_frac <= limit_frac + SLACK_FRAC);
}

void adv_gate_judge(const struct adv_gate_side *baseline, const struct adv_gate_side *candidate,
                    const struct adv_gate_limits *limits, struct adv_gate_verdict *verdict)
{
    memset(verdict, 0, sizeof *verdict);
    verdict->pass = true;
    verdict->step_time_increase_frac = candidate->step_time_s / baseline->step_time_s - 1.0;
    verdict->hbm_increase_frac = candidate->hbm_bytes_per_device / baseline->hbm_bytes_per_device - 1.0;
    if (limits->must_fit && !candidate->fits)
        add_reason(verdict, "does_not_fit", "the candidate needs %.2f GiB per device and does not fit",
                   candidate->hbm_bytes_per_device / ADV_GIB);
    if (exceeds(verdict->step_time_increase_frac, limits->step_time_increase_frac))
        add_reason(verdict, "step_time",
                   "the step takes %.4g s instead of %.4g s, %+.2f %%; the limit is %+.2f %%",
                   candidate->step_time_s, baseline->step_time_s, 100.0 * verdict->step_time_increase_frac,
                   100.0 * limits->step_time_increase_frac);
    if (exceeds(verdict->hbm_increase_frac, limits->hbm_increase_frac))
        add_reason(verdict, "hbm",
                   "a device holds %.2f GiB instead of %.2f GiB, %+.2f %%; the limit is %+.2f %%",
                   candidate->hbm_bytes_per_device / ADV_GIB, baseline->hbm_bytes_per_device / ADV_GIB,
                   100.0 * verdict->hbm_increase_frac, 100.0 * limits->hbm_increase_frac);
}

static void print_number(struct adv_text *text, const char *name, double value)
{
    char number[32];
    (void)snprintf(number, sizeof number, "%.12g", value);
    adv_json_text_raw(text, name, isfinite(value) ? number : NULL);
}

static void print_side(struct adv_text *text, const char *name, const struct adv_gate_side *side)
{
    adv_json_text_raw(text, name, "{");
    adv_json_text_string(text, "run_id", side->run_id[0] ? side->run_id : NULL);
    print_number(text, "step_time_s", side->step_time_s);
    print_number(text, "hbm_bytes_per_device", side->hbm_bytes_per_device);
    adv_json_text_raw(text, "fits", side->fits ? "true" : "false");
    adv_text_append(text, "}");
}

void adv_gate_print_json(const struct adv_gate_side *baseline, const struct adv_gate_side *candidate,
                         const struct adv_gate_limits *limits, const struct adv_gate_verdict *verdict,
                         const char *compare, struct adv_text *text)
{
    adv_text_append(text, "{");
    adv_json_text_string(text, "verdict", verdict->pass ? "pass" : "fail");
    adv_json_text_raw(text, "reasons", "[");
    for (int i = 0; i < verdict->reasons_count; i++) {
        adv_text_append(text, i ? ",{" : "{");
        adv_json_text_string(text, "code", verdict->reasons[i].code);
        adv_json_text_string(text, "detail", verdict->reasons[i].detail);
        adv_text_append(text, "}");
    }
    adv_text_append(text, "]");
    print_side(text, "baseline", baseline);
    print_side(text, "candidate", candidate);
    print_number(text, "step_time_increase_frac", verdict->step_time_increase_frac);
    print_number(text, "hbm_increase_frac", verdict->hbm_increase_frac);
    adv_json_text_raw(text, "limits", "{");
    print_number(text, "step_time_increase_frac", limits->step_time_increase_frac);
    print_number(text, "hbm_increase_frac", limits->hbm_increase_frac);
    adv_json_text_raw(text, "must_fit", limits->must_fit ? "true" : "false");
    adv_text_append(text, "}");
    adv_json_text_raw(text, "compare", compare);
    adv_text_append(text, "}");
}

void adv_gate_print_markdown(const struct adv_gate_side *baseline, const struct adv_gate_side *candidate,
                             const struct adv_gate_verdict *verdict, struct adv_text *text)
{
    adv_text_format(text, "## TPU Advisor: %s\n\n", verdict->pass ? "pass" : "fail");
    for (int i = 0; i < verdict->reasons_count; i++)
        adv_text_format(text, "- %s\n", verdict->reasons[i].detail);
    if (verdict->reasons_count) adv_text_append(text, "\n");
    adv_text_append(text, "| | baseline | candidate | change |\n| --- | ---: | ---: | ---: |\n");
    adv_text_format(text, "| step time | %.4g s | %.4g s | %+.2f %% |\n", baseline->step_time_s,
                    candidate->step_time_s, 100.0 * verdict->step_time_increase_frac);
    adv_text_format(text, "| HBM per device | %.2f GiB | %.2f GiB | %+.2f %% |\n",
                    baseline->hbm_bytes_per_device / ADV_GIB, candidate->hbm_bytes_per_device / ADV_GIB,
                    100.0 * verdict->hbm_increase_frac);
    adv_text_format(text, "| fits | %s | %s | |\n", baseline->fits ? "yes" : "no",
                    candidate->fits ? "yes" : "no");
}

void adv_gate_print_junit(const struct adv_gate_verdict *verdict, const struct adv_gate_limits *limits,
                          struct adv_text *text)
{
    const struct {
        const char *code, *name;
        bool checked;
    } cases[ADV_GATE_REASONS] = {
        {"does_not_fit", "the candidate fits in memory", limits->must_fit},
        {"step_time", "the step is not slower than allowed", !isnan(limits->step_time_increase_frac)},
        {"hbm", "memory has not grown more than allowed", !isnan(limits->hbm_increase_frac)},
    };
    int checked = 0;
    for (int i = 0; i < ADV_GATE_REASONS; i++) checked += cases[i].checked;
    adv_text_format(text,
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"tpu-advisor\" "
                    "tests=\"%d\" failures=\"%d\">\n",
                    checked, verdict->reasons_count);
    for (int i = 0; i < ADV_GATE_REASONS; i++) {
        if (!cases[i].checked) continue;
        adv_text_format(text, "  <testcase classname=\"check\" name=\"%s\">", cases[i].name);
        for (int r = 0; r < verdict->reasons_count;
             r++) /* details are our own sentences: nothing to escape */
            if (strcmp(verdict->reasons[r].code, cases[i].code) == 0)
                adv_text_format(text, "<failure message=\"%s\"/>", verdict->reasons[r].detail);
        adv_text_append(text, "</testcase>\n");
    }
    adv_text_append(text, "</testsuite>\n");
}

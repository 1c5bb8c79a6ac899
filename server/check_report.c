#include "server/check_report.h"

#include <string.h>

#include "server/json_text.h"

static int count_passed(const struct adv_check_row *rows, int rows_count)
{
    int passed = 0;
    for (int i = 0; i < rows_count; i++) passed += rows[i].status == 0;
    return passed;
}

/* A file's name or a message in a heading or a list: nothing in it is markup. */
static void put_plain(struct adv_text *text, const char *string)
{
    for (const char *at = string ? string : ""; *at; at++) {
        const char character = (unsigned char)*at < ' ' ? ' ' : *at;
        if (strchr("|\\<>`*_[]#", *at)) adv_text_append(text, "\\");
        adv_text_append_bytes(text, &character, 1);
    }
}

void adv_check_print_markdown(const struct adv_check_row *rows, int rows_count, struct adv_text *text)
{
    adv_text_format(text, "# TPU Advisor: %d of %d candidates pass\n", count_passed(rows, rows_count),
                    rows_count);
    for (int i = 0; i < rows_count; i++) {
        adv_text_append(text, "\n### ");
        put_plain(text, rows[i].file);
        adv_text_append(text, "\n\n");
        if (rows[i].answer.markdown) {
            adv_text_append(text, rows[i].answer.markdown);
            continue;
        }
        adv_text_append(text, rows[i].status == 3 ? "Not checked, the service is away: " : "Not checked: ");
        put_plain(text, rows[i].message);
        adv_text_append(text, "\n");
    }
}

static void put_attribute(struct adv_text *text, const char *string)
{
    for (const char *at = string ? string : ""; *at; at++) {
        const char character = (unsigned char)*at < ' ' || *at == 0x7f ? ' ' : *at;
        if (strchr("<>&\"", *at))
            adv_text_format(text, "&#%d;", *at);
        else
            adv_text_append_bytes(text, &character, 1);
    }
}

/* The service's suite, under the file's name: what follows `name="tpu-advisor"` in it. */
static void put_suite(struct adv_text *text, const struct adv_check_row *row)
{
    static const char start[] = "<testsuite name=\"tpu-advisor\"";
    const char *suite = row->answer.junit ? strstr(row->answer.junit, start) : NULL;
    adv_text_append(text, "<testsuite name=\"");
    put_attribute(text, row->file);
    if (suite) {
        adv_text_append(text, "\"");
        adv_text_append(text, suite + sizeof start - 1);
        return;
    }
    adv_text_append(text,
                    "\" tests=\"1\" failures=\"0\" errors=\"1\">\n  <testcase classname=\"check\" name=\"the "
                    "candidate is checked\"><error message=\"");
    put_attribute(text, row->message);
    adv_text_append(text, "\"/></testcase>\n</testsuite>\n");
}

void adv_check_print_junit(const struct adv_check_row *rows, int rows_count, struct adv_text *text)
{
    adv_text_append(text,
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tpu-advisor check\">\n");
    for (int i = 0; i < rows_count; i++) put_suite(text, &rows[i]);
    adv_text_append(text, "</testsuites>\n");
}

void adv_check_print_json(const struct adv_check_row *rows, int rows_count, struct adv_text *text)
{
    static const char *const states[] = {"pass", "fail", "bad_input", "away"};
    int worst = 0;
    for (int i = 0; i < rows_count; i++) worst = rows[i].status > worst ? rows[i].status : worst;
    adv_text_append(text, "{");
    adv_json_text_string(text, "verdict", worst == 0 ? "pass" : worst == 1 ? "fail" : "error");
    adv_json_text_raw(text, "checks", "[");
    for (int i = 0; i < rows_count; i++) {
        adv_text_append(text, i ? ",{" : "{");
        adv_json_text_string(text, "file", rows[i].file);
        adv_json_text_string(text, "status", states[rows[i].status]);
        if (rows[i].message) adv_json_text_string(text, "message", rows[i].message);
        adv_json_text_raw(text, "check", rows[i].answer.json);
        adv_text_append(text, "}");
    }
    adv_text_append(text, "]}\n");
}

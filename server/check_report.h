/* check_report.h: the report of several checks as one: Markdown, JUnit, JSON. */
#pragma once

#include "engine/base/text.h"
#include "engine/json/check_job.h"

#define ADV_LIMIT_REPORT_BYTES (256u * 1024u * 1024u)

struct adv_check_row {
    const char *file;
    int status; /* exit status of this candidate: 0 pass, 1 regression, 2 bad input, 3 away */
    struct adv_check_answer answer; /* json NULL: there is none, `message` says why */
    char *message;
};

void adv_check_print_markdown(const struct adv_check_row *rows, int rows_count, struct adv_text *text);
void adv_check_print_junit(const struct adv_check_row *rows, int rows_count, struct adv_text *text);
/* {"verdict": "pass"|"fail"|"error", "checks": [{"file", "status", "check": the answer | null, "message"?}]}
 */
void adv_check_print_json(const struct adv_check_row *rows, int rows_count, struct adv_text *text);

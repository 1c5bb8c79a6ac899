/* encode_lint.h: what lint found in a configuration, and the same as JSON (api.md, POST /v1/lint). */
#pragma once

#include "engine/json/encode_common.h"

enum adv_lint_severity { ADV_LINT_ERROR, ADV_LINT_WARNING, ADV_LINT_INFO };

struct adv_lint_finding {
    enum adv_lint_severity severity;
    const struct adv_finding *finding;
};

struct adv_lint_answer {
    bool valid;
    int count, not_shown_count;
    struct adv_lint_finding findings[2 * ADV_LIMIT_FINDINGS]; /* errors and notes */
};

/* {valid, findings: [{severity, pointer, code, detail, hint}], findings_not_shown, engine}; a new reference.
 */
json_t *adv_encode_lint(const struct adv_catalog *catalog, const struct adv_lint_answer *answer);

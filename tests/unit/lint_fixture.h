/* lint_fixture.h: linting texts in tests, with the answer's findings at hand. */
#pragma once

#include "engine/advise.h"
#include "tests/unit/decode_fixture.h"

/* The answer to a text, or NULL with findings in err. */
static inline json_t *lint_text(const char *text)
{
    struct adv_answer answer;
    forget();
    if (adv_answer_request(catalog, ADV_REQUEST_LINT, text, strlen(text), &answer, &err) != ADV_OK)
        return NULL;
    json_t *root = json_loads(answer.json, 0, NULL);
    adv_answer_free(&answer);
    return root;
}

/* The first finding at the pointer; NULL: there is none. */
static inline const json_t *finding_at(const json_t *answer, const char *pointer)
{
    json_t *findings = json_object_get(answer, "findings");
    for (size_t i = 0; i < json_array_size(findings); i++) {
        const json_t *finding = json_array_get(findings, i);
        if (strcmp(json_string_value(json_object_get(finding, "pointer")), pointer) == 0) return finding;
    }
    return NULL;
}

static inline void assert_finding(const json_t *answer, const char *pointer, const char *severity,
                                  const char *code)
{
    const json_t *finding = finding_at(answer, pointer);
    if (!finding) fail_msg("nothing is reported at %s", pointer);
    assert_string_equal(json_string_value(json_object_get(finding, "severity")), severity);
    assert_string_equal(json_string_value(json_object_get(finding, "code")), code);
}

static inline int errors_of(const json_t *answer)
{
    int count = 0;
    size_t index = 0;
    json_t *finding = NULL;
    json_array_foreach(json_object_get(answer, "findings"), index, finding) count +=
        strcmp(json_string_value(json_object_get(finding, "severity")), "error") == 0;
    return count;
}

/* check_job.h: a check as `tpu-advisor check` asks for it: a candidate's file becomes the body of POST
 * /v1/checks, and its answer is taken apart. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"

#define ADV_LIMIT_CHECK_WORDS 16

struct adv_check_spec {
    const char *baseline_run_id;                   /* or, when NULL, project and label */
    const char *baseline_project, *baseline_label; /* NUL-terminated */
    const char *stand_in_run_id; /* the run that stands in for that baseline, once it is known; may be NULL */
    const char *accelerator;     /* "v6e-256": for candidates that name no cluster; may be NULL */
    int limits_count, unlike_count;
    struct {
        const char *name;
        double frac;
    } limits[ADV_LIMIT_CHECK_WORDS];
    const char *unlike[ADV_LIMIT_CHECK_WORDS];
    const char *git_ref; /* of candidates that name none; may be NULL */
    int tags_count;
    const char *tags[ADV_LIMIT_CHECK_WORDS]; /* beside those that a candidate has */
    bool may_not_fit, must_compile;
    bool store; /* candidates become runs, of the baseline's project and label unless they name others */
};

/* `text`: an estimate request as JSON or YAML, or a MaxText configuration as JSON, YAML or a script; what a
 * configuration does not say comes from its own model_name and compile_topology, and from the spec. *body is
 * malloc'ed. ADV_E_SYNTAX, ADV_E_TOO_LARGE; ADV_E_INVALID: there is no model or no cluster. */
ADV_MUST_CHECK adv_code adv_check_body(const struct adv_check_spec *spec, const char *text, size_t text_bytes,
                                       char **body, adv_err *err);

struct adv_check_answer {
    bool pass;
    char *json;             /* the answer without the reports */
    char *markdown, *junit; /* all malloc'ed, see adv_check_answer_free */
    char *stand_in_run_id;  /* the baseline, where no run was set as it; else NULL */
};

/* false, and nothing to free: this is no answer of a check. */
ADV_MUST_CHECK bool adv_check_answer_read(const char *text, size_t text_bytes,
                                          struct adv_check_answer *answer);
void adv_check_answer_free(struct adv_check_answer *answer);

/* "detail; hint" of each error of a problem document, a line each, malloc'ed; NULL: it is none. */
char *adv_check_problem_lines(const char *text, size_t text_bytes);

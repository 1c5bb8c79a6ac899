/* answer_fixture.h: answers of the engine as JSON, on the embedded catalog. */
#pragma once

#include "tests/unit/check.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "tests/unit/catalog_fixture.h"

/* NULL: refused, for what `err` says. */
static inline json_t *answer_or_refusal(enum adv_request_kind kind, const char *text, adv_err *err)
{
    struct adv_answer answer;
    adv_err_init(err);
    if (adv_answer_request(catalog, kind, text, strlen(text), &answer, err) != ADV_OK) return NULL;
    json_t *root = json_loadb(answer.json, answer.json_bytes, 0, NULL);
    adv_answer_free(&answer);
    return root;
}

/* Fails the test when the request is refused. */
static inline json_t *answer_to(enum adv_request_kind kind, const char *text)
{
    adv_err err;
    json_t *root = answer_or_refusal(kind, text, &err);
    if (!root) fail_msg("%s: %s: %s", text, err.findings[0].pointer, err.findings[0].detail);
    return root;
}

static inline json_t *answer_to_document(enum adv_request_kind kind, const json_t *request)
{
    char *text = json_dumps(request, 0);
    json_t *root = answer_to(kind, text);
    free(text);
    return root;
}

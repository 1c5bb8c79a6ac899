/* question.h: what a request asks, apart from what its answer is called and whether it is stored. Two
 * requests with the same question have the same answer from the same engine, catalog and calibration.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"

struct adv_question {
    char *text; /* JSON in canonical form (members sorted, no blanks); malloc'ed, see adv_question_free */
    size_t text_bytes;
    bool wants_store, store_may_fail;
    char label[ADV_LIMIT_NAME], project[ADV_LIMIT_NAME], git_ref[ADV_LIMIT_NAME]; /* "" when not given */
};

/* false, and nothing to free: the text is no JSON object, says wrongly how it is to be stored, or memory is
 * exhausted. Whether the question can be answered is not looked at. */
ADV_MUST_CHECK bool adv_question_read(const char *json, size_t json_bytes, struct adv_question *question);
void adv_question_free(struct adv_question *question);

/* The project that the request in the member `member` of a document names; "" when none is named, or it is no
 * such document. */
void adv_question_project_in(const char *json, size_t json_bytes, const char *member,
                             char project[ADV_LIMIT_NAME]);

/* documents.c: a file with one request or an array of them (adv_answer_documents of engine/advise.h).
 */
#include "engine/advise.h"
#include "engine/base/text.h"
#include "engine/json/json_read.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWERS_BYTES_MAX = 1 << 30 }; /* 100000 estimates of about 8 KiB */

struct batch {
    const struct adv_catalog *catalog;
    enum adv_request_kind kind;
    double (*now_s)(void);
    const struct adv_budget *budget;
    bool *refutes; /* one of the answers does */
};

static adv_code answer_one(const struct batch *batch, const char *json, size_t json_bytes,
                           struct adv_answer *answer, adv_err *err)
{
    double start_s = batch->now_s ? batch->now_s() : 0;
    adv_code code =
        adv_answer_within(batch->catalog, batch->kind, json, json_bytes, batch->budget, answer, err);
    bool timed = code == ADV_OK && batch->now_s && batch->kind == ADV_REQUEST_ADVISE;
    if (timed) adv_answer_set_elapsed(answer, batch->now_s() - start_s);
    if (code == ADV_OK && answer->refutes) *batch->refutes = true;
    return code;
}

static adv_code answer_element(const struct batch *batch, const json_t *element, size_t index,
                               struct adv_text *out, adv_err *err)
{
    char *text = json_dumps(element, JSON_COMPACT | JSON_ENCODE_ANY);
    adv_err own = adv_err_empty();
    if (!text) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "out of memory");
    struct adv_answer answer;
    adv_code code = answer_one(batch, text, strlen(text), &answer, &own);
    free(text);
    adv_err_merge(err, &own, ADV_AT_INDEX("", index));
    if (code != ADV_OK) return code;
    adv_text_append(out, index ? "," : "[");
    adv_text_append_bytes(out, answer.json, answer.json_bytes);
    adv_answer_free(&answer);
    return ADV_OK;
}

static adv_code answer_array(const struct batch *batch, const json_t *documents, struct adv_text *out,
                             adv_err *err)
{
    adv_code code = ADV_OK;
    if (json_array_size(documents) > ADV_LIMIT_BATCH_DOCUMENTS) {
        return adv_err_add(err, ADV_E_TOO_LARGE, "", NULL, "%zu documents; at most %d",
                           json_array_size(documents), ADV_LIMIT_BATCH_DOCUMENTS);
    }
    for (struct adv_json_walk element = {.in = documents}; adv_json_next(&element);) {
        adv_code one = answer_element(batch, element.value, element.index, out, err);
        if (one != ADV_OK && code == ADV_OK) code = one;
    }
    if (json_array_size(documents) == 0) adv_text_append(out, "[");
    adv_text_append(out, "]");
    if (code == ADV_OK && out->overflow)
        code = adv_err_add(err, ADV_E_MEMORY, "", NULL, "the answers need more memory than there is");
    return code;
}

static bool is_array(const char *json, size_t json_bytes)
{
    size_t at = 0;
    while (at < json_bytes && isspace((unsigned char)json[at])) at++;
    return at < json_bytes && json[at] == '[';
}

adv_code adv_answer_documents(const struct adv_catalog *catalog, enum adv_request_kind kind, const char *json,
                              size_t json_bytes, double (*now_s)(void), const struct adv_budget *budget,
                              char **answers, size_t *answers_bytes, bool *refutes, adv_err *err)
{
    bool unasked;
    const struct batch batch = {catalog, kind, now_s, budget, refutes ? refutes : &unasked};
    *batch.refutes = false;
    *answers = NULL;
    *answers_bytes = 0;
    json = adv_json_after_mark(json, &json_bytes);
    if (!is_array(json, json_bytes)) {
        struct adv_answer answer;
        adv_code code = answer_one(&batch, json, json_bytes, &answer, err);
        if (code != ADV_OK) return code;
        *answers = answer.json;
        *answers_bytes = answer.json_bytes;
        return ADV_OK;
    }
    ADV_JSON_OWN json_t *documents = NULL;
    adv_code code = adv_json_parse_file_text(json, json_bytes, &documents, err);
    if (code != ADV_OK) return code;
    struct adv_text out = adv_text_empty(ANSWERS_BYTES_MAX);
    code = answer_array(&batch, documents, &out, err);
    if (code != ADV_OK) {
        adv_text_free(&out);
        return code;
    }
    *answers = out.data;
    *answers_bytes = out.length_bytes;
    return ADV_OK;
}

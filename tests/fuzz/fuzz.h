/* fuzz.h: what the fuzz targets share. A target defines LLVMFuzzerTestOneInput; it is built with libFuzzer by
 * `make fuzz`, and with replay.c into a plain program that `make check` runs over corpus/ and regression/.
 * Every input that once failed becomes a file in regression/<target>/. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/json/json_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not assert: the promise must be checked in every build. */
#define FUZZ_PROMISE(condition)                                                                              \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #condition);                  \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

/* The embedded catalog, loaded once for the life of the process. */
static inline const struct adv_catalog *fuzz_catalog(void)
{
    static struct adv_catalog *catalog;
    adv_err err;
    adv_err_init(&err);
    if (!catalog) catalog = adv_catalog_load(NULL, &err);
    FUZZ_PROMISE(catalog);
    return catalog;
}

/* Answers `text` (any bytes) and checks what holds for every answer: either a JSON object of the stated
 * length, or at least one finding with a code that is an error, from which a problem document can be made.
 * The document, for the caller to look into and give back with json_decref, or NULL. */
static inline json_t *fuzz_answer(enum adv_request_kind kind, const char *text, size_t text_bytes)
{
    struct adv_answer answer;
    adv_err err;
    memset(&answer, 0, sizeof answer);
    adv_err_init(&err);
    adv_code code = adv_answer_request(fuzz_catalog(), kind, text, text_bytes, &answer, &err);
    if (code == ADV_OK) {
        FUZZ_PROMISE(answer.json && strlen(answer.json) == answer.json_bytes);
        json_t *root = NULL;
        FUZZ_PROMISE(adv_json_parse_file_text(answer.json, answer.json_bytes, &root, &err) == ADV_OK &&
                     json_is_object(root));
        adv_answer_free(&answer);
        return root;
    }
    FUZZ_PROMISE(err.count > 0 && err.code == err.findings[0].code);
    FUZZ_PROMISE(code != ADV_E_INTERNAL);
    for (int i = 0; i < err.count; i++) FUZZ_PROMISE(err.findings[i].detail[0] != '\0');
    char *problem = adv_problem_json(&err, "/v1/estimate");
    FUZZ_PROMISE(problem && problem[0] == '{');
    free(problem);
    return NULL;
}

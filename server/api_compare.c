#include <math.h>
#include <string.h>

#include "engine/advise.h"
#include "server/api.h"
#include "server/json_text.h"
#include "server/store_runs.h"
#include "server/verification_word.h"

#define COMPARE_LIMIT_BYTES (8u * 1024u * 1024u) /* 16 runs of 100 terms take 300 KiB */

#define MOST_RUNS 16 /* side by side; more columns nobody reads */

/* Splits the list at its commas in place; the number of ids, or -1 when there are too many. */
static int split(char *list, const char *ids[MOST_RUNS])
{
    int count = 0;
    char *rest = NULL;
    for (char *id = strtok_r(list, ",", &rest); id; id = strtok_r(NULL, ",", &rest)) {
        if (count == MOST_RUNS) return -1;
        ids[count++] = id;
    }
    return count;
}

/* "compiled": the real compiler's word on the first plan of each run, in their order; null where it was not
 * asked. */
static adv_code print_words(struct adv_exchange *exchange, const char *const *ids,
                            const char *const *responses, int count, struct adv_text *text, adv_err *err)
{
    adv_code code = ADV_OK;
    adv_json_text_raw(text, "compiled", "[");
    for (int i = 0; i < count && !code; i++) {
        struct adv_verification_word word;
        code = adv_api_word_of(exchange, responses[i], 1, &word, err);
        if (i) adv_text_append(text, ",");
        if (!word.known) {
            adv_text_append(text, "null");
            continue;
        }
        adv_text_append(text, "{");
        adv_json_text_string(text, "run_id", ids[i]);
        adv_json_text_string(text, "verdict", word.verdict);
        adv_json_text_number(text, "compiled_hbm_bytes_per_device",
                             word.compiled_hbm_bytes_per_device > 0.0 ? word.compiled_hbm_bytes_per_device
                                                                      : (double)NAN);
        adv_json_text_string(text, "versions", word.versions);
        adv_text_append(text, "}");
    }
    adv_text_append(text, "]}");
    return code;
}

static adv_code reply_compared(struct adv_exchange *exchange, struct adv_answer *answer,
                               const char *const *ids, const char *const *responses, int count, adv_err *err)
{
    struct adv_text text = adv_text_empty(COMPARE_LIMIT_BYTES);
    adv_text_append_bytes(&text, answer->json, answer->json_bytes);
    adv_answer_free(answer);
    if (text.length_bytes > 0) text.data[--text.length_bytes] = '\0'; /* the } */
    return adv_api_reply_printed(exchange, 200, print_words(exchange, ids, responses, count, &text, err),
                                 &text);
}

adv_code adv_api_compare(struct adv_exchange *exchange, adv_err *err)
{
    const char *runs = adv_exchange_query(exchange, "runs");
    char *list = adv_arena_copy(&exchange->arena, runs ? runs : "");
    const char *ids[MOST_RUNS];
    int count = list ? split(list, ids) : 0;
    if (count < 2)
        return adv_err_add(err, ADV_E_BAD_REQUEST, "/query/runs", "?runs=ID,ID", "runs are 2 to %d run ids",
                           MOST_RUNS);
    struct adv_stored_run stored[MOST_RUNS];
    const char *responses[MOST_RUNS];
    int found = 0;
    adv_code code = ADV_OK;
    for (; found < count; found++) {
        code = adv_store_run_get(exchange->db, ids[found], &stored[found], err);
        if (code) break;
        responses[found] = stored[found].response;
    }
    struct adv_answer answer = {0};
    if (!code) code = adv_compare_json(ids, responses, count, &answer, err);
    if (!code) code = reply_compared(exchange, &answer, ids, responses, count, err);
    for (int i = 0; i < found; i++) adv_store_run_free(&stored[i]);
    return code;
}

#include <stdio.h>
#include <string.h>

#include "engine/advise.h"
#include "server/api.h"
#include "server/app.h"
#include "server/store_runs.h"

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

static void reply_compared(struct adv_exchange *exchange, struct adv_answer *answer)
{
    struct adv_text text;
    adv_text_init(&text, COMPARE_LIMIT_BYTES);
    adv_text_append_bytes(&text, answer->json, answer->json_bytes);
    adv_answer_free(answer);
    adv_api_reply_made(exchange, 200, &text);
}

void adv_api_compare(struct adv_exchange *exchange)
{
    static const char *const allowed[] = {"runs", NULL};
    if (!adv_exchange_check_query(exchange, allowed)) return;
    const char *runs = adv_exchange_query(exchange, "runs");
    char *list = adv_arena_copy(&exchange->arena, runs ? runs : "");
    const char *ids[MOST_RUNS];
    int count = list ? split(list, ids) : 0;
    if (count < 2) {
        adv_reply_error(exchange, ADV_E_BAD_REQUEST, "/query/runs", "?runs=ID,ID", "runs are 2 to %d run ids",
                        MOST_RUNS);
        return;
    }
    adv_err err;
    adv_err_init(&err);
    struct adv_stored_run stored[MOST_RUNS];
    const char *responses[MOST_RUNS];
    int found = 0;
    adv_code code = ADV_OK;
    while (found < count && !code) {
        code = adv_store_run_get(exchange->db, ids[found], &stored[found], &err);
        if (code) break;
        responses[found] = stored[found].response;
        found++;
    }
    struct adv_answer answer = {0};
    if (!code) code = adv_compare_json(ids, responses, count, &answer, &err);
    if (code)
        adv_reply_problem(exchange, &err);
    else
        reply_compared(exchange, &answer);
    for (int i = 0; i < found; i++) adv_store_run_free(&stored[i]);
}

#include <stdlib.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/json/decode_answer.h"
#include "engine/json/run_files.h"
#include "server/api.h"
#include "server/app.h"
#include "server/store_runs.h"
#include "server/verification_word.h"

#define ARTIFACT_LIMIT_BYTES (1024u * 1024u) /* a table of 100 rows takes 20 KiB */

bool adv_api_read_rank(struct adv_exchange *exchange, int *rank)
{
    const char *text = adv_exchange_query(exchange, "rank");
    *rank = 1;
    if (!text) return true;
    char *end = NULL;
    long number = strtol(text, &end, 10);
    if (end != text && *end == '\0' && number >= 1 && number <= ADV_LIMIT_RANKED) {
        *rank = (int)number;
        return true;
    }
    adv_reply_error(exchange, ADV_E_BAD_REQUEST, "/query/rank", NULL, "rank is a whole number from 1 to %d",
                    ADV_LIMIT_RANKED);
    return false;
}

/* The real compiler's word, as the report's last section; without one the report is as it was. */
static void report_word(struct adv_exchange *exchange, const char *response, int rank, struct adv_text *text)
{
    struct adv_verification_word word;
    adv_err ignored = adv_err_empty(); /* the report stands without */
    if (adv_api_word_of(exchange, response, rank, &word, &ignored) || !word.known) return;
    adv_text_format(text, "\n## The compiler's word\n\nVerdict of the real compiler (%s): %s.\n",
                    word.versions, word.verdict);
    if (word.compiled_hbm_bytes_per_device > 0.0)
        adv_text_format(text, "It needs %.2f GiB of HBM per device.\n",
                        word.compiled_hbm_bytes_per_device / ADV_GIB);
}

/* ?rank=, and whether the client takes the type of file `name`; false with the problem in the reply. */
static bool read_wanted(struct adv_exchange *exchange, const char *name, int *rank)
{
    static const char *const allowed[] = {"rank", NULL};
    if (!adv_exchange_check_query(exchange, allowed) || !adv_api_read_rank(exchange, rank)) return false;
    const char *type = adv_run_file_type(name);
    if (!type || adv_exchange_accepts(exchange, type)) return true; /* an unknown file is said to be one */
    adv_reply_error(exchange, ADV_E_NOT_ACCEPTABLE, "/headers/Accept", "leave Accept out, or allow it",
                    "%.64s is %s only", name, type);
    return false;
}

/* `text` is given away. */
static void reply_file(struct adv_exchange *exchange, const char *name, struct adv_text *text)
{
    adv_reply_header(exchange, "Content-Disposition", "attachment; filename=\"%.64s\"",
                     adv_run_file_name(name));
    adv_reply_text(exchange, 200, adv_run_file_type(name), text->data, text->length_bytes);
}

void adv_api_artifact(struct adv_exchange *exchange)
{
    const char *name = exchange->parameters[0];
    int rank = 1;
    if (!read_wanted(exchange, name, &rank)) return;
    adv_err err = adv_err_empty();
    struct adv_text text = adv_text_empty(ARTIFACT_LIMIT_BYTES);
    if (adv_artifact_from_answer(exchange->app->catalog, name, exchange->body ? exchange->body : "",
                                 exchange->body_bytes, rank, &text, &err)) {
        adv_text_free(&text);
        adv_reply_problem(exchange, &err);
    } else {
        reply_file(exchange, name, &text);
    }
}

void adv_api_run_artifact(struct adv_exchange *exchange)
{
    const char *name = exchange->parameters[1];
    int rank = 1;
    if (!read_wanted(exchange, name, &rank)) return;
    adv_err err = adv_err_empty();
    struct adv_stored_run run;
    if (adv_store_run_get(exchange->db, exchange->parameters[0], &run, &err)) {
        adv_reply_problem(exchange, &err);
        return;
    }
    struct adv_text text = adv_text_empty(ARTIFACT_LIMIT_BYTES);
    const struct adv_run_documents documents = {strcmp(run.kind, "estimate") == 0, run.request, run.response};
    if (adv_artifact_from_run(exchange->app->catalog, &documents, name, rank, &text, &err)) {
        adv_text_free(&text);
        adv_reply_problem(exchange, &err);
    } else {
        if (strcmp(name, "report.md") == 0) report_word(exchange, run.response, rank, &text);
        reply_file(exchange, name, &text);
    }
    adv_store_run_free(&run);
}

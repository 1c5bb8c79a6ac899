#include <stdlib.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/json/decode_answer.h"
#include "server/api.h"
#include "server/app.h"
#include "server/store_runs.h"
#include "server/verification_word.h"

#define ARTIFACT_LIMIT_BYTES (1024u * 1024u) /* a table of 100 rows takes 20 KiB */

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

/* ?rank=, and whether the client takes the type of file `name`. */
static adv_code read_wanted(const struct adv_exchange *exchange, const char *name, int *rank, adv_err *err)
{
    const adv_code code = adv_api_read_rank(exchange, rank, err);
    if (code) return code;
    const char *type = adv_artifact_media_type(name);
    if (!type || adv_exchange_accepts(exchange, type)) return ADV_OK; /* an unknown file is said to be one */
    return adv_err_add(err, ADV_E_NOT_ACCEPTABLE, "/headers/Accept", "leave Accept out, or allow it",
                       "%.64s is %s only", name, type);
}

/* Answers with the file where `code` is ADV_OK; returns it. `text` is given away. */
static adv_code reply_file(struct adv_exchange *exchange, const char *name, adv_code code,
                           struct adv_text *text)
{
    if (code) {
        adv_text_free(text);
        return code;
    }
    adv_reply_header(exchange, "Content-Disposition", "attachment; filename=\"%.64s\"",
                     adv_artifact_current_name(name));
    adv_reply_text(exchange, 200, adv_artifact_media_type(name), text->data, text->length_bytes);
    return ADV_OK;
}

adv_code adv_api_artifact(struct adv_exchange *exchange, adv_err *err)
{
    const char *name = exchange->parameters[0];
    int rank = 1;
    adv_code code = read_wanted(exchange, name, &rank, err);
    if (code) return code;
    struct adv_text text = adv_text_empty(ARTIFACT_LIMIT_BYTES);
    code = adv_artifact_from_answer(exchange->app->catalog, name, adv_exchange_body(exchange),
                                    exchange->body_bytes, rank, &text, err);
    return reply_file(exchange, name, code, &text);
}

adv_code adv_api_run_artifact(struct adv_exchange *exchange, adv_err *err)
{
    const char *name = exchange->parameters[1];
    int rank = 1;
    adv_code code = read_wanted(exchange, name, &rank, err);
    if (code) return code;
    struct adv_stored_run run;
    code = adv_store_run_get(exchange->db, exchange->parameters[0], &run, err);
    if (code) return code;
    struct adv_text text = adv_text_empty(ARTIFACT_LIMIT_BYTES);
    const struct adv_run_documents documents = {strcmp(run.kind, "estimate") == 0, run.request, run.response};
    code = adv_artifact_from_run(exchange->app->catalog, &documents, name, rank, &text, err);
    if (!code && strcmp(name, "report.md") == 0) report_word(exchange, run.response, rank, &text);
    code = reply_file(exchange, name, code, &text);
    adv_store_run_free(&run);
    return code;
}

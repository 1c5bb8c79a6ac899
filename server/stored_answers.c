#include "server/stored_answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/app.h"
#include "server/calibrations.h"
#include "server/monotonic.h"
#include "server/routes.h"
#include "server/store_runs.h"

#define LOOK_UP_LIMIT_MS 250
#define PAUSE_US         5000000

void adv_stored_answers_digest(const struct adv_exchange *exchange, const struct adv_question *question,
                               char digest[ADV_SHA256_HEX])
{
    const int kind = exchange->route->kind;
    digest[0] = '\0';
    if (!exchange->app->database || (kind != ADV_REQUEST_ADVISE && kind != ADV_REQUEST_TUNE)) return;
    const struct adv_catalog *catalog =
        adv_calibrations_catalog(exchange->app, exchange->body, exchange->body_bytes, exchange->project);
    struct adv_text text = adv_text_empty(ADV_LIMIT_BODY_BYTES + 1024);
    adv_text_format(&text, "%d\n%s\n%s\n%s\n%s\n", kind, adv_engine_version(), adv_catalog_hash(catalog),
                    adv_catalog_calibration(catalog), exchange->project);
    adv_text_append_bytes(&text, question->text, question->text_bytes);
    if (!text.overflow) adv_sha256_hex(text.data, text.length_bytes, digest);
    adv_text_free(&text);
}

bool adv_stored_answers_open(struct adv_app *app)
{
    return app->database && adv_database_state(app->database) == ADV_DATABASE_UP &&
           app->config.cache_mib > 0 && adv_monotonic_us() >= atomic_load(&app->look_up_from_us);
}

void adv_stored_answers_pause(struct adv_app *app)
{
    atomic_store(&app->look_up_from_us, adv_monotonic_us() + PAUSE_US);
}

/* Another calibration may have come into force between the digest and the answer: the answer says which it
 * is. */
static bool is_of_today(const struct adv_exchange *exchange, const struct adv_answer *answer)
{
    const struct adv_catalog *catalog =
        adv_calibrations_catalog(exchange->app, exchange->body, exchange->body_bytes, exchange->project);
    char said[160];
    (void)snprintf(said, sizeof said, "\"calibration\":\"%s\"", adv_catalog_calibration(catalog));
    return strstr(answer->json, said) != NULL;
}

bool adv_stored_answers_find(struct adv_exchange *exchange, const char digest[ADV_SHA256_HEX],
                             struct adv_answer *answer)
{
    struct adv_app *app = exchange->app;
    adv_err err = adv_err_empty();
    bool found = false;
    adv_db_limit(exchange->db, LOOK_UP_LIMIT_MS);
    const adv_code code = adv_store_run_find_answer(exchange->db, digest, &found, answer, &err);
    adv_db_limit(exchange->db, 0);
    if (code) adv_stored_answers_pause(app);
    if (code || !found) return false;
    if (is_of_today(exchange, answer)) return true;
    free(answer->json);
    answer->json = NULL;
    return false;
}

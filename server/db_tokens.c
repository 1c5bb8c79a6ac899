#include "server/db_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "server/db_internal.h"

#define LIMIT_MS 6000

/* false: there is no more room. */
static bool take_row(const PGresult *result, int row, struct adv_tokens *tokens)
{
    struct adv_token token = {0};
    char scopes[64];
    (void)snprintf(token.name, sizeof token.name, "%s", PQgetvalue(result, row, 0));
    (void)snprintf(scopes, sizeof scopes, "%s", PQgetvalue(result, row, 1));
    (void)snprintf(token.digest, sizeof token.digest, "%s", PQgetvalue(result, row, 2));
    (void)snprintf(token.project, sizeof token.project, "%s", PQgetvalue(result, row, 3));
    token.expires_s = strtoll(PQgetvalue(result, row, 4), NULL, 10);
    token.scopes = adv_tokens_scopes(scopes);
    return adv_tokens_add(tokens, &token);
}

void adv_db_serve_tokens(PGconn *connection, struct adv_keyring *keyring, const struct adv_log *log)
{
    static const char sql[] = "SELECT name, scopes, sha256, project, coalesce(extract(epoch FROM "
                              "expires_at)::bigint, 0) FROM tokens "
                              "WHERE revoked_at IS NULL ORDER BY created_at DESC LIMIT 1024";
    PGresult *result = adv_db_exec(connection, sql, ADV_NO_VALUES, LIMIT_MS);
    struct adv_tokens *tokens = PQresultStatus(result) == PGRES_TUPLES_OK ? adv_tokens_new() : NULL;
    int row = 0;
    while (tokens && row < PQntuples(result) && take_row(result, row, tokens)) row++;
    PQclear(result);
    if (tokens)
        adv_keyring_set(keyring, ADV_KEYRING_DATABASE, tokens);
    else
        adv_log_message(log, ADV_LOG_WARNING, "the tokens cannot be read; those in force stay");
}

/* A connection for one statement; NULL with a finding. */
static PGresult *run_once(const char *url, const char *sql, struct adv_values values, adv_err *err)
{
    char reason[256];
    PGconn *connection = adv_db_connect(url, reason);
    if (!connection) {
        (void)adv_err_add(err, ADV_E_STORE, "", NULL, "the database cannot be reached: %s", reason);
        return NULL;
    }
    PGresult *result = adv_db_exec(connection, sql, values, LIMIT_MS);
    if (adv_db_is_good(result)) {
        PQfinish(connection);
        return result;
    }
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const bool conflict = state && strcmp(state, "23505") == 0;
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (conflict)
        (void)adv_err_add(err, ADV_E_CONFLICT, "", "choose another name", "there is a token of that name");
    else
        (void)adv_err_add(err, ADV_E_STORE, "", "`tpu-advisor migrate` makes the tables",
                          "the database refuses: %s", message ? message : "no answer");
    PQclear(result);
    PQfinish(connection);
    return NULL;
}

adv_code adv_db_token_create(const char *url, const struct adv_token *token, const char *scopes, adv_err *err)
{
    const char *expires = token->expires_s ? ADV_INTEGER(token->expires_s) : NULL;
    PGresult *result =
        run_once(url,
                 "INSERT INTO tokens (name, sha256, scopes, project, expires_at) VALUES ($1, $2, $3, $4, "
                 "to_timestamp($5::bigint))",
                 ADV_VALUES(token->name, token->digest, scopes, token->project, expires), err);
    PQclear(result);
    return err->code;
}

adv_code adv_db_tokens_list(const char *url, FILE *out, adv_err *err)
{
    PGresult *result = run_once(
        url,
        "SELECT name, scopes, project, to_char(created_at, 'YYYY-MM-DD'), coalesce(to_char(expires_at, "
        "'YYYY-MM-DD'), 'never'), CASE WHEN revoked_at IS NOT NULL THEN 'revoked' WHEN expires_at <= now() "
        "THEN 'expired' ELSE 'in force' END FROM tokens ORDER BY name",
        ADV_NO_VALUES, err);
    if (!result) return err->code;
    (void)fprintf(out, "%-24s %-18s %-24s %-10s %-10s %s\n", "name", "scopes", "project", "made", "ends",
                  "state");
    for (int row = 0; row < PQntuples(result); row++)
        (void)fprintf(out, "%-24s %-18s %-24s %-10s %-10s %s\n", PQgetvalue(result, row, 0),
                      PQgetvalue(result, row, 1),
                      *PQgetvalue(result, row, 2) ? PQgetvalue(result, row, 2) : "all",
                      PQgetvalue(result, row, 3), PQgetvalue(result, row, 4), PQgetvalue(result, row, 5));
    PQclear(result);
    return ADV_OK;
}

adv_code adv_db_token_revoke(const char *url, const char *name, adv_err *err)
{
    PGresult *result =
        run_once(url, "UPDATE tokens SET revoked_at = now() WHERE name = $1 AND revoked_at IS NULL",
                 ADV_VALUES(name), err);
    if (!result) return err->code;
    const bool found = atoi(PQcmdTuples(result)) > 0;
    PQclear(result);
    return found ? ADV_OK
                 : adv_err_add(err, ADV_E_NOT_FOUND, "", "`tpu-advisor token list`",
                               "no token '%.63s' is in force", name);
}

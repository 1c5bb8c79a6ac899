/* store_sweep_items.c: the items of sweeps, from the side of the daemons that work them off. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "server/store_sweeps.h"

/* The state of the token that made the sweep of row `t`: a look into an index, for the rows that were taken
 * anyhow. */
#define TOKEN                                                                                                \
    "(SELECT CASE WHEN least(k.revoked_at, k.expires_at) <= now() THEN 'ended' ELSE 'in force' END FROM "    \
    "tokens k WHERE k.name = t.created_by)"

static enum adv_sweep_token token_of(const char *state)
{
    if (!state || !*state) return ADV_SWEEP_TOKEN_UNKNOWN;
    return strcmp(state, "ended") == 0 ? ADV_SWEEP_TOKEN_ENDED : ADV_SWEEP_TOKEN_IN_FORCE;
}

adv_code adv_sweep_take(struct adv_db *db, const char *worker, int most, struct adv_sweep_batch *batch,
                        adv_err *err)
{
    static const char sql[] =
        "SELECT t.sweep_id, t.kind, t.project, t.created_by, t.item, t.attempt, t.run_id, t.request, "
        "s.label, " TOKEN " FROM sweep_take($1, $2::int, $3::int, $4::int, $5::json) t JOIN sweeps s ON "
        "s.id = t.sweep_id";
    adv_err why = adv_err_empty();
    memset(batch, 0, sizeof *batch);
    (void)adv_err_add(&why, ADV_E_INTERNAL, "", "run it alone, and report it",
                      "given up after %d attempts: each ended the daemon that made it", ADV_SWEEP_ATTEMPTS);
    char *problem = adv_problem_json(&why, NULL);
    const int count = most < ADV_SWEEP_TAKE_MOST ? most : ADV_SWEEP_TAKE_MOST;
    adv_code code = problem
                        ? adv_db_run(db, sql,
                                     ADV_VALUES(worker, ADV_INTEGER(ADV_SWEEP_LEASE_S), ADV_INTEGER(count),
                                                ADV_INTEGER(ADV_SWEEP_ATTEMPTS), problem),
                                     &batch->rows, err)
                        : adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for a sweep");
    free(problem);
    if (code) return code;
    batch->count = batch->rows.count;
    if (batch->count == 0) return ADV_OK;
    batch->sweep_id = adv_rows_text(&batch->rows, 0, 0);
    batch->kind = adv_rows_text(&batch->rows, 0, 1);
    batch->project = adv_rows_text(&batch->rows, 0, 2);
    batch->label = adv_rows_text(&batch->rows, 0, 8);
    batch->token = token_of(adv_rows_text(&batch->rows, 0, 9));
    batch->principal = adv_rows_text(&batch->rows, 0, 3);
    for (int i = 0; i < batch->count; i++)
        batch->items[i] =
            (struct adv_sweep_item){adv_rows_text(&batch->rows, i, 4), adv_rows_text(&batch->rows, i, 5),
                                    adv_rows_text(&batch->rows, i, 6), adv_rows_text(&batch->rows, i, 7)};
    return ADV_OK;
}

void adv_sweep_batch_free(struct adv_sweep_batch *batch)
{
    adv_rows_free(&batch->rows);
    memset(batch, 0, sizeof *batch);
}

/* The items from `first` on and their attempts, as two arrays of SQL. */
static void list_keys(const struct adv_sweep_batch *batch, int first, struct adv_text *items,
                      struct adv_text *attempts)
{
    adv_text_init(items, ADV_SWEEP_TAKE_MOST * 16);
    adv_text_init(attempts, ADV_SWEEP_TAKE_MOST * 16);
    for (int i = first; i < batch->count; i++) {
        adv_text_format(items, "%s%s", i == first ? "{" : ",", batch->items[i].item);
        adv_text_format(attempts, "%s%s", i == first ? "{" : ",", batch->items[i].attempt);
    }
    adv_text_append(items, first < batch->count ? "}" : "{}");
    adv_text_append(attempts, first < batch->count ? "}" : "{}");
}

/* Changes the items that are still held. The sweep is locked before its items, as by who ends or cancels
 * them; several holders may have it so at once. */
#define UPDATE_HELD(changes)                                                                                 \
    "WITH s AS (SELECT id FROM sweeps WHERE id = $1::uuid FOR KEY SHARE) UPDATE sweep_items i SET " changes  \
    " FROM s, unnest($2::int[], $3::int[]) k (item, attempt) WHERE i.sweep_id = s.id AND i.item = k.item "   \
    "AND i.attempts = k.attempt AND i.state = 'running'"

static adv_code update_held(struct adv_db *db, const char *sql, const struct adv_sweep_batch *batch,
                            int first, int *held, adv_err *err)
{
    struct adv_text items, attempts;
    list_keys(batch, first, &items, &attempts);
    adv_code code =
        items.overflow || attempts.overflow
            ? adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for a sweep")
            : adv_db_change(db, sql, ADV_VALUES(batch->sweep_id, items.data, attempts.data), held, err);
    adv_text_free(&items);
    adv_text_free(&attempts);
    return code;
}

#define TEXT(number)  #number
#define LEASE(number) TEXT(number)

adv_code adv_sweep_renew(struct adv_db *db, const struct adv_sweep_batch *batch, int first, int *held,
                         adv_err *err)
{
    static const char sql[] = UPDATE_HELD("lease_until = now() + interval '" LEASE(ADV_SWEEP_LEASE_S) " s'");
    return update_held(db, sql, batch, first, held, err);
}

adv_code adv_sweep_release(struct adv_db *db, const struct adv_sweep_batch *batch, int first, adv_err *err)
{
    static const char sql[] = UPDATE_HELD("state = 'queued', lease_until = NULL");
    return update_held(db, sql, batch, first, NULL, err);
}

adv_code adv_sweep_end(struct adv_db *db, const char *sweep_id, const char *results, int *held, adv_err *err)
{
    struct adv_rows rows;
    adv_code code =
        adv_db_run(db, "SELECT sweep_end($1::uuid, $2::json)", ADV_VALUES(sweep_id, results), &rows, err);
    if (code) return code;
    *held = atoi(adv_rows_text(&rows, 0, 0));
    adv_rows_free(&rows);
    return ADV_OK;
}

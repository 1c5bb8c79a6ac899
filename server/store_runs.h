/* store_runs.h: runs in the database: answers kept as they were given. Of a run only its tags change, and
 * whether it is deleted; a trigger sees to it. A deleted run is found by nobody until it is restored. */
#pragma once

#include "engine/advise.h"
#include "server/db.h"
#include "server/request_id.h"
#include "server/sha256.h"

/* A run as it is written. Texts are NUL-terminated; project, label and the like are "" when not given. */
struct adv_run {
    char id[ADV_UUID_BYTES];
    const char *kind; /* "estimate", … */
    const struct adv_answer *answer;
    const char *engine_version, *catalog_hash;
    const char *request, *response;
    const char *reevaluates; /* id of the run whose request was asked again; NULL */
    const char *question;    /* digest of what it answers, see api_answer.c; NULL */
};

/* A client's Idempotency-Key; keys of different tokens do not meet. */
/* For how long a key is known, in SQL. */
#define ADV_KEY_LIFETIME "interval '24 hours'"

struct adv_idempotency {
    const char *principal, *key;
    char body_digest[ADV_SHA256_HEX];
};

enum adv_store_outcome {
    ADV_STORE_SAVED,
    ADV_STORE_REPLAYED, /* the key was used before with this body: `response` is that answer */
    ADV_STORE_OTHER_BODY,
    ADV_STORE_UNKNOWN_KEY
};

/* Looks a key of a run up, or of a verification, which is ADV_STORE_OTHER_BODY; keys live for 24 hours. On
 * ADV_STORE_REPLAYED `response` must be freed with free(). */
ADV_MUST_CHECK adv_code adv_store_key_find(struct adv_db *db, const struct adv_idempotency *idempotency,
                                           enum adv_store_outcome *outcome, char **response, adv_err *err);

/* The run that a key has stored. ADV_E_INVALID: with another body; ADV_E_CONFLICT: it is under way. */
ADV_MUST_CHECK adv_code adv_store_key_run(struct adv_db *db, const struct adv_idempotency *idempotency,
                                          char run_id[ADV_UUID_BYTES], adv_err *err);

/* What is said of a key that came with another body before, and of one whose answer is not there yet. */
adv_code adv_store_refuse_key(adv_err *err);
adv_code adv_store_refuse_pending_key(adv_err *err);

/* Writes a run and, when given, its key, both or none. ADV_STORE_UNKNOWN_KEY: another request took the key
 * meanwhile and nothing was written; look it up. `idempotency` may be NULL. */
ADV_MUST_CHECK adv_code adv_store_run_save(struct adv_db *db, const struct adv_run *run,
                                           const struct adv_idempotency *idempotency,
                                           enum adv_store_outcome *outcome, adv_err *err);

/* The newest run of this question that is there: *found, and its answer as it was before it was stored, whose
 * `json` the caller frees. */
ADV_MUST_CHECK adv_code adv_store_run_find_answer(struct adv_db *db, const char *question, bool *found,
                                                  struct adv_answer *answer, adv_err *err);

/* Filters of a list; NULL = any. */
struct adv_run_filter {
    const char *project, *label, *git_ref, *model, *chip, *kind, *since;
    const char *words;  /* each begins a word of the run's names and tags */
    const char *tags;   /* separated by commas: the run has them all */
    const char *sort;   /* "step_time_s", with - in front descending; NULL = newest first */
    const char *cursor; /* of the page before, in the same order */
    bool deleted;       /* the deleted ones, last deleted first, instead of those that are there */
    int limit_count;
};

/* {"runs": […], "next_cursor": …} appended to `json`. Runs that have no such number are left out of an order
 * by a number. ADV_E_BAD_REQUEST at /query/sort, /query/cursor or /query/since: it cannot be read, or the
 * cursor is of another order. */
ADV_MUST_CHECK adv_code adv_store_runs_list(struct adv_db *db, const struct adv_run_filter *filter,
                                            struct adv_text *json, adv_err *err);

/* One run as the database keeps it. Pointers live until adv_store_run_free. */
struct adv_stored_run {
    struct adv_rows rows;
    const char *id, *kind, *request, *response;
    const char *project, *git_ref; /* "" when it has none */
    const char *created_at;
    const char *tags; /* a JSON array */
};

/* ADV_E_NOT_FOUND when there is no such run; then nothing to free. */
ADV_MUST_CHECK adv_code adv_store_run_get(struct adv_db *db, const char *id, struct adv_stored_run *run,
                                          adv_err *err);
void adv_store_run_free(struct adv_stored_run *run);

/* The code of a statement that added to the run: where that was refused because the run has been deleted
 * meanwhile, ADV_E_NOT_FOUND and a finding instead. */
adv_code adv_store_run_added(struct adv_db *db, const char *id, adv_code code, adv_err *err);

/* Appends the members of the run, request and response included, without the closing brace. */
void adv_store_run_print(const struct adv_stored_run *run, struct adv_text *json);

/* Deletes, in a way that can be taken back. ADV_E_NOT_FOUND; ADV_E_CONFLICT when it is a baseline;
 * ADV_E_PRECONDITION: its tags are no longer `before` (NULL: any). */
ADV_MUST_CHECK adv_code adv_store_run_delete(struct adv_db *db, const char *id, const char *before,
                                             adv_err *err);

/* Brings a deleted run back; one that is there stays. ADV_E_NOT_FOUND: there was none, or it was purged. */
ADV_MUST_CHECK adv_code adv_store_run_restore(struct adv_db *db, const char *id, adv_err *err);

/* Puts `tags`, a JSON array of strings, in the place of those it had. ADV_E_CONFLICT: they are no tags;
 * ADV_E_PRECONDITION: those it had are no longer `before` (NULL: any). */
ADV_MUST_CHECK adv_code adv_store_run_tag(struct adv_db *db, const char *id, const char *before,
                                          const char *tags, adv_err *err);

/* What is said of a change whose If-Match names another state of the `kind`. */
adv_code adv_store_refuse_match(const char *kind, adv_err *err);

/* ---- a row of the table runs as answers show it ---- */

/* The columns of a SELECT, in the order of the enum. */
#define ADV_RUN_ROW_COLUMNS                                                                                  \
    "id, to_char(created_at" ADV_AS_TIME ", kind, project, label, git_ref, model, chip, topology, "          \
    "engine_version, catalog_hash, reevaluates, to_char(deleted_at" ADV_AS_TIME ", step_time_s, "            \
    "hbm_bytes_per_device, fits, fit_verdict, to_json(tags)"
enum adv_run_column {
    ADV_RUN_ID,
    ADV_RUN_CREATED_AT,
    ADV_RUN_KIND,
    ADV_RUN_PROJECT,
    ADV_RUN_GIT_REF = 5,
    ADV_RUN_STEP_TIME = 13,
    ADV_RUN_HBM,
    ADV_RUN_FITS,
    ADV_RUN_FIT_VERDICT,
    ADV_RUN_TAGS,
    ADV_RUN_REQUEST, /* what a SELECT has beyond the columns */
    ADV_RUN_RESPONSE
};

/* Appends the members of a run without request and response, without the closing brace. */
void adv_run_row_print(const struct adv_rows *rows, int row, struct adv_text *json);

/* store_verifications.h: verifications of runs: asking for them, looking at them, and the queue of plans that
 * verifiers work off.
 *
 * A plan has the states queued, running, done, cancelled. Whoever takes a queued plan, or one whose lease has
 * run out, holds it by a lease that he renews; its number, which only grows, tells him from a later holder,
 * so that a plan is done once and nobody has a say in it who has given it back. All functions wait for the
 * database. Errors are those of adv_db_run besides the named.
 */
#pragma once

#include "engine/base/text.h"
#include "engine/json/proof.h"
#include "server/db.h"
#include "server/request_id.h"
#include "server/sha256.h"
#include "server/store_runs.h"
#include "server/verification_word.h"

#define ADV_VERIFICATION_ATTEMPTS 3 /* then the machine is not up to the plan: "failed" */

struct adv_verification_order {
    const char *run_id, *principal;
    const char *response;              /* the run's answer */
    const struct adv_catalog *catalog; /* of this program */
    int first_rank, last_rank;
    bool whole;
    const struct adv_idempotency *idempotency; /* NULL: there is none */
};

/* The newest verification of the run; "" when there is none. */
ADV_MUST_CHECK adv_code adv_verification_newest_id(struct adv_db *db, const char *run_id,
                                                   char id[ADV_UUID_BYTES], adv_err *err);

/* The digest by which a plan's word is kept: of the plan, the mode and the releases of this program. */
void adv_verification_digest(const char *plan, bool whole, char digest[ADV_SHA256_HEX]);

/* Queues the plans that the compiler has not spoken of yet; the others are done at once. `id` gets the
 * verification's. Ranks past the answer's last are left out. *created false: the key has made this
 * verification before. ADV_E_INVALID: the key stands for another request; ADV_E_NOT_FOUND: the answer lacks
 * the first rank; and as adv_proof_plan_read. */
ADV_MUST_CHECK adv_code adv_verification_create(struct adv_db *db, const struct adv_verification_order *order,
                                                char id[ADV_UUID_BYTES], bool *created, adv_err *err);

/* Appends {verification_id, run_id, mode, created_at, state, first_proven_rank, result, results[]}. `state`
 * may be NULL; it gets the whole's state, `changes` the count of what has happened. ADV_E_NOT_FOUND, also
 * when its run was deleted. */
ADV_MUST_CHECK adv_code adv_verification_print(struct adv_db *db, const char *id, struct adv_text *json,
                                               char state[16], long *changes, adv_err *err);

/* Queued and running plans become cancelled. ADV_E_NOT_FOUND. */
ADV_MUST_CHECK adv_code adv_verification_cancel(struct adv_db *db, const char *id, adv_err *err);

/* A page of the verifications of a run. */
struct adv_verification_filter {
    const char *run_id;
    int rank;          /* that asked of this plan; 0 = all */
    const char *after; /* the id that the page before ended with; NULL */
    int limit_count;
};

/* {"verifications": [{verification_id, mode, created_at, state, ranks[], first_proven_rank}], "next_cursor"},
 * newest first, appended. ADV_E_NOT_FOUND when there is no such run. */
ADV_MUST_CHECK adv_code adv_verifications_list(struct adv_db *db,
                                               const struct adv_verification_filter *filter,
                                               struct adv_text *json, adv_err *err);

/* The newest word on each plan of a run, the whole's before the other's: {"plans": [{rank, state, verdict,
 * …}], "first_proven_rank", "message"}; the text "null" when nothing was ever asked. */
ADV_MUST_CHECK adv_code adv_verification_of_run(struct adv_db *db, const char *run_id, struct adv_text *json,
                                                adv_err *err);

/* The compiler's verdict on a plan; of two modes, the whole's. */
ADV_MUST_CHECK adv_code adv_verification_find(struct adv_db *db, const char *plan,
                                              struct adv_verification_word *word, adv_err *err);

/* ---- the verifier's side ---- */

struct adv_verification_job {
    char verification_id[ADV_UUID_BYTES];
    int rank, attempt; /* which of those that were not given back */
    long lease;        /* its number */
    bool whole;
    char *plan; /* malloc'ed */
};

/* Takes the oldest plan that waits or whose holder has gone; a plan that others have answered meanwhile is
 * answered, one that was tried too often fails. *taken: there is a job; its plan is the caller's. */
ADV_MUST_CHECK adv_code adv_verification_take(struct adv_db *db, const char *worker, int lease_s,
                                              struct adv_verification_job *job, bool *taken, adv_err *err);
/* Renews the lease and notes the stage (NULL: unchanged). *held: the job is still this holder's. */
ADV_MUST_CHECK adv_code adv_verification_renew(struct adv_db *db, const struct adv_verification_job *job,
                                               int lease_s, const char *stage, bool *held, adv_err *err);
/* Ends the job with the result, and every other waiting one of the same plan with it. *held as above. The
 * result of other releases than this program's ends the job alone: it is no answer to who asks these. */
ADV_MUST_CHECK adv_code adv_verification_finish(struct adv_db *db, const struct adv_verification_job *job,
                                                const char *result, bool *held, adv_err *err);
/* Gives the job back unfinished: this verifier is leaving. Nothing changes when another has it. */
ADV_MUST_CHECK adv_code adv_verification_release(struct adv_db *db, const struct adv_verification_job *job,
                                                 adv_err *err);

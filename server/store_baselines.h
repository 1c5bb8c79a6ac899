/* store_baselines.h: which run a project compares with, by label, who said so when, and the verdicts that let
 * a run stand in where nobody did.
 *
 * A baseline is what somebody set, or else the newest run of that project and label that passed all of its
 * checks and is not of the candidate's commit: those of one commit are checked beside each other. A git_ref
 * that is no hash names a branch or a tag, whose runs follow one another, and tells nothing of that. A
 * run that was never checked, that failed, of a kernel, or that does not fit is none, and a check without a
 * limit on time lets none pass for one. Labels may hold slashes (`feature/x`).
 */
#pragma once

#include "engine/base/text.h"
#include "server/db.h"
#include "server/request_id.h"

struct adv_baseline_name {
    const char *project, *label;
};

struct adv_baseline {
    char run_id[ADV_UUID_BYTES];
    char updated_at[40], tag[40]; /* tag: another one after each change */
    bool pinned;                  /* put by a client; otherwise the last run that passed */
};

/* The conditions of a change (RFC 9110, 13.1). */
struct adv_baseline_condition {
    bool must_be_new;  /* If-None-Match: * */
    bool must_exist;   /* If-Match */
    const char *tags;  /* of If-Match, separated by commas, one of them must be today's; NULL = any */
    const char *maker; /* who changes it, for the history */
};

/* ADV_E_NOT_FOUND: nobody set one. */
ADV_MUST_CHECK adv_code adv_store_baseline_get(struct adv_db *db, const struct adv_baseline_name *name,
                                               struct adv_baseline *baseline, adv_err *err);

/* A run that is not to stand in for its own baseline, nor is another of its commit. */
struct adv_baseline_candidate {
    const char *git_ref;         /* of one that is not stored yet; "" = it names none */
    const char *run_id;          /* "" = not stored yet, or */
    const char *principal, *key; /* stored by an earlier try with this Idempotency-Key; NULL = without one */
};

/* The baseline that a check compares with: the one that is set, or the last run that passed, other than the
 * candidate. ADV_E_NOT_FOUND. */
ADV_MUST_CHECK adv_code adv_store_baseline_find(struct adv_db *db, const struct adv_baseline_name *name,
                                                const struct adv_baseline_candidate *candidate,
                                                struct adv_baseline *baseline, adv_err *err);

/* Sets a run; `baseline` is what was set. `created`: there was none before. ADV_E_NOT_FOUND when there is no
 * such run; ADV_E_INVALID when it cannot be a baseline of this project; ADV_E_PRECONDITION. */
ADV_MUST_CHECK adv_code adv_store_baseline_put(struct adv_db *db, const struct adv_baseline_name *name,
                                               const char *run_id,
                                               const struct adv_baseline_condition *condition,
                                               struct adv_baseline *baseline, bool *created, adv_err *err);

/* ADV_E_NOT_FOUND, ADV_E_PRECONDITION. */
ADV_MUST_CHECK adv_code adv_store_baseline_delete(struct adv_db *db, const struct adv_baseline_name *name,
                                                  const struct adv_baseline_condition *condition,
                                                  adv_err *err);

/* [{"run_id", "changed_at", "changed_by"}, …] newest first, at most 100, appended; run_id null: it was
 * deleted. */
ADV_MUST_CHECK adv_code adv_store_baseline_history(struct adv_db *db, const struct adv_baseline_name *name,
                                                   struct adv_text *json, adv_err *err);

/* {"baselines": […], "next_cursor"} by project and label, appended. `project` and `cursor` may be NULL.
 * ADV_E_BAD_REQUEST: not a cursor of this list. */
ADV_MUST_CHECK adv_code adv_store_baselines_list(struct adv_db *db, const char *project, const char *cursor,
                                                 int limit_count, struct adv_text *json, adv_err *err);

/* Notes a verdict about a stored candidate. */
ADV_MUST_CHECK adv_code adv_store_verdict(struct adv_db *db, const char *candidate_id,
                                          const char *baseline_id, bool passed, adv_err *err);

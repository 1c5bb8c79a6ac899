/* store_baselines.h: which run a project compares with, by label. */
#ifndef ADV_SERVER_STORE_BASELINES_H
#define ADV_SERVER_STORE_BASELINES_H

#include "server/db.h"
#include "server/request_id.h"

struct adv_baseline {
    char run_id[ADV_UUID_BYTES];
    char updated_at[40];
    bool pinned; /* put by a client; otherwise the newest run of that project and label */
};

/* The pinned run or, `or_newest`, the newest estimate stored with that project and label. ADV_E_NOT_FOUND. */
ADV_MUST_CHECK adv_code adv_store_baseline_get(struct adv_db *db, const char *project, const char *label,
                                               bool or_newest, struct adv_baseline *baseline, adv_err *err);

/* Pins a run. `created`: there was none before. ADV_E_NOT_FOUND when there is no such run. */
ADV_MUST_CHECK adv_code adv_store_baseline_put(struct adv_db *db, const char *project, const char *label,
                                               const char *run_id, bool *created, adv_err *err);

#endif

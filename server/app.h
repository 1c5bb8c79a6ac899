/* app.h: the daemon as one value; main builds it, everything else gets a pointer. Const after the start
 * except where a member is atomic or has its own lock. */
#ifndef ADV_SERVER_APP_H
#define ADV_SERVER_APP_H

#include <stdatomic.h>

#include "engine/catalog/catalog.h"
#include "server/answer_cache.h"
#include "server/config.h"
#include "server/db.h"
#include "server/documents.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/pool.h"
#include "server/tokens.h"

struct adv_http;

struct adv_app {
    struct adv_config config;
    struct adv_log log;
    struct adv_metrics metrics;
    struct adv_catalog *catalog;
    struct adv_documents *documents;  /* answers that never change while the daemon runs */
    struct adv_answer_cache *answers; /* kept by their question */
    struct adv_tokens *tokens;        /* NULL: everybody may do everything */
    struct adv_database *database;    /* NULL: none is configured */
    struct adv_pool *engine_pool;     /* searches: advise, tune */
    struct adv_pool *quick_pool;      /* estimate, simulate, lint: never behind a search */
    struct adv_pool *store_pool;      /* what only reads the database never waits behind a search */
    struct adv_http *http;
    atomic_bool draining;
};

#endif

/* app.h: the daemon as one value; main builds it, everything else gets a pointer. Const after the start
 * except where a member is atomic or has its own lock. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "engine/base/crew.h"
#include "engine/catalog/catalog.h"
#include "server/answer_cache.h"
#include "server/config.h"
#include "server/db.h"
#include "server/documents.h"
#include "server/limits.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/pool.h"
#include "server/tokens.h"

struct adv_http;
struct adv_settings;
struct adv_sweeper;
struct adv_calibrations;

struct adv_app {
    struct adv_daemon_config asked;                 /* as given, before counts were chosen */
    struct adv_daemon_config config;                /* at the start */
    _Atomic(const struct adv_daemon_config *) live; /* now: what SIGHUP changed; see adv_app_live */
    struct adv_log log;
    struct adv_metrics metrics;
    struct adv_catalog *catalog;
    struct adv_documents *documents;  /* answers that never change while the daemon runs */
    struct adv_answer_cache *answers; /* kept by their question */
    _Atomic int64_t look_up_from_us;  /* of CLOCK_MONOTONIC: when stored answers may be looked up again */
    struct adv_keyring *keyring;      /* NULL: everybody may do everything */
    struct adv_limits *limits;
    struct adv_database *database;         /* NULL: none is configured */
    struct adv_pool *engine_pool;          /* searches: advise, tune */
    struct adv_pool *quick_pool;           /* estimate, simulate, lint: never behind a search */
    struct adv_pool *store_pool;           /* what only reads the database never waits behind a search */
    struct adv_crew *crew;                 /* helps searches while processors are idle */
    struct adv_calibrations *calibrations; /* of projects; NULL without a database */
    struct adv_sweeper *sweeper;           /* NULL: this daemon works off no sweeps */
    struct adv_http *http;
    struct adv_settings *reloaded; /* of serve.c: those that were in force once */
    atomic_bool draining;
};

/* The settings that may change while the daemon runs. What is returned stays as it is to the end. */
static inline const struct adv_daemon_config *adv_app_live(const struct adv_app *app)
{
    return atomic_load(&app->live);
}

#include "server/calibrations.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/json/question.h"
#include "server/monotonic.h"
#include "server/store_calibrations.h"

#define LOOK_EVERY_US       2000000
#define LOOK_FIRST_EVERY_US 20000 /* until the first look has seen the database */

/* One calibrated catalog; kept to the end, because answers under way may use it. */
struct made {
    struct made *next;
    char id[ADV_UUID_BYTES];
    struct adv_catalog *catalog;
};

struct in_force {
    char project[ADV_LIMIT_NAME];
    const struct made *made;
};

struct adv_calibrations {
    struct adv_app *app;
    pthread_mutex_t lock;
    pthread_cond_t wake;   /* the thread */
    pthread_cond_t looked; /* who asked */
    bool stopping, known;  /* known: a look has seen the database */
    unsigned asked, answered;
    pthread_t thread;
    struct made *made;
    int count;
    struct in_force *rows;
};

/* Under the lock. NULL: no memory. */
static const struct made *find_made(struct adv_calibrations *calibrations,
                                    const struct adv_active_calibration *row)
{
    struct made *made = calibrations->made;
    while (made && strcmp(made->id, row->id) != 0) made = made->next;
    if (made) return made;
    made = calloc(1, sizeof *made);
    if (!made) return NULL;
    char name[64];
    (void)snprintf(name, sizeof name, "calibration/%s", row->id);
    (void)snprintf(made->id, sizeof made->id, "%s", row->id);
    made->catalog = adv_catalog_corrected(
        calibrations->app->catalog, &(struct adv_calibration){.name = name,
                                                              .engine_version = row->engine_version,
                                                              .catalog_hash = row->catalog_hash,
                                                              .corrections = row->corrections,
                                                              .corrections_count = row->corrections_count});
    if (!made->catalog) {
        free(made);
        return NULL;
    }
    made->next = calibrations->made;
    calibrations->made = made;
    return made;
}

static bool same(const struct adv_calibrations *calibrations, const struct in_force *rows, int count)
{
    bool equal = count == calibrations->count;
    for (int i = 0; i < count && equal; i++)
        equal = strcmp(rows[i].project, calibrations->rows[i].project) == 0 &&
                rows[i].made == calibrations->rows[i].made;
    return equal;
}

/* Sees all projects: the connection acts for nobody. A database that is away changes nothing. */
static void look(struct adv_app *app, struct adv_db *db)
{
    struct adv_calibrations *calibrations = app->calibrations;
    struct adv_active_calibration *active = NULL;
    int active_count = 0, count = 0;
    adv_err err = adv_err_empty();
    if (!calibrations || adv_calibrations_active(db, &active, &active_count, &err)) return;
    struct in_force *rows = calloc((size_t)active_count + 1, sizeof *rows);
    (void)pthread_mutex_lock(&calibrations->lock);
    for (int i = 0; i < active_count && rows; i++) {
        rows[count].made = find_made(calibrations, &active[i]);
        (void)snprintf(rows[count].project, sizeof rows[count].project, "%s", active[i].project);
        count += rows[count].made != NULL;
    }
    calibrations->known = calibrations->known || rows;
    const bool changed = rows && !same(calibrations, rows, count);
    if (changed) {
        free(calibrations->rows);
        calibrations->rows = rows;
        calibrations->count = count;
        rows = NULL;
    }
    (void)pthread_mutex_unlock(&calibrations->lock);
    free(rows);
    free(active);
    if (changed) adv_answer_cache_forget(app->answers);
}

const struct adv_catalog *adv_calibrations_of(const struct adv_app *app, const char *project)
{
    struct adv_calibrations *calibrations = app->calibrations;
    const struct adv_catalog *catalog = app->catalog;
    if (!calibrations || !*project) return catalog;
    (void)pthread_mutex_lock(&calibrations->lock);
    for (int i = 0; i < calibrations->count; i++)
        if (strcmp(calibrations->rows[i].project, project) == 0)
            catalog = calibrations->rows[i].made->catalog;
    (void)pthread_mutex_unlock(&calibrations->lock);
    return catalog;
}

static bool is_any_in_force(struct adv_calibrations *calibrations)
{
    if (!calibrations) return false;
    (void)pthread_mutex_lock(&calibrations->lock);
    const bool any = calibrations->count > 0;
    (void)pthread_mutex_unlock(&calibrations->lock);
    return any;
}

const struct adv_catalog *adv_calibrations_catalog(const struct adv_app *app, const char *json,
                                                   size_t json_bytes, const char *project)
{
    struct adv_question question;
    if (*project) return adv_calibrations_of(app, project);
    if (!is_any_in_force(app->calibrations) || !adv_question_read(json, json_bytes, &question))
        return app->catalog;
    const struct adv_catalog *catalog = adv_calibrations_of(app, question.project);
    adv_question_free(&question);
    return catalog;
}

bool adv_calibrations_known(const struct adv_app *app)
{
    struct adv_calibrations *calibrations = app->calibrations;
    if (!calibrations) return true;
    (void)pthread_mutex_lock(&calibrations->lock);
    const bool known = calibrations->known;
    (void)pthread_mutex_unlock(&calibrations->lock);
    return known;
}

adv_code adv_calibrations_require(const struct adv_app *app, const char *project, adv_err *err)
{
    if (!*project || adv_calibrations_known(app)) return ADV_OK;
    return adv_err_add(err, ADV_E_STORE, "/project",
                       "try again after Retry-After seconds, or leave the project out: then nothing is "
                       "corrected",
                       "the database has not been reached yet, so it is not known which calibration is in "
                       "force for the project");
}

void adv_calibrations_refresh(struct adv_app *app)
{
    struct adv_calibrations *calibrations = app->calibrations;
    if (!calibrations) return;
    const int64_t until_us = adv_monotonic_us() + LOOK_EVERY_US;
    bool is_late = false;
    (void)pthread_mutex_lock(&calibrations->lock);
    const unsigned mine = ++calibrations->asked;
    (void)pthread_cond_signal(&calibrations->wake);
    while (calibrations->answered < mine && !is_late)
        is_late = adv_monotonic_wait(&calibrations->looked, &calibrations->lock, until_us);
    (void)pthread_mutex_unlock(&calibrations->lock);
}

static void *look_loop(void *argument)
{
    struct adv_calibrations *calibrations = argument;
    struct adv_app *app = calibrations->app;
    struct adv_db *db = adv_db_open(app->database);
    (void)pthread_mutex_lock(&calibrations->lock);
    while (db && !calibrations->stopping) {
        const unsigned asked = calibrations->asked;
        (void)pthread_mutex_unlock(&calibrations->lock);
        if (adv_database_is_readable(app->database)) look(app, db);
        bool is_time = false;
        (void)pthread_mutex_lock(&calibrations->lock);
        const int64_t until_us =
            adv_monotonic_us() + (calibrations->known ? LOOK_EVERY_US : LOOK_FIRST_EVERY_US);
        calibrations->answered = asked;
        (void)pthread_cond_broadcast(&calibrations->looked);
        while (!calibrations->stopping && calibrations->asked == asked && !is_time)
            is_time = adv_monotonic_wait(&calibrations->wake, &calibrations->lock, until_us);
    }
    (void)pthread_mutex_unlock(&calibrations->lock);
    adv_db_close(db);
    return NULL;
}

struct adv_calibrations *adv_calibrations_start(struct adv_app *app)
{
    struct adv_calibrations *calibrations = calloc(1, sizeof *calibrations);
    if (!calibrations) return NULL;
    calibrations->app = app;
    app->calibrations = calibrations;
    (void)pthread_mutex_init(&calibrations->lock, NULL);
    adv_monotonic_init(&calibrations->wake);
    adv_monotonic_init(&calibrations->looked);
    if (pthread_create(&calibrations->thread, NULL, look_loop, calibrations) == 0) return calibrations;
    app->calibrations = NULL;
    free(calibrations);
    return NULL;
}

void adv_calibrations_stop(struct adv_calibrations *calibrations)
{
    if (!calibrations) return;
    (void)pthread_mutex_lock(&calibrations->lock);
    calibrations->stopping = true;
    (void)pthread_cond_broadcast(&calibrations->wake);
    (void)pthread_mutex_unlock(&calibrations->lock);
    (void)pthread_join(calibrations->thread, NULL);
    for (struct made *made = calibrations->made; made;) {
        struct made *next = made->next;
        adv_catalog_free(made->catalog);
        free(made);
        made = next;
    }
    (void)pthread_cond_destroy(&calibrations->wake);
    (void)pthread_cond_destroy(&calibrations->looked);
    (void)pthread_mutex_destroy(&calibrations->lock);
    free(calibrations->rows);
    free(calibrations);
}

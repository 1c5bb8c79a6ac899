#include "server/sweeper.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "engine/advise.h"
#include "engine/base/budget.h"
#include "engine/json/sweep_request.h"
#include "server/calibrations.h"
#include "server/json_text.h"
#include "server/keep.h"
#include "server/monotonic.h"
#include "server/store_sweeps.h"
#include "server/tokens.h"

#define NICENESS       10
#define IDLE_MS        700  /* between looks when nothing waits */
#define BATCH_S        0.25 /* as many items are taken at once as take about this long */
#define ITEM_LIMIT_S   300  /* for one item */
#define RESULTS_MOST   (32u * 1024u * 1024u)
#define RESULTS_ENOUGH (4u * 1024u * 1024u) /* ended then, before the whole batch is */
#define RENEW_EVERY_US (ADV_SWEEP_LEASE_S * 1000000 / 3)

struct adv_sweeper {
    struct adv_app *app;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping;
    unsigned woken;   /* how often; guarded by the lock */
    atomic_bool over; /* stopping, for whom no lock is to be taken */
    pthread_t *threads;
    int threads_count;
};

/* One thread's work on one batch. */
struct turn {
    struct adv_sweeper *sweeper;
    struct adv_db *db;
    struct adv_sweep_batch batch;
    int ended_count;             /* items whose end is in the database */
    int64_t renewed_us, item_us; /* last renewal; when the item under way began */
    bool lost;                   /* the items are no longer ours */
    bool late;                   /* the item took longer than an item may */
    struct adv_text results;
};

/* Also the heartbeat: the engine asks at least every 50 ms. A database that is away for a while is no reason
 * to give up: whether the items are still ours is asked again when they end. */
static bool is_over(void *closure)
{
    struct turn *turn = closure;
    const int64_t now = adv_monotonic_us();
    turn->late = turn->late || now - turn->item_us > (int64_t)ITEM_LIMIT_S * 1000000;
    if (turn->lost || turn->late || atomic_load(&turn->sweeper->over)) return true;
    if (now - turn->renewed_us < RENEW_EVERY_US) return false;
    int held = 0;
    adv_err err = adv_err_empty();
    turn->renewed_us = now;
    if (adv_sweep_renew(turn->db, &turn->batch, turn->ended_count, &held, &err) == ADV_OK && held == 0)
        turn->lost = true;
    return turn->lost;
}

/* Sends what has been collected, items up to `next`. */
static adv_code send_results(struct turn *turn, int next, adv_err *err)
{
    int held = 0;
    adv_code code = ADV_OK;
    if (turn->results.length_bytes > 0 && !turn->lost) {
        adv_text_append(&turn->results, "]");
        code = turn->results.overflow
                   ? adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the results of a sweep")
                   : adv_sweep_end(turn->db, turn->batch.sweep_id, turn->results.data, &held, err);
        if (!code && held < next - turn->ended_count)
            turn->lost =
                held == 0; /* cancelled, or another has them: what is left is asked for at the next renewal */
        if (!code) adv_metrics_add(&turn->sweeper->app->metrics, ADV_COUNTER_SWEEP_ITEMS, (uint64_t)held);
    }
    turn->ended_count = next;
    adv_text_free(&turn->results);
    adv_text_init(&turn->results, RESULTS_MOST);
    return code;
}

static void begin_result(struct turn *turn, const struct adv_sweep_item *item)
{
    adv_text_format(&turn->results, "%s{\"item\":%s,\"attempt\":%s", turn->results.length_bytes ? "," : "[",
                    item->item, item->attempt);
}

static void add_problem(struct turn *turn, const struct adv_sweep_item *item, const adv_err *err)
{
    char *problem = adv_problem_json(err, NULL);
    if (!problem) turn->results.overflow = true;
    begin_result(turn, item);
    adv_json_text_raw(&turn->results, "problem", problem);
    adv_text_append(&turn->results, "}");
    free(problem);
}

static void add_number(struct adv_text *text, const char *name, double value)
{
    if (isfinite(value)) adv_text_format(text, ",\"%s\":%.17g", name, value);
}

static void add_answer(struct turn *turn, const struct adv_sweep_item *item, const struct adv_answer *answer,
                       const char *response)
{
    struct adv_text *results = &turn->results;
    begin_result(turn, item);
    adv_json_text_raw(results, "response", response);
    adv_text_append(results, ",\"summary\":{\"fits\":");
    adv_text_append(results, isfinite(answer->step_time_s) ? (answer->fits ? "true" : "false") : "null");
    add_number(results, "step_time_s", answer->step_time_s);
    add_number(results, "hbm_bytes_per_device", answer->hbm_bytes_per_device);
    adv_text_append(results, "}}");
}

/* Whether a later attempt may go better than this one. */
static bool may_pass(adv_code code)
{
    return code == ADV_E_STORE || code == ADV_E_MEMORY || code == ADV_E_BUSY;
}

/* An answer whose plans cannot be queued stands all the same, and says so; one that the database did not take
 * is tried again. */
static adv_code verify_behind(struct turn *turn, const struct adv_sweep_item *item,
                              const struct adv_answer *answer, struct adv_text *response, adv_err *err)
{
    adv_err unqueued = adv_err_empty();
    const adv_code code = adv_keep_verify(turn->sweeper->app, turn->db, turn->batch.principal, item->run_id,
                                          answer, response, &unqueued);
    if (!may_pass(code)) return ADV_OK;
    adv_err_merge(err, &unqueued, "");
    return code;
}

/* Stores the answer as the item's run: the same run in every attempt. `response` gets the answer with its
 * name. */
static adv_code store(struct turn *turn, const struct adv_sweep_item *item, enum adv_request_kind kind,
                      struct adv_answer *answer, struct adv_text *response, adv_err *err)
{
    const char *project = turn->batch.project;
    if (*project) (void)snprintf(answer->project, sizeof answer->project, "%s", project);
    if (!answer->label[0]) (void)snprintf(answer->label, sizeof answer->label, "%s", turn->batch.label);
    struct adv_run run = {.request = item->request};
    enum adv_store_outcome outcome = ADV_STORE_SAVED;
    (void)snprintf(run.id, sizeof run.id, "%s", item->run_id);
    adv_keep_prepare(&run, turn->sweeper->app, kind, answer, response);
    if (response->overflow) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the answer");
    adv_db_act_for(turn->db, turn->batch.principal, "", true);
    adv_code code = adv_store_run_save(turn->db, &run, NULL, &outcome, err);
    if (!code && outcome == ADV_STORE_SAVED)
        adv_metrics_add(&turn->sweeper->app->metrics, ADV_COUNTER_RUNS_STORED, 1);
    if (!code) code = verify_behind(turn, item, answer, response, err);
    adv_db_act_for(turn->db, "", "", false);
    return code;
}

/* Whether a request by the token that made the sweep would be refused now. A name that the file or the
 * database has in force is good; one that the database has no longer, or that neither knows, is not. A daemon
 * without a file cannot tell who was in another's, and goes on. */
static bool is_token_gone(const struct adv_app *app, const struct adv_sweep_batch *batch)
{
    struct adv_caller caller = {.scopes = ADV_SCOPE_WRITE};
    if (!*batch->principal || batch->token == ADV_SWEEP_TOKEN_IN_FORCE) return false;
    (void)snprintf(caller.name, sizeof caller.name, "%s", batch->principal);
    (void)snprintf(caller.project, sizeof caller.project, "%s", batch->project);
    if (app->keyring && adv_keyring_allows(app->keyring, ADV_KEYRING_FILE, &caller, (int64_t)time(NULL)))
        return false;
    return batch->token == ADV_SWEEP_TOKEN_ENDED ||
           (app->keyring && adv_keyring_has(app->keyring, ADV_KEYRING_FILE));
}

/* Ends the batch's items as a request would be: the runs that they ask for are not stored in that name. */
static void refuse_items(struct turn *turn)
{
    adv_err err = adv_err_empty();
    (void)adv_err_add(
        &err, ADV_E_UNAUTHORIZED, "", "make the sweep again with a token that is in force",
        "the token '%.63s' that made the sweep was revoked, has expired, or is not in the token "
        "file any more",
        turn->batch.principal);
    for (int i = 0; i < turn->batch.count; i++) add_problem(turn, &turn->batch.items[i], &err);
}

/* Notes in the metrics what the engine did for the item under way. */
static void count_work(const struct turn *turn, const struct adv_answer *answer)
{
    struct adv_metrics *metrics = &turn->sweeper->app->metrics;
    adv_metrics_add(metrics, ADV_COUNTER_ENGINE_US, (uint64_t)(adv_monotonic_us() - turn->item_us));
    if (answer && answer->evaluations > 0)
        adv_metrics_add(metrics, ADV_COUNTER_EVALUATIONS, (uint64_t)answer->evaluations);
}

/* Answers one item into the results. Else than ADV_OK: it has not ended, and neither can those after it now.
 */
static adv_code answer_item(struct turn *turn, const struct adv_sweep_item *item, adv_err *err)
{
    const struct adv_app *app = turn->sweeper->app;
    const enum adv_request_kind kind = adv_sweep_kind(turn->batch.kind);
    const struct adv_budget budget = {
        .over = is_over, .closure = turn, .plans_max = (int)adv_app_live(app)->plans_count};
    struct adv_answer answer;
    struct adv_text stored = adv_text_empty(ADV_LIMIT_STORED_BYTES);
    turn->item_us = adv_monotonic_us();
    adv_code code = adv_answer_within(
        adv_calibrations_catalog(app, item->request, strlen(item->request), turn->batch.project), kind,
        item->request, strlen(item->request), &budget, &answer, err);
    count_work(turn, code ? NULL : &answer);
    const bool given_up = code == ADV_E_TIMEOUT && !turn->late;
    if (code && (given_up || may_pass(code))) return code;
    if (code) {
        add_problem(turn, item, err);
        return ADV_OK;
    }
    adv_answer_set_elapsed(&answer, (double)(adv_monotonic_us() - turn->item_us) * 1e-6);
    code = adv_keep_within("sweep", turn->batch.project, &answer, err);
    if (!code && answer.wants_store) code = store(turn, item, kind, &answer, &stored, err);
    if (!code)
        add_answer(turn, item, &answer, answer.wants_store ? stored.data : answer.json);
    else if (!may_pass(code))
        add_problem(turn, item, err);
    adv_text_free(&stored);
    adv_answer_free(&answer);
    return may_pass(code) ? code : ADV_OK;
}

static void log_trouble(const struct adv_app *app, const adv_err *err)
{
    struct adv_log_line line;
    adv_log_begin(&app->log, &line, ADV_LOG_WARNING, "sweep items left for later");
    adv_log_string(&line, "reason", err->count ? err->findings[0].detail : "");
    adv_log_end(&line);
}

/* Where that fails the lease runs out. */
static void give_back(struct turn *turn, int first)
{
    adv_err err = adv_err_empty();
    if (adv_sweep_release(turn->db, &turn->batch, first, &err)) log_trouble(turn->sweeper->app, &err);
}

/* Works off a batch that was taken; what could not be ended is given back. */
static void work_off(struct turn *turn)
{
    const struct adv_app *app = turn->sweeper->app;
    adv_code code = ADV_OK;
    int next = 0;
    adv_text_init(&turn->results, RESULTS_MOST);
    if (is_token_gone(app, &turn->batch)) {
        refuse_items(turn);
        next = turn->batch.count;
    }
    while (!code && next < turn->batch.count && !turn->lost && !atomic_load(&turn->sweeper->over)) {
        adv_err err = adv_err_empty();
        turn->late = false;
        code = answer_item(turn, &turn->batch.items[next], &err);
        next += code == ADV_OK;
        if (!code) (void)is_over(turn);
        if (!code && turn->results.length_bytes > RESULTS_ENOUGH) code = send_results(turn, next, &err);
        if (code && code != ADV_E_TIMEOUT) log_trouble(app, &err);
    }
    adv_err ended = adv_err_empty();
    if (send_results(turn, next, &ended) != ADV_OK) log_trouble(app, &ended);
    if (next < turn->batch.count && !turn->lost) give_back(turn, next);
    adv_text_free(&turn->results);
}

static void sleep_a_little(struct adv_sweeper *sweeper, unsigned *woken)
{
    const int64_t until_us = adv_monotonic_us() + IDLE_MS * 1000;
    bool is_late = false;
    (void)pthread_mutex_lock(&sweeper->lock);
    while (!sweeper->stopping && sweeper->woken == *woken && !is_late)
        is_late = adv_monotonic_wait(&sweeper->wake, &sweeper->lock, until_us);
    *woken = sweeper->woken;
    (void)pthread_mutex_unlock(&sweeper->lock);
}

/* The next batch should take about BATCH_S; it grows slowly and shrinks at once. */
static int next_size(int size, int count, int64_t took_us)
{
    const double each_s = (double)took_us * 1e-6 / (count > 0 ? count : 1);
    const double wanted = each_s > 0.0 ? BATCH_S / each_s : ADV_SWEEP_TAKE_MOST;
    if (wanted < 1.0) return 1;
    const double most = fmin(fmin(wanted, 2.0 * size), ADV_SWEEP_TAKE_MOST);
    return (int)most;
}

static void *work_loop(void *argument)
{
    struct adv_sweeper *sweeper = argument;
    struct adv_app *app = sweeper->app;
    char worker[ADV_UUID_BYTES];
    unsigned woken = 0;
    int size = 1;
    adv_uuid_make(worker);
    (void)setpriority(PRIO_PROCESS, 0, NICENESS); /* of this thread, on Linux */
    struct adv_db *db = adv_db_open(app->database);
    while (db && !atomic_load(&sweeper->over)) {
        struct turn turn = {.sweeper = sweeper, .db = db, .renewed_us = adv_monotonic_us()};
        adv_err err = adv_err_empty();
        if (adv_database_state(app->database) != ADV_DATABASE_UP || !adv_calibrations_known(app) ||
            adv_sweep_take(db, worker, size, &turn.batch, &err)) {
            sleep_a_little(sweeper, &woken);
            continue;
        }
        const int64_t start_us = adv_monotonic_us();
        const int count = turn.batch.count;
        if (count > 0) work_off(&turn);
        adv_sweep_batch_free(&turn.batch);
        if (count > 0)
            size = next_size(size, count, adv_monotonic_us() - start_us);
        else
            sleep_a_little(sweeper, &woken);
    }
    adv_db_close(db);
    return NULL;
}

struct adv_sweeper *adv_sweeper_start(struct adv_app *app, int threads_count)
{
    if (threads_count == 0) return NULL;
    struct adv_sweeper *sweeper = calloc(1, sizeof *sweeper);
    if (!sweeper) return NULL;
    sweeper->app = app;
    sweeper->threads = calloc((size_t)threads_count, sizeof *sweeper->threads);
    (void)pthread_mutex_init(&sweeper->lock, NULL);
    adv_monotonic_init(&sweeper->wake);
    bool good = sweeper->threads != NULL;
    while (good && sweeper->threads_count < threads_count) {
        good = pthread_create(&sweeper->threads[sweeper->threads_count], NULL, work_loop, sweeper) == 0;
        if (good) sweeper->threads_count++;
    }
    if (good) return sweeper;
    adv_sweeper_stop(sweeper);
    adv_sweeper_free(sweeper);
    return NULL;
}

void adv_sweeper_wake(struct adv_sweeper *sweeper)
{
    if (!sweeper) return;
    (void)pthread_mutex_lock(&sweeper->lock);
    sweeper->woken++;
    (void)pthread_cond_broadcast(&sweeper->wake);
    (void)pthread_mutex_unlock(&sweeper->lock);
}

void adv_sweeper_stop(struct adv_sweeper *sweeper)
{
    if (!sweeper) return;
    atomic_store(&sweeper->over, true);
    (void)pthread_mutex_lock(&sweeper->lock);
    sweeper->stopping = true;
    (void)pthread_cond_broadcast(&sweeper->wake);
    (void)pthread_mutex_unlock(&sweeper->lock);
    for (int i = 0; i < sweeper->threads_count; i++) (void)pthread_join(sweeper->threads[i], NULL);
    sweeper->threads_count = 0;
}

void adv_sweeper_free(struct adv_sweeper *sweeper)
{
    if (!sweeper) return;
    (void)pthread_cond_destroy(&sweeper->wake);
    (void)pthread_mutex_destroy(&sweeper->lock);
    free(sweeper->threads);
    free(sweeper);
}

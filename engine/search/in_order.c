#include "engine/search/in_order.h"

#include <pthread.h>
#include <time.h>

enum { WAIT_NS = 5000000 };

struct line {
    struct adv_in_order *job;
    struct adv_crew *crew;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int taken;       /* items before this one were taken */
    int first, next; /* ahead of the caller's item: those from `first` to before `next` were taken up */
    enum { UNTOUCHED, TAKEN_UP, READY } state[ADV_IN_ORDER_SLOTS];
    bool stopping;
};

/* The next item ahead, or, behind the last, the one before the first; -1 when there is no slot or no item.
 * The line is locked. */
static int claim(struct line *line)
{
    int item = -1;
    if (line->stopping) return item;
    if (line->next < line->job->count && line->next - line->taken < ADV_IN_ORDER_SLOTS)
        item = line->next++;
    else if (line->next == line->job->count && line->first - 1 > line->taken)
        item = --line->first;
    if (item >= 0) line->state[item % ADV_IN_ORDER_SLOTS] = TAKEN_UP;
    return item;
}

/* Works on an item that was claimed. The line is locked before and after. */
static void work_ahead(struct line *line, int worker, int item)
{
    const int slot = item % ADV_IN_ORDER_SLOTS;
    (void)pthread_mutex_unlock(&line->lock);
    line->job->work(line->job->context, worker, slot, item);
    (void)pthread_mutex_lock(&line->lock);
    line->state[slot] = READY;
    (void)pthread_cond_broadcast(&line->changed);
}

static void help(void *context)
{
    struct line *line = context;
    (void)pthread_mutex_lock(&line->lock);
    while (!line->stopping && !adv_crew_crowded(line->crew)) {
        const int item = claim(line);
        if (item < 0 && line->next == line->job->count) break;
        if (item < 0)
            (void)pthread_cond_wait(&line->changed, &line->lock);
        else
            work_ahead(line, 1, item);
    }
    (void)pthread_mutex_unlock(&line->lock);
}

/* False: nobody wants the rest. The line is locked. */
static bool wait_for_change(struct line *line)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += WAIT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_cond_timedwait(&line->changed, &line->lock, &until);
    return !line->job->over(line->job->context);
}

/* The caller's next step; false: it was the last one. The line is locked before and after. */
static bool step(struct line *line)
{
    const struct adv_in_order *job = line->job;
    const int item = line->taken, slot = item % ADV_IN_ORDER_SLOTS;
    const bool untouched = line->state[slot] == UNTOUCHED;
    if (line->state[slot] == TAKEN_UP) {
        const int ahead = claim(line);
        if (ahead < 0) return wait_for_change(line);
        work_ahead(line, 0, ahead);
        return true;
    }
    line->state[slot] = UNTOUCHED;
    line->next += untouched && line->next == item;
    (void)pthread_mutex_unlock(&line->lock);
    const bool more = untouched ? job->direct(job->context, item) : job->take(job->context, slot, item);
    (void)pthread_mutex_lock(&line->lock);
    line->taken++;
    (void)pthread_cond_broadcast(&line->changed);
    return more;
}

void adv_in_order_run(struct adv_in_order *job, struct adv_crew *crew)
{
    struct line line = {.job = job, .crew = crew, .first = job->ahead_from, .next = job->ahead_from};
    struct adv_crew_task task = {.run = help, .context = &line};
    pthread_condattr_t monotonic;
    (void)pthread_mutex_init(&line.lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&line.changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    const bool lent = job->count > 1 && adv_crew_lend(crew, &task);
    (void)pthread_mutex_lock(&line.lock);
    while (line.taken < job->count && step(&line)) continue;
    line.stopping = true;
    atomic_store(&job->stop, true);
    (void)pthread_cond_broadcast(&line.changed);
    (void)pthread_mutex_unlock(&line.lock);
    if (lent) adv_crew_wait(crew, &task);
    (void)pthread_cond_destroy(&line.changed);
    (void)pthread_mutex_destroy(&line.lock);
}

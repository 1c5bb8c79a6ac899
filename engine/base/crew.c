#include "engine/base/crew.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MOST_HELPERS = 63 };

struct adv_crew {
    pthread_mutex_t lock;
    pthread_cond_t wake, ended; /* a task was offered or the crew stops; a task has ended */
    struct adv_crew_task *offered;
    int niceness, processors, entered, idle, helping; /* helping: offered tasks too */
    bool stopping;
    int threads_count;
    pthread_t threads[MOST_HELPERS];
};

static void *help(void *argument)
{
    struct adv_crew *crew = argument;
    (void)pthread_setname_np(pthread_self(), "helper");
    (void)setpriority(PRIO_PROCESS, 0, crew->niceness); /* on Linux a thread has its own */
    (void)pthread_mutex_lock(&crew->lock);
    for (;;) {
        while (!crew->offered && !crew->stopping) (void)pthread_cond_wait(&crew->wake, &crew->lock);
        struct adv_crew_task *task = crew->offered;
        if (!task) break;
        crew->offered = task->next;
        (void)pthread_mutex_unlock(&crew->lock);
        task->run(task->context);
        (void)pthread_mutex_lock(&crew->lock);
        task->ended = true;
        crew->helping--;
        crew->idle++;
        (void)pthread_cond_broadcast(&crew->ended);
    }
    (void)pthread_mutex_unlock(&crew->lock);
    return NULL;
}

struct adv_crew *adv_crew_start(int processors, int niceness)
{
    struct adv_crew *crew = calloc(1, sizeof *crew);
    if (!crew) return NULL;
    const long machine = processors > 0 ? processors : sysconf(_SC_NPROCESSORS_ONLN);
    crew->processors = machine > MOST_HELPERS ? MOST_HELPERS + 1 : machine < 1 ? 1 : (int)machine;
    crew->niceness = niceness;
    (void)pthread_mutex_init(&crew->lock, NULL);
    (void)pthread_cond_init(&crew->wake, NULL);
    (void)pthread_cond_init(&crew->ended, NULL);
    bool good = true;
    while (good && crew->threads_count < crew->processors - 1) {
        good = pthread_create(&crew->threads[crew->threads_count], NULL, help, crew) == 0;
        if (good) crew->threads_count++;
    }
    (void)pthread_mutex_lock(&crew->lock);
    crew->idle = crew->threads_count;
    (void)pthread_mutex_unlock(&crew->lock);
    if (good) return crew;
    adv_crew_stop(crew);
    return NULL;
}

void adv_crew_stop(struct adv_crew *crew)
{
    if (!crew) return;
    (void)pthread_mutex_lock(&crew->lock);
    crew->stopping = true;
    (void)pthread_cond_broadcast(&crew->wake);
    (void)pthread_mutex_unlock(&crew->lock);
    for (int i = 0; i < crew->threads_count; i++) (void)pthread_join(crew->threads[i], NULL);
    (void)pthread_cond_destroy(&crew->ended);
    (void)pthread_cond_destroy(&crew->wake);
    (void)pthread_mutex_destroy(&crew->lock);
    free(crew);
}

static void count_entered(struct adv_crew *crew, int change)
{
    if (!crew) return;
    (void)pthread_mutex_lock(&crew->lock);
    crew->entered += change;
    (void)pthread_mutex_unlock(&crew->lock);
}

void adv_crew_enter(struct adv_crew *crew)
{
    count_entered(crew, 1);
}

void adv_crew_leave(struct adv_crew *crew)
{
    count_entered(crew, -1);
}

bool adv_crew_lend(struct adv_crew *crew, struct adv_crew_task *task)
{
    if (!crew) return false;
    (void)pthread_mutex_lock(&crew->lock);
    const bool lent = crew->idle > 0 && crew->entered + crew->helping < crew->processors;
    if (lent) {
        task->ended = false;
        task->next = crew->offered;
        crew->offered = task;
        crew->idle--;
        crew->helping++;
        (void)pthread_cond_signal(&crew->wake);
    }
    (void)pthread_mutex_unlock(&crew->lock);
    return lent;
}

void adv_crew_wait(struct adv_crew *crew, struct adv_crew_task *task)
{
    (void)pthread_mutex_lock(&crew->lock);
    while (!task->ended) (void)pthread_cond_wait(&crew->ended, &crew->lock);
    (void)pthread_mutex_unlock(&crew->lock);
}

bool adv_crew_crowded(struct adv_crew *crew)
{
    if (!crew) return false;
    (void)pthread_mutex_lock(&crew->lock);
    const bool crowded = crew->entered + crew->helping > crew->processors;
    (void)pthread_mutex_unlock(&crew->lock);
    return crowded;
}

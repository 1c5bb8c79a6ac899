/* preload.c: faults that no test can order from outside, for a program that is started with this library in
 * LD_PRELOAD. FAULT_FILE names a file of three numbers of 64 bits, which the test changes while the program
 * runs: [0] every so many allocations one fails; 0 = none    [1] the allocation that fails, counted from the
 * start; 0 = none [2] seconds that the clock of the day is ahead; the clock that only goes forward stays
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

static const int64_t *volatile faults;
static atomic_llong count;

__attribute__((constructor)) static void open_faults(void)
{
    const char *path = getenv("FAULT_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map = file < 0 ? MAP_FAILED : mmap(NULL, 3 * sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (map != MAP_FAILED) faults = map;
}

static int fails(void)
{
    if (!faults) return 0;
    const long long now = ++count;
    return (faults[0] && now % faults[0] == 0) || now == faults[1];
}

static void *refuse(void)
{
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t bytes)
{
    return fails() ? refuse() : __libc_malloc(bytes);
}

void *calloc(size_t members, size_t bytes)
{
    return fails() ? refuse() : __libc_calloc(members, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    return fails() ? refuse() : __libc_realloc(memory, bytes);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    const int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && clock == CLOCK_REALTIME && faults) now->tv_sec += faults[2];
    return failed;
}

time_t time(time_t *seconds)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (seconds) *seconds = now.tv_sec;
    return now.tv_sec;
}

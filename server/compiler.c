#include "server/compiler.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/embed.h"
#include "engine/base/text.h"
#include "engine/base/units.h"
#include "server/monotonic.h"

#define FOLDER_BYTES 256
#define PATH_BYTES   (FOLDER_BYTES + 64)
#define FOLDERS_OPEN 16

static bool write_file(const char *folder, const struct adv_embedded_file *file)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/%s", folder, file->name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return false;
    const bool written = write(fd, file->data, file->length_bytes) == (ssize_t)file->length_bytes;
    return close(fd) == 0 && written;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about;
    (void)kind;
    (void)place;
    (void)remove(path);
    return 0;
}

/* With all that a child has put there. */
static void remove_folder(const char *folder)
{
    (void)nftw(folder, remove_one, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
}

/* Writes the files below $TMPDIR (else /tmp); `folder` is its name. ADV_E_IO with the reason. */
static adv_code unpack(char folder[FOLDER_BYTES], adv_err *err)
{
    const char *place = getenv("TMPDIR");
    (void)snprintf(folder, FOLDER_BYTES, "%s/tpu-advisor-verify-XXXXXX", place && *place ? place : "/tmp");
    if (!mkdtemp(folder))
        return adv_err_add(err, ADV_E_IO, "", "name another folder by TMPDIR", "cannot make %.200s: %s",
                           folder, strerror(errno));
    for (const struct adv_embedded_file *file = adv_embedded_verifier; file->name; file++) {
        if (write_file(folder, file)) continue;
        (void)adv_err_add(err, ADV_E_IO, "", "name another folder by TMPDIR", "cannot write %.200s/%s: %s",
                          folder, file->name, strerror(errno));
        remove_folder(folder);
        return ADV_E_IO;
    }
    return ADV_OK;
}

/* Resident pages of a process of the group; 0 of another's. */
static long group_pages(const char *process, pid_t group)
{
    char path[64], text[1024];
    (void)snprintf(path, sizeof path, "/proc/%.20s/stat", process);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    const size_t got = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[got] = '\0';
    const char *after = strrchr(text, ')'); /* the name before it may hold anything */
    int owner = 0;
    long pages = 0;
    /* state and parent, then the group; of the fields behind it the 19th */
    const bool good = after && sscanf(after + 1,
                                      " %*s %*s %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                                      "%*s %*s %*s %*s %ld",
                                      &owner, &pages) == 2;
    return good && owner == (int)group ? pages : 0;
}

/* Bytes of memory that the processes of a group hold, shared pages counted in each; 0 where /proc does not
 * tell. */
static double group_bytes(pid_t group)
{
    DIR *processes = opendir("/proc");
    double bytes = 0.0;
    const struct dirent *entry;
    while (processes && (entry = readdir(processes)))
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            bytes += (double)group_pages(entry->d_name, group) * (double)sysconf(_SC_PAGESIZE);
    if (processes) (void)closedir(processes);
    return bytes;
}

#define NOISE            "noise" /* what the child and its libraries print beside its words */
#define TICK_MS          200
#define DUMP_LIMIT_BYTES (8u * 1024u * 1024u * 1024ul) /* one file of XLA's; the largest seen has 0.4 GB */
#define LEAVE_S          5 /* a child that has said its result may take to leave */

struct child {
    const struct adv_compiler_order *order;
    char folder[FOLDER_BYTES], python[FOLDER_BYTES];
    pid_t pid;
    int words; /* its standard output */
    double began_s;
    struct adv_text line;
    char *result;
    char failure[ADV_LIMIT_DETAIL];
    bool unwanted;
};

const char *adv_compiler_versions(void)
{
    for (const struct adv_embedded_file *file = adv_embedded_verifier; file->name; file++)
        if (strcmp(file->name, "versions.json") == 0) return (const char *)file->data;
    return "{}";
}

/* The environment's interpreter, as the script in `folder` names it; false: there is none. */
static bool find_python(const char *folder, bool make, char python[FOLDER_BYTES])
{
    char command[FOLDER_BYTES + 64];
    (void)snprintf(command, sizeof command, "exec sh '%s/environment.sh' %s", folder,
                   make ? "" : "--check 2>/dev/null");
    FILE *script = popen(command, "r");
    if (!script) return false;
    python[0] = '\0';
    const bool named = fgets(python, FOLDER_BYTES, script) != NULL;
    python[strcspn(python, "\n")] = '\0';
    return pclose(script) == 0 && named && python[0] == '/';
}

static bool has_python(bool make, adv_err *err)
{
    char folder[FOLDER_BYTES], python[FOLDER_BYTES];
    if (unpack(folder, err)) return false;
    const bool found = find_python(folder, make, python);
    remove_folder(folder);
    return found;
}

bool adv_compiler_ready(const char *program)
{
    return program && *program ? access(program, X_OK) == 0 : has_python(false, NULL);
}

bool adv_compiler_install(adv_err *err)
{
    return has_python(true, err);
}

static void limit(int resource, rlim_t most)
{
    const struct rlimit both = {most, most};
    (void)setrlimit((__rlimit_resource_t)resource, &both);
}

/* In the child: never returns. */
static _Noreturn void become(const struct child *child, int input, int output)
{
    const struct adv_compiler_order *order = child->order;
    char time_text[24], script[FOLDER_BYTES + 16];
    const bool other = order->program && *order->program;
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, DUMP_LIMIT_BYTES);
    limit(RLIMIT_CPU, (rlim_t)order->time_s * 64); /* threads of one process count together */
    char noise[FOLDER_BYTES + 16];
    (void)snprintf(noise, sizeof noise, "%s/" NOISE, child->folder);
    const int log = open(noise, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (log < 0 || dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(log, 2) < 0) _exit(127);
    (void)setenv("TMPDIR", child->folder, 1);
    (void)setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    (void)snprintf(time_text, sizeof time_text, "%ld", order->time_s);
    (void)snprintf(script, sizeof script, "%s/verify.py", child->folder);
    const char *arguments[9] = {other ? order->program : child->python};
    int count = 1;
    if (!other) arguments[count++] = script;
    arguments[count++] = "--timeout";
    arguments[count++] = time_text;
    if (order->whole) arguments[count++] = "--whole";
    if (order->keep) {
        arguments[count++] = "--keep";
        arguments[count++] = order->keep;
    }
    (void)execv(arguments[0], (char *const *)(uintptr_t)arguments);
    _exit(127);
}

/* A file without a name that holds the plan: a pipe would have to be fed. */
static int plan_input(const char *plan)
{
    const size_t length = strlen(plan);
    const int fd = memfd_create("plan", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, plan, length) == (ssize_t)length && lseek(fd, 0, SEEK_SET) == 0) return fd;
    if (fd >= 0) (void)close(fd);
    return -1;
}

static bool start(struct child *child)
{
    int words[2] = {-1, -1};
    const int input = plan_input(child->order->plan);
    child->pid = input >= 0 && pipe2(words, O_CLOEXEC) == 0 ? fork() : -1;
    if (child->pid == 0) become(child, input, words[1]);
    if (child->pid > 0) (void)setpgid(child->pid, child->pid);
    if (input >= 0) (void)close(input);
    if (words[1] >= 0) (void)close(words[1]);
    child->words = words[0];
    child->began_s = adv_monotonic_s();
    return child->pid > 0;
}

static void take_line(struct child *child)
{
    struct adv_proof_line said;
    if (adv_proof_line_read(child->line.data, child->line.length_bytes, &said)) {
        const struct adv_compiler_order *order = child->order;
        if (said.result && !child->result)
            child->result = said.result;
        else
            free(said.result);
        const double seconds = isfinite(said.seconds) ? said.seconds : adv_monotonic_s() - child->began_s;
        if (said.stage[0] && !order->watch(order->context, said.stage, seconds)) child->unwanted = true;
    }
    adv_text_free(&child->line);
    adv_text_init(&child->line, ADV_LIMIT_PROOF_BYTES);
}

/* Reads what is there; false: the child has closed its output. */
static bool take_words(struct child *child)
{
    char bytes[8192];
    const ssize_t got = read(child->words, bytes, sizeof bytes);
    if (got < 0) return errno == EINTR || errno == EAGAIN;
    for (ssize_t i = 0; i < got; i++) {
        if (bytes[i] == '\n')
            take_line(child);
        else
            adv_text_append_bytes(&child->line, &bytes[i], 1);
    }
    return got > 0;
}

/* Whether the child may go on. */
static bool within_limits(struct child *child)
{
    const struct adv_compiler_order *order = child->order;
    const double seconds = adv_monotonic_s() - child->began_s;
    if (child->unwanted || !order->watch(order->context, NULL, seconds)) {
        child->unwanted = true;
        return false;
    }
    /* The program keeps the same time itself and can say how far it got: it has the first word. */
    if (seconds > (double)(order->time_s + LEAVE_S)) {
        (void)snprintf(child->failure, sizeof child->failure, "not compiled within %ld s", order->time_s);
        return false;
    }
    const double bytes = group_bytes(child->pid);
    if (bytes > (double)order->memory_gib * ADV_GIB) {
        (void)snprintf(child->failure, sizeof child->failure,
                       "the compiler holds %.1f GiB of this machine's memory, %ld GiB are allowed",
                       bytes / ADV_GIB, order->memory_gib);
        return false;
    }
    return true;
}

static void follow(struct child *child)
{
    double said_s = (double)INFINITY;
    for (bool open = true; open;) {
        struct pollfd words = {.fd = child->words, .events = POLLIN};
        const int ready = poll(&words, 1, TICK_MS);
        if (ready > 0) open = take_words(child);
        if (child->result && !isfinite(said_s)) said_s = adv_monotonic_s();
        if (!within_limits(child) || adv_monotonic_s() - said_s > LEAVE_S) break;
    }
}

/* Its exit status; a child that has only closed its output gets a moment to leave by itself. */
static int leave(const struct child *child)
{
    int status = 0;
    const bool ended = child->result || child->failure[0] || child->unwanted;
    for (double until_s = adv_monotonic_s() + LEAVE_S; !ended && adv_monotonic_s() < until_s;) {
        if (waitpid(child->pid, &status, WNOHANG) == child->pid) return status;
        (void)poll(NULL, 0, TICK_MS / 10);
    }
    (void)kill(-child->pid, SIGKILL);
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) continue;
    return status;
}

/* The last line that the child printed beside its words, for who has to find out why. */
static void last_noise(const struct child *child, char last[128])
{
    char path[FOLDER_BYTES + 16], line[1024];
    (void)snprintf(path, sizeof path, "%s/" NOISE, child->folder);
    FILE *file = fopen(path, "re");
    last[0] = '\0';
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (*line) (void)snprintf(last, 128, "%.127s", line);
    }
    if (file) (void)fclose(file);
}

static void finish(struct child *child)
{
    const int status = leave(child);
    (void)kill(-child->pid, SIGKILL); /* what it left behind */
    (void)close(child->words);
    if (child->result || child->unwanted) return;
    if (!child->failure[0] && WIFSIGNALED(status))
        (void)snprintf(child->failure, sizeof child->failure, "the compiler was ended by signal %d",
                       WTERMSIG(status));
    char last[128];
    last_noise(child, last);
    if (!child->failure[0])
        (void)snprintf(child->failure, sizeof child->failure,
                       "the compiler ended with status %d and gave no result%s%s", WEXITSTATUS(status),
                       *last ? ": " : "", last);
    child->result = adv_proof_failed(child->failure, child->order->whole, adv_monotonic_s() - child->began_s);
}

enum adv_compiler_end adv_compiler_run(const struct adv_compiler_order *order, char **result, adv_err *err)
{
    struct child child = {.order = order, .words = -1};
    *result = NULL;
    if (unpack(child.folder, err)) return ADV_COMPILER_ERROR;
    enum adv_compiler_end end = ADV_COMPILER_SAID;
    adv_text_init(&child.line, ADV_LIMIT_PROOF_BYTES);
    if (!(order->program && *order->program) && !find_python(child.folder, false, child.python)) {
        end = ADV_COMPILER_NO_ENVIRONMENT;
    } else if (!start(&child)) {
        (void)adv_err_add(err, ADV_E_IO, "", NULL, "cannot start the compiler: %s", strerror(errno));
        end = ADV_COMPILER_ERROR;
    } else {
        follow(&child);
        finish(&child);
        end = child.unwanted ? ADV_COMPILER_UNWANTED : child.result ? ADV_COMPILER_SAID : ADV_COMPILER_ERROR;
        if (end == ADV_COMPILER_ERROR)
            (void)adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the result");
    }
    if (end == ADV_COMPILER_SAID)
        *result = child.result;
    else
        free(child.result);
    adv_text_free(&child.line);
    remove_folder(child.folder);
    return end;
}

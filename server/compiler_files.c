#include "server/compiler_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/embed.h"

#define PATH_BYTES   (ADV_LIMIT_FOLDER + 64)
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

adv_code adv_compiler_unpack(char folder[ADV_LIMIT_FOLDER], adv_err *err)
{
    const char *place = getenv("TMPDIR");
    (void)snprintf(folder, ADV_LIMIT_FOLDER, "%s/tpu-advisor-verify-XXXXXX",
                   place && *place ? place : "/tmp");
    if (!mkdtemp(folder))
        return adv_err_add(err, ADV_E_IO, "", "name another folder by TMPDIR", "cannot make %.200s: %s",
                           folder, strerror(errno));
    for (const struct adv_embedded_file *file = adv_embedded_verifier; file->name; file++) {
        if (write_file(folder, file)) continue;
        (void)adv_err_add(err, ADV_E_IO, "", "name another folder by TMPDIR", "cannot write %.200s/%s: %s",
                          folder, file->name, strerror(errno));
        adv_compiler_remove(folder);
        return ADV_E_IO;
    }
    return ADV_OK;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about;
    (void)kind;
    (void)place;
    (void)remove(path);
    return 0;
}

void adv_compiler_remove(const char *folder)
{
    (void)nftw(folder, remove_one, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
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
    if (!after || sscanf(after + 1, " %*c %*d %d", &owner) != 1 || owner != (int)group) return 0;
    /* the 24th field: state is the third */
    const char *at = after + 2;
    for (int field = 3; field < 24 && at; field++) {
        at = strchr(at, ' ');
        if (at) at++;
    }
    return at && sscanf(at, "%ld", &pages) == 1 ? pages : 0;
}

double adv_compiler_group_bytes(pid_t group)
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

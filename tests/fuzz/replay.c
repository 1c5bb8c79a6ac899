/* replay.c FILE|FOLDER...: runs a fuzz target over stored inputs, without libFuzzer. */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <sys/stat.h>

static int replayed_count;

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return 1;
    }
    size_t capacity = 4u << 20, size;
    uint8_t *data = malloc(capacity);
    size = data ? fread(data, 1, capacity, file) : 0;
    fclose(file);
    /* Exactly as long as the input, so that a sanitizer sees the first byte read beyond it. */
    uint8_t *input = malloc(size ? size : 1);
    if (data && input) memcpy(input, data, size);
    free(data);
    if (!input) return 1;
    (void)LLVMFuzzerTestOneInput(input, size);
    free(input);
    replayed_count++;
    return 0;
}

static int replay_folder(const char *path)
{
    struct dirent **entries;
    int failed = 0, count = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char name[4096];
        int length = snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            failed |= length < 0 || (size_t)length >= sizeof name || replay_file(name);
        free(entries[i]);
    }
    if (count >= 0) free(entries);
    return count < 0 || failed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        struct stat status;
        if (stat(argv[i], &status) != 0) continue; /* a target without regressions has no such folder */
        failed |= S_ISDIR(status.st_mode) ? replay_folder(argv[i]) : replay_file(argv[i]);
    }
    printf("fuzz: %s: %d inputs replayed\n", strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0],
           replayed_count);
    return failed || replayed_count == 0;
}

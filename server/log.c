#include "server/log.h"

#include "server/json_text.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_LIMIT_BYTES                                                                                     \
    16384 /* a path of 8 KiB with every byte escaped still fits in part; the rest is cut */

static const char *const level_names[] = {"debug", "info", "warning", "error"};

bool adv_log_level_parse(const char *name, atomic_int *level)
{
    for (int i = 0; i < 4; i++) {
        if (strcmp(name, level_names[i]) != 0) continue;
        atomic_store(level, i);
        return true;
    }
    return false;
}

bool adv_log_open(struct adv_log *log, const char *path)
{
    if (!*path) return true;
    const int opened = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    if (opened < 0) return false;
    if (log->file <= 0) {
        log->file = opened;
        return true;
    }
    const bool same_number = dup3(opened, log->file, O_CLOEXEC) >= 0; /* writers never see it closed */
    (void)close(opened);
    return same_number;
}

void adv_log_begin(const struct adv_log *log, struct adv_log_line *line, enum adv_log_level level,
                   const char *message)
{
    line->wanted = (int)level >= atomic_load_explicit(&log->level, memory_order_relaxed);
    line->file = log->file > 0 ? log->file : STDERR_FILENO;
    if (!line->wanted) return;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    struct tm parts;
    (void)gmtime_r(&now.tv_sec, &parts);
    char stamp[32];
    (void)strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &parts);
    adv_text_init(&line->text, LINE_LIMIT_BYTES);
    adv_text_format(&line->text, "{\"ts\":\"%s.%03ldZ\",\"level\":\"%s\",\"msg\":", stamp,
                    now.tv_nsec / 1000000, level_names[level]);
    adv_json_text_quote(&line->text, message);
}

void adv_log_string(struct adv_log_line *line, const char *name, const char *value)
{
    if (line->wanted) adv_json_text_string(&line->text, name, value);
}

void adv_log_number(struct adv_log_line *line, const char *name, int64_t value)
{
    if (line->wanted) adv_text_format(&line->text, ",\"%s\":%lld", name, (long long)value);
}

void adv_log_end(struct adv_log_line *line)
{
    if (!line->wanted) return;
    adv_text_append(&line->text, "}\n");
    /* An overlong or out-of-memory line would not be JSON: a marker is. A log that cannot be written has no
     * reader. */
    static const char lost[] = "{\"level\":\"warning\",\"msg\":\"a log line was too long\"}\n";
    bool whole = !line->text.overflow;
    ssize_t written =
        write(line->file, whole ? line->text.data : lost, whole ? line->text.length_bytes : sizeof lost - 1);
    (void)written;
    adv_text_free(&line->text);
}

void adv_log_message(const struct adv_log *log, enum adv_log_level level, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    struct adv_log_line line;
    adv_log_begin(log, &line, level, message);
    adv_log_end(&line);
}

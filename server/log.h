/* log.h: one JSON object per line on standard error: time, level, message, and named values.
 *
 * Bodies, tokens and database URLs are never logged. Thread safe: a line is one write.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/code.h"
#include "engine/base/text.h"

enum adv_log_level { ADV_LOG_DEBUG, ADV_LOG_INFO, ADV_LOG_WARNING, ADV_LOG_ERROR };

struct adv_log {
    atomic_int level; /* enum adv_log_level; lines below it are dropped */
    int file;         /* descriptor; 0 = standard error */
};

/* Opens (or, after it was moved away, opens again) the file that lines are appended to; "" = standard error.
 * false: it cannot be opened, errno says why, and lines go where they went. */
bool adv_log_open(struct adv_log *log, const char *path);

/* "debug" … "error" into `level`; false when it is none of them. */
bool adv_log_level_parse(const char *name, atomic_int *level);

/* A line with a message only. */
void adv_log_message(const struct adv_log *log, enum adv_log_level level, const char *format, ...)
    ADV_PRINTF(3, 4);

/* A line with members: begin, add, end. Nothing is written when `level` is below the log's. */
struct adv_log_line {
    struct adv_text text;
    bool wanted;
    int file;
};
void adv_log_begin(const struct adv_log *log, struct adv_log_line *line, enum adv_log_level level,
                   const char *message);
void adv_log_string(struct adv_log_line *line, const char *name, const char *value);
void adv_log_number(struct adv_log_line *line, const char *name, int64_t value);
void adv_log_end(struct adv_log_line *line);

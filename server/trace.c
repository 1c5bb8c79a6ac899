#include "server/trace.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { TRACE_DIGITS = 32, SPAN_DIGITS = 16, VERSION_0_BYTES = 55 };

static bool take_digits(const char **at, size_t count, char *copy)
{
    if (strspn(*at, "0123456789abcdef") < count) return false;
    memcpy(copy, *at, count);
    copy[count] = '\0';
    *at += count;
    return true;
}

static bool take_dash(const char **at)
{
    return *(*at)++ == '-';
}

static bool is_zero(const char *digits)
{
    return digits[strspn(digits, "0")] == '\0';
}

static bool read_parts(const char *at, struct adv_trace *trace)
{
    char version[3];
    const size_t length = strlen(at);
    if (length < VERSION_0_BYTES || !take_digits(&at, 2, version) || strcmp(version, "ff") == 0) return false;
    if (strcmp(version, "00") == 0 && length != VERSION_0_BYTES) return false;
    return take_dash(&at) && take_digits(&at, TRACE_DIGITS, trace->trace_id) && take_dash(&at) &&
           take_digits(&at, SPAN_DIGITS, trace->parent_id) && take_dash(&at) &&
           take_digits(&at, 2, trace->flags) && (*at == '\0' || *at == '-') && !is_zero(trace->trace_id) &&
           !is_zero(trace->parent_id);
}

void adv_trace_read(const char *traceparent, struct adv_trace *trace)
{
    uint64_t random = 0;
    memset(trace, 0, sizeof *trace);
    if (!traceparent) return;
    if (!read_parts(traceparent, trace) || getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
        trace->trace_id[0] = '\0';
        return;
    }
    (void)snprintf(trace->span_id, sizeof trace->span_id, "%016llx", (unsigned long long)(random | 1));
}

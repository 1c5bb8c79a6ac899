/* trace.h: W3C Trace Context: the trace that a request belongs to, as the header traceparent says it. */
#pragma once

#include <stdbool.h>

struct adv_trace {
    char trace_id[33];  /* lower-case hex digits; "" = the request belongs to none */
    char parent_id[17]; /* the span that sent the request */
    char span_id[17];   /* ours, made here */
    char flags[3];
};

/* Reads `traceparent` (NULL or malformed: none, as the standard wants) and makes a span of it. */
void adv_trace_read(const char *traceparent, struct adv_trace *trace);

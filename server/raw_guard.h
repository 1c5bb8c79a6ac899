/* raw_guard.h: reads the bytes of a connection before the HTTP library does, and refuses what it would change
 * silently.
 *
 * The library (0.9.75) drops the folded part of a header, cuts lines at a NUL, takes a lone line feed for a
 * line's end and a header without a name for the end of all headers, reads chunk extensions without end, and
 * answers a length that is no number with two heads; a proxy in front reads all of that differently. Here a
 * request has lines that end in CR LF, none of which begins with a blank or holds a NUL, headers that have a
 * name, one length or chunks, and chunk lines of a bounded length. What the library shows is judged by
 * guard.h.
 *
 * Bytes are fed in the order in which they arrive; where one request ends and the next begins is followed by
 * Content-Length and chunks. One thread per guard.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADV_LIMIT_CHUNK_LINE_BYTES 128 /* a length and an extension; nobody sends one */
#define ADV_LIMIT_TRAILER_BYTES    512 /* behind the last chunk; nobody sends one either */
#define ADV_LIMIT_RAW_NAME_BYTES   24  /* "transfer-encoding" has 17 */
#define ADV_LIMIT_RAW_VALUE_BYTES  24  /* a length has at most 18 digits */

enum adv_raw_state {
    ADV_RAW_BEFORE,     /* a request; empty lines there are passed over */
    ADV_RAW_LINE,       /* of the request */
    ADV_RAW_FIELD,      /* a header line, at its start or within it */
    ADV_RAW_BODY,       /* left_bytes of it */
    ADV_RAW_CHUNK_LINE, /* the length of a chunk */
    ADV_RAW_CHUNK,      /* left_bytes of it, and its CR LF */
    ADV_RAW_TRAILER     /* a line behind the last chunk */
};

struct adv_raw_guard {
    enum adv_raw_state state;
    bool after_cr, in_value, chunked, has_seen;
    int lengths_count;
    size_t line_bytes, trailer_bytes, name_bytes, value_bytes;
    uint64_t body_bytes, left_bytes;
    char name[ADV_LIMIT_RAW_NAME_BYTES], value[ADV_LIMIT_RAW_VALUE_BYTES];
    const char *reason; /* why the connection is refused; NULL = so far fine */
};

/* Whether the bytes may be read on; false, from then on, with the reason. A zeroed guard is a new
 * connection's. */
bool adv_raw_guard_feed(struct adv_raw_guard *guard, const char *bytes, size_t count);

/* The HTTP library reads sockets with recv(), and has no place for a look at what was read. The program's own
 * recv (raw_recv.c) takes the place of the C library's and shows the bytes of these sockets to their guards;
 * a refused connection is answered 400 there and looks closed to the library. Other sockets are read as ever.
 * open: before the library reads, false when it cannot be guarded; close: before the socket is closed. */
bool adv_raw_guard_open(int socket);
void adv_raw_guard_close(int socket);

/* Whether the guard of a socket has seen a request: where it has not, the library reads in another way, and
 * the guard is none. */
bool adv_raw_guard_has_seen(int socket);

/* Whether the client of a socket may still be sending: it is refused, within a request, or has sent what
 * nobody has read. */
bool adv_raw_guard_is_within(int socket);

/* Connections refused since the start. */
long adv_raw_guard_refused(void);

/* guard.h: refuses requests that two HTTP parsers could read differently (request smuggling), before any
 * handler.
 *
 * The HTTP library (0.9.75) accepts Content-Length beside Transfer-Encoding, two Content-Lengths, blanks in
 * header names or the target and requests without Host; a proxy in front may not. RFC 9112,
 * sections 3.2, 5.1, 6.1 and 6.3. Nor is a header that says one thing taken twice: the two may differ.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADV_LIMIT_HEAD_BYTES                                                                                 \
    (8 * 1024) /* request target and header fields; the longest real token has 4 KiB. Each connection, also  \
                  an idle one, holds twice that */

struct adv_guard {
    int content_length_count, transfer_encoding_count, host_count;
    unsigned singles;             /* a bit for each of the other headers that come once, and came */
    int64_t content_length_bytes; /* -1 = none */
    int64_t head_bytes;           /* of the fields seen so far; after adv_guard_finish with the target */
    bool chunked;
    const char *reason; /* why the request is refused; NULL = so far fine */
};

/* Whether the text is a token (RFC 9110, 5.6.2), as names of headers and methods are. */
bool adv_guard_is_token(const char *text, size_t length);

int adv_guard_hex_digit(char digit); /* its value; -1: it is none */

void adv_guard_init(struct adv_guard *guard);

/* Called for each header field; value may be NULL for an empty one. */
void adv_guard_header(struct adv_guard *guard, const char *name, const char *value);

/* After the last header. The reason for refusal, or NULL. `target` is the request target as sent. */
const char *adv_guard_finish(struct adv_guard *guard, const char *method, const char *target,
                             const char *version);

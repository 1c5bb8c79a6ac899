/* linger.h: ends connections whose client is still sending, so that it reads its answer.
 *
 * A socket that is closed with bytes unread resets the connection, and the reset overtakes the answer: a
 * client that sends a body which is refused (413, 400, 431) sees "connection reset" instead of why. Here such
 * a connection is kept a little longer: what comes is thrown away until the client has closed, or has had its
 * time or bytes. One thread for all; of more connections at once than ADV_LIMIT_LINGERING the rest is closed
 * as ever, so that nobody holds more of them than that. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define ADV_LIMIT_LINGERING     64                     /* connections at once, each a descriptor */
#define ADV_LIMIT_LINGER_MS     10000                  /* of one: what a client may take to send its body */
#define ADV_LIMIT_LINGER_NAP_MS 2000                   /* without a byte of it */
#define ADV_LIMIT_LINGER_BYTES  (128u * 1024u * 1024u) /* of one; many times a body that is taken */

struct adv_linger;

struct adv_linger *adv_linger_start(void); /* NULL when memory, descriptors or threads are exhausted */

/* Before `socket` is closed by its owner, who does so right after: its answer is written, and nothing more
 * will be. The descriptor stays the owner's. */
void adv_linger_take(struct adv_linger *linger, int socket);

void adv_linger_stop(struct adv_linger *linger); /* those that are left are closed; NULL is fine */

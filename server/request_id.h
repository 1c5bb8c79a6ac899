/* request_id.h: names for requests and runs. */
#pragma once

#include <stdbool.h>

#include "server/exchange.h"

#define ADV_UUID_BYTES 37 /* 36 characters and the NUL */

/* A UUID version 7 (RFC 9562): sorts by creation time. Thread safe. */
void adv_uuid_make(char uuid[ADV_UUID_BYTES]);

/* Whether the text is a UUID in its usual form. */
bool adv_uuid_valid(const char *text);

/* The client's id when it has 1 to 128 letters, digits or any of ._:/+=@-; otherwise a new UUID. `client` may
 * be NULL. */
void adv_request_id_choose(const char *client, char id[ADV_LIMIT_REQUEST_ID]);

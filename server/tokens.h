/* tokens.h: bearer tokens. Only their SHA-256 is ever stored.
 *
 * The file has a line per token, `NAME SCOPE[,SCOPE] SHA256`, # starts a comment. To make one:
 *   token=$(openssl rand -hex 32); printf '%s' "$token" | sha256sum
 * A scope includes the ones below it: admin (deletes runs) > write (stores) > read (everything else).
 */
#ifndef ADV_SERVER_TOKENS_H
#define ADV_SERVER_TOKENS_H

#include <stdio.h>

#include "engine/base/code.h"

#define ADV_SCOPE_READ  1u
#define ADV_SCOPE_WRITE 2u
#define ADV_SCOPE_ADMIN 4u
#define ADV_SCOPE_ALL   7u

#define ADV_LIMIT_TOKENS 1024 /* rows; the search is linear, 1024 digests are compared in 30 us */

struct adv_tokens;

/* Reads the file; all mistakes are printed to `errors` with their lines. */
ADV_MUST_CHECK adv_code adv_tokens_load(const char *path, struct adv_tokens **tokens, FILE *errors);
void adv_tokens_free(struct adv_tokens *tokens); /* NULL is fine */

/* The scopes of the header's token ("Bearer …"); 0 when it is unknown, malformed or NULL. `name` becomes the
 * token's name, which lives as long as `tokens`, or "". Thread safe. */
unsigned adv_tokens_check(const struct adv_tokens *tokens, const char *authorization, const char **name);

#endif

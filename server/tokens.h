/* tokens.h: bearer tokens. Only their SHA-256 is ever stored; a token has 256 random bits, so that a slow
 * hash would protect nothing.
 *
 * They come from a file with a line per token, `NAME SCOPE[,SCOPE] SHA256 [project=NAME] [expires=SECONDS]`
 * (# starts a comment; seconds of the Unix clock), from the table `tokens` of the database, or from both;
 * `tpu-advisor token create` makes them. A scope includes the ones below it: admin (deletes runs) > write
 * (stores) > read (everything else). A token with a project sees that project only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/base/code.h"
#include "engine/base/limits.h"
#include "server/sha256.h"

#define ADV_SCOPE_READ  1u
#define ADV_SCOPE_WRITE 2u
#define ADV_SCOPE_ADMIN 4u
#define ADV_SCOPE_ALL   7u

#define ADV_LIMIT_TOKENS           1024 /* rows; the search is linear, 1024 digests are compared in 30 us */
#define ADV_LIMIT_TOKEN_NAME_BYTES 64

struct adv_token {
    unsigned scopes;
    char name[ADV_LIMIT_TOKEN_NAME_BYTES];
    char project[ADV_LIMIT_NAME]; /* "" = all */
    int64_t expires_s;            /* of the Unix clock; 0 = never */
    char digest[ADV_SHA256_HEX];
};

/* Who asks. */
struct adv_caller {
    unsigned scopes; /* 0 = nobody we know */
    bool expired;    /* the token was one of ours */
    char name[ADV_LIMIT_TOKEN_NAME_BYTES];
    char project[ADV_LIMIT_NAME];
};

struct adv_tokens; /* a set, const once it is in force */

ADV_MUST_CHECK struct adv_tokens *adv_tokens_new(void); /* freed with free(); NULL when memory is exhausted */
/* false: the set is full. */
ADV_MUST_CHECK bool adv_tokens_add(struct adv_tokens *tokens, const struct adv_token *token);

/* Reads a file; all mistakes are printed to `errors` with their lines. */
ADV_MUST_CHECK adv_code adv_tokens_load(const char *path, struct adv_tokens **tokens, FILE *errors);

/* "read,write" as a set; 0 when a name is unknown. `list` is written to. */
unsigned adv_tokens_scopes(char *list);

/* The tokens in force, which are replaced while requests are checked. Thread safe. */
struct adv_keyring;
enum adv_keyring_part { ADV_KEYRING_FILE, ADV_KEYRING_DATABASE, ADV_KEYRING_PARTS };

struct adv_keyring *adv_keyring_new(void);
void adv_keyring_free(struct adv_keyring *keyring); /* NULL is fine */
/* Takes the set over; what it replaces is freed. */
void adv_keyring_set(struct adv_keyring *keyring, enum adv_keyring_part part, struct adv_tokens *tokens);
bool adv_keyring_has(struct adv_keyring *keyring, enum adv_keyring_part part);

/* Who a header ("Bearer …", or NULL) is from. */
void adv_keyring_check(struct adv_keyring *keyring, const char *authorization, int64_t now_s,
                       struct adv_caller *caller);

/* Whether `part` has a token in force by which the caller, known by name only, could still do what his scopes
 * say in his project ("": in all). A name may have several tokens: one of them is enough. */
bool adv_keyring_allows(struct adv_keyring *keyring, enum adv_keyring_part part,
                        const struct adv_caller *caller, int64_t now_s);

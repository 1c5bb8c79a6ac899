/* decode_store.h: the members of a request that say whether and under which names its answer is stored.
 * Thread safe. */
#pragma once

#include "engine/base/arena.h"
#include "engine/json/json_read.h"
#include "engine/spec/store_wish.h"

/* Their names, for lists of known members. */
#define ADV_STORE_MEMBERS "store", "label", "project", "git_ref", "tags"

#define ADV_LIMIT_TAGS      32
#define ADV_LIMIT_TAG_BYTES 63

/* The body of PATCH /v1/runs/{run_id}, {"tags": [...]}: at most 32 different strings of 1 to 63 bytes without
 * commas and control characters, as a JSON array in *tags, malloc'ed. ADV_E_INVALID with a finding for each
 * that is not. */
ADV_MUST_CHECK adv_code adv_decode_tags(const char *json, size_t json_bytes, char **tags, adv_err *err);

/* "store": "try" asks for the answer also where it cannot be stored; true does not. */
#define ADV_STORE_TRY "try"

/* "verify": {"top": n} of an advise request: how many plans go before the real compiler, 0 without. Such an
 * answer is stored: "store": false beside it is a finding. */
int adv_decode_verify(const json_t *root, adv_err *err);

/* Reads them from the document `root`; wrong ones add findings. Strings are copies in `arena`. */
void adv_decode_store(const json_t *root, struct adv_arena *arena, struct adv_store_wish *wish, adv_err *err);

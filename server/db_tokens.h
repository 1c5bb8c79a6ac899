/* db_tokens.h: the table of tokens, as the daemon's watcher reads it and `tpu-advisor token` keeps it. */
#pragma once

#include <stdio.h>

#include "engine/base/err.h"
#include "server/tokens.h"

/* Adds a token; `scopes` as it was written ("read,write"). ADV_E_CONFLICT: there is one of that name. */
ADV_MUST_CHECK adv_code adv_db_token_create(const char *url, const struct adv_token *token,
                                            const char *scopes, adv_err *err);

/* A line per token: name, scopes, project, when made, when it ends, whether it is in force. */
ADV_MUST_CHECK adv_code adv_db_tokens_list(const char *url, FILE *out, adv_err *err);

/* ADV_E_NOT_FOUND: none of that name is in force. */
ADV_MUST_CHECK adv_code adv_db_token_revoke(const char *url, const char *name, adv_err *err);

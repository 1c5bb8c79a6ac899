/* origin.h: keeps the pages of others from using a daemon that asks nobody for a token.
 *
 * A browser lets any page send requests to addresses that only its machine can reach. Two ways matter here. A
 * page's own name may be pointed at our address after it was loaded (DNS rebinding): then the Host is that
 * name. And a form can post text/plain elsewhere without asking first: then Origin or Sec-Fetch-Site say
 * where the page is from. With tokens neither gets anywhere, for the browser knows no token.
 */
#pragma once

#include <stdbool.h>

#include "server/exchange.h"

/* Whether a Host ("localhost:8080", with or without a port) may be ours: an IP address, a name without dots,
 * a name below localhost, or one of `names`, which blanks or commas separate ("*" = any). A page's name is
 * none of these, for public names have a dot. */
bool adv_origin_is_host(const char *host, const char *names);

/* Whether a changing request comes from our own page or from no page at all; the headers may be NULL. */
bool adv_origin_is_ours(const char *origin, const char *fetch_site, const char *host);

/* Both, of a request to a daemon without tokens. false: the reply says what is wrong. */
bool adv_origin_check(struct adv_exchange *exchange);

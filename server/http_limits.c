/* http_limits.c: how often an address or a token may ask. */
#include "server/http_internal.h"

#include <netinet/in.h>
#include <string.h>

#define USUAL_RATE_PER_S   200.0 /* of one address beyond loopback: a pipeline that asks as fast as it can */
#define BURST_S            5     /* of its rate at once */
#define WRONG_TOKENS_PER_S 0.2   /* who tries more is not a mistake any more */
#define WRONG_TOKENS_BURST 10

static const struct sockaddr *address_of(const struct request *request)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return info ? info->client_addr : NULL;
}

static bool is_loopback(const struct sockaddr *address)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    if (address && address->sa_family == AF_INET) {
        memcpy(&v4, address, sizeof v4);
        return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
    }
    if (!address || address->sa_family != AF_INET6) return false;
    memcpy(&v6, address, sizeof v6);
    return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

static bool take(struct request *request, enum adv_limit_kind kind, uint64_t who, const struct adv_rate *rate,
                 const char *whose)
{
    struct adv_exchange *exchange = &request->exchange;
    const int64_t wait_us = adv_limits_take(exchange->app->limits, kind, who, rate, request->start_us);
    if (wait_us == 0) return true;
    adv_metrics_add(&exchange->app->metrics, ADV_COUNTER_REJECTED_RATE, 1);
    adv_reply_error(exchange, ADV_E_RATE, "", "try again after Retry-After seconds",
                    "%s: more than %.3g a second", whose, rate->per_s);
    adv_reply_header(exchange, "Retry-After", "%lld", (long long)((wait_us + 999999) / 1000000));
    return false;
}

bool adv_http_within_rate(struct request *request)
{
    const struct adv_app *app = request->http->app;
    const long asked_per_s = adv_app_live(app)->address_rate_per_s;
    const struct sockaddr *address = address_of(request);
    if (asked_per_s == 0 || (asked_per_s < 0 && is_loopback(address))) return true;
    const struct adv_rate rate = {asked_per_s < 0 ? USUAL_RATE_PER_S : (double)asked_per_s,
                                  (int)(asked_per_s < 0 ? USUAL_RATE_PER_S : (double)asked_per_s) * BURST_S};
    return take(request, ADV_LIMIT_REQUESTS_OF_ADDRESS, adv_limits_of_address(app->limits, address), &rate,
                "requests of this address");
}

bool adv_http_within_token_rate(struct request *request)
{
    const struct adv_app *app = request->http->app;
    const long per_s = adv_app_live(app)->token_rate_per_s;
    const struct adv_rate rate = {(double)per_s, (int)per_s * BURST_S};
    return take(request, ADV_LIMIT_REQUESTS_OF_TOKEN,
                adv_limits_of_name(app->limits, request->exchange.principal), &rate,
                "requests with this token");
}

/* A right token passes at any time: others behind the same address are not shut out by one that is out of
 * date. */
bool adv_http_refuse_token(struct request *request, bool expired)
{
    static const struct adv_rate rate = {WRONG_TOKENS_PER_S, WRONG_TOKENS_BURST};
    const uint64_t who = adv_limits_of_address(request->http->app->limits, address_of(request));
    if (!expired && !take(request, ADV_LIMIT_WRONG_TOKENS, who, &rate, "wrong tokens from this address"))
        return false;
    return adv_reply_error(&request->exchange, ADV_E_UNAUTHORIZED, "", "send Authorization: Bearer TOKEN",
                           expired ? "the token has expired" : "no valid bearer token was sent");
}

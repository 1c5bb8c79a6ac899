#include "server/origin.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "server/app.h"
#include "server/routes.h"

#define LONGEST_NAME 256 /* of a host, RFC 1035 has 253 */

/* The name of a Host without its port, and an address without its brackets. false: it is neither. */
static bool take_name(const char *host, char name[LONGEST_NAME])
{
    const bool bracket = host[0] == '[';
    const size_t length = bracket ? strcspn(host + 1, "]") : strcspn(host, ":");
    const char *rest = host + length + (bracket ? 2 : 0);
    if (length == 0 || length >= LONGEST_NAME || (bracket && host[length + 1] != ']')) return false;
    memcpy(name, host + (bracket ? 1 : 0), length);
    name[length] = '\0';
    return *rest == '\0' || (*rest == ':' && strspn(rest + 1, "0123456789") == strlen(rest + 1));
}

static bool is_address(const char *name)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

bool adv_origin_is_host(const char *host, const char *names)
{
    static const char below[] = ".localhost";
    char name[LONGEST_NAME];
    if (!take_name(host, name)) return false;
    const size_t length = strlen(name), tail = sizeof below - 1;
    return is_address(name) || !strchr(name, '.') || adv_exchange_lists(names, "*", 1, strncmp) ||
           adv_exchange_lists(names, name, length, strncasecmp) ||
           (length > tail && strcasecmp(name + length - tail, below) == 0);
}

bool adv_origin_is_ours(const char *origin, const char *fetch_site, const char *host)
{
    if (fetch_site) return strcmp(fetch_site, "same-origin") == 0 || strcmp(fetch_site, "none") == 0;
    if (!origin) return true; /* no browser: they send it with every post */
    const char *scheme_end = strstr(origin, "://");
    return scheme_end && host && strcasecmp(scheme_end + 3, host) == 0;
}

bool adv_origin_check(struct adv_exchange *exchange)
{
    const struct adv_app *app = exchange->app;
    const char *host = exchange->headers[ADV_HEADER_HOST];
    const bool changes = strcmp(exchange->method, "GET") != 0 && strcmp(exchange->method, "HEAD") != 0;
    if (app->keyring || !exchange->route->scope)
        return true; /* probes and the form's files are for everybody */
    if (host && !adv_origin_is_host(host, adv_app_live(app)->hosts))
        return adv_reply_error(exchange, ADV_E_HOST, "/headers/Host",
                               "start the daemon with --hosts, or with tokens",
                               "without tokens the daemon does not go by the name %.100s", host);
    if (!changes || adv_origin_is_ours(exchange->headers[ADV_HEADER_ORIGIN],
                                       exchange->headers[ADV_HEADER_SEC_FETCH_SITE], host))
        return true;
    return adv_reply_error(exchange, ADV_E_FORBIDDEN, "/headers/Origin", "start the daemon with tokens",
                           "the page of another site may not use a daemon without tokens");
}

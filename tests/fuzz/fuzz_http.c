/* Any bytes as the head of an HTTP request: a line `METHOD PATH`, then `Name: value` lines. What the daemon
 * does with them before a handler runs: the smuggling guard, the route table, content negotiation, and
 * quoting for the log. */
#include "tests/fuzz/fuzz.h"

#include "server/exchange.h"
#include "server/guard.h"
#include "server/json_text.h"
#include "server/routes.h"

/* The next line of *rest without its end, or NULL. */
static char *next_line(char **rest)
{
    if (!*rest || !**rest) return NULL;
    char *line = *rest, *end = strchr(line, '\n');
    *rest = end ? end + 1 : NULL;
    if (end) *end = '\0';
    size_t length = strlen(line);
    if (length > 0 && line[length - 1] == '\r') line[length - 1] = '\0';
    return line;
}

static void find_route(const char *method, const char *path)
{
    struct adv_exchange exchange;
    char allow[96] = "";
    memset(&exchange, 0, sizeof exchange);
    exchange.path = path;
    adv_arena_init(&exchange.arena, 1u << 20);
    enum adv_route_match match = adv_routes_find(&exchange, method, path, allow);
    FUZZ_PROMISE(match != ADV_ROUTE_FOUND || exchange.route);
    FUZZ_PROMISE(match != ADV_ROUTE_NO_METHOD || allow[0] != '\0');
    if (match == ADV_ROUTE_FOUND) {
        FUZZ_PROMISE(adv_routes_path(adv_routes_index(exchange.route)) != NULL);
        for (int i = 0; i < ADV_LIMIT_ROUTE_PARAMETERS; i++)
            FUZZ_PROMISE(!exchange.parameters[i] || exchange.parameters[i][0] != '\0');
    }
    adv_arena_free(&exchange.arena);
}

static void quote(const char *value)
{
    struct adv_text text;
    adv_text_init(&text, 1u << 20);
    adv_json_text_quote(&text, value);
    FUZZ_PROMISE(text.overflow ||
                 (text.length_bytes >= 2 && text.data[0] == '"' && text.data[text.length_bytes - 1] == '"'));
    FUZZ_PROMISE(text.overflow || adv_utf8_valid(text.data));
    adv_text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 32768) return 0;
    char *head = malloc(size + 1);
    if (!head) return 0;
    memcpy(head, data, size);
    head[size] = '\0';
    char *rest = head, *method = next_line(&rest);
    if (method) {
        char *path = strchr(method, ' ');
        if (path)
            *path++ = '\0';
        else
            path = method + strlen(method);
        struct adv_guard guard;
        struct adv_exchange exchange;
        memset(&exchange, 0, sizeof exchange);
        adv_guard_init(&guard);
        for (char *name = next_line(&rest); name; name = next_line(&rest)) {
            char *value = strchr(name, ':');
            if (value) *value++ = '\0';
            while (value && *value == ' ') value++;
            adv_guard_header(&guard, name, value);
            exchange.headers[ADV_HEADER_ACCEPT] = value;
            (void)adv_exchange_accepts(&exchange, "application/json");
            if (value) quote(value);
        }
        const char *reason = adv_guard_finish(&guard, method, path, "HTTP/1.1");
        FUZZ_PROMISE(!reason || reason[0] != '\0');
        FUZZ_PROMISE(reason || guard.host_count == 1);
        FUZZ_PROMISE(reason || !strpbrk(path, " \t\r\n"));
        FUZZ_PROMISE(reason || !(guard.content_length_count && guard.transfer_encoding_count));
        if (!reason) find_route(method, path);
    }
    free(head);
    return 0;
}

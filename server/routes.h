/* routes.h: every method and path the daemon answers, one table. openapi.yaml describes the same rows; a test
 * compares. */
#pragma once

#include <stdio.h>

#include "server/exchange.h"

/* Where a handler runs. */
enum adv_route_place {
    ADV_ROUTE_INLINE, /* on the HTTP thread: never waits, takes microseconds */
    ADV_ROUTE_SEARCH, /* on an engine worker: may take as long as the deadline */
    ADV_ROUTE_QUICK,  /* on a quick worker: milliseconds, never behind a search */
    ADV_ROUTE_STORE   /* on a store worker: waits for the database. What is to be stored comes here when it is
                         computed */
};

struct adv_route {
    const char *method;
    const char *path;      /* template: {name} is one path segment; {label} at the end is all that is left,
                              for labels with slashes */
    const char *operation; /* operationId of the OpenAPI document */
    adv_handler *handle;
    enum adv_route_place place;
    unsigned scope;          /* token scope needed; 0 = none, open to everybody */
    const char *media_types; /* of the body, separated by blanks; NULL = the route takes no body */
    int kind;                /* enum adv_request_kind where the handler serves several */
    const char
        *query; /* the parameters taken, separated by blanks; NULL = the handler sees to it, or takes any */
    const char *answers; /* the one media type of a good answer, 406 to who does not accept it; NULL = the
                            handler sees to it, or (probes, the form) answers whoever asks */
};

enum adv_route_match { ADV_ROUTE_FOUND, ADV_ROUTE_NO_PATH, ADV_ROUTE_NO_METHOD };

/* Finds the row for a path as it was sent; HEAD finds GET's row. Segments are decoded one by one, so that
 * "%2F" is a slash in a name. Fills exchange->route and parameters (arena
 * copies). On ADV_ROUTE_NO_METHOD `allow` (96 bytes) lists the methods of that path. */
enum adv_route_match adv_routes_find(struct adv_exchange *exchange, const char *method, const char *path,
                                     char allow[96]);

/* Runs the route's handler, or what it left to be done. The reply is filled then, or `next` says what
 * follows. */
void adv_routes_run(struct adv_exchange *exchange);

/* Rows by index for metrics; the row after the last stands for requests without a route; then NULL. */
int adv_routes_index(const struct adv_route *route);
const char *adv_routes_method(int index);
const char *adv_routes_path(int index);

/* "METHOD PATH OPERATION" lines, for the test against the OpenAPI document. */
void adv_routes_print(FILE *out);

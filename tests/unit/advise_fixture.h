/* advise_fixture.h: an advise request from JSON text, searched on the embedded catalog; for tests of search,
 * emit, explain. */
#pragma once

#include "tests/unit/check.h"

#include <jansson.h>
#include <stdlib.h>

#include "engine/base/arena.h"
#include "engine/catalog/catalog.h"
#include "engine/json/decode_request.h"
#include "engine/search/search.h"

struct fixture {
    struct adv_catalog *catalog;
    struct adv_arena arena;
    adv_err err, warnings;
    struct adv_advise_request *request;
    const struct adv_constants *constants;
};

/* The catalog is loaded once per program and kept. */
static struct adv_catalog *fixture_catalog(void)
{
    static struct adv_catalog *catalog = NULL;
    static adv_err err;
    if (catalog) return catalog;
    adv_err_init(&err);
    catalog = adv_catalog_load(NULL, &err);
    if (!catalog)
        fail_msg("the catalog does not load: %s %s", err.findings[0].pointer, err.findings[0].detail);
    return catalog;
}

static void fixture_open(struct fixture *fixture, const char *json)
{
    fixture->catalog = fixture_catalog();
    adv_arena_init(&fixture->arena, 64u * 1024u * 1024u);
    adv_err_init(&fixture->err);
    adv_err_init(&fixture->warnings);
    fixture->request = adv_arena_alloc(&fixture->arena, sizeof *fixture->request);
    json_error_t where;
    json_t *root = json_loads(json, 0, &where);
    if (!root) fail_msg("%s in %s", where.text, json);
    adv_code code = adv_decode_advise_request(fixture->catalog, root, &fixture->arena, fixture->request,
                                              &fixture->err, &fixture->warnings);
    if (code != ADV_OK)
        fail_msg("%s: %s in %s", fixture->err.findings[0].pointer, fixture->err.findings[0].detail, json);
    json_decref(root);
    fixture->constants = &adv_catalog_chip(fixture->catalog, fixture->request->cluster.chip.name)->constants;
}

static void fixture_close(struct fixture *fixture)
{
    adv_arena_free(&fixture->arena);
}

/* Opens and searches; fails the test when the search itself fails. */
static inline void fixture_search(struct fixture *fixture, const char *json, struct adv_search_result *result)
{
    fixture_open(fixture, json);
    adv_code code =
        adv_search_run(fixture->request, NULL, fixture->constants, &fixture->arena, result, &fixture->err);
    if (code != ADV_OK)
        fail_msg("%s: %s for %s", fixture->err.findings[0].pointer, fixture->err.findings[0].detail, json);
}

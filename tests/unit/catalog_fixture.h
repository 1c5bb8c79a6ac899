/* catalog_fixture.h: the embedded catalog, loaded once per test program and freed at its end. */
#pragma once

#include "engine/catalog/catalog.h"

static struct adv_catalog *catalog;

static inline int load_catalog(void **state)
{
    (void)state;
    adv_err err;
    adv_err_init(&err);
    catalog = adv_catalog_load(NULL, &err);
    for (int i = 0; i < err.count; i++)
        print_error("%s: %s\n", err.findings[i].pointer, err.findings[i].detail);
    return catalog ? 0 : -1;
}

static inline int free_catalog(void **state)
{
    (void)state;
    adv_catalog_free(catalog);
    return 0;
}

#define run_group_with_catalog(tests) cmocka_run_group_tests_name(__FILE__, tests, load_catalog, free_catalog)

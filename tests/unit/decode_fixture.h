/* decode_fixture.h: decoding request texts in tests, with the findings at hand. */
#pragma once

#include <string.h>

#include "engine/json/decode_request.h"
#include "tests/unit/catalog_fixture.h"

static struct adv_arena arena;
static struct adv_estimate_request request;
static adv_err err, warnings;

static inline void forget(void)
{
    adv_arena_free(&arena);
    adv_arena_init(&arena, ADV_LIMIT_ARENA_BYTES);
    adv_err_init(&err);
    adv_err_init(&warnings);
}

/* Decodes `text` into `request`; findings are in err and warnings. */
static inline adv_code decode(const char *text)
{
    json_t *root = NULL;
    forget();
    adv_code code = adv_json_parse(text, strlen(text), &root, &err);
    if (code == ADV_OK) code = adv_decode_estimate_request(catalog, root, &arena, &request, &err, &warnings);
    json_decref(root);
    return code;
}

/* The same for a llama3.1-8b on a tpu7x-2x4x4 (64 devices) with the members of `config` given as JSON text.
 */
static inline adv_code decode_config(const char *config)
{
    char text[4096];
    (void)snprintf(
        text, sizeof text,
        "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"2x4x4\"},\"config\":{"
        "\"per_device_batch_size\":1,\"max_target_length\":8192%s%s}}",
        *config ? "," : "", config);
    return decode(text);
}

static inline const struct adv_finding *find(const adv_err *list, const char *pointer)
{
    for (int i = 0; i < list->count; i++) {
        if (strcmp(list->findings[i].pointer, pointer) == 0) return &list->findings[i];
    }
    return NULL;
}

static inline const struct adv_finding *find_rule(const adv_err *list, const char *rule)
{
    for (int i = 0; i < list->count; i++) {
        if (list->findings[i].rule && strcmp(list->findings[i].rule, rule) == 0) return &list->findings[i];
    }
    return NULL;
}

static inline void print_findings(const adv_err *list)
{
    for (int i = 0; i < list->count; i++)
        print_error("%s: %s\n", list->findings[i].pointer, list->findings[i].detail);
}

/* The finding of a rule; fails the test when there is none. */
static inline const struct adv_finding *must_find(const adv_err *list, const char *rule)
{
    static const struct adv_finding none;
    const struct adv_finding *finding = find_rule(list, rule);
    if (finding) return finding;
    print_findings(list);
    fail_msg("%s is not reported", rule);
    return &none;
}

static inline void assert_ok(adv_code code)
{
    if (code != ADV_OK) print_findings(&err);
    assert_int_equal(code, ADV_OK);
}

/* claims_fixture.h: published and circulating statements put to the engine: requests as text, answers as
 * structs.
 *
 * A claim the model shares becomes a test of its number. One it does not share becomes a test of what the
 * model says instead, with the reason beside it, so that a change of mind is noticed.
 */
#pragma once

#include "tests/unit/check.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "engine/advise.h"
#include "engine/base/units.h"
#include "engine/cost/estimate.h"
#include "tests/unit/decode_fixture.h"

/* Tuned attention blocks of the public tpu7x recipes, and the one-hot lookup they all use. */
#define TUNED                                                                                                \
    "\"attention\":\"flash\",\"use_tokamax_splash\":true,\"use_iota_embed\":true,\"sa_block_q\":2048,\"sa_"  \
    "block_kv\":2048,"                                                                                       \
    "\"sa_block_kv_compute\":512,\"sa_block_q_dkv\":2048,\"sa_block_kv_dkv\":2048,\"sa_block_kv_dkv_"        \
    "compute\":512,"                                                                                         \
    "\"allow_split_physical_axes\":true"
#define AT_8K        "\"max_target_length\":8192,"
#define AT_128K      "\"max_target_length\":131072,\"num_vocab_tiling\":4,"
#define OFFLOAD_FLAG "--xla_tpu_enable_sparse_core_collective_offload_"
#define OFFLOAD(value)                                                                                       \
    "\"" OFFLOAD_FLAG "all_gather=" value "\",\"" OFFLOAD_FLAG "reduce_scatter=" value "\",\"" OFFLOAD_FLAG  \
    "all_reduce=" value "\""

static struct adv_ledger claim_ledger;

/* The estimate of `request`; its terms are in claim_ledger. */
static inline struct adv_estimate estimate_request(void)
{
    const struct adv_constants *constants = &adv_catalog_chip(catalog, request.cluster.chip.name)->constants;
    struct adv_estimate_input input = {&request.model, &request.cluster, constants, &request.plan,
                                       request.flops_convention};
    struct adv_estimate estimate;
    if (adv_estimate_plan(&input, &estimate, &claim_ledger, &err) != ADV_OK)
        fail_msg("%s", err.findings[0].detail);
    return estimate;
}

static inline void claim_text(char text[8192], const char *model, const char *slice, const char *config,
                              const char *flags)
{
    int length =
        snprintf(text, 8192, "{\"model\":\"%s\",\"cluster\":{%s},\"config\":{%s},\"xla_flags\":[%s]}", model,
                 slice, config, flags);
    assert_true(length > 0 && length < 8192);
}

/* One plan: model, "chip":…,"topology":…, configuration and flags as JSON members. */
static inline struct adv_estimate claim(const char *model, const char *slice, const char *config,
                                        const char *flags)
{
    char text[8192];
    claim_text(text, model, slice, config, flags);
    assert_ok(decode(text));
    return estimate_request();
}

/* The estimate of a published run (tests/accuracy/e2e.json) with `changes` (may be NULL; JSON object text)
 * over its configuration. */
static inline struct adv_estimate published(const char *id, const char *changes)
{
    json_t *rows = json_load_file("tests/accuracy/e2e.json", 0, NULL), *row;
    size_t index;
    char *text = NULL;
    json_array_foreach(rows, index, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "id")), id) != 0) continue;
        json_t *document = json_object_get(row, "request"),
               *over = changes ? json_loads(changes, 0, NULL) : json_object();
        assert_int_equal(json_object_update(json_object_get(document, "config"), over), 0);
        json_decref(over);
        text = json_dumps(document, JSON_COMPACT);
    }
    json_decref(rows);
    if (!text) fail_msg("no published run %s", id);
    adv_code code = decode(text ? text : "");
    free(text);
    assert_ok(code);
    return estimate_request();
}

static inline struct adv_term claim_term(const char *name)
{
    for (int i = 0; i < claim_ledger.terms_count; i++)
        if (strcmp(claim_ledger.terms[i].name, name) == 0) return claim_ledger.terms[i];
    return (struct adv_term){.name = name};
}

/* Exposed seconds of a resource. */
static inline double exposed_s(enum adv_resource resource)
{
    double seconds = 0.0;
    for (int i = 0; i < claim_ledger.terms_count; i++)
        if (claim_ledger.terms[i].resource == resource) seconds += claim_ledger.terms[i].exposed_seconds;
    return seconds;
}

/* The answer's document; the caller releases it. */
static inline json_t *answer_of(enum adv_request_kind kind, const char *text)
{
    struct adv_answer answer;
    forget();
    if (adv_answer_request(catalog, kind, text, strlen(text), &answer, &err) != ADV_OK) {
        print_findings(&err);
        fail_msg("refused: %s", text);
    }
    json_t *root = json_loads(answer.json, 0, NULL);
    adv_answer_free(&answer);
    assert_non_null(root);
    return root;
}

static inline bool advises(const json_t *answer, const char *code)
{
    size_t index;
    const json_t *piece;
    json_array_foreach(json_object_get(answer, "advice"), index,
                       piece) if (strcmp(json_string_value(json_object_get(piece, "code")), code) ==
                                  0) return true;
    return false;
}

/* `value` inside [low, high], with its name when it is not. */
#define assert_within(value, low, high)                                                                      \
    do {                                                                                                     \
        double v_ = (value);                                                                                 \
        if (!(v_ >= (low) && v_ <= (high)))                                                                  \
            fail_msg("%s = %.6g is not in [%g, %g]", #value, v_, (double)(low), (double)(high));             \
    } while (0)

/* advise.h: THE pipeline: a JSON request in, a JSON answer out. Read advise.c first.
 *
 * These are what the server and the command line call. Text in, text out, so that no caller needs jansson.
 * Thread safe: all state is in the arguments. The answer is malloc'ed, NUL-terminated, freed by the caller.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"
#include "engine/catalog/catalog.h"

enum adv_request_kind {
    ADV_REQUEST_ESTIMATE,
    ADV_REQUEST_ADVISE,
    ADV_REQUEST_SIMULATE,
    ADV_REQUEST_TUNE,
    ADV_REQUEST_LINT
};

/* A member of a request, or a MaxText key, given as text beside a recipe: {"chip", "tpu7x"}. */
struct adv_given_member {
    const char *name, *value;
};

/* A request written as a recipe (shell script, command line, manifest, YAML), or as JSON with the member
 * `recipe`, as the plain JSON request that it means, with what is given beside it. JSON without `recipe`
 * comes back as it is. *json is malloc'ed. */
ADV_MUST_CHECK adv_code adv_request_expand(const struct adv_catalog *catalog, enum adv_request_kind kind,
                                           const char *text, size_t text_bytes,
                                           const struct adv_given_member *given, int given_count, char **json,
                                           size_t *json_bytes, adv_err *err);

struct adv_budget; /* base/budget.h */

/* An answer, and what a caller stores beside it. Strings are copies inside this struct. */
struct adv_answer {
    char *json; /* the response document; NULL on error */
    size_t json_bytes;
    bool wants_store;    /* "store": true or "try" was asked */
    bool store_may_fail; /* "try" */
    char label[ADV_LIMIT_NAME], project[ADV_LIMIT_NAME], git_ref[ADV_LIMIT_NAME];
    char model[ADV_LIMIT_NAME], chip[ADV_LIMIT_NAME], topology[ADV_LIMIT_NAME];
    double step_time_s, hbm_bytes_per_device; /* of the answer's (first) estimate; NAN when there is none */
    bool fits;
    const char *fit_verdict; /* "fits", "tight", "does_not_fit"; NULL where there is no estimate; static */
    int verify_top;          /* of advise: so many plans are to go before the real compiler; 0 = none */
    bool refutes;            /* of lint: the configuration has errors ("valid": false) */
    long evaluations;        /* of the search, for metrics */
};

/* Answers one JSON document. On error the code, with all findings in `err`; nothing to free then. */
ADV_MUST_CHECK adv_code adv_answer_request(const struct adv_catalog *catalog, enum adv_request_kind kind,
                                           const char *json, size_t json_bytes, struct adv_answer *answer,
                                           adv_err *err);
/* The same within a budget (NULL: none). ADV_E_TIMEOUT within 50 ms after it is over; ADV_E_RANGE: the
 * request asks for more machines or plans than it allows. */
ADV_MUST_CHECK adv_code adv_answer_within(const struct adv_catalog *catalog, enum adv_request_kind kind,
                                          const char *json, size_t json_bytes,
                                          const struct adv_budget *budget, struct adv_answer *answer,
                                          adv_err *err);
void adv_answer_free(struct adv_answer *answer);

/* What the plan of an estimate request takes: the numbers of its answer, which costs several times as much.
 */
struct adv_price {
    double step_time_s, hbm_bytes_per_device;
};
/* Errors as those of the answer, in time for the budget (NULL: none). */
ADV_MUST_CHECK adv_code adv_price_within(const struct adv_catalog *catalog, const char *json,
                                         size_t json_bytes, const struct adv_budget *budget,
                                         struct adv_price *price, adv_err *err);

/* The engine has no clock: an advise answer's search.elapsed_ms and evaluations_per_s are null until the
 * caller, who measured the call, fills them in. Does nothing to other answers, nor when memory is exhausted.
 */
void adv_answer_set_elapsed(struct adv_answer *answer, double elapsed_s);

/* The same for a text that holds one document or a JSON array of them: the answer, or an array of answers in
 * the same order, as malloc'ed text the caller frees. Any error fails the whole: all findings of all
 * documents, pointers below "/<index>". `now_s` (may be NULL) is the caller's clock, for
 * adv_answer_set_elapsed; `budget` (may be NULL) is that of each document. *refutes (may be NULL): an answer
 * of lint among them says "valid": false. */
ADV_MUST_CHECK adv_code adv_answer_documents(const struct adv_catalog *catalog, enum adv_request_kind kind,
                                             const char *json, size_t json_bytes, double (*now_s)(void),
                                             const struct adv_budget *budget, char **answers,
                                             size_t *answers_bytes, bool *refutes, adv_err *err);

/* An RFC 9457 problem document for `err`; `instance` may be NULL. Malloc'ed; NULL only when memory is
 * exhausted. */
char *adv_problem_json(const adv_err *err, const char *instance);

/* A YAML document as JSON text, its members in the same order: malloc'ed, the caller frees it. ADV_E_SYNTAX
 * with the line. */
ADV_MUST_CHECK adv_code adv_yaml_json(const char *yaml, size_t yaml_bytes, char **json, adv_err *err);

/* GET /v1/catalog/{models|chips|topologies|kernels|keys} (name NULL = the list) as JSON; ADV_E_NOT_FOUND
 * otherwise. */
ADV_MUST_CHECK adv_code adv_catalog_json(const struct adv_catalog *catalog, const char *collection,
                                         const char *name, struct adv_answer *answer, adv_err *err);

/* Stored answers side by side: which time and memory terms moved; rows of `terms` add up to the difference,
 * and what two answers are not alike in stands beside it. documents: the runs' response JSON texts, first is
 * the reference. */
ADV_MUST_CHECK adv_code adv_compare_json(const char *const *run_ids, const char *const *responses, int count,
                                         struct adv_answer *answer, adv_err *err);

/* {"message": text, "request"?: an estimate request}: an out-of-memory message of XLA explained: memory,
 * buffers, keys; with the request that met it, what was predicted and the plans near it that fit ("levers"),
 * each with its price. `answer` is malloc'ed. */
ADV_MUST_CHECK adv_code adv_explain_oom(const struct adv_catalog *catalog, const char *json,
                                        size_t json_bytes, const struct adv_budget *budget, char **answer,
                                        adv_err *err);

/* The engine's name tag: {"version", "catalog_hash", "calibration"}. */
const char *adv_engine_version(void);

/* proof.h: the documents of a verification: the plan that is put before the real compiler, what the program
 * that runs it says line by line, and its result beside our prediction.
 *
 * Bytes are of one device. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"
#include "engine/base/text.h"
#include "engine/catalog/catalog.h"

#define ADV_LIMIT_PROOF_BYTES    (1024u * 1024u) /* a result with 24 buffers takes 8 KiB */
#define ADV_LIMIT_PROOF_VERSIONS 160             /* three names and versions take 50 */

/* Adding a verdict = adding a row here, in openapi.yaml and in the table's CHECK. */
#define ADV_PROOF_VERDICT_TABLE(X)                                                                           \
    X(COMPILES, "compiles")                                                                                  \
    X(DOES_NOT_FIT, "does_not_fit")                                                                          \
    X(REFUSED, "refused") /* a key, a flag or a value that this release does not take */                     \
    X(FAILED, "failed")   /* no word on the plan: time, memory of the machine, a fault of the compiler */
#define ADV_PROOF_VERDICT_ENUM(name, text) ADV_PROOF_##name,
enum adv_proof_verdict { ADV_PROOF_VERDICT_TABLE(ADV_PROOF_VERDICT_ENUM) ADV_PROOF_VERDICTS };
#undef ADV_PROOF_VERDICT_ENUM

/* The kinds of file that can be verified. */
enum adv_proof_file {
    ADV_PROOF_OF_ESTIMATE,
    ADV_PROOF_OF_ADVISE,
    ADV_PROOF_OF_ANSWER,
    ADV_PROOF_OF_RUN,
    ADV_PROOF_OF_RECIPE /* no JSON object: a script, a manifest, YAML; adv_request_expand reads it */
};

/* ADV_E_SYNTAX, ADV_E_INVALID: an object that is neither a request of estimate or advise, nor an answer of
 * theirs, nor a run. */
ADV_MUST_CHECK adv_code adv_proof_file_kind(const char *text, size_t text_bytes, enum adv_proof_file *kind,
                                            adv_err *err);

/* The answer inside a run, as malloc'ed text. */
ADV_MUST_CHECK adv_code adv_proof_run_answer(const char *json, size_t json_bytes, char **answer,
                                             adv_err *err);

struct adv_proof_plan {
    char
        *plan; /* {"cluster", "config", "xla_flags"}: canonical, the same plan is the same bytes; malloc'ed */
    char *predicted; /* {"hbm_bytes_per_device", "hbm_limit_bytes_per_device", "parts", "software"}; malloc'ed
                      */
};

/* Plan `rank` of an answer of advise, or the plan of an estimate (rank 1): the keys that the answer's
 * maxtext.sh has. `catalog`, which may be NULL, tells keys of the architecture. *ranks_count: how many plans
 * the answer has. ADV_E_NOT_FOUND: no such rank. ADV_E_UNSUPPORTED: MaxText has no such model.
 * ADV_E_INVALID: the answer is of a release that did not write the model into it. The compiler would speak of
 * MaxText's default model then. */
ADV_MUST_CHECK adv_code adv_proof_plan_read(const struct adv_catalog *catalog, const char *answer,
                                            size_t answer_bytes, int rank, struct adv_proof_plan *plan,
                                            int *ranks_count, adv_err *err);
void adv_proof_plan_free(struct adv_proof_plan *plan);

/* One line of the program that asks the compiler. */
struct adv_proof_line {
    char stage[32]; /* "" in the last one */
    double seconds; /* since it began; NAN where it does not say */
    char *result;   /* the last line's: malloc'ed, else NULL; "compiles" without bytes is "failed" there */
};
/* False: the line is not one of its. */
bool adv_proof_line_read(const char *line, size_t line_bytes, struct adv_proof_line *said);

/* The result of a compile that gave none: "failed" with the reason. Malloc'ed; NULL: memory is exhausted. */
char *adv_proof_failed(const char *reason, bool whole, double seconds);

/* The members of a result that its readers need. */
struct adv_proof_summary {
    enum adv_proof_verdict verdict;
    double compiled_hbm_bytes_per_device;    /* NAN where the compiler got not so far */
    char versions[ADV_LIMIT_PROOF_VERSIONS]; /* "maxtext 0.2.5, jax 0.12.0.1, libtpu 0.0.50.1"; "" unknown */
    char reason[ADV_LIMIT_DETAIL];           /* "" */
};
ADV_MUST_CHECK adv_code adv_proof_summarize(const char *result, struct adv_proof_summary *summary,
                                            adv_err *err);
/* Releases, {"name": "version"}, as a summary writes them. */
void adv_proof_versions(const char *releases, char text[ADV_LIMIT_PROOF_VERSIONS]);
/* Whether the releases gave the result: it names one at least, and each as they do. */
bool adv_proof_is_by(const char *result, const char *releases);
const char *adv_proof_verdict_name(enum adv_proof_verdict verdict);

/* Appends the result with "rank" and the prediction beside it: predicted_hbm_bytes_per_device,
 * hbm_error_frac, and per part the compiler's bytes beside ours at the compiler's peak; and a "note" where
 * the plan is for other releases than those whose word it is. */
ADV_MUST_CHECK adv_code adv_proof_join(const char *result, const char *predicted, int rank,
                                       struct adv_text *text, adv_err *err);

/* The same for people: appends lines made from what adv_proof_join wrote. */
ADV_MUST_CHECK adv_code adv_proof_print(const char *joined, struct adv_text *text, adv_err *err);

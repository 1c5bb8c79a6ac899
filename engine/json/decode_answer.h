/* decode_answer.h: an answer read back, as the source of its artifacts, and those of a stored run.
 *
 * The answer of an advise run has complete configurations. The answer of an estimate run has the keys its
 * request gave, and the request names the model beside them: without it MaxText would train its default
 * model.
 */
#pragma once

#include "engine/base/arena.h"
#include "engine/catalog/catalog.h"
#include "engine/emit/artifact.h"

/* Reads the response document of an advise run (plan `rank`, from 1) or an estimate run (rank 1) into
 * `arena`; the catalog may be NULL where nobody asks how the chip's nodes and slices are called.
 * ADV_E_SYNTAX, ADV_E_INVALID: not an answer of these kinds; ADV_E_NOT_FOUND: no such rank (pointer /rank);
 * ADV_E_MEMORY. */
ADV_MUST_CHECK adv_code adv_decode_answer(const struct adv_catalog *catalog, const char *response_json,
                                          size_t response_bytes, int rank, struct adv_arena *arena,
                                          struct adv_artifact_source **source, adv_err *err);

/* The artifact `name` of an answer, appended to `text`: adv_decode_answer, then adv_artifact_write. */
ADV_MUST_CHECK adv_code adv_artifact_from_answer(const struct adv_catalog *catalog, const char *name,
                                                 const char *response_json, size_t response_bytes, int rank,
                                                 struct adv_text *text, adv_err *err);

/* A stored run as the store has it; NUL-terminated documents. */
struct adv_run_documents {
    bool is_estimate;
    const char *request_json, *response_json;
};

/* The same of plan `rank` of a run; of an estimate run with the model of its request. ADV_E_INVALID also when
 * the catalog has no such model any more. */
ADV_MUST_CHECK adv_code adv_artifact_from_run(const struct adv_catalog *catalog,
                                              const struct adv_run_documents *run, const char *name, int rank,
                                              struct adv_text *text, adv_err *err);

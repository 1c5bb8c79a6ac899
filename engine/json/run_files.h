/* run_files.h: the files of a stored run, made from its request and its answer together.
 *
 * The answer of an advise run has complete configurations. The answer of an estimate run has the keys its
 * request gave, and the request names the model beside them: without it MaxText would train its default
 * model.
 */
#pragma once

#include <stdbool.h>

#include "engine/base/err.h"
#include "engine/base/text.h"
#include "engine/catalog/catalog.h"

/* A stored run as the store has it; NUL-terminated documents. */
struct adv_run_documents {
    bool is_estimate;
    const char *request_json, *response_json;
};

const char *adv_run_file_type(const char *name);
/* Its present name: some went by another once. */
const char *adv_run_file_name(const char *name); /* its media type, NULL when there is no such file */

/* The artifact `name` of plan `rank`, appended to `text`, as adv_artifact_from_answer; of an estimate run
 * with the model of its request. ADV_E_INVALID also when the catalog has no such model any more. */
ADV_MUST_CHECK adv_code adv_artifact_from_run(const struct adv_catalog *catalog,
                                              const struct adv_run_documents *run, const char *name, int rank,
                                              struct adv_text *text, adv_err *err);

/* decode_answer.h: an answer read back, as the source of its artifacts. */
#pragma once

#include "engine/base/arena.h"
#include "engine/catalog/catalog.h"
#include "engine/emit/artifact.h"

/* Reads the response document of an advise run (plan `rank`, from 1) or an estimate run (rank 1). Strings
 * live in the arena or the catalog, which may be NULL where nobody asks how the chip's nodes and slices are
 * called. ADV_E_SYNTAX, ADV_E_INVALID: not an answer of these kinds; ADV_E_NOT_FOUND: no such rank
 * (pointer /rank). */
ADV_MUST_CHECK adv_code adv_decode_answer(const struct adv_catalog *catalog, const char *response_json,
                                          size_t response_bytes, int rank, struct adv_arena *arena,
                                          struct adv_artifact_source *source, adv_err *err);

/* The artifact `name` of an answer, appended to `text`: adv_decode_answer, then adv_artifact_write. */
ADV_MUST_CHECK adv_code adv_artifact_from_answer(const struct adv_catalog *catalog, const char *name,
                                                 const char *response_json, size_t response_bytes, int rank,
                                                 struct adv_text *text, adv_err *err);

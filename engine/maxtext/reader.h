/* reader.h: what the parts of reading share: read.c drives, old_names.c knows former names, resolve.c what
 * follows from all keys together. Nobody else needs it. */
#pragma once

#include "engine/maxtext/read.h"

struct adv_config_reader {
    const struct adv_config_source *source;
    struct adv_config_state *state;
    adv_err *err, *warnings;
};

/* Takes over the raw value of a key of the catalog, unless it is one of the architecture. */
void adv_reader_take(struct adv_config_reader *reader, const struct adv_catalog_key *key,
                     const struct adv_value *raw, const char *pointer);

/* A key that the catalog does not have now: gives it its effect under its current name, and tells. */
void adv_reader_take_old(struct adv_config_reader *reader, const struct adv_given *given,
                         const char *pointer);

/* The present spelling of a value that MaxText once took, with a finding; false when it is none. */
bool adv_reader_current_value(const struct adv_config_reader *reader, const struct adv_given *given,
                              const char *pointer, struct adv_value *current);

/* When all keys are taken. */
void adv_reader_resolve(struct adv_config_reader *reader);

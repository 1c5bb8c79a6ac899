/* own_file.h: what a configuration file of one's own can say to MaxText, and what its command line alone can.
 *
 * MaxText reads a file of one's own before its file of the model, which wins in whatever both say, also under
 * override_model_config; only arguments win over both. Axis rules of a file stand in place of all of
 * base.yml's, those of an argument in place of the ones that they name. Source: _initialize_pydantic and
 * _load_config of MaxText 0.2.5's configs/pyconfig.py.
 */
#pragma once

#include "engine/base/arena.h"
#include "engine/catalog/catalog.h"
#include "engine/spec/request.h"

enum adv_own_file {
    ADV_OWN_FILE_SAYS,     /* a line of the file says it */
    ADV_OWN_FILE_LOSES,    /* a line says it to readers, an argument to MaxText */
    ADV_OWN_FILE_MISLEADS, /* as a line it would mean something else: an argument only */
};

/* Fills `says`, one for each entry of `config`. Of a model that the catalog (which may be NULL) does not have
 * every key may be its file's where override_model_config is set. ADV_E_MEMORY only. */
ADV_MUST_CHECK adv_code adv_own_file_says(const struct adv_catalog *catalog, const struct adv_config *config,
                                          struct adv_arena *arena,
                                          enum adv_own_file says[ADV_LIMIT_CONFIG_KEYS], adv_err *err);

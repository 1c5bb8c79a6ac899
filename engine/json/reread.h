/* reread.h: a configuration of a request, read once more with some keys set over it (struct adv_reread). */
#ifndef ADV_JSON_REREAD_H
#define ADV_JSON_REREAD_H

#include "engine/catalog/catalog.h"
#include "engine/emit/config.h"
#include "engine/json/config_state.h"
#include "engine/json/json_read.h"
#include "engine/spec/request.h"

/* What was read. Its keys live as long as between open and close. */
struct adv_reread_source {
    const struct adv_catalog *catalog;
    const struct adv_model *model;
    const struct adv_cluster *cluster;
    json_t *config, *defaults;
    struct adv_config_state read; /* its keys */
};

/* `config`: the keys as they were decoded. `model_name`: the catalog's, NULL for a model without a name
 * there; with it come the keys that MaxText's own file of the model sets. */
void adv_reread_open(struct adv_reread_source *source, const struct adv_catalog *catalog,
                     const struct adv_model *model, const char *model_name, const struct adv_cluster *cluster,
                     const struct adv_config *config);
void adv_reread_close(struct adv_reread_source *source);

/* Opens the baseline of `request`, and lets its search read it once more by `reread`; both stay the caller's,
 * who closes `source` when the request is done with. */
void adv_reread_open_baseline(struct adv_reread_source *source, const struct adv_catalog *catalog,
                              struct adv_advise_request *request, struct adv_reread *reread);

/* Reading `source`, which stays the caller's. */
struct adv_reread adv_reread_of(const struct adv_reread_source *source);

#endif

/* encode_pictures.h: members of an answer that are there on request ("include"), for pictures of a plan. */
#pragma once

#include "engine/explain/link_load.h"
#include "engine/explain/operations.h"
#include "engine/explain/scaling.h"
#include "engine/explain/step_view.h"
#include "engine/json/encode_common.h"
#include "engine/search/cloud.h"

/* New references; server/openapi.yaml says what each member means. */
json_t *adv_encode_step_view(const struct adv_step_view *view, const struct adv_model *model);
json_t *adv_encode_roofline(const struct adv_step_trace *trace,
                            const struct adv_operations *of_layers); /* one for each layer kind */
json_t *adv_encode_links(const struct adv_step_trace *trace, const struct adv_link_loads *loads);
json_t *adv_encode_scaling(const struct adv_scaling *scaling);
json_t *adv_encode_cloud(const struct adv_cloud *cloud);

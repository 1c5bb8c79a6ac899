/* config_state.h: a MaxText configuration while it is being read. Private to decode_plan.c and reread.c.
 *
 * Most keys go straight into the plan; those whose meaning depends on other keys wait here until all were
 * seen. config_keys.c holds the table of keys (adding a key = adding a row); decode_plan.c drives and
 * resolves.
 */
#ifndef ADV_JSON_CONFIG_STATE_H
#define ADV_JSON_CONFIG_STATE_H

#include "engine/json/decode_value.h"
#include "engine/spec/plan.h"

enum adv_attention_choice { ADV_CHOICE_AUTO, ADV_CHOICE_DOT_PRODUCT, ADV_CHOICE_FLASH };

struct adv_config_state {
    struct adv_plan plan;
    enum adv_attention_choice attention;
    bool sparse_matmul, megablox, use_tokamax_gmm, use_gmm_v2;
    bool moe_two_stage, dense_two_stage;
    bool weight_calibration_fixed, act_calibration_fixed;
    bool mu_dtype_given;
    bool override_model_config, sparse_matmul_given;
    bool placement_given[ADV_TENSOR_COUNT];
    enum adv_placement placements[ADV_TENSOR_COUNT];
    int local_blocks[8]; /* in the order of struct adv_splash_blocks, 0 = as the global ones */
};

/* Where a key's findings go. */
struct adv_config_sink {
    const char *pointer;
    adv_err *err, *warnings;
};

void adv_config_state_init(struct adv_config_state *state, const struct adv_model *model);

/* Takes over one value, already of the right type. False: the key does not change the prediction (or is one
 * the engine does not model: then with a warning when the value is not MaxText's default). */
bool adv_config_apply(struct adv_config_state *state, const struct adv_catalog_key *key,
                      const struct adv_value *value, const struct adv_config_sink *sink);

#endif

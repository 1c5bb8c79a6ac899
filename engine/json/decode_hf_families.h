/* decode_hf_families.h: Hugging Face architectures that are not read field by field (decode_hf.c): those
 * whose MaxText model is in the catalog, and plain decoders that MaxText has no model file for. */
#pragma once

#include "engine/catalog/catalog.h"
#include "engine/json/json_read.h"
#include "engine/spec/model_build.h"

/* Replaces the member `model` of a request by the name of the catalog's model where its hf_config is one of a
 * family that MaxText knows by its model files alone (Llama 4, Gemma 4, Qwen3-Next, DeepSeek V3.2, …). Other
 * requests stay. ADV_E_UNSUPPORTED: the dimensions are of no such model, or the family is unknown; the hint
 * names the models of the catalog that may be meant. */
ADV_MUST_CHECK adv_code adv_decode_hf_catalogued(const struct adv_catalog *catalog, json_t *root,
                                                 adv_err *err, adv_err *warnings);

/* Whether the family is read field by field (Llama, Qwen3, DeepSeek V3, …). */
bool adv_hf_is_read(const char *model_type);

/* The family of a configuration, by its model_type or, of those read field by field, by its class in
 * `architectures`; NULL: it says neither. */
const char *adv_hf_model_type(const json_t *config);

/* Whether the family is a plain decoder without a model file in MaxText (Phi-3, Granite, Cohere, …). */
bool adv_hf_is_plain(const char *model_type);

/* Warns of sliding windows of a model, {"hf_config": …} at `at`, that are not priced: where sequences of
 * `seq_len`, 0 when that is not known, are longer than they. */
void adv_hf_warn_of_window(const json_t *model, const char *at, int64_t seq_len, adv_err *warnings);

/* Warns where the configuration of a decoder has layers that predict tokens behind the next, which are left
 * out. `warnings` may be NULL. */
void adv_hf_warn_of_next_tokens(const json_t *config, const char *at, adv_err *warnings);

/* Warns where the configuration of a decoder drops attention scores in training, which no run of MaxText on
 * TPUs does. `warnings` may be NULL. */
void adv_hf_warn_of_dropout(const json_t *config, const char *at, adv_err *warnings);

/* What the configuration of a decoder says of its rotary embedding, and the member that says it:
 * rope_scaling, or rope_parameters, where newer versions of the library put it together with the base; of
 * layers of two kinds what the global ones have. NULL: nothing. */
const json_t *adv_hf_rope(const json_t *config, const char **member);

/* The activation that the configuration of a decoder names, as jax.nn calls it: "gelu" of gelu_new; NULL:
 * none. */
const char *adv_hf_activation(const json_t *config);

/* Its dimensions as keys of the block that costs the same; keys->without_maxtext is set. ADV_E_INVALID:
 * missing dimensions; ADV_E_UNSUPPORTED: layers that are not all alike. */
ADV_MUST_CHECK adv_code adv_decode_hf_plain(const json_t *config, const char *model_type, const char *at,
                                            struct adv_model_keys *keys, adv_err *err, adv_err *warnings);

/* An architecture key in `config` that says what the model has anyway changes nothing: whatever the model,
 * the key, and the member (config, pins) it stands in. */
#include "tests/unit/check.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/json/decode_request.h"
#include "engine/spec/model_build.h"
#include "tests/unit/catalog_fixture.h"

/* Every architecture key of the model at its own value, MaxText's defaults among them. */
static json_t *own_values(const struct adv_model_keys *keys)
{
    json_t *own = json_object();
#define OWN_INTEGER(key, fallback, low, high)                                                                \
    (void)json_object_set_new(own, #key, json_integer((json_int_t)keys->key));
#define OWN_BOOL(key)   (void)json_object_set_new(own, #key, json_boolean(keys->key));
#define OWN_NUMBER(key) (void)json_object_set_new(own, #key, json_real(keys->key));
    ADV_MODEL_INTEGER_KEYS(OWN_INTEGER)
    ADV_MODEL_BOOL_KEYS(OWN_BOOL)
    ADV_MODEL_NUMBER_KEYS(OWN_NUMBER)
#undef OWN_INTEGER
#undef OWN_BOOL
#undef OWN_NUMBER
    (void)json_object_set_new(own, "decoder_block", json_string(adv_decoder_name(keys->decoder_block)));
    if (keys->is_mla) (void)json_object_set_new(own, "attention_type", json_string("mla"));
    return own;
}

/* Both were decoded into zeroed memory, so that padding is the same too. */
static bool same_bytes(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

static void every_key_of_every_model_at_its_own_value_is_the_same_model(void **state)
{
    (void)state;
    int compared = 0;
    for (int i = 0; i < adv_catalog_tables(catalog)->models_count; i++) {
        const char *name = adv_catalog_tables(catalog)->model_names[i];
        json_t *value = json_string(name);
        json_t *own = own_values(adv_catalog_model_keys(catalog, name));
        static struct adv_model plain, same;
        adv_err err;
        adv_err_init(&err);
        memset(&plain, 0, sizeof plain);
        assert_true(adv_decode_request_model(catalog, value, "/model", NULL, "/config", &plain, &err, NULL));
        const char *key = NULL;
        json_t *number = NULL;
        json_object_foreach(own, key, number)
        {
            json_t *config = json_pack("{s:O}", key, number);
            adv_err warnings;
            adv_err_init(&warnings);
            memset(&same, 0, sizeof same);
            if (!adv_decode_request_model(catalog, value, "/model", config, "/config", &same, &err,
                                          &warnings))
                fail_msg("%s with its own %s: %s", name, key, err.findings[0].detail);
            if (!same_bytes(&plain, &same, sizeof same))
                fail_msg("%s is another model with its own %s", name, key);
            if (warnings.count > 0) fail_msg("%s with %s: %s", name, key, warnings.findings[0].detail);
            json_decref(config);
            compared++;
        }
        json_decref(own);
        json_decref(value);
    }
    assert_true(compared > 78 * 50);
}

/* The answer without what repeats the request; reference to `request` taken over. */
static char *answer_to(json_t *request, enum adv_request_kind kind)
{
    char *text = json_dumps(request, 0);
    struct adv_answer answer;
    adv_err err;
    adv_err_init(&err);
    if (adv_answer_request(catalog, kind, text, strlen(text), &answer, &err) != ADV_OK)
        fail_msg("%s: %s %s", text, err.findings[0].pointer, err.findings[0].detail);
    json_t *root = json_loadb(answer.json, answer.json_bytes, 0, NULL);
    (void)json_object_del(root, "config");
    json_t *row = NULL;
    size_t index = 0;
    json_array_foreach(json_object_get(root, "ranked"), index, row)(void) json_object_del(row, "config");
    (void)json_object_del(root, "near_misses"); /* full configurations, which repeat the pins */
    (void)json_object_del(root, "pareto");
    char *dump = json_dumps(root, JSON_SORT_KEYS);
    json_decref(root);
    adv_answer_free(&answer);
    json_decref(request);
    free(text);
    return dump;
}

static void assert_same(json_t *one, json_t *other, enum adv_request_kind kind, const char *what)
{
    char *first = answer_to(one, kind), *second = answer_to(other, kind);
    size_t at = 0;
    while (first[at] && first[at] == second[at]) at++;
    size_t from = at > 80 ? at - 80 : 0;
    if (first[at] || second[at]) fail_msg("%s: …%.160s… against …%.160s…", what, first + from, second + from);
    free(first);
    free(second);
}

/* Experts of every kind, windows, latent attention, linear attention. */
static const struct {
    const char *model, *key;
    double value;
} repeated[] = {
    {"llama4-17b-128e", "base_emb_dim", 5120},    {"llama4-17b-128e", "num_experts_per_tok", 1},
    {"deepseek3-671b", "vocab_size", 129280},     {"deepseek3-671b", "attn_logits_soft_cap", 0},
    {"gpt-oss-20b", "sliding_window_size", 128},  {"qwen3-30b-a3b", "num_experts", 128},
    {"qwen3-next-80b-a3b", "vocab_size", 151936}, {"mixtral-8x7b", "base_num_decoder_layers", 32},
    {"gemma3-27b", "sliding_window_size", 1024},  {"llama3.1-8b", "base_mlp_dim", 14336},
};

static void an_estimate_is_the_same_byte_for_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i++) {
        json_t *plain = json_pack("{s:s, s:{s:s, s:s}, s:{s:i, s:i}}", "model", repeated[i].model, "cluster",
                                  "chip", "v5p", "topology", "4x4x4", "config", "per_device_batch_size", 1,
                                  "max_target_length", 4096);
        json_t *same = json_deep_copy(plain);
        (void)json_object_set_new(json_object_get(same, "config"), repeated[i].key,
                                  json_integer((json_int_t)repeated[i].value));
        assert_same(plain, same, ADV_REQUEST_ESTIMATE, repeated[i].model);
    }
}

static void a_pinned_own_value_leaves_the_search_as_it_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i += 3) {
        json_t *plain =
            json_pack("{s:s, s:{s:s, s:s}, s:{s:i, s:i}, s:{s:i, s:i}}", "model", repeated[i].model,
                      "cluster", "chip", "v5p", "topology", "4x4x4", "workload", "seq_len", 4096,
                      "global_batch_sequences", 256, "search", "top_k", 1, "max_evaluations", 5000);
        json_t *same = json_deep_copy(plain);
        (void)json_object_set_new(same, "pins",
                                  json_pack("{s:I}", repeated[i].key, (json_int_t)repeated[i].value));
        assert_same(plain, same, ADV_REQUEST_ADVISE, repeated[i].model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_of_every_model_at_its_own_value_is_the_same_model),
        cmocka_unit_test(an_estimate_is_the_same_byte_for_byte),
        cmocka_unit_test(a_pinned_own_value_leaves_the_search_as_it_is),
    };
    return run_group_with_catalog(tests);
}

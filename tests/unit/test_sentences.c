/* What the sentences of an answer say of other plans is what the engine says of those plans. */
#include "tests/unit/answer_fixture.h"

#include <math.h>

static const json_t *first_of(const json_t *root)
{
    return json_array_get(json_object_get(root, "ranked"), 0);
}

/* The sentence of a `why` that holds `what`, or NULL. */
static const char *sentence_with(const json_t *plan, const char *what)
{
    const json_t *why = json_object_get(plan, "why");
    for (size_t i = 0; i < json_array_size(why); i++) {
        const char *sentence = json_string_value(json_array_get(why, i));
        if (strstr(sentence, what)) return sentence;
    }
    return NULL;
}

/* The plan of the sentence, estimated. */
static void a_plan_that_may_fit_is_not_said_not_to(void **state)
{
    (void)state;
    json_t *root = answer_to(ADV_REQUEST_ADVISE,
                             "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v5e\",\"topology\":\"8x8\"},"
                             "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":128,"
                             "\"quantization\":\"int8\"},\"search\":{\"top_k\":1}}");
    const json_t *plan = first_of(root);
    const char *sentence = sentence_with(plan, "tensor=2 with fsdp=32 instead");
    assert_non_null(sentence);
    json_t *request =
        json_pack("{ss s{ss ss} sO sO}", "model", "llama3.1-8b", "cluster", "chip", "v5e", "topology", "8x8",
                  "config", json_object_get(plan, "config"), "xla_flags", json_object_get(plan, "xla_flags"));
    json_t *config = json_object_get(request, "config");
    (void)json_object_set_new(config, "ici_tensor_parallelism", json_integer(2));
    (void)json_object_set_new(config, "ici_fsdp_parallelism", json_integer(32));
    json_t *estimate = answer_to_document(ADV_REQUEST_ESTIMATE, request);
    assert_string_equal(json_string_value(json_object_get(estimate, "fit_verdict")), "tight");
    const char *says = strstr(sentence, "it fits with a probability of ");
    assert_non_null(says);
    const double probability = json_number_value(json_object_get(estimate, "fit_probability"));
    assert_close(strtod(says + strlen("it fits with a probability of "), NULL), probability, 0.01);
    json_decref(estimate);
    json_decref(request);
    json_decref(root);
}

static void a_mesh_of_one_device_has_a_name(void **state)
{
    (void)state;
    json_t *root = answer_to(ADV_REQUEST_ADVISE,
                             "{\"model\":\"qwen3-4b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"1x1\"},"
                             "\"workload\":{\"seq_len\":1024,\"global_batch_sequences\":8,"
                             "\"weight_dtype\":\"bfloat16\"},\"search\":{\"fit_probability\":0.65}}");
    assert_non_null(sentence_with(first_of(root), "next plan (one device, "));
    for (size_t i = 0; i < json_array_size(json_object_get(root, "ranked")); i++)
        assert_null(sentence_with(json_array_get(json_object_get(root, "ranked"), i), "(, "));
    json_decref(root);
}

static const char *weight_advice(const char *batch, double *waits_s)
{
    static char message[1024];
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "{\"model\":\"mixtral-8x7b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"8x8\"},"
                   "\"config\":{\"per_device_batch_size\":%s,\"max_target_length\":4096,"
                   "\"ici_fsdp_parallelism\":-1,\"sparse_matmul\":true,\"megablox\":true,"
                   "\"remat_policy\":\"full\"}}",
                   batch);
    json_t *root = answer_to(ADV_REQUEST_ESTIMATE, text);
    const json_t *advice = json_object_get(root, "advice");
    message[0] = '\0';
    for (size_t i = 0; i < json_array_size(advice); i++) {
        const json_t *item = json_array_get(advice, i);
        if (strcmp(json_string_value(json_object_get(item, "code")), "exposed_weight_gathers") != 0) continue;
        (void)snprintf(message, sizeof message, "%s", json_string_value(json_object_get(item, "message")));
        *waits_s = strtod(message, NULL);
    }
    json_decref(root);
    return message;
}

/* A larger batch is named where it hides something, by the engine's own price of it. */
static void a_batch_is_said_to_hide_gathers_where_it_does(void **state)
{
    static const char *const batches[] = {"1", "2", "4", "8"};
    (void)state;
    int idle = 0;
    for (int i = 0; i < 3; i++) {
        double before_s = 0, after_s = 0;
        char message[1024];
        (void)snprintf(message, sizeof message, "%s", weight_advice(batches[i], &before_s));
        const bool promised = strstr(message, "a larger batch per device would") != NULL;
        const bool told = weight_advice(batches[i + 1], &after_s)[0] != '\0';
        if (message[0] && told && after_s > 0.995 * before_s) idle++;
        if (promised && told) assert_true(after_s < before_s);
    }
    assert_true(idle > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_that_may_fit_is_not_said_not_to),
        cmocka_unit_test(a_mesh_of_one_device_has_a_name),
        cmocka_unit_test(a_batch_is_said_to_hide_gathers_where_it_does),
    };
    return run_group_with_catalog(tests);
}

/* Bytes as choices: nearly valid estimate requests, so that the cost model itself is reached. Each byte picks
 * a model, a slice or a value of one MaxText key; a request that is answered must be finite and add up. */
#include "tests/fuzz/fuzz.h"

#include <math.h>

#include "engine/base/text.h"

struct choices {
    const uint8_t *data;
    size_t left;
};

static unsigned choose(struct choices *choices, size_t count)
{
    if (choices->left == 0) return 0;
    choices->left--;
    return (unsigned)(*choices->data++ % count);
}

#define PICK(choices, list) (list)[choose(choices, sizeof(list) / sizeof((list)[0]))]

static const char *const models[] = {
    "llama3.1-8b",  "llama3.1-70b",    "llama3.1-405b", "deepseek3-671b",     "deepseek2-16b",
    "gpt-oss-120b", "mixtral-8x7b",    "qwen3-30b-a3b", "qwen3-next-80b-a3b", "gemma3-27b",
    "gemma2-9b",    "llama4-17b-128e", "gpt3-175b",
};
static const char *const slices[][2] = {
    {"tpu7x", "2x2x1"}, {"tpu7x", "4x4x4"}, {"tpu7x", "4x8x8"}, {"tpu7x", "2x4x4"}, {"v6e", "2x4"},
    {"v6e", "16x16"},   {"v5p", "4x4x4"},   {"v5p", "8x8x16"},  {"v5e", "16x16"},   {"v4", "4x4x4"},
};
/* A key and the values tried for it, in JSON. */
static const struct {
    const char *key;
    const char *values[8];
} keys[] = {
    {"per_device_batch_size", {"1", "2", "0.125", "0.5", "16", "0.003", "-1", "1e9"}},
    {"max_target_length", {"2048", "8192", "131072", "1", "100", "0", "4096", "1048576"}},
    {"ici_fsdp_parallelism", {"-1", "1", "4", "8", "16", "64", "128", "0"}},
    {"ici_tensor_parallelism", {"1", "2", "4", "8", "16", "3", "-1", "0"}},
    {"ici_context_parallelism", {"1", "2", "4", "8", "64", "7", "-1", "16"}},
    {"ici_expert_parallelism", {"1", "2", "4", "8", "16", "3", "32", "-1"}},
    {"ici_data_parallelism", {"1", "2", "4", "8", "-1", "16", "5", "0"}},
    {"ici_fsdp_transpose_parallelism", {"1", "2", "8", "-1", "16", "4", "3", "0"}},
    {"ici_pipeline_parallelism", {"1", "2", "4", "8", "-1", "3", "16", "0"}},
    {"dcn_data_parallelism", {"-1", "1", "2", "4", "0", "8", "3", "16"}},
    {"gradient_accumulation_steps", {"1", "2", "4", "0", "-1", "8", "16", "3"}},
    {"remat_policy",
     {"\"full\"", "\"minimal\"", "\"custom\"", "\"save_qkv_proj\"", "\"none\"", "\"odd\"", "null",
      "\"minimal_offloaded\""}},
    {"decoder_layer_input",
     {"\"device\"", "\"offload\"", "\"remat\"", "1", "null", "\"\"", "\"host\"", "true"}},
    {"mlpwi_0", {"\"device\"", "\"offload\"", "\"remat\"", "1", "null", "\"\"", "\"host\"", "true"}},
    {"quantization", {"\"\"", "\"fp8_full\"", "\"int8\"", "\"fp8\"", "null", "\"int4\"", "1", "\"odd\""}},
    {"weight_dtype",
     {"\"float32\"", "\"bfloat16\"", "\"int8\"", "null", "1", "\"odd\"", "\"\"", "\"float16\""}},
    {"opt_type", {"\"adamw\"", "\"adam_pax\"", "\"sgd\"", "\"muon\"", "null", "1", "\"odd\"", "\"\""}},
    {"scan_layers", {"true", "false", "null", "1", "\"true\"", "\"yes\"", "0", "[]"}},
    {"context_parallel_strategy",
     {"\"all_gather\"", "\"ring\"", "\"ulysses\"", "\"usp\"", "null", "\"\"", "1", "{}"}},
    {"sa_block_q", {"512", "1024", "2048", "128", "0", "-1", "100", "131072"}},
    {"sa_block_kv", {"512", "1024", "2048", "128", "0", "-1", "100", "131072"}},
    {"num_vocab_tiling", {"1", "2", "4", "8", "0", "-1", "3", "1000000"}},
    {"megablox", {"true", "false", "null", "1", "\"true\"", "0", "[]", "{}"}},
    {"sparse_matmul", {"true", "false", "null", "1", "\"true\"", "0", "[]", "{}"}},
    {"capacity_factor", {"-1", "1", "1.25", "0", "8", "1e300", "null", "\"1\""}},
    {"optimizer_memory_host_offload", {"true", "false", "null", "1", "\"true\"", "0", "[]", "{}"}},
    {"allow_split_physical_axes", {"true", "false", "null", "1", "\"true\"", "0", "[]", "{}"}},
    {"attention", {"\"flash\"", "\"dot_product\"", "\"autoselected\"", "null", "1", "\"\"", "\"odd\"", "{}"}},
};

static double number(const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);
    FUZZ_PROMISE(json_is_number(value));
    return json_number_value(value);
}

/* Rules of every estimate: a time inside its interval, exposed parts that add up to it, parts of the
 * memory that are no larger than the whole, and a verdict that follows from the limit. */
static void check_estimate(const json_t *estimate, double peak_over_bf16)
{
    double step_time_s = number(estimate, "step_time_s"), exposed_s = 0.0;
    double hbm_bytes = number(estimate, "hbm_bytes_per_device"),
           limit_bytes = number(estimate, "hbm_limit_bytes_per_device");
    size_t i;
    json_t *part;
    FUZZ_PROMISE(isfinite(step_time_s) && step_time_s > 0.0 && hbm_bytes > 0.0);
    FUZZ_PROMISE(number(estimate, "step_time_low_s") <= step_time_s &&
                 step_time_s <= number(estimate, "step_time_high_s"));
    json_array_foreach(json_object_get(estimate, "time_parts"), i, part)
    {
        double exposed = number(part, "exposed_seconds");
        FUZZ_PROMISE(exposed >= 0.0 && exposed <= number(part, "seconds") * (1.0 + 1e-9) + 1e-12);
        exposed_s += exposed;
    }
    FUZZ_PROMISE(fabs(exposed_s - step_time_s) <= 1e-6 * step_time_s);
    json_array_foreach(json_object_get(estimate, "hbm_parts"), i, part)
        FUZZ_PROMISE(number(part, "bytes") >= 0.0 && number(part, "bytes") <= hbm_bytes * (1.0 + 1e-9));
    const char *verdict = json_string_value(json_object_get(estimate, "fit_verdict"));
    FUZZ_PROMISE(verdict &&
                 json_is_true(json_object_get(estimate, "fits")) == (strcmp(verdict, "does_not_fit") != 0));
    FUZZ_PROMISE(strcmp(verdict, "fits") != 0 || hbm_bytes <= limit_bytes);
    FUZZ_PROMISE(strcmp(verdict, "does_not_fit") != 0 || hbm_bytes > limit_bytes ||
                 number(estimate, "host_bytes_per_host") > number(estimate, "host_limit_bytes_per_host"));
    FUZZ_PROMISE(number(estimate, "mfu_frac") < peak_over_bf16 &&
                 number(estimate, "hfu_frac") < peak_over_bf16);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct choices choices = {data, size};
    struct adv_text text;
    adv_text_init(&text, 1u << 16);
    const char *model = PICK(&choices, models);
    const char *const *slice = PICK(&choices, slices);
    unsigned slices_count = choose(&choices, 2) + 1;
    adv_text_format(
        &text,
        "{\"model\":\"%s\",\"cluster\":{\"chip\":\"%s\",\"topology\":\"%s\",\"slices\":%u},\"config\":{",
        model, slice[0], slice[1], slices_count);
    uint32_t used = 0;
    const char *comma = "";
    while (choices.left > 1) {
        unsigned key = choose(&choices, sizeof keys / sizeof keys[0]), value = choose(&choices, 8);
        if (used & 1u << key) continue;
        used |= 1u << key;
        adv_text_format(&text, "%s\"%s\":%s", comma, keys[key].key, keys[key].values[value]);
        comma = ",";
    }
    adv_text_append(&text, "}}");
    FUZZ_PROMISE(!text.overflow);
    json_t *estimate = fuzz_answer(ADV_REQUEST_ESTIMATE, text.data, text.length_bytes);
    if (estimate) check_estimate(estimate, strstr(text.data, "\"quantization\":\"") ? 2.0 : 1.0);
    json_decref(estimate);
    adv_text_free(&text);
    return 0;
}

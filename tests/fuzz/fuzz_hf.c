/* Any bytes as a Hugging Face config.json: what is taken as a model is estimated like any other. */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char before[] = "{\"model\": {\"hf_config\": ",
                      after[] = "}, \"cluster\": {\"chip\": \"v5p\", \"topology\": \"2x2x2\"}, \"config\": "
                                "{\"per_device_batch_size\": 1, \"max_target_length\": 1024}}";
    if (size > 65536) return 0;
    const size_t bytes = sizeof before - 1 + size + sizeof after - 1;
    char *text = malloc(bytes + 1);
    if (!text) return 0;
    memcpy(text, before, sizeof before - 1);
    memcpy(text + sizeof before - 1, data, size);
    memcpy(text + sizeof before - 1 + size, after, sizeof after);
    json_decref(fuzz_answer(ADV_REQUEST_ESTIMATE, text, bytes));
    free(text);
    return 0;
}

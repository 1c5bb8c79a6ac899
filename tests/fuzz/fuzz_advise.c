/* Any bytes as members of an advise request on a small slice with a small budget: the search must end and
 * answer. */
#include "tests/fuzz/fuzz.h"

#include "engine/base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct adv_text text;
    if (size > 4096) return 0;
    adv_text_init(&text, 1u << 16);
    adv_text_append(&text, "{\"search\":{\"max_evaluations\":50,\"top_k\":2},\"cluster\":{\"chip\":\"v6e\","
                           "\"topology\":\"2x4\"},");
    adv_text_append_bytes(&text, (const char *)data, size);
    adv_text_append(&text, "}");
    json_decref(fuzz_answer(ADV_REQUEST_ADVISE, text.data, text.length_bytes));
    adv_text_free(&text);
    return 0;
}

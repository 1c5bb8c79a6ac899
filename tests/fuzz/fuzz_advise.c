/* Any bytes as members of an advise request with a small budget: the search must end and answer. The cluster
 * is a small slice; after a first '@' it is left to the bytes too (several machines, any shape), and only one
 * axis is searched, so that the largest slice is still quick. */
#include "tests/fuzz/fuzz.h"

#include "engine/base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct adv_text text;
    if (size > 4096) return 0;
    adv_text_init(&text, 1u << 16);
    adv_text_append(&text, "{\"search\":{\"max_evaluations\":50,\"top_k\":2,\"sensitivities\":true");
    bool open = size > 0 && data[0] == '@';
    adv_text_append(&text, open ? ",\"axes\":[\"fsdp\"]},"
                                : "},\"cluster\":{\"chip\":\"v6e\",\"topology\":\"2x4\"},");
    adv_text_append_bytes(&text, (const char *)data + open, size - open);
    adv_text_append(&text, "}");
    json_decref(fuzz_answer(ADV_REQUEST_ADVISE, text.data, text.length_bytes));
    adv_text_free(&text);
    return 0;
}

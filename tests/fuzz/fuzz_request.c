/* Any bytes as a request: the first byte chooses what is asked, the rest is the document. Advise is fuzzed by
 * fuzz_advise.c, which keeps its searches small. */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum adv_request_kind kinds[] = {ADV_REQUEST_ESTIMATE, ADV_REQUEST_LINT,
                                                  ADV_REQUEST_SIMULATE, ADV_REQUEST_TUNE};
    if (size == 0) return 0;
    json_decref(
        fuzz_answer(kinds[data[0] % (sizeof kinds / sizeof kinds[0])], (const char *)data + 1, size - 1));
    return 0;
}

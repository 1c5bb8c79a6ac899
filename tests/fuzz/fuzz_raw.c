/* Any bytes as what a connection receives, before the HTTP library: how they are cut into pieces makes no
 * difference to whether they are refused, nor does what follows a refusal; and what is taken has no NUL in a
 * head and no lone line feed. */
#include "tests/fuzz/fuzz.h"

#include "server/raw_guard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct adv_raw_guard whole = {0}, pieces = {0}, bytes = {0};
    char *text = calloc(1, size + 1);
    if (!text) return 0;
    if (size > 0) memcpy(text, data, size);
    const bool taken = adv_raw_guard_feed(&whole, text, size);
    FUZZ_PROMISE(taken == (whole.reason == NULL));
    const size_t cut = size > 0 ? data[0] % size : 0;
    (void)adv_raw_guard_feed(&pieces, text, cut);
    FUZZ_PROMISE(adv_raw_guard_feed(&pieces, text + cut, size - cut) == taken);
    for (size_t i = 0; i < size; i++) (void)adv_raw_guard_feed(&bytes, text + i, 1);
    FUZZ_PROMISE(whole.reason == bytes.reason && whole.reason == pieces.reason);
    FUZZ_PROMISE(!taken || (whole.state == bytes.state && whole.left_bytes == bytes.left_bytes));
    FUZZ_PROMISE(taken || !adv_raw_guard_feed(&whole, "GET / HTTP/1.1\r\n\r\n", 18));
    free(text);
    return 0;
}

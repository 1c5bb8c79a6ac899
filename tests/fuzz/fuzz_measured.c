/* A measurement: bytes as a training log and as its JSON. What is taken must be finite and positive. */
#include "tests/fuzz/fuzz.h"

#include <math.h>

#include "engine/json/decode_bodies.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct adv_measured_plan plan = {
        .step_time_s = 2.0, .tokens_per_s_per_chip = 1000.0, .devices = 128, .chips = 64};
    struct adv_measured measured = {0};
    char *text = malloc(size + 1);
    adv_err err;
    adv_err_init(&err);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (adv_measured_from_log(text, size, &plan, &measured, &err) == ADV_OK) {
        FUZZ_PROMISE(isfinite(measured.step_time_s) && measured.step_time_s > 0.0 &&
                     measured.steps_count > 0);
        (void)!adv_measured_check(&measured, &plan, &err);
    }
    adv_err_init(&err);
    if (adv_decode_measured(text, size, &measured, &err) == ADV_OK)
        FUZZ_PROMISE(isfinite(measured.step_time_s) && measured.step_time_s > 0.0 && measured.source[0]);
    free(text);
    return 0;
}

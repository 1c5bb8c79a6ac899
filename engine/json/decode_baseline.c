#include "engine/json/decode_baseline.h"

#include <string.h>

#include "engine/maxtext/keys.h"
#include "engine/maxtext/names.h"

/* The key, and the member of the workload. */
static const char *const formats[][2] = {{ADV_NAME_WEIGHT_DTYPE, ADV_NAME_WEIGHT_DTYPE},
                                         {ADV_NAME_GRAD_DTYPE, ADV_NAME_GRAD_DTYPE},
                                         {ADV_NAME_MU_DTYPE, ADV_NAME_MU_DTYPE},
                                         {ADV_NAME_OPT_TYPE, "optimizer"},
                                         {"quantization", "quantization"}};
enum { FORMATS = sizeof formats / sizeof *formats };

/* What is none is an error of the baseline's own. */
static bool is_choice(const char *name, const char *value)
{
    const char *names[ADV_KEY_CHOICES_MAX];
    const int count = adv_key_plain_choices(adv_key_find(name), names);
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], value) == 0) return true;
    return false;
}

void adv_baseline_formats(const json_t *config, const json_t *pins, json_t *workload)
{
    for (int i = 0; i < FORMATS; i++) {
        const char *name = formats[i][0], *member = formats[i][1];
        const char *value = json_string_value(json_object_get(config, name));
        if (value && is_choice(name, value) && !json_object_get(workload, member) &&
            !json_object_get(pins, name))
            (void)json_object_set_new(workload, member, json_string(value));
    }
}

json_t *adv_baseline_merge(const json_t *root)
{
    const json_t *config = json_object_get(json_object_get(root, "baseline"), "config");
    const json_t *given = json_object_get(root, "workload");
    if (!json_is_object(config) || !json_is_object(given)) return json_incref((json_t *)(uintptr_t)root);
    json_t *workload = json_copy((json_t *)(uintptr_t)given), *merged = json_copy((json_t *)(uintptr_t)root);
    adv_baseline_formats(config, json_object_get(root, "pins"), workload);
    (void)json_object_set_new(merged, "workload", workload);
    return merged;
}

/* Sequences of the whole step that the workload asks for; 0: it says those of a device. */
static double global_sequences(const struct adv_workload *workload)
{
    if (workload->tokens_per_step > 0) return workload->tokens_per_step / (double)workload->seq_len;
    return workload->global_batch_sequences;
}

void adv_baseline_complete(json_t *config, const struct adv_advise_request *request)
{
    const struct adv_workload *workload = &request->workload;
    if (!json_is_object(config) || workload->seq_len <= 0 || request->cluster.devices <= 0) return;
    if (!json_object_get(config, ADV_NAME_MAX_TARGET_LENGTH))
        (void)json_object_set_new(config, ADV_NAME_MAX_TARGET_LENGTH, json_integer(workload->seq_len));
    if (json_object_get(config, ADV_NAME_PER_DEVICE_BATCH_SIZE) ||
        json_object_get(config, ADV_NAME_GRADIENT_ACCUMULATION_STEPS))
        return;
    const double global = global_sequences(workload);
    const double sequences = global > 0 ? global / request->cluster.devices : workload->per_device_batch_size;
    if (sequences > 0)
        (void)json_object_set_new(config, ADV_NAME_PER_DEVICE_BATCH_SIZE, json_real(sequences));
}

static void warn_of_key(const struct adv_advise_request *request, const char *name, adv_err *warnings)
{
    const struct adv_key *key = adv_key_find(name);
    const double its = adv_key_says(key, &request->baseline);
    const double asked = adv_key_says(key, &request->workload.base);
    char its_text[ADV_LIMIT_NAME], asked_text[ADV_LIMIT_NAME];
    const bool follows = strcmp(name, ADV_NAME_MU_DTYPE) == 0 &&
                         request->baseline.family.weight_dtype != request->workload.base.family.weight_dtype;
    if (its == asked || follows || !adv_key_text(key, its, its_text, sizeof its_text) ||
        !adv_key_text(key, asked, asked_text, sizeof asked_text))
        return;
    ADV_WARN(warnings, "baseline-other-format", ADV_AT("/baseline/config", name),
             "say it in the workload too, or accept that what is gained is partly this",
             "the baseline has %s %s, the plans have the workload's, %s", name, its_text, asked_text);
}

void adv_baseline_warn(const struct adv_advise_request *request, adv_err *warnings)
{
    const struct adv_workload *workload = &request->workload;
    const struct adv_plan *baseline = &request->baseline;
    const double global = global_sequences(workload);
    const double asked = (global > 0 ? global : workload->per_device_batch_size * request->cluster.devices) *
                         (double)workload->seq_len;
    const double its = adv_plan_global_batch(baseline, &request->cluster) * (double)baseline->family.seq_len;
    if (its < asked * (1 - 1e-9) || its > asked * (1 + 1e-9))
        ADV_WARN(warnings, "baseline-other-work", "/baseline/config",
                 "give both the same " ADV_NAME_MAX_TARGET_LENGTH " and batch",
                 "a step of the baseline has %.10g tokens in sequences of %lld, the workload's %.10g in "
                 "sequences of %lld: what is gained on it is the time of a token",
                 its, (long long)baseline->family.seq_len, asked, (long long)workload->seq_len);
    for (int i = 0; i < FORMATS - workload->any_quantization; i++)
        warn_of_key(request, formats[i][0], warnings);
}

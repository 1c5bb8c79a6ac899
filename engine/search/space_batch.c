#include "engine/maxtext/names.h"
#include "engine/search/space_batch.h"

#include <math.h>
#include <string.h>

bool adv_request_pins(const struct adv_advise_request *request, const char *key)
{
    for (int i = 0; i < request->pins_count; i++)
        if (!strcmp(request->pins[i].key, key)) return true;
    return false;
}

bool adv_key_says_the_same(const struct adv_key *key, const struct adv_plan *a, const struct adv_plan *b)
{
    if (key->says) return key->says(a) == key->says(b);
    return memcmp((const char *)a + key->plan_at, (const char *)b + key->plan_at, key->plan_bytes) == 0;
}

/* Sequences of one optimizer step, or -1 with a finding. */
static int64_t global_batch(const struct adv_workload *workload, adv_err *err)
{
    bool tokens = workload->tokens_per_step > 0;
    double sequences =
        tokens ? workload->tokens_per_step / (double)workload->seq_len : workload->global_batch_sequences;
    double whole = floor(sequences + 0.5);
    if (whole >= 1 && whole < 1e12 && fabs(sequences - whole) <= 1e-9 * whole) return (int64_t)whole;
    double nearest = whole >= 1 ? whole : 1;
    const char *pointer = tokens ? "/workload/tokens_per_step" : "/workload/global_batch_sequences";
    (void)adv_err_add(err, ADV_E_INVALID, pointer, "use a whole number of sequences",
                      "%.10g sequences of %lld tokens a step; the nearest that works is %.0f (%.0f tokens)",
                      sequences, (long long)workload->seq_len, nearest, nearest * (double)workload->seq_len);
    return -1;
}

static int pinned_batch(const struct adv_advise_request *request, int64_t sequences,
                        struct adv_batch_split *split, adv_err *err)
{
    double per_device = request->workload.base.family.per_device_batch_size;
    double microstep = floor(per_device * request->cluster.devices + 1e-6);
    double steps = microstep >= 1 ? (double)sequences / microstep : 0;
    if (steps < 1 || steps != floor(steps) || steps > 1e6) {
        (void)adv_err_add(
            err, ADV_E_INVALID, "/pins/per_device_batch_size", "unpin it, or change the global batch",
            "%g sequences x %d devices = %.0f a microstep, which does not divide the global batch of %lld",
            per_device, request->cluster.devices, microstep, (long long)sequences);
        return 0;
    }
    *split = (struct adv_batch_split){per_device, (int)steps};
    return 1;
}

int adv_batch_splits(const struct adv_advise_request *request,
                     struct adv_batch_split splits[ADV_BATCH_SPLITS], adv_err *err)
{
    const struct adv_workload *workload = &request->workload;
    int accumulation = workload->base.family.gradient_accumulation_steps;
    bool accumulation_pinned = adv_request_pins(request, ADV_NAME_GRADIENT_ACCUMULATION_STEPS);
    if (workload->per_device_batch_size > 0) {
        splits[0] =
            (struct adv_batch_split){workload->per_device_batch_size, accumulation_pinned ? accumulation : 1};
        return 1;
    }
    int64_t sequences = global_batch(workload, err);
    if (sequences < 0) return 0;
    if (request->batch_pinned && adv_request_pins(request, ADV_NAME_PER_DEVICE_BATCH_SIZE))
        return pinned_batch(request, sequences, splits, err);
    int count = 0;
    for (int64_t steps = 1; steps <= sequences && steps <= 65536 && count < ADV_BATCH_SPLITS; steps++) {
        if (sequences % steps != 0 || (accumulation_pinned && steps != accumulation)) continue;
        double per_device = (double)(sequences / steps) / request->cluster.devices;
        splits[count++] = (struct adv_batch_split){per_device, (int)steps};
    }
    if (count == 0)
        (void)adv_err_add(err, ADV_E_INVALID, "/pins/gradient_accumulation_steps",
                          "unpin it, or change the global batch",
                          "%d accumulation steps do not divide the global batch of %lld sequences",
                          accumulation, (long long)sequences);
    return count;
}

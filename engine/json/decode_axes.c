#include "engine/json/decode_axes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/near.h"
#include "engine/base/text.h"
#include "engine/json/json_read.h"
#include "engine/maxtext/keys.h"

void adv_decode_axes(const json_t *search, struct adv_advise_request *request, adv_err *err)
{
    static const enum adv_axis searchable[] = {
        ADV_AXIS_DATA,           ADV_AXIS_STAGE,           ADV_AXIS_FSDP,
        ADV_AXIS_FSDP_TRANSPOSE, ADV_AXIS_CONTEXT,         ADV_AXIS_ULYSSES,
        ADV_AXIS_TENSOR,         ADV_AXIS_TENSOR_SEQUENCE, ADV_AXIS_EXPERT,
    };
    enum { SEARCHABLE = sizeof searchable / sizeof *searchable };
    json_t *axes = adv_json_array(search, "/search", "axes", ADV_JSON_OPTIONAL, err);
    size_t index = 0;
    json_t *element = NULL;
    for (int i = 0; i < SEARCHABLE; i++) request->axis_allowed[searchable[i]] = !axes;
    json_array_foreach(axes, index, element)
    {
        const char *name = json_is_string(element) ? json_string_value(element) : "";
        bool found = false;
        for (int i = 0; i < SEARCHABLE && !found; i++) {
            found = strcmp(name, adv_axis_key(searchable[i])) == 0 ||
                    strcmp(name, adv_key_of_axis(false, searchable[i])) == 0;
            if (found) request->axis_allowed[searchable[i]] = true;
        }
        char pointer[ADV_LIMIT_POINTER];
        if (found) continue;
        const char *known[SEARCHABLE];
        char hint[ADV_LIMIT_DETAIL];
        size_t used = 0;
        for (int i = 0; i < SEARCHABLE; i++) {
            known[i] = adv_axis_key(searchable[i]);
            int wrote = snprintf(hint + used, sizeof hint - used, "%s%s", i ? ", " : "", known[i]);
            if (wrote > 0 && used + (size_t)wrote < sizeof hint) used += (size_t)wrote;
        }
        const char *nearest = adv_text_nearest(name, known, SEARCHABLE);
        if (nearest) (void)snprintf(hint, sizeof hint, "did you mean %s?", nearest);
        (void)adv_err_add(err, ADV_E_INVALID, adv_json_pointer_index(pointer, "/search/axes", index), hint,
                          "\"%.60s\" is not an axis to search over", name);
        /* refused as it is: what the axes leave free is not judged on top of it */
        for (int i = 0; i < SEARCHABLE; i++) request->axis_allowed[searchable[i]] = true;
    }
}

/* "fsdp 16 x tensor 3" of the pinned axes. */
static void name_pinned_axes(const struct adv_advise_request *request, char *text, size_t text_bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < ADV_AXIS_COUNT && used < text_bytes; i++) {
        if (!request->axis_pinned[i]) continue;
        int wrote = snprintf(text + used, text_bytes - used, "%s%s %d", used ? " x " : "",
                             adv_axis_key((enum adv_axis)i), request->workload.base.family.ici[i]);
        if (wrote > 0) used += (size_t)wrote;
    }
}

/* The first pin that alone can be put right, and its nearest degrees. */
static void suggest_degree(const struct adv_advise_request *request, char *hint, size_t hint_bytes)
{
    const int *ici = request->workload.base.family.ici;
    int devices = request->cluster.devices_per_slice;
    (void)snprintf(hint, hint_bytes, "the pinned ici axes must multiply to a divisor of the slice's devices");
    for (int i = ADV_AXIS_COUNT - 1; i >= 0; i--) {
        double others = 1;
        char near[64];
        for (int k = 0; k < ADV_AXIS_COUNT; k++)
            if (k != i && request->axis_pinned[k]) others *= ici[k];
        if (!request->axis_pinned[i] || others > devices || devices % (int)others != 0) continue;
        struct adv_near degrees = adv_near_divisors(devices / (int)others, 1, ici[i]);
        (void)snprintf(hint, hint_bytes, "with the others as they are, ici_%s_parallelism %s would do",
                       adv_axis_key((enum adv_axis)i), adv_near_text(degrees, near, sizeof near));
        return;
    }
}

void adv_decode_check_pinned_axes(struct adv_advise_request *request, adv_err *err)
{
    double product = 1;
    int free_axes = 0;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        if (request->axis_pinned[i])
            product *= request->workload.base.family.ici[i];
        else
            request->workload.base.family.ici[i] = 1;
        free_axes += !request->axis_pinned[i] && request->axis_allowed[i];
    }
    int devices = request->cluster.devices_per_slice;
    bool divides = devices > 0 && fmod(devices, product) < 0.5;
    if (devices == 0 || (divides && (free_axes > 0 || product >= devices))) return;
    char pinned[ADV_LIMIT_DETAIL / 2], hint[ADV_LIMIT_DETAIL];
    name_pinned_axes(request, pinned, sizeof pinned);
    suggest_degree(request, hint, sizeof hint);
    if (divides)
        (void)adv_err_add(
            err, ADV_E_ILLEGAL, "/pins",
            "allow one more axis in search.axes, or pin degrees whose product is the slice's devices",
            "the pinned axes multiply to %.10g, and no axis of search.axes is left to take the other "
            "%.10g of the slice's %d devices",
            product, devices / product, devices);
    else
        (void)adv_err_add(err, ADV_E_ILLEGAL, "/pins", hint,
                          "the pinned axes (%s) multiply to %.10g, which does not divide the %d devices of a "
                          "slice",
                          pinned, product, devices);
}

#include "engine/json/decode_members.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/near.h"
#include "engine/base/text.h"
#include "engine/maxtext/flags.h"
#include "engine/maxtext/keys.h"

static void take_release(const json_t *object, const char *member, char release[ADV_LIMIT_RELEASE],
                         adv_err *err)
{
    const char *text = NULL;
    if (!adv_json_string(object, "/software", member, ADV_JSON_OPTIONAL, &text, err)) return;
    const size_t length = strlen(text);
    if (length > 0 && length < ADV_LIMIT_RELEASE && strspn(text, "0123456789.abcdevoprst+") == length)
        (void)snprintf(release, ADV_LIMIT_RELEASE, "%s", text);
    else
        ADV_REFUSE(err, ADV_AT("/software", member), "0.12.0.1", "this is no release");
}

/* The release among those that were asked which a JAX wants: "0.0.50.*" is 0.0.50.1. Of another one the stem
 * stands. */
static void follow_jax(const struct adv_catalog_releases *releases, const char *asked,
                       struct adv_software *software)
{
    if (!asked) return;
    (void)snprintf(software->libtpu, sizeof software->libtpu, "%.*s", (int)strcspn(asked, "*") - 1, asked);
    for (int i = 0; i < releases->libtpu_count; i++)
        if (adv_catalog_release_matches(asked, releases->libtpu[i].release))
            (void)snprintf(software->libtpu, sizeof software->libtpu, "%s", releases->libtpu[i].release);
}

void adv_decode_software(const struct adv_catalog *catalog, const json_t *root, struct adv_software *software,
                         adv_err *err)
{
    const struct adv_catalog_releases *releases = adv_catalog_releases(catalog);
    int index = 0;
    *software = releases->pinned;
    const json_t *object = adv_json_object(root, "", "software", ADV_JSON_OPTIONAL, err);
    if (!object) return;
    (void)adv_json_known_members(object, "/software", ADV_JSON_NAMES("maxtext", "jax", "libtpu"), err);
    if (adv_json_choice(object, "/software", "maxtext", ADV_JSON_OPTIONAL, releases->maxtext,
                        releases->maxtext_count, &index, err))
        (void)snprintf(software->maxtext, sizeof software->maxtext, "%s", releases->maxtext[index]);
    if (adv_json_has(object, "jax")) {
        take_release(object, "jax", software->jax, err);
        follow_jax(releases, adv_catalog_jax_asks(catalog, software->jax), software);
    }
    take_release(object, "libtpu", software->libtpu, err);
}

static const struct {
    const char *name;
    unsigned bit;
} members[] = {{"timeline", ADV_INCLUDE_TIMELINE},
               {"roofline", ADV_INCLUDE_ROOFLINE},
               {"links", ADV_INCLUDE_LINKS},
               {"scaling", ADV_INCLUDE_SCALING},
               {"trade_off", ADV_INCLUDE_TRADE_OFF}};
enum { MEMBERS = sizeof members / sizeof *members };

static void list_allowed(unsigned allowed, char *text, size_t text_bytes)
{
    (void)snprintf(text, text_bytes, "one of");
    for (int i = 0; i < MEMBERS; i++)
        if (members[i].bit & allowed) adv_append(text, text_bytes, " %s", members[i].name);
}

unsigned adv_decode_include(const json_t *root, unsigned allowed, adv_err *err)
{
    const json_t *list = adv_json_array(root, "", "include", ADV_JSON_OPTIONAL, err);
    unsigned include = 0;
    for (size_t k = 0; k < json_array_size(list); k++) {
        const char *name = json_string_value(json_array_get(list, k));
        char hint[ADV_LIMIT_DETAIL];
        int i = 0;
        while (i < MEMBERS && !(name && members[i].bit & allowed && strcmp(name, members[i].name) == 0)) i++;
        if (i < MEMBERS) {
            include |= members[i].bit;
            continue;
        }
        list_allowed(allowed, hint, sizeof hint);
        ADV_REFUSE(err, ADV_AT_INDEX("/include", k), hint, "this answer has no member %s to include",
                   name ? name : "of that type");
    }
    return include;
}

void adv_decode_axes(const json_t *search, struct adv_advise_request *request, adv_err *err)
{
    static const enum adv_axis searchable[] = {
        ADV_AXIS_DATA,           ADV_AXIS_STAGE,           ADV_AXIS_FSDP,
        ADV_AXIS_FSDP_TRANSPOSE, ADV_AXIS_CONTEXT,         ADV_AXIS_ULYSSES,
        ADV_AXIS_TENSOR,         ADV_AXIS_TENSOR_SEQUENCE, ADV_AXIS_EXPERT,
    };
    enum { SEARCHABLE = sizeof searchable / sizeof *searchable };
    json_t *axes = adv_json_array(search, "/search", "axes", ADV_JSON_OPTIONAL, err);
    for (int i = 0; i < SEARCHABLE; i++) request->axis_allowed[searchable[i]] = !axes;
    for (struct adv_json_walk element = {.in = axes}; adv_json_next(&element);) {
        const char *name = json_is_string(element.value) ? json_string_value(element.value) : "";
        bool found = false;
        for (int i = 0; i < SEARCHABLE && !found; i++) {
            found = strcmp(name, adv_axis_key(searchable[i])) == 0 ||
                    strcmp(name, adv_key_of_axis(false, searchable[i])) == 0;
            if (found) request->axis_allowed[searchable[i]] = true;
        }
        if (found) continue;
        const char *known[SEARCHABLE];
        char hint[ADV_LIMIT_DETAIL] = "";
        for (int i = 0; i < SEARCHABLE; i++) {
            known[i] = adv_axis_key(searchable[i]);
            adv_append(hint, sizeof hint, "%s%s", i ? ", " : "", known[i]);
        }
        const char *nearest = adv_text_nearest(name, known, SEARCHABLE);
        if (nearest) (void)snprintf(hint, sizeof hint, "did you mean %s?", nearest);
        ADV_REFUSE(err, ADV_AT_INDEX("/search/axes", element.index), hint,
                   "\"%.60s\" is not an axis to search over", name);
        /* refused as it is: what the axes leave free is not judged on top of it */
        for (int i = 0; i < SEARCHABLE; i++) request->axis_allowed[searchable[i]] = true;
    }
}

/* "fsdp 16 x tensor 3" of the pinned axes. */
static void name_pinned_axes(const struct adv_advise_request *request, char *text, size_t text_bytes)
{
    text[0] = '\0';
    for (int i = 0; i < ADV_AXIS_COUNT; i++)
        if (request->axis_pinned[i])
            adv_append(text, text_bytes, "%s%s %d", *text ? " x " : "", adv_axis_key((enum adv_axis)i),
                       request->workload.base.family.ici[i]);
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

enum { BAD_SIZES_SHOWN = 8 };

/* A size of a group; -1, with a finding while few are bad, when it is none. */
static int64_t read_size(const json_t *element, size_t index, int64_t *bad_count, adv_err *err)
{
    const bool whole = json_is_integer(element) ||
                       (json_is_real(element) && json_real_value(element) == floor(json_real_value(element)));
    const double size = whole ? json_number_value(element) : -1.0;
    if (whole && size >= 0.0 && size <= ADV_KERNEL_SIZE_MAX) return (int64_t)size;
    if ((*bad_count)++ >= BAD_SIZES_SHOWN) return -1;
    const char *pointer = ADV_AT_INDEX("/shape/group_sizes", index);
    if (json_is_number(element))
        (void)adv_err_add(err, whole ? ADV_E_RANGE : ADV_E_INVALID, pointer,
                          json_number_value(element) < 0.0 ? "0, an empty group"
                          : whole                          ? "268435456 at most"
                                                           : "a whole number of rows",
                          "group %zu has %.15g rows", index, json_number_value(element));
    else
        ADV_REFUSE(err, pointer, "a whole number of rows", "group %zu must be a whole number, not %s", index,
                   adv_json_type_name(element));
    return -1;
}

static void judge_sizes(const struct adv_gmm_shape *gmm, size_t count, int64_t bad_count, int64_t total,
                        adv_err *err)
{
    char hint[ADV_LIMIT_NAME];
    if (bad_count > BAD_SIZES_SHOWN)
        ADV_REFUSE(err, "/shape/group_sizes", "whole numbers of rows, 0 or more",
                   "%lld more sizes are no numbers of rows", (long long)(bad_count - BAD_SIZES_SHOWN));
    if (gmm->num_groups > 0 && count != (size_t)gmm->num_groups) {
        if (count > 0)
            (void)snprintf(hint, sizeof hint, "num_groups %zu, or %d sizes", count, gmm->num_groups);
        else
            (void)snprintf(hint, sizeof hint, "%d sizes, or no group_sizes", gmm->num_groups);
        ADV_REFUSE(err, "/shape/group_sizes", hint, "%zu sizes for %d groups", count, gmm->num_groups);
    }
    if (gmm->m > 0 && count > 0 && bad_count == 0 && total != gmm->m) {
        if (total > 0)
            (void)snprintf(hint, sizeof hint, "m %lld, or sizes that sum to %lld", (long long)total,
                           (long long)gmm->m);
        else
            (void)snprintf(hint, sizeof hint, "sizes that sum to %lld", (long long)gmm->m);
        ADV_REFUSE(err, "/shape/group_sizes", hint, "the groups hold %lld rows, but m is %lld",
                   (long long)total, (long long)gmm->m);
    }
}

void adv_decode_groups(const json_t *shape, struct adv_arena *arena, struct adv_gmm_shape *gmm, adv_err *err,
                       adv_err *warnings)
{
    int index = 0;
    if (adv_json_choice(shape, "/shape", "group_distribution", ADV_JSON_OPTIONAL,
                        ADV_JSON_NAMES("balanced", "multinomial", "zipf", "worst"), &index, err))
        gmm->distribution = (enum adv_group_distribution)(ADV_GROUPS_BALANCED + index);
    json_t *list = adv_json_array(shape, "/shape", "group_sizes", ADV_JSON_OPTIONAL, err);
    if (!list) return;
    const size_t count = json_array_size(list);
    int64_t *sizes = adv_arena_array(arena, count + 1, sizeof *sizes), total = 0, bad_count = 0;
    if (!sizes) {
        (void)adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request is too large");
        return;
    }
    for (struct adv_json_walk element = {.in = list}; adv_json_next(&element);) {
        sizes[element.index] = read_size(element.value, element.index, &bad_count, err);
        total += sizes[element.index];
    }
    judge_sizes(gmm, count, bad_count, total, err);
    if (adv_json_has(shape, "group_distribution"))
        ADV_WARN(warnings, "not-used", "/shape/group_distribution", "leave it out",
                 "group_sizes say how the rows are spread: the distribution is not used");
    if (bad_count > 0 || count != (size_t)gmm->num_groups) return;
    gmm->group_sizes = sizes;
    gmm->distribution = ADV_GROUPS_GIVEN;
}

adv_code adv_decode_flags(const struct adv_catalog *catalog, const json_t *json, const char *at, bool strict,
                          struct adv_arena *arena, struct adv_flags *flags, struct adv_config *config,
                          adv_err *err, adv_err *warnings)
{
    struct adv_flags_reader reader = {catalog, strict, arena, flags, config, err, warnings, false, 0};
    adv_flags_unset(flags);
    if (!json || json_is_null(json)) return ADV_OK;
    int errors_before = err->count + err->lost_count;
    if (json_is_string(json)) {
        adv_flags_read_text(&reader, json_string_value(json), at);
    } else if (!json_is_array(json)) {
        return adv_err_add(err, ADV_E_INVALID, at, NULL, "must be a list of strings or one string, not %s",
                           adv_json_type_name(json));
    }
    for (struct adv_json_walk element = {.in = json}; adv_json_next(&element);) {
        if (reader.is_full) break;
        const char *pointer = ADV_AT_INDEX(at, element.index);
        if (json_is_string(element.value))
            adv_flags_read_text(&reader, json_string_value(element.value), pointer);
        else
            ADV_REFUSE(err, pointer, NULL, "must be a string, not %s", adv_json_type_name(element.value));
    }
    if (reader.is_full) {
        (void)adv_err_add(err, ADV_E_TOO_LARGE, at, NULL, "more than %d flags", ADV_LIMIT_XLA_FLAGS);
    }
    return err->count + err->lost_count > errors_before ? err->code : ADV_OK;
}

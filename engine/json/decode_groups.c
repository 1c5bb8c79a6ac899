#include "engine/json/decode_groups.h"

#include <math.h>
#include <stdio.h>

#include "engine/json/json_read.h"

enum { BAD_SIZES_SHOWN = 8 };

/* A size of a group; -1, with a finding while few are bad, when it is none. */
static int64_t read_size(const json_t *element, size_t index, int64_t *bad_count, adv_err *err)
{
    const bool whole = json_is_integer(element) ||
                       (json_is_real(element) && json_real_value(element) == floor(json_real_value(element)));
    const double size = whole ? json_number_value(element) : -1.0;
    if (whole && size >= 0.0 && size <= ADV_KERNEL_SIZE_MAX) return (int64_t)size;
    if ((*bad_count)++ >= BAD_SIZES_SHOWN) return -1;
    char pointer[ADV_LIMIT_POINTER];
    if (json_is_number(element))
        (void)adv_err_add(err, whole ? ADV_E_RANGE : ADV_E_INVALID,
                          adv_json_pointer_index(pointer, "/shape/group_sizes", index),
                          json_number_value(element) < 0.0 ? "0, an empty group"
                          : whole                          ? "268435456 at most"
                                                           : "a whole number of rows",
                          "group %zu has %.15g rows", index, json_number_value(element));
    else
        (void)adv_err_add(err, ADV_E_INVALID, adv_json_pointer_index(pointer, "/shape/group_sizes", index),
                          "a whole number of rows", "group %zu must be a whole number, not %s", index,
                          adv_json_type_name(element));
    return -1;
}

static void judge_sizes(const struct adv_gmm_shape *gmm, size_t count, int64_t bad_count, int64_t total,
                        adv_err *err)
{
    char hint[ADV_LIMIT_NAME];
    if (bad_count > BAD_SIZES_SHOWN)
        (void)adv_err_add(err, ADV_E_INVALID, "/shape/group_sizes", "whole numbers of rows, 0 or more",
                          "%lld more sizes are no numbers of rows", (long long)(bad_count - BAD_SIZES_SHOWN));
    if (gmm->num_groups > 0 && count != (size_t)gmm->num_groups) {
        if (count > 0)
            (void)snprintf(hint, sizeof hint, "num_groups %zu, or %d sizes", count, gmm->num_groups);
        else
            (void)snprintf(hint, sizeof hint, "%d sizes, or no group_sizes", gmm->num_groups);
        (void)adv_err_add(err, ADV_E_INVALID, "/shape/group_sizes", hint, "%zu sizes for %d groups", count,
                          gmm->num_groups);
    }
    if (gmm->m > 0 && count > 0 && bad_count == 0 && total != gmm->m) {
        if (total > 0)
            (void)snprintf(hint, sizeof hint, "m %lld, or sizes that sum to %lld", (long long)total,
                           (long long)gmm->m);
        else
            (void)snprintf(hint, sizeof hint, "sizes that sum to %lld", (long long)gmm->m);
        (void)adv_err_add(err, ADV_E_INVALID, "/shape/group_sizes", hint,
                          "the groups hold %lld rows, but m is %lld", (long long)total, (long long)gmm->m);
    }
}

void adv_decode_groups(const json_t *shape, struct adv_arena *arena, struct adv_gmm_shape *gmm, adv_err *err,
                       adv_err *warnings)
{
    static const char *const distributions[] = {"balanced", "multinomial", "zipf", "worst"};
    const json_t *named = json_object_get(shape, "group_distribution");
    const bool given = named && !json_is_null(named);
    int index = 0;
    if (adv_json_choice(shape, "/shape", "group_distribution", ADV_JSON_OPTIONAL, distributions, 4, &index,
                        err))
        gmm->distribution = (enum adv_group_distribution)(ADV_GROUPS_BALANCED + index);
    json_t *list = adv_json_array(shape, "/shape", "group_sizes", ADV_JSON_OPTIONAL, err), *element;
    if (!list) return;
    const size_t count = json_array_size(list);
    int64_t *sizes = adv_arena_array(arena, count + 1, sizeof *sizes), total = 0, bad_count = 0;
    size_t i;
    if (!sizes) {
        (void)adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request is too large");
        return;
    }
    json_array_foreach(list, i, element)
    {
        sizes[i] = read_size(element, i, &bad_count, err);
        total += sizes[i];
    }
    judge_sizes(gmm, count, bad_count, total, err);
    if (given && warnings)
        (void)adv_err_add_rule(warnings, ADV_OK, "not-used", "/shape/group_distribution", "leave it out",
                               "group_sizes say how the rows are spread: the distribution is not used");
    if (bad_count > 0 || count != (size_t)gmm->num_groups) return;
    gmm->group_sizes = sizes;
    gmm->distribution = ADV_GROUPS_GIVEN;
}

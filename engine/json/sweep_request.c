#include "engine/json/sweep_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/json/json_read.h"

static const char *const kinds[] = {[ADV_REQUEST_ESTIMATE] = "estimate",
                                    [ADV_REQUEST_ADVISE] = "advise",
                                    [ADV_REQUEST_SIMULATE] = "simulate",
                                    [ADV_REQUEST_TUNE] = "tune"};
#define KINDS_COUNT ((int)(sizeof kinds / sizeof *kinds))

const char *adv_sweep_kind_name(enum adv_request_kind kind)
{
    return kinds[kind];
}

enum adv_request_kind adv_sweep_kind(const char *name)
{
    for (int i = 0; i < KINDS_COUNT; i++)
        if (strcmp(kinds[i], name) == 0) return (enum adv_request_kind)i;
    return ADV_REQUEST_ESTIMATE;
}

struct list {
    struct adv_sweep_request *request;
    struct adv_text text;
};

static adv_code add_item(struct list *list, const json_t *item, adv_err *err)
{
    char *text = json_dumps(item, JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (!text) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the sweep");
    adv_text_append(&list->text, list->request->items_count ? "," : "[");
    adv_text_append(&list->text, text);
    list->request->items[list->request->items_count++] = text;
    if (list->text.overflow)
        return adv_err_add(err, ADV_E_TOO_LARGE, "", "make several sweeps",
                           "the requests of the sweep have more than %d MiB together",
                           ADV_LIMIT_SWEEP_BYTES / 1024 / 1024);
    return ADV_OK;
}

static adv_code reserve(struct list *list, size_t count, const char *pointer, adv_err *err)
{
    if (count < 1) return adv_err_add(err, ADV_E_INVALID, pointer, NULL, "a sweep has at least one request");
    if (count > ADV_LIMIT_SWEEP_ITEMS)
        return adv_err_add(err, ADV_E_RANGE, pointer, "make several sweeps",
                           "these are %s%zu requests, a sweep has at most %d",
                           count > ADV_LIMIT_SWEEP_ITEMS * 1000UL ? "more than " : "", count,
                           ADV_LIMIT_SWEEP_ITEMS);
    list->request->items = calloc(count, sizeof *list->request->items);
    return list->request->items ? ADV_OK
                                : adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the sweep");
}

static adv_code read_list(const json_t *requests, struct list *list, adv_err *err)
{
    if (reserve(list, json_array_size(requests), "/requests", err)) return err->code;
    for (size_t i = 0; i < json_array_size(requests); i++) {
        const json_t *item = json_array_get(requests, i);
        if (!adv_json_is_object(item, ADV_AT_INDEX("/requests", i), err)) continue;
        if (!err->code && add_item(list, item, err)) return err->code;
    }
    return err->code;
}

/* The next segment of a JSON pointer (RFC 6901) into `name`; what is left of the pointer. */
static const char *take_name(const char *pointer, char *name)
{
    for (pointer++; *pointer && *pointer != '/'; pointer++) {
        const bool coded = *pointer == '~' && (pointer[1] == '0' || pointer[1] == '1');
        *name++ = coded ? (pointer[1] == '0' ? '~' : '/') : *pointer;
        if (coded) pointer++;
    }
    *name = '\0';
    return pointer;
}

/* What is left of `pointer` when `outer` is taken off; NULL: it does not begin with it. */
static const char *take_off(const char *pointer, const char *outer)
{
    char name[ADV_LIMIT_POINTER], outer_name[ADV_LIMIT_POINTER];
    while (*outer) {
        if (!*pointer) return NULL;
        pointer = take_name(pointer, name);
        outer = take_name(outer, outer_name);
        if (strcmp(name, outer_name) != 0) return NULL;
    }
    return pointer;
}

/* Puts a value into a request; objects on the way are made. false: something on the way is no object. */
static bool put(json_t *object, const char *pointer, json_t *value)
{
    char name[ADV_LIMIT_POINTER];
    for (;;) {
        pointer = take_name(pointer, name);
        if (!*pointer) return json_object_set(object, name, value) == 0;
        json_t *inner = json_object_get(object, name);
        if (!inner && json_object_set_new(object, name, json_object()) == 0)
            inner = json_object_get(object, name);
        if (!json_is_object(inner)) return false;
        object = inner;
    }
}

struct axes {
    int count;
    const char *pointers[ADV_LIMIT_SWEEP_AXES];
    json_t *values[ADV_LIMIT_SWEEP_AXES];
    size_t combinations;
};

/* The axis that holds, or is held by, one that is there already; NULL: none. */
static const char *overlapped(const struct axes *axes, const char *pointer)
{
    for (int i = 0; i < axes->count; i++)
        if (take_off(pointer, axes->pointers[i]) || take_off(axes->pointers[i], pointer))
            return axes->pointers[i];
    return NULL;
}

static void read_axes(json_t *object, const json_t *base, struct axes *axes, adv_err *err)
{
    axes->combinations = 1;
    for (struct adv_json_walk values = {.in = object}; adv_json_next_member(&values);) {
        const char *pointer = ADV_AT("/grid/axes", values.key);
        ADV_JSON_OWN json_t *probe = json_deep_copy(base);
        const char *other = NULL;
        if (values.key[0] != '/' || strlen(values.key) >= ADV_LIMIT_POINTER)
            ADV_REFUSE(err, pointer, "\"/config/remat_policy\": [\"full\", \"minimal\"]",
                       "an axis is named by the JSON pointer of a member of the request");
        else if (!json_is_array(values.value) || json_array_size(values.value) == 0)
            ADV_REFUSE(err, pointer, NULL, "an axis has an array of values");
        else if (axes->count == ADV_LIMIT_SWEEP_AXES)
            (void)adv_err_add(err, ADV_E_RANGE, "/grid/axes", NULL, "a grid has at most %d axes",
                              ADV_LIMIT_SWEEP_AXES);
        else if ((other = overlapped(axes, values.key)))
            ADV_REFUSE(err, pointer, "one axis for both: its values can be objects",
                       "the axes %.100s and %.100s set the same member, so that one of them would be lost",
                       other, values.key);
        else if (!probe || !put(probe, values.key, json_array_get(values.value, 0)))
            ADV_REFUSE(err, pointer, NULL, "the base has no object to put this into");
        else {
            axes->pointers[axes->count] = values.key;
            axes->values[axes->count++] = values.value;
            if (axes->combinations <= ADV_LIMIT_SWEEP_ITEMS * 1000UL)
                axes->combinations *= json_array_size(values.value);
        }
    }
}

static adv_code read_grid(const json_t *grid, struct list *list, adv_err *err)
{
    struct axes axes = {0};
    (void)adv_json_known_members(grid, "/grid", ADV_JSON_NAMES("base", "axes"), err);
    const json_t *base = adv_json_object(grid, "/grid", "base", ADV_JSON_REQUIRED, err);
    json_t *object = adv_json_object(grid, "/grid", "axes", ADV_JSON_REQUIRED, err);
    if (base && object) read_axes(object, base, &axes, err);
    list->request->is_grid = true;
    list->request->axes_count = axes.count;
    for (int i = 0; i < axes.count; i++) {
        (void)snprintf(list->request->axes[i], ADV_LIMIT_POINTER, "%s", axes.pointers[i]);
        list->request->values_counts[i] = (int)json_array_size(axes.values[i]);
    }
    if (err->code || reserve(list, axes.combinations, "/grid/axes", err)) return err->code;
    for (size_t i = 0; i < axes.combinations && !err->code; i++) {
        ADV_JSON_OWN json_t *item = json_deep_copy(base);
        size_t left = i;
        bool good = item != NULL;
        for (int k = axes.count - 1; k >= 0 && good; k--) {
            const size_t size = json_array_size(axes.values[k]);
            good = put(item, axes.pointers[k], json_array_get(axes.values[k], left % size));
            left /= size;
        }
        if (good)
            (void)add_item(list, item, err);
        else
            ADV_REFUSE(err, "/grid/axes", NULL, "two axes exclude each other");
    }
    return err->code;
}

static void read_name(const json_t *root, const char *member, char name[ADV_LIMIT_NAME], adv_err *err)
{
    const char *value = NULL;
    if (!adv_json_string(root, "", member, ADV_JSON_OPTIONAL, &value, err)) return;
    if (strlen(value) >= ADV_LIMIT_NAME)
        ADV_REFUSE(err, ADV_AT("", member), NULL, "%s has at most %d bytes", member, ADV_LIMIT_NAME - 1);
    else
        (void)snprintf(name, ADV_LIMIT_NAME, "%s", value);
}

static void read_root(const json_t *root, struct list *list, adv_err *err)
{
    int kind = 0;
    if (adv_json_choice(root, "", "kind", ADV_JSON_REQUIRED, kinds, KINDS_COUNT, &kind, err))
        list->request->kind = (enum adv_request_kind)kind;
    read_name(root, "project", list->request->project, err);
    read_name(root, "label", list->request->label, err);
    const json_t *requests = adv_json_array(root, "", "requests", ADV_JSON_OPTIONAL, err);
    const json_t *grid = adv_json_object(root, "", "grid", ADV_JSON_OPTIONAL, err);
    if (adv_json_has(root, "requests") == adv_json_has(root, "grid"))
        ADV_REFUSE(err, "", "\"requests\": [{…}] or \"grid\": {\"base\": {…}, \"axes\": {…}}",
                   "a sweep has either requests or a grid");
    else if (requests)
        (void)read_list(requests, list, err);
    else if (grid)
        (void)read_grid(grid, list, err);
    adv_text_append(&list->text, "]");
}

adv_code adv_sweep_request_read(const char *json, size_t json_bytes, struct adv_sweep_request *request,
                                adv_err *err)
{
    ADV_JSON_OWN json_t *root =
        adv_json_body(json, json_bytes, ADV_JSON_NAMES("kind", "requests", "grid", "project", "label"), err);
    memset(request, 0, sizeof *request);
    if (!root) return err->code;
    struct list list = {.request = request};
    adv_text_init(&list.text, ADV_LIMIT_SWEEP_BYTES);
    read_root(root, &list, err);
    request->list = list.text.data;
    if (err->code) adv_sweep_request_free(request);
    return err->code;
}

/* How far apart two items of a grid are whose places on `axis` are neighbours: the last axis varies fastest.
 */
static int stride_of(const struct adv_sweep_request *request, int axis)
{
    int stride = 1;
    for (int i = axis + 1; i < request->axes_count; i++) stride *= request->values_counts[i];
    return stride;
}

static int place_on(const struct adv_sweep_request *request, int axis, int item)
{
    return item / stride_of(request, axis) % request->values_counts[axis];
}

int adv_sweep_request_item(const struct adv_sweep_request *request, int item, int axis, int place)
{
    return item + (place - place_on(request, axis, item)) * stride_of(request, axis);
}

/* The item's value of an axis, or the base. */
static void point_into_grid(const struct adv_sweep_request *request, int item,
                            char pointer[ADV_LIMIT_POINTER])
{
    char found[ADV_LIMIT_POINTER], joined[3 * ADV_LIMIT_POINTER];
    (void)snprintf(found, sizeof found, "%s", pointer);
    (void)snprintf(joined, sizeof joined, "/grid/base%s", found);
    for (int i = 0; i < request->axes_count; i++) {
        const char *rest = take_off(found, request->axes[i]);
        if (rest)
            (void)snprintf(joined, sizeof joined, "%s/%d%s", ADV_AT("/grid/axes", request->axes[i]),
                           place_on(request, i, item), rest);
    }
    (void)snprintf(pointer, ADV_LIMIT_POINTER, "%.*s", ADV_LIMIT_POINTER - 1, joined);
}

void adv_sweep_request_point(const struct adv_sweep_request *request, int item, adv_err *err)
{
    for (int i = 0; i < err->count; i++) {
        char *pointer = err->findings[i].pointer, found[ADV_LIMIT_POINTER];
        (void)snprintf(found, sizeof found, "%s", pointer);
        if (request->is_grid)
            point_into_grid(request, item, pointer);
        else
            (void)snprintf(pointer, sizeof err->findings[i].pointer, "/requests/%d%.*s", item,
                           ADV_LIMIT_POINTER - 32, found);
    }
}

void adv_sweep_request_free(struct adv_sweep_request *request)
{
    for (int i = 0; i < request->items_count; i++) free(request->items[i]);
    free(request->items);
    free(request->list);
    memset(request, 0, sizeof *request);
}

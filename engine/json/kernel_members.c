#include "engine/json/kernel_members.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/json/encode_common.h"
#include "engine/kernel/family.h"

enum { NAMES_MAX = 64 };

static const struct adv_kernel_members *members_of(const struct adv_kernel_family *family,
                                                   enum adv_kernel_object which)
{
    return which == ADV_KERNEL_SHAPE ? &family->shape : &family->tile;
}

static const char *pointer_of(enum adv_kernel_object which)
{
    return which == ADV_KERNEL_SHAPE ? "/shape" : "/tile";
}

/* One member while it is read. */
struct reader {
    const json_t *object;
    const char *at;
    const struct adv_kernel_member *member;
    const struct adv_kernel_family *family; /* that the member is of */
    enum adv_json_need need;
    struct adv_kernel_request *request;
    char *out;
    adv_err *err;
};

static void read_dtype(const struct reader *r)
{
    static const char *const names[] = {"bfloat16", "float32", "float8",        "int8",       "bf16",
                                        "f32",      "fp8",     "float8_e4m3fn", "float8_e5m2"};
    static const enum adv_format formats[] = {ADV_FORMAT_BF16, ADV_FORMAT_F32,  ADV_FORMAT_FP8,
                                              ADV_FORMAT_INT8, ADV_FORMAT_BF16, ADV_FORMAT_F32,
                                              ADV_FORMAT_FP8,  ADV_FORMAT_FP8,  ADV_FORMAT_FP8};
    int index = 0;
    if (adv_json_choice(r->object, r->at, r->member->name, r->need, names, sizeof names / sizeof *names,
                        &index, r->err))
        memcpy(r->out, &formats[index], sizeof formats[index]);
}

/* 1 or "HEAD_DIM_MINOR", 2 or "SEQ_MINOR". */
static void read_layout(const struct reader *r)
{
    const json_t *value = json_object_get(r->object, r->member->name);
    if (!value || json_is_null(value)) return;
    const char *name = json_string_value(value);
    for (int i = ADV_LAYOUT_HEAD_DIM_MINOR; i <= ADV_LAYOUT_SEQ_MINOR; i++) {
        const enum adv_layout layout = (enum adv_layout)i;
        if ((!json_is_integer(value) || json_integer_value(value) != i) &&
            (!name || strcmp(name, adv_layout_name(layout)) != 0))
            continue;
        memcpy(r->out, &layout, sizeof layout);
        return;
    }
    ADV_REFUSE(r->err, ADV_AT(r->at, r->member->name), "HEAD_DIM_MINOR (1) or SEQ_MINOR (2)",
               "%s is not a layout", r->member->name);
}

/* The number meant by a value that is no tile size, with or without quotes; NAN: neither. */
static double meant(const json_t *value)
{
    const char *text = json_string_value(value);
    char *end = NULL;
    if (!text) return json_is_number(value) ? json_number_value(value) : (double)NAN;
    if (strspn(text, "-.0123456789eE") != strlen(text)) return (double)NAN; /* no 0x10, no infinity */
    const double number = strtod(text, &end);
    return end != text && !*end ? number : (double)NAN;
}

/* The hint of a tile size that was just refused: the nearest values that the shape allows, or what they are.
 */
static void hint_tile(const struct reader *r)
{
    const struct adv_kernel_member *m = r->member;
    const struct adv_kernel_request *k = r->request;
    const json_t *value = json_object_get(r->object, m->name);
    const double number = floor(meant(value));
    const int64_t wanted = number > m->high ? (int64_t)m->high : number > 0.0 ? (int64_t)number : 0;
    struct adv_legal_values values;
    char hint[ADV_LIMIT_DETAIL];
    if (adv_kernel_tiles_itself(k)) {
        adv_err_hint(r->err, "leave it out: this kernel takes no tile");
        return;
    }
    if (!r->family->near(k, m->same_as ? m->same_as : m->name, wanted, &values)) return;
    const bool meant_legal = values.near.below == wanted && values.near.above == wanted;
    if (json_is_string(value) && meant_legal) return; /* its own number, without quotes */
    if (isnan(number))
        (void)snprintf(hint, sizeof hint, "%s", values.rule);
    else
        (void)adv_legal_values_text(&values, hint);
    adv_err_hint(r->err, hint);
}

/* The hint of a size of the shape that was just refused: what it is when it is missing; and what is larger
 * than 0 but can hold no tile is not the nearest legal value. */
static void hint_shape(const struct reader *r)
{
    const json_t *value = json_object_get(r->object, r->member->name);
    static const struct {
        const char *name, *hint;
    } least[] = {{"batch", "1, or a part of a sequence from 0.001"},
                 {"q_len", "128, a multiple of 128"},
                 {"kv_len", "128, a multiple of 128"},
                 {"emb_dim", "8, a multiple of 8"}};
    const double number = meant(value);
    const bool lengths_are_free = adv_kernel_family_of(r->request->kernel)->operation != NULL;
    if ((!value || json_is_null(value)) && r->member->what) adv_err_hint(r->err, r->member->what);
    if (!(number < r->member->low)) return;
    for (int i = 0; i < (int)(sizeof least / sizeof *least); i++)
        if (strcmp(least[i].name, r->member->name) == 0 && (i == 0 || !lengths_are_free))
            adv_err_hint(r->err, least[i].hint);
}

static void read_member(const struct reader *r)
{
    const struct adv_kernel_member *m = r->member;
    const int before = r->err->count + r->err->lost_count;
    int64_t whole = 0;
    int narrow = 0;
    if ((m->kind == ADV_MEMBER_INT || m->kind == ADV_MEMBER_TILE) &&
        adv_json_int(r->object, r->at, m->name, r->need, (int)m->low, (int)m->high, &narrow, r->err))
        memcpy(r->out, &narrow, sizeof narrow);
    if (m->kind == ADV_MEMBER_SIZE && adv_json_integer(r->object, r->at, m->name, r->need, (int64_t)m->low,
                                                       (int64_t)m->high, &whole, r->err))
        memcpy(r->out, &whole, sizeof whole);
    if (m->kind == ADV_MEMBER_NUMBER) {
        double number = 0.0;
        if (adv_json_number(r->object, r->at, m->name, r->need, m->low, m->high, &number, r->err))
            memcpy(r->out, &number, sizeof number);
    }
    if (m->kind == ADV_MEMBER_BOOL) {
        bool flag = false;
        if (adv_json_bool(r->object, r->at, m->name, r->need, &flag, r->err))
            memcpy(r->out, &flag, sizeof flag);
    }
    if (m->kind == ADV_MEMBER_DTYPE) read_dtype(r);
    if (m->kind == ADV_MEMBER_LAYOUT) read_layout(r);
    if (r->err->count + r->err->lost_count == before) return;
    if (m->kind == ADV_MEMBER_TILE) hint_tile(r);
    if (m->kind == ADV_MEMBER_INT || m->kind == ADV_MEMBER_SIZE || m->kind == ADV_MEMBER_NUMBER)
        hint_shape(r);
}

/* Is the member there by another name? */
static bool has_other_name(const struct reader *about, const struct adv_kernel_members *members,
                           const char *name)
{
    for (int i = 0; i < members->count; i++) {
        const struct adv_kernel_member *m = &members->rows[i];
        if (m->same_as && strcmp(m->same_as, name) == 0 && json_object_get(about->object, m->name))
            return true;
    }
    return false;
}

static void read_one(const struct reader *about, const struct adv_kernel_members *members, int i,
                     unsigned kernel_bit)
{
    struct reader reader = *about;
    reader.member = &members->rows[i];
    const bool needed =
        reader.member->needed_by & kernel_bit && !has_other_name(about, members, reader.member->name);
    reader.need = needed ? ADV_JSON_REQUIRED : ADV_JSON_OPTIONAL;
    reader.out = (char *)about->request + reader.member->offset;
    read_member(&reader);
}

void adv_kernel_members_read(enum adv_kernel kernel, enum adv_kernel_object which, const json_t *object,
                             bool needs_all, struct adv_kernel_request *request, adv_err *err)
{
    const struct adv_kernel_family *family = adv_kernel_family_of(kernel);
    const struct adv_kernel_members *members = members_of(family, which);
    const char *names[NAMES_MAX];
    if (!object) return;
    for (int i = 0; i < members->count; i++) names[i] = members->rows[i].name;
    (void)adv_json_known_members(object, pointer_of(which), names, members->count, err);
    const struct reader reader = {
        .object = object, .at = pointer_of(which), .family = family, .request = request, .err = err};
    for (int i = 0; i < members->count; i++) read_one(&reader, members, i, needs_all ? 1u << kernel : 0u);
}

void adv_kernel_members_warn_unused(enum adv_kernel kernel, const json_t *tile, adv_err *warnings)
{
    const struct adv_kernel_members *table = members_of(adv_kernel_family_of(kernel), ADV_KERNEL_TILE);
    for (int i = 0; i < table->count && warnings; i++) {
        const struct adv_kernel_member *m = &table->rows[i];
        const json_t *value = json_object_get(tile, m->name);
        if (m->of & 1u << kernel || !value || json_is_null(value)) continue;
        ADV_WARN(warnings, "not-used", ADV_AT("/tile", m->name), "leave it out",
                 "%s is of another pass: %s does not use it", m->name, adv_kernel_name(kernel));
    }
}

void adv_kernel_members_drop_unused(enum adv_kernel kernel, struct adv_kernel_request *request,
                                    adv_err *warnings)
{
    const struct adv_kernel_members *table = members_of(adv_kernel_family_of(kernel), ADV_KERNEL_SHAPE);
    for (int i = 0; i < table->count; i++) {
        const struct adv_kernel_member *m = &table->rows[i];
        bool *value = (bool *)((char *)request + m->offset);
        if (m->of & 1u << kernel || m->kind != ADV_MEMBER_BOOL || !*value) continue;
        *value = false;
        ADV_WARN(warnings, "not-used", ADV_AT("/shape", m->name), "leave it out",
                 "%s is of the forward kernel: %s does not use it", m->name, adv_kernel_name(kernel));
    }
}

bool adv_kernel_members_have(enum adv_kernel kernel, enum adv_member_kind kind)
{
    const struct adv_kernel_members *table = members_of(adv_kernel_family_of(kernel), ADV_KERNEL_SHAPE);
    for (int i = 0; i < table->count; i++)
        if (table->rows[i].kind == kind) return true;
    return false;
}

static void judge_names(const struct adv_kernel_members *table, enum adv_kernel_object which,
                        const json_t *object, adv_err *err)
{
    for (int i = 0; i < table->count; i++) {
        const char *name = table->rows[i].name, *same_as = table->rows[i].same_as;
        if (!same_as || !adv_json_has(object, name) || !adv_json_has(object, same_as)) continue;
        ADV_REFUSE(err, ADV_AT(pointer_of(which), same_as), "one of the two names",
                   "`%s` and `%s` say the same thing twice", same_as, name);
    }
}

void adv_kernel_members_judge_names(enum adv_kernel kernel, enum adv_kernel_object which,
                                    const json_t *object, adv_err *err)
{
    judge_names(members_of(adv_kernel_family_of(kernel), which), which, object, err);
}

void adv_kernel_members_rename(enum adv_kernel kernel, const json_t *tile, adv_err *findings, int from)
{
    const struct adv_kernel_members *table = members_of(adv_kernel_family_of(kernel), ADV_KERNEL_TILE);
    for (int i = from; findings && i < findings->count; i++) {
        char *pointer = findings->findings[i].pointer;
        if (strncmp(pointer, "/tile/", 6) != 0) continue;
        for (int m = 0; m < table->count; m++) {
            const char *same_as = table->rows[m].same_as;
            if (!same_as || strcmp(pointer + 6, same_as) != 0 || !adv_json_has(tile, table->rows[m].name))
                continue;
            (void)snprintf(pointer, ADV_LIMIT_POINTER, "/tile/%s", table->rows[m].name);
            break;
        }
    }
}

void adv_kernel_members_hint(enum adv_kernel kernel, enum adv_kernel_object which, adv_err *err)
{
    const struct adv_kernel_members *table = members_of(adv_kernel_family_of(kernel), which);
    char hint[ADV_LIMIT_DETAIL] = "an object with at least";
    for (int i = 0; i < table->count; i++)
        if (table->rows[i].needed_by & 1u << kernel)
            adv_append(hint, sizeof hint, " `%s`", table->rows[i].name);
    adv_err_hint(err, hint);
}

json_t *adv_kernel_members_describe(enum adv_kernel kernel, enum adv_kernel_object which)
{
    static const char *const types[] = {[ADV_MEMBER_INT] = "int",       [ADV_MEMBER_TILE] = "int",
                                        [ADV_MEMBER_SIZE] = "int",      [ADV_MEMBER_NUMBER] = "number",
                                        [ADV_MEMBER_BOOL] = "bool",     [ADV_MEMBER_DTYPE] = "string",
                                        [ADV_MEMBER_LAYOUT] = "string", [ADV_MEMBER_STRATEGY] = "string",
                                        [ADV_MEMBER_GROUPS] = "int[]",  [ADV_MEMBER_DISTRIBUTION] = "string"};
    const struct adv_kernel_members *table = members_of(adv_kernel_family_of(kernel), which);
    json_t *list = json_array();
    for (int i = 0; i < table->count; i++) {
        const struct adv_kernel_member *m = &table->rows[i];
        if (m->same_as || !(m->of & 1u << kernel)) continue;
        json_t *row = json_pack("{s:s,s:s,s:s,s:b}", "name", m->name, "type", types[m->kind], "what", m->what,
                                "required", (m->needed_by & 1u << kernel) != 0);
        if (m->high > 0.0) {
            (void)json_object_set_new(row, "minimum", adv_encode_number(m->low));
            (void)json_object_set_new(row, "maximum", adv_encode_number(m->high));
        }
        (void)json_array_append_new(list, row);
    }
    return list;
}

/* The members of all families by name, each as the first family has it; returns how many. */
static int members_of_all(enum adv_kernel_object which, struct adv_kernel_member rows[NAMES_MAX],
                          const struct adv_kernel_family *of[NAMES_MAX])
{
    int families_count, count = 0;
    const struct adv_kernel_family *const *families = adv_kernel_families(&families_count);
    for (int f = 0; f < families_count; f++) {
        const struct adv_kernel_members *members = members_of(families[f], which);
        for (int i = 0; i < members->count; i++) {
            int known = 0;
            while (known < count && strcmp(rows[known].name, members->rows[i].name) != 0) known++;
            if (known < count) continue;
            of[count] = families[f];
            rows[count++] = members->rows[i];
        }
    }
    return count;
}

void adv_kernel_members_read_any(enum adv_kernel_object which, const json_t *object,
                                 struct adv_kernel_request *request, adv_err *err)
{
    struct adv_kernel_member rows[NAMES_MAX];
    const struct adv_kernel_family *of[NAMES_MAX];
    const char *names[NAMES_MAX];
    const struct adv_kernel_members all = {rows, members_of_all(which, rows, of)};
    if (!object) return;
    for (int i = 0; i < all.count; i++) names[i] = rows[i].name;
    (void)adv_json_known_members(object, pointer_of(which), names, all.count, err);
    struct reader reader = {.object = object, .at = pointer_of(which), .request = request, .err = err};
    for (int i = 0; i < all.count; i++) {
        reader.family = of[i];
        read_one(&reader, &all, i, 0u);
    }
}

void adv_kernel_members_judge_names_any(enum adv_kernel_object which, const json_t *object, adv_err *err)
{
    struct adv_kernel_member rows[NAMES_MAX];
    const struct adv_kernel_family *of[NAMES_MAX];
    const struct adv_kernel_members all = {rows, members_of_all(which, rows, of)};
    judge_names(&all, which, object, err);
}

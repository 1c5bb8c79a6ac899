#include "engine/base/err.h"

#include <stdarg.h>
#include <stdio.h>

#include "engine/base/text.h"

#define STATUS(code, status, slug, title) status,
#define SLUG(code, status, slug, title)   slug,
#define TITLE(code, status, slug, title)  title,
ADV_NAMES(adv_code_slug, adv_code, ADV_CODE_TABLE(SLUG))
ADV_NAMES(adv_code_title, adv_code, ADV_CODE_TABLE(TITLE))

int adv_code_http_status(adv_code code)
{
    static const int statuses[] = {ADV_CODE_TABLE(STATUS)};
    return statuses[code];
}

adv_err adv_err_empty(void)
{
    adv_err err;
    adv_err_init(&err);
    return err;
}

void adv_err_init(adv_err *err)
{
    err->code = ADV_OK;
    err->count = 0;
    err->lost_count = 0;
}

bool adv_err_has_room(const adv_err *err)
{
    return err && err->count < ADV_LIMIT_FINDINGS;
}

static void ADV_PRINTF(6, 0) add(adv_err *err, adv_code code, const char *rule, const char *pointer,
                                 const char *hint, const char *format, va_list args)
{
    if (!err) return;
    if (err->code == ADV_OK) err->code = code;
    if (!adv_err_has_room(err)) {
        err->lost_count++;
        return;
    }
    struct adv_finding *finding = &err->findings[err->count++];
    finding->code = code;
    finding->rule = rule;
    (void)snprintf(finding->pointer, sizeof finding->pointer, "%s", pointer ? pointer : "");
    (void)snprintf(finding->hint, sizeof finding->hint, "%s", hint ? hint : "");
    (void)vsnprintf(finding->detail, sizeof finding->detail, format, args);
    adv_text_mend(finding->pointer);
    adv_text_mend(finding->detail);
    adv_text_mend(finding->hint);
}

adv_code adv_err_add(adv_err *err, adv_code code, const char *pointer, const char *hint, const char *format,
                     ...)
{
    va_list args;
    va_start(args, format);
    add(err, code, NULL, pointer, hint, format, args);
    va_end(args);
    return code;
}

adv_code adv_err_add_rule(adv_err *err, adv_code code, const char *rule, const char *pointer,
                          const char *hint, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(err, code, rule, pointer, hint, format, args);
    va_end(args);
    return code;
}

void adv_err_hint(adv_err *err, const char *hint)
{
    if (!err || err->count == 0 || err->lost_count > 0) return;
    struct adv_finding *last = &err->findings[err->count - 1];
    (void)snprintf(last->hint, sizeof last->hint, "%s", hint);
    adv_text_mend(last->hint);
}

void adv_err_merge(adv_err *into, const adv_err *from, const char *pointer_prefix)
{
    for (int i = 0; i < from->count; i++) {
        const struct adv_finding *finding = &from->findings[i];
        char pointer[2 * ADV_LIMIT_POINTER];
        (void)snprintf(pointer, sizeof pointer, "%.*s%s", ADV_LIMIT_POINTER - 1, pointer_prefix,
                       finding->pointer);
        (void)adv_err_add_rule(into, finding->code, finding->rule, pointer, finding->hint, "%s",
                               finding->detail);
    }
    into->lost_count += from->lost_count;
}

const char *adv_json_pointer(char pointer[ADV_LIMIT_POINTER], const char *at, const char *member)
{
    int length = snprintf(pointer, ADV_LIMIT_POINTER, "%s/", at);
    size_t used = length < 0 ? 0 : (size_t)length;
    for (; *member && used + 2 < ADV_LIMIT_POINTER; member++) {
        if (*member == '~' || *member == '/') {
            pointer[used++] = '~';
            pointer[used++] = *member == '~' ? '0' : '1';
        } else {
            pointer[used++] = *member;
        }
    }
    if (used >= ADV_LIMIT_POINTER) used = ADV_LIMIT_POINTER - 1;
    pointer[used] = '\0';
    return pointer;
}

#include "engine/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ADV_CODE_ROW(code, status, slug, title) {status, slug, title},
static const struct {
    int http_status;
    const char *slug;
    const char *title;
} code_rows[ADV_CODE_COUNT] = {ADV_CODE_TABLE(ADV_CODE_ROW)};
#undef ADV_CODE_ROW

int adv_code_http_status(adv_code code)
{
    return code_rows[code].http_status;
}

const char *adv_code_slug(adv_code code)
{
    return code_rows[code].slug;
}

const char *adv_code_title(adv_code code)
{
    return code_rows[code].title;
}

void adv_err_init(adv_err *err)
{
    err->code = ADV_OK;
    err->count = 0;
    err->lost_count = 0;
}

adv_code adv_err_add(adv_err *err, adv_code code, const char *pointer, const char *hint, const char *format, ...)
{
    if (!err) return code;
    if (err->code == ADV_OK) err->code = code;
    if (err->count == ADV_LIMIT_FINDINGS) {
        err->lost_count++;
        return code;
    }
    struct adv_finding *finding = &err->findings[err->count++];
    finding->code = code;
    finding->rule = NULL;
    (void)snprintf(finding->pointer, sizeof finding->pointer, "%s", pointer ? pointer : "");
    (void)snprintf(finding->hint, sizeof finding->hint, "%s", hint ? hint : "");
    va_list args;
    va_start(args, format);
    (void)vsnprintf(finding->detail, sizeof finding->detail, format, args);
    va_end(args);
    return code;
}

void adv_err_rule(adv_err *err, const char *rule)
{
    if (err && err->count > 0 && err->lost_count == 0) err->findings[err->count - 1].rule = rule;
}

void adv_err_merge(adv_err *into, const adv_err *from, const char *pointer_prefix)
{
    for (int i = 0; i < from->count; i++) {
        const struct adv_finding *finding = &from->findings[i];
        char pointer[2 * ADV_LIMIT_POINTER];
        (void)snprintf(pointer, sizeof pointer, "%.*s%s", ADV_LIMIT_POINTER - 1, pointer_prefix, finding->pointer);
        (void)adv_err_add(into, finding->code, pointer, finding->hint, "%s", finding->detail);
        adv_err_rule(into, finding->rule);
    }
    into->lost_count += from->lost_count;
}

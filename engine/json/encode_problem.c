/* encode_problem.c: errors as application/problem+json (RFC 9457), all findings of a document in `errors`. */
#include "engine/advise.h"
#include "engine/json/encode_common.h"

#include <stdio.h>

char *adv_problem_json(const adv_err *err, const char *instance)
{
    char type[ADV_LIMIT_DETAIL];
    char detail[2 * ADV_LIMIT_DETAIL];
    adv_code code = err->code == ADV_OK ? ADV_E_INTERNAL : err->code;
    (void)snprintf(type, sizeof type, "https://tpu-advisor.dev/problems/%s", adv_code_slug(code));
    int others = err->count - 1 + err->lost_count;
    const char *first = err->count > 0 ? err->findings[0].detail : adv_code_title(code);
    if (others > 0)
        (void)snprintf(detail, sizeof detail, "%s (and %d more)", first, others);
    else
        (void)snprintf(detail, sizeof detail, "%s", first);
    json_t *root = ADV_OBJECT(
        ADV_M("type", json_string(type)), ADV_M("title", json_string(adv_code_title(code))),
        ADV_M("status", json_integer(adv_code_http_status(code))), ADV_M("detail", json_string(detail)),
        ADV_M_IF(instance, "instance", json_string(instance)), ADV_M("errors", adv_encode_findings(err)),
        ADV_M_IF(err->lost_count > 0, "errors_not_shown", json_integer(err->lost_count)));
    size_t bytes = 0;
    return adv_encode_text(root, &bytes);
}

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
    json_t *root = json_object();
    (void)json_object_set_new(root, "type", json_string(type));
    (void)json_object_set_new(root, "title", json_string(adv_code_title(code)));
    (void)json_object_set_new(root, "status", json_integer(adv_code_http_status(code)));
    (void)json_object_set_new(root, "detail", json_string(detail));
    if (instance) (void)json_object_set_new(root, "instance", json_string(instance));
    (void)json_object_set_new(root, "errors", adv_encode_findings(err));
    if (err->lost_count > 0)
        (void)json_object_set_new(root, "errors_not_shown", json_integer(err->lost_count));
    size_t bytes = 0;
    return adv_encode_text(root, &bytes);
}

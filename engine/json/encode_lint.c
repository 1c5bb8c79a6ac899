#include "engine/json/encode_lint.h"

json_t *adv_encode_lint(const struct adv_catalog *catalog, const struct adv_lint_answer *answer)
{
    static const char *const severities[] = {"error", "warning", "info"};
    json_t *object = json_object(), *list = json_array();
    for (int i = 0; i < answer->count; i++) {
        const struct adv_finding *finding = answer->findings[i].finding;
        json_t *row = json_object();
        adv_encode_set_string(row, "severity", severities[answer->findings[i].severity]);
        adv_encode_set_finding(row, finding);
        (void)json_array_append_new(list, row);
    }
    (void)json_object_set_new(object, "valid", json_boolean(answer->valid));
    (void)json_object_set_new(object, "findings", list);
    adv_encode_set_integer(object, "findings_not_shown", answer->not_shown_count);
    (void)json_object_set_new(object, "engine", adv_encode_engine(catalog));
    return object;
}

#include "engine/json/encode_lint.h"

json_t *adv_encode_lint(const struct adv_catalog *catalog, const struct adv_lint_answer *answer)
{
    static const char *const severities[] = {"error", "warning", "info"};
    ADV_LIST(list, i, answer->count,
             adv_encode_finding(severities[answer->findings[i].severity], answer->findings[i].finding));
    return ADV_OBJECT(ADV_M("valid", json_boolean(answer->valid)), ADV_M("findings", list),
                      ADV_M("findings_not_shown", answer->not_shown_count),
                      ADV_M("engine", adv_encode_engine(catalog)));
}

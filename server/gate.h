/* gate.h: the verdict of a check: does a candidate stay within limits of a baseline. Pure; numbers in, texts
 * out. */
#ifndef ADV_SERVER_GATE_H
#define ADV_SERVER_GATE_H

#include <stdbool.h>

#include "engine/base/limits.h"
#include "engine/base/text.h"
#include "server/request_id.h"

struct adv_gate_side {
    char run_id[ADV_UUID_BYTES];              /* "" when it is not stored */
    double step_time_s, hbm_bytes_per_device; /* NAN: unknown, then a limit on it fails */
    bool fits;
};

struct adv_gate_limits {
    double step_time_increase_frac, hbm_increase_frac; /* NAN: not a limit */
    bool must_fit;
};

#define ADV_GATE_REASONS 3
struct adv_gate_verdict {
    bool pass;
    double step_time_increase_frac, hbm_increase_frac; /* candidate over baseline, less 1 */
    int reasons_count;
    struct {
        const char *code; /* "does_not_fit", "step_time", "hbm" */
        char detail[ADV_LIMIT_DETAIL];
    } reasons[ADV_GATE_REASONS];
};

void adv_gate_judge(const struct adv_gate_side *baseline, const struct adv_gate_side *candidate,
                    const struct adv_gate_limits *limits, struct adv_gate_verdict *verdict);

/* `compare` is a JSON document or NULL. */
void adv_gate_print_json(const struct adv_gate_side *baseline, const struct adv_gate_side *candidate,
                         const struct adv_gate_limits *limits, const struct adv_gate_verdict *verdict,
                         const char *compare, struct adv_text *text);
void adv_gate_print_markdown(const struct adv_gate_side *baseline, const struct adv_gate_side *candidate,
                             const struct adv_gate_verdict *verdict, struct adv_text *text);
void adv_gate_print_junit(const struct adv_gate_verdict *verdict, const struct adv_gate_limits *limits,
                          struct adv_text *text);

#endif

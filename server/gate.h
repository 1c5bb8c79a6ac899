/* gate.h: the verdict of a check: does a candidate stay within limits of a baseline. Pure; numbers in, texts
 * out.
 *
 * "pass" says: a token of the candidate costs no more than the limits allow, of the same model at the same
 * sequence length, priced by the same engine. A step of another batch is another amount of work, so times are
 * compared per token; what else has to be known to read the verdict is in the notes.
 */
#pragma once

#include <stdbool.h>

#include "engine/base/limits.h"
#include "engine/base/text.h"
#include "engine/json/decode_gate.h"
#include "engine/json/gate_side.h"
#include "server/request_id.h"
#include "server/verification_word.h"

struct adv_gate_side {
    char run_id[ADV_UUID_BYTES];       /* "" when it is not stored */
    struct adv_gate_numbers now;       /* by this engine: what is judged */
    bool reevaluated;                  /* the run is of another engine: */
    struct adv_gate_numbers stored;    /* what that one answered; as `now` otherwise */
    struct adv_verification_word word; /* of the real compiler on the plan */
    bool stands_in;                    /* a baseline that nobody has set: the last run that passed */
    char created_at[40];               /* of a run */
    char git_ref[ADV_LIMIT_NAME];      /* "" where it names none */
};

struct adv_gate_limits {
    double frac[ADV_GATE_LIMITS]; /* NAN: not a limit */
    bool must_fit, must_compile;
};

struct adv_gate_said {
    const char *code; /* static */
    char detail[ADV_LIMIT_DETAIL];
};

#define ADV_GATE_REASONS (ADV_GATE_LIMITS + 3)
#define ADV_GATE_NOTES   26
struct adv_gate_verdict {
    bool pass;
    bool judges_time; /* one of the limits bounds the time that a token takes */
    double
        change_frac[ADV_GATE_LIMITS]; /* candidate over baseline, less 1; NAN unknown, then a limit fails */
    int reasons_count, notes_count;
    int unknown_count; /* of the reasons: what nobody has said yet, which may still turn out well */
    struct adv_gate_said
        reasons[ADV_GATE_REASONS]; /* "does_not_fit", "does_not_compile", or the code of a limit */
    struct adv_gate_said notes[ADV_GATE_NOTES];
};

/* ADV_E_INVALID, with what differs: the sides are of another model or sequence length and `may_differ` does
 * not say that they may. */
ADV_MUST_CHECK adv_code adv_gate_compare_like(const struct adv_gate_side *baseline,
                                              const struct adv_gate_side *candidate,
                                              const bool may_differ[ADV_GATE_UNLIKES], adv_err *err);

/* The plan fits by the prediction, but less surely than a plan has to be to be advised. */
bool adv_gate_is_tight(const struct adv_gate_numbers *numbers);

/* The real compiler has asked for more memory than the device has. Of what-if hardware it cannot speak. */
bool adv_gate_is_refuted(const struct adv_gate_side *side);

void adv_gate_judge(const struct adv_gate_side *baseline, const struct adv_gate_side *candidate,
                    const struct adv_gate_limits *limits, struct adv_gate_verdict *verdict);

/* Everything that a report needs. `compare` is a JSON document, or NULL. */
struct adv_gate_report {
    const struct adv_gate_side *baseline, *candidate;
    const struct adv_gate_limits *limits;
    const struct adv_gate_verdict *verdict;
    const char *compare;
    bool reports; /* Markdown and JUnit within the JSON */
};
void adv_gate_print_json(const struct adv_gate_report *report, struct adv_text *text);
void adv_gate_print_markdown(const struct adv_gate_report *report, struct adv_text *text);
void adv_gate_print_junit(const struct adv_gate_report *report, struct adv_text *text);
/* The member "engine": by which the numbers are. */
void adv_gate_print_engine(const struct adv_gate_numbers *numbers, struct adv_text *text);

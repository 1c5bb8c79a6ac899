/* lint_rule_rows.h: what MaxText's validators refuse, a sentence each, with the line of MaxText that says so.
 *
 * A sentence is the rule and the message about it: "CONDITIONS needs CONDITIONS" or "CONDITIONS is not
 * accepted". All conditions before "needs", joined by " with ", must hold for the rule to apply; then one of
 * those after it, joined by " or ", must hold too. A condition is one of
 * - KEY: it is neither empty, null nor false;
 * - KEY VALUE: it has the value;
 * - KEY other than VALUE, where VALUE may be empty;
 * - KEY beginning with VALUE, without regard to case;
 * - KEY above BOUND, which is a number or another key;
 * - KEY a multiple of KEY;
 * - KEY equal to KEY.
 */
#pragma once

struct adv_lint_rule {
    const char *name;
    int line; /* of configs/types.py of MaxText 0.2.5; 0: of pyconfig.py */
    const char *sentence;
};

extern const struct adv_lint_rule adv_lint_rule_rows[];
extern const int adv_lint_rule_rows_count;

/* lint_rule_rows.h: the rows of lint_rules.c: what MaxText's validators refuse, each with the line that says
 * so. */
#ifndef ADV_MAXTEXT_LINT_RULE_ROWS_H
#define ADV_MAXTEXT_LINT_RULE_ROWS_H

enum adv_lint_operation { NONE, IS, IS_NOT, BEGINS, ABOVE, GIVEN, DIVIDED_BY, SAME_AS };

struct adv_lint_condition {
    const char *key;
    enum adv_lint_operation operation;
    const char *value; /* of ABOVE a number or another key, of DIVIDED_BY and SAME_AS another key */
};

enum { ADV_LINT_WHEN = 6, ADV_LINT_NEEDS = 15 };

/* When all of `when` hold, one of `needs` must. A row without a need says that what stands under `when` is
 * never accepted. Lines are those of configs/types.py of MaxText 0.2.5; 0: of pyconfig.py. */
struct adv_lint_rule {
    const char *name;
    int line;
    struct adv_lint_condition when[ADV_LINT_WHEN], needs[ADV_LINT_NEEDS]; /* up to the first without a key */
};

extern const struct adv_lint_rule adv_lint_rule_rows[];
extern const int adv_lint_rule_rows_count;

#endif

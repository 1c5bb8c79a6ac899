/* err.h: everything wrong with an input, collected in one value.
 *
 * A fallible function returns an adv_code and adds findings to the caller's adv_err. Findings are collected,
 * not thrown: a decoder goes on after the first, so that a user sees all of them at once. Past
 * ADV_LIMIT_FINDINGS further ones are counted, not kept. The same struct carries warnings.
 * No allocation; one adv_err belongs to one thread.
 */
#pragma once

#include "engine/base/code.h"
#include "engine/base/limits.h"

#include <stdbool.h>

struct adv_finding {
    adv_code code;
    const char *rule; /* static name of what was broken ("heads-by-tensor"), NULL when the code says it all */
    char pointer[ADV_LIMIT_POINTER]; /* RFC 6901, "" for the whole document */
    char detail[ADV_LIMIT_DETAIL];   /* what is wrong, with the numbers */
    char hint[ADV_LIMIT_DETAIL];     /* what would be right, "" if nothing useful can be said */
};

typedef struct adv_err {
    adv_code code;  /* of the first finding; ADV_OK when there is none */
    int count;      /* findings kept */
    int lost_count; /* findings beyond the limit */
    struct adv_finding findings[ADV_LIMIT_FINDINGS];
} adv_err;

/* An empty one, made in place: findings are not written. adv_err_init empties one that is there. */
adv_err adv_err_empty(void);
void adv_err_init(adv_err *err);

/* Adds a finding; `hint` may be NULL. Returns `code`, so that `return adv_err_add(...)` reads well.
 * `err` may be NULL: then only the code is returned. Texts are cut at their limits, between characters, and
 * never overflow; bytes that are not UTF-8 become '?' (adv_text_mend). */
adv_code adv_err_add(adv_err *err, adv_code code, const char *pointer, const char *hint, const char *format,
                     ...) ADV_PRINTF(5, 6);

/* The same, and names the rule behind the finding; `rule` is static or NULL. */
adv_code adv_err_add_rule(adv_err *err, adv_code code, const char *rule, const char *pointer,
                          const char *hint, const char *format, ...) ADV_PRINTF(6, 7);

/* The two commonest findings, where nobody asks for the code: an input that is not valid, and a warning. */
#define ADV_REFUSE(err, pointer, hint, ...) (void)adv_err_add(err, ADV_E_INVALID, pointer, hint, __VA_ARGS__)
#define ADV_WARN(warnings, rule, pointer, hint, ...)                                                         \
    (void)adv_err_add_rule(warnings, ADV_OK, rule, pointer, hint, __VA_ARGS__)

/* Whether a further finding would be kept: only then is a hint that costs work worth it. `err` may be NULL.
 */
bool adv_err_has_room(const adv_err *err);

/* Gives the finding just added another hint (nothing when it was one too many). */
void adv_err_hint(adv_err *err, const char *hint);

/* Adds the findings of `from` to `into`, each pointer prefixed with `pointer_prefix`. */
void adv_err_merge(adv_err *into, const adv_err *from, const char *pointer_prefix);

/* Writes `at`/`member` to `pointer` with RFC 6901 escapes; too long pointers are cut. Returns `pointer`. */
const char *adv_json_pointer(char pointer[ADV_LIMIT_POINTER], const char *at, const char *member);
/* The same as a value that lasts as long as the block it stands in. */
#define ADV_AT(at, member) adv_json_pointer((char[ADV_LIMIT_POINTER]){0}, at, member)

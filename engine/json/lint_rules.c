#include "engine/json/lint_rules.h"

#include "engine/json/json_load.h"
#include "engine/maxtext/lint_rule_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct values {
    const struct adv_catalog *catalog;
    const json_t *config, *pins, *keys;
};

/* A new reference; NULL: not known. */
static json_t *value_of(const struct values *values, const char *name)
{
    json_t *value = json_object_get(values->config, name);
    if (!value) value = json_object_get(values->pins, name);
    if (!value) value = json_object_get(values->keys, name);
    if (value) return json_incref(value);
    const struct adv_catalog_key *key = adv_catalog_key(values->catalog, name);
    return key ? adv_json_load_string(key->default_json, JSON_DECODE_ANY) : NULL;
}

static bool is_value(const json_t *value, const char *text)
{
    if (json_is_boolean(value)) return strcmp(text, json_is_true(value) ? "true" : "false") == 0;
    if (json_is_number(value)) {
        const double wanted = strtod(text, NULL), number = json_number_value(value);
        return number >= wanted && number <= wanted;
    }
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

static bool is_given(const json_t *value)
{
    if (json_is_string(value)) return *json_string_value(value) != '\0';
    return !json_is_null(value) && !json_is_false(value);
}

/* `bound` is a number, or a key with one. */
static bool is_above(const struct values *values, const json_t *value, const char *bound, bool *unknown)
{
    char *end = NULL;
    double number = strtod(bound, &end);
    if (*end != '\0') {
        json_t *other = value_of(values, bound);
        *unknown |= !json_is_number(other);
        number = json_number_value(other);
        json_decref(other);
    }
    return json_is_number(value) && json_number_value(value) > number;
}

/* `unknown` is set where a value is not known: then the answer means nothing. */
static bool holds(const struct values *values, const struct adv_lint_condition *condition, bool *unknown)
{
    json_t *value = value_of(values, condition->key);
    bool result = false;
    if (!value) {
        *unknown = true;
        return false;
    }
    if (condition->operation == IS) result = is_value(value, condition->value);
    if (condition->operation == IS_NOT) result = !is_value(value, condition->value);
    if (condition->operation == GIVEN) result = is_given(value);
    if (condition->operation == ABOVE) result = is_above(values, value, condition->value, unknown);
    if (condition->operation == BEGINS)
        result = json_is_string(value) &&
                 strncasecmp(json_string_value(value), condition->value, strlen(condition->value)) == 0;
    if (condition->operation == DIVIDED_BY) {
        json_t *divisor = value_of(values, condition->value);
        const json_int_t by = json_integer_value(divisor);
        result = by > 0 && json_integer_value(value) % by == 0;
        *unknown |= !json_is_integer(value);
        json_decref(divisor);
    }
    if (condition->operation == SAME_AS) {
        json_t *other = value_of(values, condition->value);
        result = json_equal(value, other) == 1;
        *unknown |= !other;
        json_decref(other);
    }
    json_decref(value);
    return result;
}

static void describe(const struct adv_lint_condition *condition, char *text, size_t text_bytes)
{
    static const char *const words[] = {
        [IS] = "",          [IS_NOT] = "other than ",        [BEGINS] = "beginning with ",
        [ABOVE] = "above ", [DIVIDED_BY] = "a multiple of ", [SAME_AS] = "equal to "};
    if (condition->operation == GIVEN)
        (void)snprintf(text, text_bytes, "%s", condition->key);
    else
        (void)snprintf(text, text_bytes, "%s %s%s", condition->key, words[condition->operation],
                       condition->value);
}

static void report(const struct adv_lint_rule *rule, adv_err *errors)
{
    char pointer[ADV_LIMIT_POINTER], when[ADV_LIMIT_DETAIL] = "", other[128], needs[ADV_LIMIT_DETAIL] = "";
    char line[32];
    size_t used = 0;
    for (int i = 0; i < ADV_LINT_WHEN && rule->when[i].key && used < sizeof when; i++) {
        describe(&rule->when[i], other, sizeof other);
        used += (size_t)snprintf(when + used, sizeof when - used, "%s%s", i ? " with " : "", other);
    }
    used = 0;
    for (int i = 0; i < ADV_LINT_NEEDS && rule->needs[i].key && used < sizeof needs; i++) {
        describe(&rule->needs[i], other, sizeof other);
        used += (size_t)snprintf(needs + used, sizeof needs - used, "%s%s", i ? " or " : "", other);
    }
    (void)snprintf(line, sizeof line, rule->line ? "types.py:%d" : "pyconfig.py", rule->line);
    (void)snprintf(pointer, sizeof pointer, "/config/%s", rule->when[0].key);
    (void)adv_err_add(errors, ADV_E_ILLEGAL, pointer, NULL, "%s %s%s (MaxText refuses it: %s)", when,
                      *needs ? "needs " : "is not accepted", needs, line);
    adv_err_rule(errors, rule->name);
}

void adv_lint_rules(const struct adv_catalog *catalog, const char *model_name, const json_t *config,
                    adv_err *errors)
{
    const struct adv_catalog_model *model = model_name ? adv_catalog_model_info(catalog, model_name) : NULL;
    json_t *pins = model ? adv_json_load_string(model->pins_json, 0) : NULL;
    json_t *keys = model ? adv_json_load_string(model->keys_json, 0) : NULL;
    const struct values values = {catalog, config, pins, keys};
    for (int i = 0; i < adv_lint_rule_rows_count; i++) {
        bool unknown = false, applies = true, satisfied = false;
        for (int k = 0; k < ADV_LINT_WHEN && adv_lint_rule_rows[i].when[k].key; k++)
            applies = applies && holds(&values, &adv_lint_rule_rows[i].when[k], &unknown);
        for (int k = 0; k < ADV_LINT_NEEDS && adv_lint_rule_rows[i].needs[k].key && applies; k++)
            satisfied = satisfied || holds(&values, &adv_lint_rule_rows[i].needs[k], &unknown);
        if (applies && !satisfied && !unknown) report(&adv_lint_rule_rows[i], errors);
    }
    json_decref(pins);
    json_decref(keys);
}

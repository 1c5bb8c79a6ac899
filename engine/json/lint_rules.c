#include "engine/json/lint_rules.h"

#include "engine/json/decode_value.h"
#include "engine/json/encode_common.h"
#include "engine/json/json_load.h"
#include "engine/maxtext/lint_rule_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct values {
    const struct adv_catalog *catalog;
    const json_t *config, *model; /* model: keys of a model that is given as an object */
    json_t *pins, *keys;          /* of the model's file */
};

/* A new reference; NULL: not known. */
static json_t *value_of(const struct values *values, const char *name)
{
    json_t *value = json_object_get(values->config, name);
    if (!value) value = json_object_get(values->model, name);
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
    if (json_is_array(value)) return json_array_size(value) > 0;
    if (json_is_string(value)) return *json_string_value(value) != '\0' && !is_value(value, "[]");
    return !json_is_null(value) && !json_is_false(value);
}

/* `bound` is a number, or a key with one. */
static bool is_above(const struct values *values, const json_t *value, const char *bound, bool *unknown)
{
    char *end = NULL;
    double number = strtod(bound, &end);
    if (*end != '\0') {
        ADV_JSON_OWN json_t *other = value_of(values, bound);
        *unknown |= !json_is_number(other);
        number = json_number_value(other);
    }
    return json_is_number(value) && json_number_value(value) > number;
}

/* Copies the condition at `text` and returns the text behind it and its joint, NULL after the last. */
static const char *condition_of(const char *text, size_t text_bytes, const char *joint,
                                char condition[ADV_LIMIT_POINTER])
{
    const char *end = memmem(text, text_bytes, joint, strlen(joint));
    const size_t bytes = end ? (size_t)(end - text) : text_bytes;
    (void)snprintf(condition, ADV_LIMIT_POINTER, "%.*s", (int)bytes, text);
    return end ? end + strlen(joint) : NULL;
}

/* Cuts `words` off the front of `text`. */
static bool begins(const char **text, const char *words)
{
    const size_t bytes = strlen(words);
    if (strncmp(*text, words, bytes) != 0) return false;
    *text += bytes;
    return true;
}

/* `condition` is cut behind its key. `unknown` is set where a value is not known: then the answer means
 * nothing. */
static bool holds(const struct values *values, char *condition, bool *unknown)
{
    const char *wanted = condition;
    (void)strsep(&condition, " ");
    ADV_JSON_OWN json_t *value = value_of(values, wanted);
    if (!value) {
        *unknown = true;
        return false;
    }
    wanted = condition;
    if (!wanted) return is_given(value);
    if (begins(&wanted, "other than ")) return !is_value(value, wanted);
    if (begins(&wanted, "above ")) return is_above(values, value, wanted, unknown);
    if (begins(&wanted, "beginning with "))
        return json_is_string(value) && strncasecmp(json_string_value(value), wanted, strlen(wanted)) == 0;
    if (begins(&wanted, "a multiple of ")) {
        ADV_JSON_OWN json_t *divisor = value_of(values, wanted);
        const json_int_t by = json_integer_value(divisor);
        *unknown |= !json_is_integer(value);
        return by > 0 && json_integer_value(value) % by == 0;
    }
    if (!begins(&wanted, "equal to ")) return is_value(value, wanted);
    ADV_JSON_OWN json_t *other = value_of(values, wanted);
    *unknown |= !other;
    return json_equal(value, other) == 1;
}

/* Do all conditions of the text hold, or (`any`) one of them? Those behind the one that decides are not read.
 */
static bool hold(const struct values *values, const char *text, const char *end, bool any, bool *unknown)
{
    char condition[ADV_LIMIT_POINTER];
    while (text) {
        text = condition_of(text, (size_t)(end - text), any ? " or " : " with ", condition);
        if (holds(values, condition, unknown) == any) return any;
    }
    return !any;
}

static void check(const struct values *values, const struct adv_lint_rule *rule, adv_err *errors)
{
    const char *end = rule->sentence + strlen(rule->sentence);
    const char *needs = strstr(rule->sentence, " needs ");
    const char *when_end = needs ? needs : strstr(rule->sentence, " is not accepted");
    bool unknown = false;
    if (!hold(values, rule->sentence, when_end, false, &unknown)) return;
    if (needs && hold(values, needs + strlen(" needs "), end, true, &unknown)) return;
    if (unknown) return;
    char pointer[ADV_LIMIT_POINTER], line[32];
    (void)snprintf(line, sizeof line, rule->line ? "types.py:%d" : "pyconfig.py", rule->line);
    const size_t key_bytes = strcspn(rule->sentence, " ");
    const bool of_model = !json_object_getn(values->config, rule->sentence, key_bytes) &&
                          json_object_getn(values->model, rule->sentence, key_bytes);
    (void)snprintf(pointer, sizeof pointer, of_model ? "/model" : "/config/%.*s", (int)key_bytes,
                   rule->sentence);
    (void)adv_err_add_rule(errors, ADV_E_ILLEGAL, rule->name, pointer, NULL, "%s (MaxText refuses it: %s)",
                           rule->sentence, line);
}

/* Whether a key of the rule's sentence is one of `config`, or of the model. */
static bool is_about(const struct adv_lint_rule *rule, const struct values *values)
{
    for (const char *word = rule->sentence; *word; word += strspn(word, " ")) {
        const size_t bytes = strcspn(word, " ");
        if (json_object_getn(values->config, word, bytes) || json_object_getn(values->model, word, bytes))
            return true;
        word += bytes;
    }
    return false;
}

static bool is_told(const adv_err *findings, const char *rule)
{
    for (int i = 0; i < findings->count; i++)
        if (findings->findings[i].rule && strcmp(findings->findings[i].rule, rule) == 0) return true;
    return false;
}

/* The values of the model's file, of which `values` keeps references. */
static void open_model(struct values *values, const char *model_name)
{
    const struct adv_catalog_model *model =
        model_name ? adv_catalog_model_info(values->catalog, model_name) : NULL;
    values->pins = adv_json_load_string(model ? model->pins_json : "{}", 0);
    values->keys = adv_json_load_string(model ? model->keys_json : "{}", 0);
}

/* A new reference: the keys with their values, in the types that MaxText reads them as. */
static json_t *typed_keys(const struct adv_catalog *catalog, const struct adv_pin *keys, int count)
{
    ADV_JSON_OWN json_t *echo = json_object();
    for (int i = 0; i < count; i++)
        (void)json_object_set_new(echo, keys[i].key,
                                  adv_json_load_string(keys[i].value_json, JSON_DECODE_ANY));
    return adv_decode_typed_config(catalog, echo);
}

static void close_values(const struct values *values)
{
    json_decref(values->pins);
    json_decref(values->keys);
}

void adv_lint_rules(const struct adv_catalog *catalog, const char *model_name, const json_t *config,
                    const struct adv_pin *model_keys, int model_keys_count, adv_err *errors)
{
    ADV_JSON_OWN json_t *model = typed_keys(catalog, model_keys, model_keys_count);
    struct values values = {catalog, config, model, NULL, NULL};
    open_model(&values, model_name);
    for (int i = 0; i < adv_lint_rule_rows_count; i++) check(&values, &adv_lint_rule_rows[i], errors);
    close_values(&values);
}

void adv_lint_rules_warn(const struct adv_catalog *catalog, const char *model_name,
                         const struct adv_config *config, const struct adv_pin *model_keys,
                         int model_keys_count, adv_err *warnings)
{
    ADV_JSON_OWN json_t *model = typed_keys(catalog, model_keys, model_keys_count);
    ADV_JSON_OWN json_t *echo = adv_encode_config(config);
    ADV_JSON_OWN json_t *typed = adv_decode_typed_config(catalog, echo);
    struct values values = {catalog, typed, model, NULL, NULL};
    for (int i = 0; i < adv_lint_rule_rows_count; i++) {
        const struct adv_lint_rule *rule = &adv_lint_rule_rows[i];
        if (!is_about(rule, &values) || is_told(warnings, rule->name)) continue;
        if (!values.pins) open_model(&values, model_name);
        check(&values, rule, warnings);
    }
    close_values(&values);
}

#include "server/yaml_json.h"

#include <stdbool.h>
#include <string.h>

#include <yaml.h>

#include "engine/base/limits.h"
#include "server/json_text.h"

/* Where we are in an open mapping or sequence. */
struct level {
    bool mapping;
    bool expects_value; /* of a mapping: a key was written */
    bool first;
};

struct converter {
    struct adv_text *json;
    struct level levels[ADV_LIMIT_JSON_DEPTH];
    int depth;
};

/* A plain scalar that is a JSON number, as it stands. */
static bool is_number(const char *text)
{
    if (*text == '-') text++;
    size_t whole = strspn(text, "0123456789");
    if (whole == 0 || (whole > 1 && *text == '0')) return false;
    text += whole;
    if (*text == '.') {
        size_t fraction = strspn(text + 1, "0123456789");
        if (!fraction) return false;
        text += fraction + 1;
    }
    if (*text == 'e' || *text == 'E') {
        text++;
        if (*text == '+' || *text == '-') text++;
        size_t exponent = strspn(text, "0123456789");
        if (!exponent) return false;
        text += exponent;
    }
    return *text == '\0';
}

/* Writes the comma or colon due before the next item; true when the item is a mapping's key. */
static bool begin_item(struct converter *converter)
{
    if (converter->depth == 0) return false;
    struct level *level = &converter->levels[converter->depth - 1];
    if (level->mapping && level->expects_value) {
        adv_text_append(converter->json, ":");
        level->expects_value = false;
        return false;
    }
    if (!level->first) adv_text_append(converter->json, ",");
    level->first = false;
    level->expects_value = level->mapping;
    return level->mapping;
}

static void write_scalar(struct converter *converter, const yaml_event_t *event)
{
    const char *value = (const char *)event->data.scalar.value;
    bool key = begin_item(converter);
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (key || !plain)
        adv_json_text_quote(converter->json, value);
    else if (strcmp(value, "null") == 0 || strcmp(value, "~") == 0 || *value == '\0')
        adv_text_append(converter->json, "null");
    else if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0 || is_number(value))
        adv_text_append(converter->json, value);
    else
        adv_json_text_quote(converter->json, value);
}

static adv_code open_level(struct converter *converter, bool mapping, adv_err *err)
{
    (void)begin_item(converter);
    if (converter->depth == ADV_LIMIT_JSON_DEPTH)
        return adv_err_add(err, ADV_E_TOO_LARGE, "", NULL, "nested deeper than %d", ADV_LIMIT_JSON_DEPTH);
    converter->levels[converter->depth++] = (struct level){.mapping = mapping, .first = true};
    adv_text_append(converter->json, mapping ? "{" : "[");
    return ADV_OK;
}

static adv_code take_event(struct converter *converter, const yaml_event_t *event, adv_err *err)
{
    if (event->type == YAML_SCALAR_EVENT) {
        write_scalar(converter, event);
    } else if (event->type == YAML_MAPPING_START_EVENT || event->type == YAML_SEQUENCE_START_EVENT) {
        return open_level(converter, event->type == YAML_MAPPING_START_EVENT, err);
    } else if (event->type == YAML_MAPPING_END_EVENT || event->type == YAML_SEQUENCE_END_EVENT) {
        converter->depth--;
        adv_text_append(converter->json, event->type == YAML_MAPPING_END_EVENT ? "}" : "]");
    } else if (event->type == YAML_ALIAS_EVENT) {
        return adv_err_add(err, ADV_E_UNSUPPORTED, "", NULL, "line %zu: aliases are not read",
                           event->start_mark.line + 1);
    }
    return ADV_OK;
}

adv_code adv_yaml_to_json(const char *yaml, size_t yaml_bytes, struct adv_text *json, adv_err *err)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory to read YAML");
    yaml_parser_set_input_string(&parser, (const unsigned char *)yaml, yaml_bytes);
    struct converter converter = {.json = json};
    adv_code code = ADV_OK;
    bool done = false;
    while (!done && !code) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            code = adv_err_add(err, ADV_E_SYNTAX, "", NULL, "line %zu, column %zu: %s",
                               parser.problem_mark.line + 1, parser.problem_mark.column + 1,
                               parser.problem ? parser.problem : "not YAML");
            break;
        }
        done = event.type == YAML_STREAM_END_EVENT;
        code = take_event(&converter, &event, err);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    if (!code && json->overflow)
        code = adv_err_add(err, ADV_E_MEMORY, "", NULL, "the JSON does not fit in its buffer");
    return code;
}

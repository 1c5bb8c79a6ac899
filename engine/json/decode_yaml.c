/* decode_yaml.c: YAML to JSON with libyaml's events. The only file that includes yaml.h. */
#include "engine/json/decode_text.h"

#include <string.h>

#include <yaml.h>

#include "engine/advise.h"
#include "engine/json/decode_value.h"
#include "engine/json/encode_common.h"

enum { ANCHORS_MAX = 64, DOCUMENTS_MAX = 64 };

/* Containers that are still open, innermost last. */
struct yaml_reader {
    yaml_parser_t parser;
    json_t *root;
    bool ended; /* the stream has no further document */
    json_t *open[ADV_LIMIT_JSON_DEPTH];
    char *keys[ADV_LIMIT_JSON_DEPTH]; /* a mapping's key that waits for its value */
    int depth;
    int anchors_count;
    struct {
        char *name;
        json_t *value;
    } anchors[ANCHORS_MAX];
    adv_err *err;
};

static adv_code fail(struct yaml_reader *reader, adv_code code, const yaml_mark_t *mark, const char *what)
{
    return adv_err_add(reader->err, code, "", NULL, "line %zu, column %zu: %s", mark->line + 1,
                       mark->column + 1, what);
}

/* Puts a value where it belongs; takes over the reference. */
static adv_code put(struct yaml_reader *reader, json_t *value, const yaml_mark_t *mark)
{
    if (!value) return adv_err_add(reader->err, ADV_E_MEMORY, "", NULL, "out of memory");
    if (reader->depth == 0) {
        reader->root = value;
        return ADV_OK;
    }
    json_t *parent = reader->open[reader->depth - 1];
    char **key = &reader->keys[reader->depth - 1];
    if (json_is_array(parent)) return json_array_append_new(parent, value) == 0 ? ADV_OK : ADV_E_MEMORY;
    if (!*key) {
        json_decref(value);
        return fail(reader, ADV_E_SYNTAX, mark, "a mapping's key must be a plain word");
    }
    adv_code code = ADV_OK;
    if (json_object_get(parent, *key)) { /* the last one counts; read on, to report them all */
        (void)adv_err_add(reader->err, ADV_E_SYNTAX, "", "keep one of the two",
                          "line %zu: the key %.80s is there twice", mark->line + 1, *key);
    }
    if (json_object_set_new(parent, *key, value) != 0) {
        code = fail(reader, ADV_E_SYNTAX, mark, "not UTF-8");
    }
    free(*key);
    *key = NULL;
    return code;
}

/* "&name" before a value: kept under its name, the last of a name counts. */
static adv_code remember(struct yaml_reader *reader, const yaml_char_t *anchor, json_t *value,
                         const yaml_mark_t *mark)
{
    if (!anchor || !value) return ADV_OK;
    if (reader->anchors_count == ANCHORS_MAX)
        return fail(reader, ADV_E_TOO_LARGE, mark, "more than 64 anchors");
    char *name = strdup((const char *)anchor);
    if (!name) return adv_err_add(reader->err, ADV_E_MEMORY, "", NULL, "out of memory");
    reader->anchors[reader->anchors_count].name = name;
    reader->anchors[reader->anchors_count++].value = json_incref(value);
    return ADV_OK;
}

/* Both; takes over the reference. */
static adv_code remember_and_put(struct yaml_reader *reader, const yaml_char_t *anchor, json_t *value,
                                 const yaml_mark_t *mark)
{
    const adv_code code = remember(reader, anchor, value, mark);
    if (code == ADV_OK) return put(reader, value, mark);
    json_decref(value);
    return code;
}

static bool holds_containers(const json_t *value)
{
    for (struct adv_json_walk member = {.in = value}; adv_json_next_member(&member);) {
        if (json_is_object(member.value) || json_is_array(member.value)) return true;
    }
    for (struct adv_json_walk member = {.in = value}; adv_json_next(&member);) {
        if (json_is_object(member.value) || json_is_array(member.value)) return true;
    }
    return false;
}

/* "*name": what stands behind the anchor. Nested values are refused, so that a few lines cannot grow into a
 * document without end. */
static adv_code put_alias(struct yaml_reader *reader, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.alias.anchor;
    for (int i = reader->anchors_count - 1; i >= 0; i--) {
        json_t *value = reader->anchors[i].value;
        if (strcmp(reader->anchors[i].name, name) != 0) continue;
        bool is_open = false;
        for (int d = 0; d < reader->depth; d++) is_open |= reader->open[d] == value;
        if (is_open || holds_containers(value))
            return fail(reader, ADV_E_UNSUPPORTED, &event->start_mark,
                        "aliases of nested values are not read");
        return put(reader, json_copy(value), &event->start_mark);
    }
    return fail(reader, ADV_E_SYNTAX, &event->start_mark, "an alias without its anchor");
}

/* "<<: {…}" of the document's mapping: keys it does not have itself. */
static void merge_into(json_t *root)
{
    ADV_JSON_OWN json_t *merged = json_incref(json_object_get(root, "<<"));
    if (!json_is_object(root) || !json_is_object(merged)) return;
    (void)json_object_del(root, "<<");
    (void)json_object_update_missing(root, merged);
}

static adv_code put_scalar(struct yaml_reader *reader, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    if (strlen(text) != event->data.scalar.length)
        return fail(reader, ADV_E_SYNTAX, &event->start_mark, "a NUL character");
    bool expects_key = reader->depth > 0 && json_is_object(reader->open[reader->depth - 1]) &&
                       !reader->keys[reader->depth - 1];
    if (expects_key) {
        reader->keys[reader->depth - 1] = strdup(text);
        return reader->keys[reader->depth - 1]
                   ? ADV_OK
                   : adv_err_add(reader->err, ADV_E_MEMORY, "", NULL, "out of memory");
    }
    bool is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    bool is_null = is_plain && (!*text || strcmp(text, "~") == 0);
    json_t *value = is_null ? json_null() : is_plain ? adv_decode_scalar_text(text) : json_string(text);
    return remember_and_put(reader, event->data.scalar.anchor, value, &event->start_mark);
}

static adv_code open_container(struct yaml_reader *reader, json_t *container, const yaml_char_t *anchor,
                               const yaml_event_t *event)
{
    if (reader->depth == ADV_LIMIT_JSON_DEPTH) {
        json_decref(container);
        return fail(reader, ADV_E_SYNTAX, &event->start_mark, "nested too deeply");
    }
    const adv_code code = remember_and_put(reader, anchor, container, &event->start_mark);
    if (code == ADV_OK) reader->open[reader->depth++] = container;
    return code;
}

static adv_code read_event(struct yaml_reader *reader, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return put_scalar(reader, event);
    case YAML_MAPPING_START_EVENT:
        return open_container(reader, json_object(), event->data.mapping_start.anchor, event);
    case YAML_SEQUENCE_START_EVENT:
        return open_container(reader, json_array(), event->data.sequence_start.anchor, event);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        reader->depth--;
        return ADV_OK;
    case YAML_ALIAS_EVENT:
        return put_alias(reader, event);
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
    return ADV_OK;
}

static adv_code read_document(struct yaml_reader *reader)
{
    for (bool done = false; !done;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&reader->parser, &event)) {
            const char *problem = reader->parser.problem ? reader->parser.problem : "not YAML";
            return fail(reader, ADV_E_SYNTAX, &reader->parser.problem_mark, problem);
        }
        adv_code code = read_event(reader, &event);
        reader->ended = event.type == YAML_STREAM_END_EVENT;
        done = event.type == YAML_DOCUMENT_END_EVENT || reader->ended;
        yaml_event_delete(&event);
        if (code != ADV_OK) return code;
    }
    return ADV_OK;
}

static void forget(struct yaml_reader *reader)
{
    for (int i = 0; i < ADV_LIMIT_JSON_DEPTH; i++) {
        free(reader->keys[i]);
        reader->keys[i] = NULL;
    }
    for (int i = 0; i < reader->anchors_count; i++) {
        free(reader->anchors[i].name);
        json_decref(reader->anchors[i].value);
    }
    reader->anchors_count = reader->depth = 0;
    json_decref(reader->root);
    reader->root = NULL;
}

adv_code adv_decode_yaml_all(const char *text, size_t text_bytes, json_t **documents, adv_err *err)
{
    struct yaml_reader reader = {.err = err};
    int errors_before = err->count;
    adv_code code = ADV_OK;
    ADV_JSON_OWN json_t *list = json_array();
    *documents = NULL;
    if (!list || !yaml_parser_initialize(&reader.parser))
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "out of memory");
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, text_bytes);
    while (code == ADV_OK && !reader.ended) {
        code = read_document(&reader);
        if (code == ADV_OK && reader.root && json_array_size(list) == DOCUMENTS_MAX)
            code = adv_err_add(err, ADV_E_TOO_LARGE, "", NULL, "more than 64 documents");
        if (code == ADV_OK && reader.root) {
            merge_into(reader.root);
            (void)json_array_append(list, reader.root);
        }
        forget(&reader);
    }
    yaml_parser_delete(&reader.parser);
    if (code == ADV_OK && err->count > errors_before) code = ADV_E_SYNTAX;
    if (code == ADV_OK && json_array_size(list) == 0)
        code = adv_err_add(err, ADV_E_SYNTAX, "", NULL, "the document is empty");
    if (code == ADV_OK) *documents = json_incref(list);
    return code;
}

adv_code adv_decode_yaml(const char *text, size_t text_bytes, json_t **root, adv_err *err)
{
    ADV_JSON_OWN json_t *documents = NULL;
    *root = NULL;
    adv_code code = adv_decode_yaml_all(text, text_bytes, &documents, err);
    if (code == ADV_OK) *root = json_incref(json_array_get(documents, 0));
    return code;
}

adv_code adv_yaml_json(const char *yaml, size_t yaml_bytes, char **json, adv_err *err)
{
    json_t *root = NULL;
    adv_code code = adv_decode_yaml(yaml, yaml_bytes, &root, err);
    if (code) return code;
    size_t json_bytes = 0;
    *json = adv_encode_text(root, &json_bytes);
    return *json ? ADV_OK : adv_err_add(err, ADV_E_MEMORY, "", NULL, "out of memory");
}

/* decode_recipe_manifest.c: the commands inside a Kubernetes manifest. */
#include "engine/json/decode_recipe.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"

enum { VARIABLES_MAX = 256, SCRIPT_BYTES_MAX = 512 * 1024 };

struct pods {
    struct adv_arena *arena;
    struct adv_recipe *recipe;
    adv_err *err;
    const char *slices; /* of the replicated job around */
};

/* Environment of a container. */
struct environment {
    const char *names[VARIABLES_MAX], *values[VARIABLES_MAX];
    int count;
};

bool adv_recipe_is_manifest(const json_t *document)
{
    return json_is_string(json_object_get(document, "apiVersion")) &&
           json_is_string(json_object_get(document, "kind"));
}

/* A scalar of YAML as its text, which outlives the document; NULL: no scalar. */
static const char *text_of(const json_t *value, struct adv_arena *arena)
{
    char number[64];
    if (json_is_string(value)) return adv_arena_copy(arena, json_string_value(value));
    if (json_is_boolean(value)) return json_is_true(value) ? "true" : "false";
    if (json_is_integer(value))
        (void)snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        (void)snprintf(number, sizeof number, "%.12g", json_real_value(value));
    else
        return NULL;
    return adv_arena_copy(arena, number);
}

/* "${STEPS}" of a manifest that goes through envsubst: not set, as long as nobody does. */
static bool is_placeholder(const char *value)
{
    const size_t length = strlen(value);
    return length > 1 && value[0] == '$' && value[1] != '(' &&
           strspn(value + 1, "{}_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") ==
               length - 1;
}

static void read_environment(const json_t *container, struct adv_arena *arena,
                             struct environment *environment)
{
    for (struct adv_json_walk entry = {.in = json_object_get(container, "env")}; adv_json_next(&entry);) {
        const char *name = text_of(json_object_get(entry.value, "name"), arena);
        const char *value = text_of(json_object_get(entry.value, "value"), arena);
        if (!name || !value || is_placeholder(value) || environment->count == VARIABLES_MAX) continue;
        environment->names[environment->count] = name;
        environment->values[environment->count++] = value;
    }
}

/* Appends one argument with $(NAME) put in, as Kubernetes does; $$ is one $. */
static void append_argument(const char *argument, const struct environment *environment, struct adv_text *out)
{
    for (const char *at = argument; *at; at++) {
        const char *close = strncmp(at, "$(", 2) == 0 ? strchr(at, ')') : NULL;
        const char *value = NULL;
        for (int i = 0; close && i < environment->count && !value; i++) {
            const size_t length = strlen(environment->names[i]);
            if (length == (size_t)(close - at - 2) && strncmp(at + 2, environment->names[i], length) == 0)
                value = environment->values[i];
        }
        if (value) {
            adv_text_append(out, value);
            at = close;
        } else {
            if (strncmp(at, "$$", 2) == 0) at++;
            adv_text_append_bytes(out, at, 1);
        }
    }
}

/* As a word of a shell. */
static void append_word(const char *argument, struct adv_text *out)
{
    adv_text_append(out, "'");
    for (; *argument; argument++) {
        if (*argument == '\'')
            adv_text_append(out, "'\\''");
        else
            adv_text_append_bytes(out, argument, 1);
    }
    adv_text_append(out, "' ");
}

/* command and args as one line of a shell. */
static bool write_command(const json_t *container, const struct environment *environment,
                          struct adv_text *line)
{
    static const char *const members[] = {"command", "args"};
    for (size_t m = 0; m < sizeof members / sizeof *members; m++) {
        for (struct adv_json_walk word = {.in = json_object_get(container, members[m])};
             adv_json_next(&word);) {
            struct adv_text argument = adv_text_empty(SCRIPT_BYTES_MAX);
            adv_text_append(&argument, "");
            append_argument(json_is_string(word.value) ? json_string_value(word.value) : "", environment,
                            &argument);
            if (argument.data) append_word(argument.data, line);
            line->overflow |= argument.overflow;
            adv_text_free(&argument);
        }
    }
    return !line->overflow && line->length_bytes > 0;
}

static void append_runs(struct pods *pods, const struct adv_recipe *found, const json_t *selector)
{
    struct adv_recipe *recipe = pods->recipe;
    const struct adv_recipe_machine machine = {
        text_of(json_object_get(selector, "cloud.google.com/gke-tpu-accelerator"), pods->arena),
        text_of(json_object_get(selector, "cloud.google.com/gke-tpu-topology"), pods->arena), pods->slices,
        true};
    for (int i = 0; i < found->runs_count; i++) {
        if (recipe->runs_count == ADV_LIMIT_RECIPE_RUNS) {
            recipe->runs_lost++;
            continue;
        }
        recipe->runs[recipe->runs_count] = found->runs[i];
        if (machine.type) recipe->runs[recipe->runs_count].machine = machine;
        recipe->runs[recipe->runs_count++].line = 0;
    }
    if (found->unread && !recipe->unread) recipe->unread = found->unread;
}

static adv_code read_container(struct pods *pods, const json_t *container, const json_t *selector)
{
    struct environment *environment = adv_arena_alloc(pods->arena, sizeof *environment);
    struct adv_recipe *found = adv_arena_alloc(pods->arena, sizeof *found);
    struct adv_text line = adv_text_empty(SCRIPT_BYTES_MAX);
    if (!environment || !found) return adv_err_add(pods->err, ADV_E_MEMORY, "", NULL, "out of memory");
    read_environment(container, pods->arena, environment);
    adv_code code = ADV_OK;
    if (write_command(container, environment, &line))
        code = adv_recipe_read(line.data, line.length_bytes, environment->names, environment->values,
                               environment->count, pods->arena, found, pods->err);
    adv_text_free(&line);
    if (code == ADV_OK) append_runs(pods, found, selector);
    return code;
}

/* `value` is what stands under `name`. Nesting is limited where the document was read. */
static adv_code walk(struct pods *pods, const char *name, const json_t *value) /* NOLINT(misc-no-recursion) */
{
    const char *outer = pods->slices;
    adv_code code = ADV_OK;
    const json_t *containers = json_object_get(value, "containers");
    const json_t *replicas = json_object_get(value, "replicas");
    if (strcmp(name, "replicatedJobs") == 0 && replicas) pods->slices = text_of(replicas, pods->arena);
    for (struct adv_json_walk member = {.in = containers}; adv_json_next(&member);) {
        if (code == ADV_OK) code = read_container(pods, member.value, json_object_get(value, "nodeSelector"));
    }
    for (struct adv_json_walk member = {.in = value}; adv_json_next(&member);) {
        if (code == ADV_OK) code = walk(pods, name, member.value);
    }
    for (struct adv_json_walk member = {.in = value}; adv_json_next_member(&member);) {
        if (code == ADV_OK && (json_is_object(member.value) || json_is_array(member.value)))
            code = walk(pods, member.key, member.value);
    }
    pods->slices = outer;
    return code;
}

adv_code adv_recipe_read_manifest(const json_t *document, struct adv_arena *arena, struct adv_recipe *recipe,
                                  adv_err *err)
{
    struct pods pods = {arena, recipe, err, NULL};
    return walk(&pods, "", document);
}

/* decode_shell.c: the key=value words and XLA flags of a shell script or command line. */
#include "engine/json/decode_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "engine/json/decode_value.h"

enum { NESTING_MAX = 4 }; /* a command in quotes in a variable in a script */

struct shell_reader {
    json_t *config, *flags;
    bool out_of_memory;
};

static void read_words(struct shell_reader *reader, const char *text, size_t text_bytes, int nesting);

static bool is_name(const char *word, size_t length, bool upper)
{
    if (length == 0 || isdigit((unsigned char)word[0])) return false;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)word[i];
        bool letter = upper ? isupper(c) : islower(c);
        if (!letter && !isdigit(c) && c != '_') return false;
    }
    return true;
}

static void keep_flag(struct shell_reader *reader, const char *word)
{
    json_t *flag = json_string(word);
    if (flag && json_array_size(reader->flags) < ADV_LIMIT_CONFIG_KEYS)
        (void)json_array_append_new(reader->flags, flag);
    else
        json_decref(flag);
}

static void keep_key(struct shell_reader *reader, const char *name, size_t name_length, json_t *value)
{
    char key[ADV_LIMIT_NAME];
    if (name_length >= sizeof key) {
        json_decref(value);
        return;
    }
    memcpy(key, name, name_length);
    key[name_length] = '\0';
    for (char *at = key; *at; at++) *at = (char)tolower((unsigned char)*at);
    (void)json_object_set_new(reader->config, key, value);
}

/* `nesting`: how many quotes deep; a value that holds several words is read as a command of its own. */
static void read_word(struct shell_reader *reader, const char *word, int nesting)
{
    const char *equals = strchr(word, '=');
    const char *value = equals ? equals + 1 : NULL;
    size_t length = equals ? (size_t)(equals - word) : 0;
    bool has_words = value && strpbrk(value, " \t\r\n") && strpbrk(value, "=");
    if (strncmp(word, "--xla_", 6) == 0) {
        keep_flag(reader, word);
    } else if (!equals) {
        if (nesting < NESTING_MAX && strpbrk(word, " \t\n") && strchr(word, '='))
            read_words(reader, word, strlen(word), nesting + 1);
    } else if (length > 2 && strncmp(word, "M_", 2) == 0 && is_name(word + 2, length - 2, true)) {
        keep_key(reader, word + 2, length - 2,
                 adv_decode_scalar_text(value)); /* MaxText's own environment override */
    } else if (is_name(word, length, false)) {
        bool holds_flags =
            length == strlen("compile_xla_flags") && strncmp(word, "compile_xla_flags", length) == 0;
        if (holds_flags && nesting < NESTING_MAX) read_words(reader, value, strlen(value), nesting + 1);
        keep_key(reader, word, length, adv_decode_word_text(value));
    } else if (!has_words && length > 2 && strncmp(word, "--", 2) == 0 &&
               is_name(word + 2, length - 2, false)) {
        keep_key(reader, word, length, adv_decode_word_text(value)); /* which MaxText refuses */
    } else if (nesting < NESTING_MAX && (has_words || strncmp(value, "--xla_", 6) == 0)) {
        read_words(reader, value, strlen(value), nesting + 1);
    }
}

/* One word from `at` into `word`, quotes and backslashes resolved; returns where the next one starts. */
static const char *next_word(const char *at, const char *end, char *word)
{
    char quote = '\0';
    for (; at < end; at++) {
        if (*at == '\\' && quote != '\'' && at + 1 < end) {
            at++;
            if (*at == '\r' && at + 1 < end && at[1] == '\n') at++;
            if (*at == '\n') {
                if (quote)
                    *word++ = ' ';
                else
                    break;
            } else {
                *word++ = *at;
            }
        } else if (quote ? *at == quote : *at == '"' || *at == '\'') {
            quote = quote ? '\0' : *at;
        } else if (!quote && (isspace((unsigned char)*at) || strchr(";&|()", *at))) {
            break;
        } else {
            *word++ = *at;
        }
    }
    *word = '\0';
    return at < end ? at + 1 : end;
}

static void read_words(struct shell_reader *reader, const char *text, size_t text_bytes, int nesting)
{
    char *word = malloc(text_bytes + 1);
    const char *end = text + text_bytes;
    const char *at = text;
    if (!word) {
        reader->out_of_memory = true;
        return;
    }
    while (at < end) {
        if (isspace((unsigned char)*at)) {
            at++;
            continue;
        }
        if (*at == '#') {
            const char *line_end = memchr(at, '\n', (size_t)(end - at));
            at = line_end ? line_end : end;
            continue;
        }
        at = next_word(at, end, word);
        if (*word) read_word(reader, word, nesting);
    }
    free(word);
}

adv_code adv_decode_shell(const char *text, size_t text_bytes, json_t **root, adv_err *err)
{
    struct shell_reader reader = {json_object(), json_array(), false};
    *root = NULL;
    if (reader.config && reader.flags) read_words(&reader, text, text_bytes, 0);
    ADV_JSON_OWN json_t *object = json_pack("{s:o, s:o}", "config", reader.config, "xla_flags", reader.flags);
    if (!object || reader.out_of_memory) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "out of memory");
    *root = json_incref(object);
    return ADV_OK;
}

/* Whether the document has a member of requests. */
static bool is_request(const json_t *root)
{
    static const char *const members[] = {"config", "xla_flags", "model",    "cluster", "clusters", "strict",
                                          "pins",   "baseline",  "workload", "search",  "recipe"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (json_object_get(root, members[i])) return true;
    return false;
}

json_t *adv_text_model_as_request(json_t *root)
{
    const bool names_model = json_is_string(json_object_get(root, "model_type")) ||
                             json_is_array(json_object_get(root, "architectures"));
    if (!names_model || is_request(root)) return root;
    return json_pack("{s:{s:o}}", "model", "hf_config", root);
}

json_t *adv_text_as_request(json_t *root)
{
    if (!json_is_object(root) || json_object_size(root) == 0) return root;
    root = adv_text_model_as_request(root);
    if (is_request(root)) return root;
    json_t *request = json_object();
    (void)json_object_set_new(request, "config", root);
    return request;
}

/* Whether a line is "name:" or "name: value" (the name in quotes or not), or one only YAML has. */
static bool is_yaml_line(const char *text, const char *stop)
{
    static const char *const openings[] = {"- ", "? ", "%YAML", "<<:"};
    for (size_t i = 0; i < sizeof openings / sizeof *openings; i++) {
        size_t length = strlen(openings[i]);
        if ((size_t)(stop - text) >= length && strncmp(text, openings[i], length) == 0) return true;
    }
    const char *name_end = text;
    while (name_end < stop && !isspace((unsigned char)*name_end) && !strchr(":=", *name_end)) name_end++;
    return name_end > text && name_end < stop && *name_end == ':' &&
           (name_end + 1 == stop || isspace((unsigned char)name_end[1]));
}

/* YAML starts its first line that says something with "key:"; a shell text with a command or an assignment.
 */
bool adv_text_is_yaml(const char *text, size_t text_bytes)
{
    const char *end = text + text_bytes;
    while (text < end) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));
        const char *stop = line_end ? line_end : end;
        while (text < stop && isspace((unsigned char)*text)) text++;
        bool says_something =
            text < stop && *text != '#' && !(stop - text >= 3 && strncmp(text, "---", 3) == 0);
        if (says_something) return is_yaml_line(text, stop);
        text = stop < end ? stop + 1 : end;
    }
    return false;
}

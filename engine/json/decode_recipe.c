#include "engine/json/decode_recipe.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/catalog/releases.h"
#include "engine/json/decode_text.h"
#include "engine/json/decode_value.h"
#include "engine/maxtext/names.h"
#include "engine/maxtext/run.h"

static const char at_recipe[] = "/recipe";
static const char remedy[] = "a MaxText configuration as JSON, YAML, a script or a command line";

/* One recipe on its way to a request. */
struct reader {
    const struct adv_catalog *catalog;
    const struct adv_recipe_wish *wish;
    struct adv_arena *arena;
    adv_err *err, *warnings;
    const char *maxtext; /* the release that the recipe is for */
};

static adv_code refuse(const struct reader *reader, adv_code code, const char *hint, const char *detail)
{
    return adv_err_add(reader->err, code, at_recipe, hint, "%s", detail);
}

/* A key that may hold any words, such as a path: "${BUCKET}/run" says enough. */
static bool takes_any_text(const struct reader *reader, const char *name)
{
    const struct adv_catalog_key *key = adv_catalog_key(reader->catalog, name);
    if (!key) return !adv_catalog_old_key(reader->catalog, name);
    return (key->types & (1u << ADV_KEY_STRING)) != 0 && key->allowed_count == 0 &&
           strcmp(name, "model_name") != 0 && strcmp(name, "compile_topology") != 0;
}

static void read_key(const struct reader *reader, const struct adv_recipe_key *key, json_t *config)
{
    char variable[ADV_LIMIT_NAME], hint[ADV_LIMIT_DETAIL];
    const bool unknown = adv_shell_unknown(key->value, variable);
    if (json_object_get(reader->wish->given, key->name)) return;
    if (unknown && !takes_any_text(reader, key->name)) {
        (void)snprintf(hint, sizeof hint, "give %.80s beside the recipe, in config", key->name);
        (void)adv_err_add_rule(reader->err, ADV_E_INVALID, "recipe-variable", ADV_AT(at_recipe, key->name),
                               hint, "%.80s is %.80s, which the recipe leaves to its caller", key->name,
                               variable);
        return;
    }
    const char *plain = adv_shell_plain(reader->arena, key->value);
    if (adv_shell_uncertain(key->value)) {
        (void)snprintf(hint, sizeof hint, "give %.80s beside the recipe if it is another", key->name);
        ADV_WARN(reader->warnings, "recipe-condition", ADV_AT(at_recipe, key->name), hint,
                 "%.80s depends on a condition that only a run can tell: %.80s is taken", key->name, plain);
    }
    (void)json_object_set_new(config, key->name,
                              unknown            ? json_string(plain)
                              : key->is_variable ? adv_decode_scalar_text(plain)
                                                 : adv_decode_word_text(plain));
}

/* Options that stand by themselves are other programs' but where they are called as a key is. */
static void drop_other_options(const struct adv_catalog *catalog, json_t *config)
{
    ADV_JSON_OWN json_t *all = json_copy(config);
    for (struct adv_json_walk entry = {.in = all}; adv_json_next_member(&entry);) {
        const size_t dashes = strspn(entry.key, "-");
        if (dashes > 0 && !adv_catalog_key(catalog, entry.key + dashes))
            (void)json_object_del(config, entry.key);
    }
}

static json_t *flags_of(const struct reader *reader, const char *flags)
{
    json_t *list = json_array();
    char *saved = NULL, *copy = flags ? adv_arena_copy(reader->arena, flags) : NULL;
    for (char *word = copy ? strtok_r(copy, " \t\r\n'\"\\", &saved) : NULL; word;
         word = strtok_r(NULL, " \t\r\n'\"\\", &saved)) {
        char variable[ADV_LIMIT_NAME];
        if (adv_shell_unknown(word, variable)) {
            if (word[0] == '-')
                ADV_WARN(reader->warnings, "recipe-variable", at_recipe, "give xla_flags beside the recipe",
                         "the flag %.80s is left out: its value is %.80s",
                         adv_shell_plain(reader->arena, word), variable);
            continue;
        }
        (void)json_array_append_new(list, json_string(adv_shell_plain(reader->arena, word)));
    }
    return list;
}

/* The chip of a machine or node label: "ct6e-standard-4t", "tpu-v6e-slice", "tpu7x". */
static const char *chip_of(const struct adv_catalog *catalog, const char *type)
{
    char prefix[ADV_LIMIT_NAME];
    for (int i = 0; i < adv_catalog_tables(catalog)->chips_count; i++) {
        const struct adv_chip *chip = &adv_catalog_tables(catalog)->chips[i].chip;
        const size_t machine = strlen(chip->nodes.machine);
        const bool is_machine =
            machine && strncmp(chip->nodes.machine, type, machine) == 0 && type[machine] == '-';
        if (is_machine || strcmp(chip->nodes.label, type) == 0) return chip->name;
    }
    (void)snprintf(prefix, sizeof prefix, "%s", type);
    for (char *end = prefix + strlen(prefix); end; end = strrchr(prefix, '-')) {
        *end = '\0';
        const struct adv_catalog_chip *row = adv_catalog_chip(catalog, prefix);
        if (row) return row->chip.name;
    }
    return NULL;
}

/* "8t" of "ct6e-standard-8t": the type is one of hosts. */
static bool is_host_type(const char *type)
{
    const char *dash = strrchr(type, '-');
    const size_t digits = dash ? strspn(dash + 1, "0123456789") : 0;
    return digits > 0 && strcmp(dash + 1 + digits, "t") == 0;
}

static const char *plain_or_null(const struct reader *reader, const char *text)
{
    return text && *text ? adv_shell_plain(reader->arena, text) : NULL;
}

static bool is_open(const char *text)
{
    return text && strchr(text, '$');
}

/* The cluster that a launcher's words say; NULL: none, or one that is given beside the recipe. */
static json_t *cluster_of(const struct reader *reader, const struct adv_recipe_machine *machine)
{
    const char *type = plain_or_null(reader, machine->type);
    const char *topology = plain_or_null(reader, machine->topology);
    const char *slices = plain_or_null(reader, machine->slices);
    if (reader->wish->has_cluster || !type) return NULL;
    if (is_open(type) || is_open(topology) || is_open(slices)) {
        (void)adv_err_add_rule(
            reader->err, ADV_E_INVALID, "recipe-variable", at_recipe, "give cluster beside the recipe",
            "the recipe leaves the machine to its caller: %.60s%s%.60s%s%.60s", type, topology ? ", " : "",
            topology ? topology : "", slices ? ", slices " : "", slices ? slices : "");
        return NULL;
    }
    const char *chip =
        topology || machine->is_compute_type || is_host_type(type) ? chip_of(reader->catalog, type) : NULL;
    const bool says_slice = !topology && !is_host_type(type) && strpbrk(type, "0123456789") &&
                            strrchr(type, '-') && isdigit((unsigned char)strrchr(type, '-')[1]);
    json_t *cluster = json_object();
    if (says_slice) {
        (void)json_object_set_new(cluster, "accelerator", json_string(type));
    } else {
        (void)json_object_set_new(cluster, "chip", json_string(chip ? chip : type));
        if (topology) (void)json_object_set_new(cluster, "topology", json_string(topology));
    }
    const long count = slices ? strtol(slices, NULL, 10) : 1;
    if (count != 1) (void)json_object_set_new(cluster, "slices", json_integer((json_int_t)count));
    return cluster;
}

/* Whether the keys say which model is trained. */
static bool keys_name_model(const json_t *keys)
{
    static const char *const names[] = {ADV_NAME_MODEL_NAME, ADV_NAME_BASE_EMB_DIM, "decoder_block"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *value = json_object_get(keys, names[i]);
        if (value && !json_is_null(value)) return true;
    }
    return false;
}

/* A file that is not read may name the model. Whether another says which one it is; if not, it is refused:
 * what MaxText trains by default would be priced in its place. */
static bool knows_model(const struct reader *reader, const char *file, const json_t *keys)
{
    const struct adv_recipe_wish *wish = reader->wish;
    if (!wish->needs_model || keys_name_model(keys) || keys_name_model(wish->given)) return true;
    (void)adv_err_add_rule(reader->err, ADV_E_INVALID, "recipe-file", at_recipe,
                           "add model_name=\xe2\x80\xa6 to the recipe, or give model beside it",
                           "the recipe starts from %.120s, which is not read, and names no model itself: "
                           "which model it trains is not known",
                           file);
    return false;
}

static json_t *request_of(const struct reader *reader, const struct adv_recipe_run *run,
                          const struct adv_recipe_machine *elsewhere)
{
    json_t *request = json_object(), *config = json_object();
    for (int i = 0; i < run->keys_count; i++) read_key(reader, &run->keys[i], config);
    const char *file = plain_or_null(reader, run->config_file);
    if (file && !adv_maxtext_is_base_file(file) && knows_model(reader, file, config))
        ADV_WARN(reader->warnings, "recipe-file", at_recipe, "give its keys beside the recipe, in config",
                 "the command starts from %.120s, which is not read: keys that it sets are missing here",
                 file);
    json_t *cluster = cluster_of(reader, run->machine.type ? &run->machine : elsewhere);
    (void)json_object_set_new(request, "config", config);
    (void)json_object_set_new(request, "xla_flags", flags_of(reader, run->flags));
    if (cluster) (void)json_object_set_new(request, "cluster", cluster);
    return request;
}

/* Names a training among the recipe's others: its number, line, module and model. */
static void describe(const struct reader *reader, const struct adv_recipe_run *run, int number, char *text,
                     size_t bytes)
{
    const char *model = NULL;
    for (int i = 0; i < run->keys_count; i++)
        if (strcmp(run->keys[i].name, "model_name") == 0) model = plain_or_null(reader, run->keys[i].value);
    (void)snprintf(text, bytes, "%d: line %d, %.40s %.40s", number, run->line, run->module,
                   model ? model : "");
}

static adv_code choose(const struct reader *reader, const struct adv_recipe *recipe,
                       const struct adv_recipe_run **run)
{
    const int wanted = reader->wish->command, count = recipe->runs_count;
    char hint[ADV_LIMIT_DETAIL] = "give recipe_command:", detail[ADV_LIMIT_DETAIL];
    if (wanted == 0 && count == 1 && recipe->runs_lost == 0) {
        *run = &recipe->runs[0];
        return ADV_OK;
    }
    if (wanted > 0 && wanted <= count) {
        *run = &recipe->runs[wanted - 1];
        return ADV_OK;
    }
    for (int i = 0; i < count; i++) {
        char row[ADV_LIMIT_NAME * 2];
        describe(reader, &recipe->runs[i], i + 1, row, sizeof row);
        adv_append(hint, sizeof hint, "%s %s", i ? ";" : "", row);
    }
    if (wanted > 0)
        (void)snprintf(detail, sizeof detail, "there is no training %d: the recipe has %d", wanted, count);
    else
        (void)snprintf(detail, sizeof detail, "the recipe starts %d different trainings",
                       count + recipe->runs_lost);
    return refuse(reader, ADV_E_INVALID, hint, detail);
}

static adv_code judge_module(const struct reader *reader, const struct adv_recipe_run *run)
{
    if (!strstr(run->module, "train_rl") && !strstr(run->module, "rl_trainer") &&
        !strstr(run->module, "distill"))
        return ADV_OK;
    char detail[ADV_LIMIT_DETAIL];
    (void)snprintf(detail, sizeof detail, "%.120s samples as well as trains, which has no model here",
                   run->module);
    return refuse(reader, ADV_E_UNSUPPORTED, "give the configuration of its training step alone", detail);
}

/* A blank beside the "=" makes words of its own of the key and its value. */
static adv_code judge_words(const struct reader *reader, const struct adv_recipe_run *run)
{
    char hint[ADV_LIMIT_DETAIL] = "write key=value without blanks, or leave the word out";
    char key[ADV_LIMIT_NAME] = "";
    if (!run->stray) return ADV_OK;
    if (run->stray_meaning) {
        const char *meaning = adv_shell_plain(reader->arena, run->stray_meaning);
        (void)snprintf(key, sizeof key, "%.*s", (int)strcspn(meaning, "="), meaning);
        (void)snprintf(hint, sizeof hint, "write %.120s, without blanks", meaning);
    }
    return adv_err_add_rule(reader->err, ADV_E_INVALID, "recipe-word",
                            *key ? ADV_AT(at_recipe, key) : at_recipe, hint,
                            "line %d: the word \"%.80s\" of the command is no key=value: MaxText refuses it",
                            run->line, run->stray);
}

/* Releases before 0.2 had the package MaxText, later ones do not. */
static void warn_of_module(const struct reader *reader, const struct adv_recipe_run *run)
{
    const char *modules = adv_maxtext_modules(reader->maxtext);
    const bool is_old = strncmp(run->module, "MaxText", strlen("MaxText")) == 0;
    char hint[ADV_LIMIT_DETAIL];
    if (!is_old || strcmp(modules, "MaxText") == 0) return;
    (void)snprintf(hint, sizeof hint, "python3 -m %s.train", modules);
    ADV_WARN(reader->warnings, "old-module", at_recipe, hint,
             "line %d starts %.80s, which MaxText %s does not have", run->line, run->module, reader->maxtext);
}

static adv_code read_runs(const struct reader *reader, const struct adv_recipe *recipe, json_t **request)
{
    const struct adv_recipe_run *run = NULL;
    const int before = reader->err->count + reader->err->lost_count;
    adv_code code = choose(reader, recipe, &run);
    if (code == ADV_OK && run) code = judge_module(reader, run);
    if (code == ADV_OK && run) code = judge_words(reader, run);
    if (code != ADV_OK || !run) return code;
    warn_of_module(reader, run);
    ADV_JSON_OWN json_t *made = request_of(reader, run, &recipe->machine);
    if (reader->err->count + reader->err->lost_count > before) return reader->err->code;
    (void)json_object_set_new(made, "trains", json_true());
    *request = json_incref(made);
    return ADV_OK;
}

static adv_code refuse_unread(const struct reader *reader, const struct adv_recipe *recipe)
{
    char detail[ADV_LIMIT_DETAIL];
    (void)snprintf(detail, sizeof detail,
                   "line %d: %.80s takes its keys from a table in MaxText's benchmarks, which is not read",
                   recipe->unread_line, recipe->unread);
    return refuse(reader, ADV_E_UNSUPPORTED, "give the command that it prints and starts", detail);
}

static adv_code read_manifests(const struct reader *reader, const json_t *documents,
                               struct adv_recipe *recipe)
{
    for (struct adv_json_walk document = {.in = documents}; adv_json_next(&document);) {
        const adv_code code = adv_recipe_read_manifest(document.value, reader->arena, recipe, reader->err);
        if (code != ADV_OK) return code;
    }
    return ADV_OK;
}

static adv_code read_yaml(const struct reader *reader, const char *text, size_t bytes, json_t **request)
{
    ADV_JSON_OWN json_t *documents = NULL;
    adv_code code = adv_decode_yaml_all(text, bytes, &documents, reader->err);
    if (code != ADV_OK) return code;
    bool manifest = false;
    for (size_t i = 0; i < json_array_size(documents); i++)
        manifest |= adv_recipe_is_manifest(json_array_get(documents, i));
    struct adv_recipe *recipe = adv_arena_alloc(reader->arena, sizeof *recipe);
    if (!recipe) return adv_err_add(reader->err, ADV_E_MEMORY, "", NULL, "out of memory");
    if (!manifest) {
        *request = json_incref(json_array_get(documents, 0)); /* what follows it is of other tools */
        return ADV_OK;
    }
    code = read_manifests(reader, documents, recipe);
    if (code != ADV_OK) return code;
    if (recipe->runs_count > 0) return read_runs(reader, recipe, request);
    if (recipe->unread) return refuse_unread(reader, recipe);
    return refuse(reader, ADV_E_SYNTAX, "a container with the command that trains",
                  "no container of the manifest starts a training of MaxText");
}

/* A configuration in YAML that starts from another one; the reader of its keys warns of that. */
static adv_code judge_base(const struct reader *reader, const json_t *request)
{
    const json_t *config = json_object_get(request, "config");
    const char *file = json_string_value(json_object_get(config, ADV_NAME_BASE_CONFIG));
    if (!file || adv_maxtext_is_base_file(file) || json_object_get(request, "model") ||
        knows_model(reader, file, config))
        return ADV_OK;
    return reader->err->code;
}

/* Whether the text between is blank to the beginning of the line. */
static bool begins_line(const char *text, const char *at)
{
    while (at > text && (at[-1] == ' ' || at[-1] == '\t')) at--;
    return at == text || at[-1] == '\n';
}

/* The end of the comment that begins here; `at`: none does. */
static const char *behind_comment(const char *text, const char *at, const char *end)
{
    const bool begins = *at == '#' && (at == text || isspace((unsigned char)at[-1]));
    while (begins && at < end && *at != '\n') at++;
    return at;
}

/* Loose words: a key of MaxText in front of an "=" that stands by itself ("steps = 3") would be lost. Where
 * that begins a line, it is of another language; in a comment it is a remark. */
static adv_code judge_loose_words(const struct reader *reader, const char *text, size_t bytes)
{
    const char *end = text + bytes;
    for (const char *at = text; at < end;) {
        at = behind_comment(text, at, end);
        const char *from = at;
        while (at < end && (isalnum((unsigned char)*at) || *at == '_')) at++;
        char name[ADV_LIMIT_NAME];
        const size_t length = (size_t)(at - from);
        const char *equals = at;
        while (equals < end && (*equals == ' ' || *equals == '\t')) equals++;
        const bool is_apart = equals > at && end - equals > 1 && equals[0] == '=' && equals[1] != '=';
        (void)snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : 0), from);
        if (is_apart && adv_catalog_key(reader->catalog, name) && !begins_line(text, from))
            return adv_err_add_rule(reader->err, ADV_E_INVALID, "recipe-word", ADV_AT(at_recipe, name),
                                    "write key=value without blanks",
                                    "a blank parts %s from its value: MaxText refuses such words", name);
        at += length == 0;
    }
    return ADV_OK;
}

/* A script without a command that trains: its manifests, or key=value words wherever they stand. */
static adv_code read_rest(const struct reader *reader, struct adv_recipe *recipe, const char *text,
                          size_t bytes, json_t **request)
{
    for (int i = 0; i < recipe->documents_count; i++) {
        ADV_JSON_OWN json_t *documents = NULL;
        const char *manifest = adv_shell_plain(reader->arena, recipe->documents[i]);
        adv_code code = adv_decode_yaml_all(manifest, strlen(manifest), &documents, reader->err);
        if (code == ADV_OK) code = read_manifests(reader, documents, recipe);
        if (code != ADV_OK) return code;
    }
    if (recipe->runs_count > 0) return read_runs(reader, recipe, request);
    if (recipe->unread) return refuse_unread(reader, recipe);
    ADV_JSON_OWN json_t *words = NULL;
    adv_code code = adv_decode_shell(text, bytes, &words, reader->err);
    if (code == ADV_OK) code = judge_loose_words(reader, text, bytes);
    if (code != ADV_OK) return code;
    drop_other_options(reader->catalog, json_object_get(words, "config"));
    if (json_object_size(json_object_get(words, "config")) == 0 &&
        json_array_size(json_object_get(words, "xla_flags")) == 0)
        return refuse(
            reader, ADV_E_SYNTAX, remedy,
            "there is no command that trains, no key=value, no \"key: value\" and no XLA flag in the text");
    json_t *cluster = cluster_of(reader, &recipe->machine);
    if (cluster) (void)json_object_set_new(words, "cluster", cluster);
    *request = json_incref(words);
    return ADV_OK;
}

static const char *release_of(const struct adv_catalog *catalog, const json_t *software)
{
    const char *said = json_string_value(json_object_get(software, "maxtext"));
    return said ? said : adv_catalog_releases(catalog)->pinned.maxtext;
}

/* What the first lines of a file of ours say, where nothing else does. */
static void add_own(const struct reader *reader, const char *text, size_t text_bytes, json_t *software,
                    json_t *request)
{
    json_t *cluster = NULL;
    if (!json_is_object(request)) return;
    if (software && !json_object_get(request, "software"))
        (void)json_object_set(request, "software", software);
    if (!reader->wish->has_cluster && !json_object_get(request, "cluster"))
        cluster = adv_recipe_own_cluster(text, text_bytes);
    if (!cluster) return;
    (void)json_object_set_new(request, "cluster", cluster);
    if (!json_object_get(request, "trains")) (void)json_object_set_new(request, "trains", json_false());
}

adv_code adv_decode_recipe(const struct adv_catalog *catalog, const char *text, size_t text_bytes,
                           const struct adv_recipe_wish *wish, struct adv_arena *arena, json_t **request,
                           adv_err *err, adv_err *warnings)
{
    text = adv_json_after_mark(text, &text_bytes);
    ADV_JSON_OWN json_t *software = adv_recipe_own_software(catalog, text, text_bytes);
    const char *maxtext = wish->maxtext ? wish->maxtext : release_of(catalog, software);
    const struct reader reader = {catalog, wish, arena, err, warnings, maxtext};
    const char *end = text + text_bytes, *at = text;
    *request = NULL;
    if (text_bytes > ADV_LIMIT_BODY_BYTES)
        return adv_err_add(err, ADV_E_TOO_LARGE, at_recipe, NULL, "%zu bytes; at most %d", text_bytes,
                           ADV_LIMIT_BODY_BYTES);
    const char *zero = memchr(text, '\0', text_bytes);
    if (zero)
        return adv_err_add(err, ADV_E_SYNTAX, at_recipe, remedy, "byte %td is zero: that is no text",
                           zero - text);
    while (at < end && isspace((unsigned char)*at)) at++;
    if (at == end) return refuse(&reader, ADV_E_SYNTAX, remedy, "the document is empty");
    if (end - at > 1 && at[0] == '{' && at[1] == '{')
        return refuse(&reader, ADV_E_UNSUPPORTED, "give what `helm template` prints",
                      "the text is a template");
    adv_code code = ADV_OK;
    if (*at == '{' || *at == '[') {
        code = adv_json_parse(text, text_bytes, request, err);
    } else if (adv_text_is_yaml(text, text_bytes)) {
        code = read_yaml(&reader, text, text_bytes, request);
    } else {
        struct adv_recipe *recipe = adv_arena_alloc(arena, sizeof *recipe);
        if (!recipe) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "out of memory");
        code = adv_recipe_read(text, text_bytes, NULL, NULL, 0, arena, recipe, err);
        if (code == ADV_OK)
            code = recipe->runs_count > 0 ? read_runs(&reader, recipe, request)
                                          : read_rest(&reader, recipe, text, text_bytes, request);
    }
    if (code == ADV_OK) *request = adv_text_as_request(*request);
    if (code == ADV_OK) code = judge_base(&reader, *request);
    if (code != ADV_OK) {
        json_decref(*request);
        *request = NULL;
    }
    if (code == ADV_OK) add_own(&reader, text, text_bytes, software, *request);
    return code;
}

#include "engine/recipe/recipe.h"

#include <ctype.h>
#include <string.h>

struct reader {
    struct adv_recipe *recipe;
    struct adv_arena *arena;
    struct adv_recipe_machine launcher; /* of the command around the one that is read */
};

/* The name of a program or module: "maxtext.trainers.pre_train.train" and "MaxText/train.py" are train. */
static bool is_called(const char *word, const char *name)
{
    size_t length = strlen(word);
    if (length > 3 && strcmp(word + length - 3, ".py") == 0) length -= 3;
    const size_t name_length = strlen(name);
    if (length < name_length || strncmp(word + length - name_length, name, name_length) != 0) return false;
    return length == name_length || strchr("/.", word[length - name_length - 1]);
}

/* Programs of MaxText that train; all take the same keys. */
static bool trains(const char *word)
{
    static const char *const programs[] = {"train",         "train_compile",   "elastic_train", "train_sft",
                                           "sft_trainer",   "train_dpo",       "train_rl",      "rl_trainer",
                                           "train_distill", "train_sft_native"};
    const bool plain = !strpbrk(word, "= \t");
    for (size_t i = 0; plain && i < sizeof programs / sizeof *programs; i++)
        if (is_called(word, programs[i])) return true;
    return false;
}

static bool is_file(const char *word)
{
    const size_t length = strlen(word);
    return (length > 4 && strcmp(word + length - 4, ".yml") == 0) ||
           (length > 5 && strcmp(word + length - 5, ".yaml") == 0);
}

/* Flags of the library that reads MaxText's command line, which are no keys; and those of XLA. */
static bool is_other_flag(const char *word)
{
    static const char *const names[] = {"--xla_",      "--v=",          "--verbosity=",       "--log",
                                        "--alsologto", "--stderrthres", "--showprefixforinfo"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(word, names[i], strlen(names[i])) == 0) return true;
    return false;
}

/* Length of "name" in "name=value" with a key's letters, or of "--name"; marks in front do not count. */
static size_t key_length(const char *word)
{
    const size_t first = is_other_flag(word) ? 0 : strspn(word, "-");
    size_t length = first;
    while (islower((unsigned char)word[length]) || (length > first && isdigit((unsigned char)word[length])) ||
           word[length] == '_')
        length++;
    return word[length] == '=' && length > first ? length : 0;
}

static const char *after_marks(const char *word)
{
    return word + strspn(word, "\x03");
}

static char *lower(struct adv_arena *arena, const char *text, size_t length)
{
    char *copy = adv_arena_alloc(arena, length + 1);
    for (size_t i = 0; copy && i < length; i++) copy[i] = (char)tolower((unsigned char)text[i]);
    return copy;
}

/* Keys of a run while they are collected. */
struct keys {
    struct reader *reader;
    struct adv_recipe_key *rows;
    int count, room;
};

static void add_key(struct keys *keys, const char *name, const char *value, bool is_variable)
{
    if (!name || keys->count == keys->room) return;
    int at = 0;
    while (at < keys->count && strcmp(keys->rows[at].name, name) != 0) at++;
    keys->count += at == keys->count;
    keys->rows[at] = /* the last one counts, as it does for MaxText */
        (struct adv_recipe_key){name, value, is_variable};
}

/* M_STEPS=5: MaxText's own way to set a key by the environment. */
static void add_variable(void *context, const char *name, const char *value)
{
    struct keys *keys = context;
    if (strncmp(name, "M_", 2) != 0 || !isupper((unsigned char)name[2])) return;
    add_key(keys, lower(keys->reader->arena, name + 2, strlen(name + 2)), value, true);
}

static const char *flags_of(const struct adv_shell *shell, const struct adv_shell_command *command,
                            struct adv_arena *arena)
{
    static const char *const variables[] = {"LIBTPU_INIT_ARGS", "XLA_FLAGS"};
    struct adv_text all = adv_text_empty(ADV_LIMIT_SHELL_WORD);
    for (size_t i = 0; i < sizeof variables / sizeof *variables && !all.data; i++) {
        const char *value = adv_shell_get(shell, variables[i]);
        if (value && strstr(value, "--")) adv_text_append(&all, value);
    }
    for (int i = 0; i < command->words_count; i++)
        if (strncmp(command->words[i], "--xla_", 6) == 0) adv_text_format(&all, " %s", command->words[i]);
    const char *flags = all.data != NULL && !all.overflow ? adv_arena_copy(arena, all.data) : NULL;
    adv_text_free(&all);
    return flags;
}

/* The same program, or the same under the name it had before MaxText 0.2 (MaxText/train.py). */
static bool same_program(const char *a, const char *b)
{
    return strcmp(a, b) == 0 || (is_called(a, "train") && is_called(b, "train"));
}

static bool same_run(const struct adv_recipe_run *a, const struct adv_recipe_run *b)
{
    if (a->keys_count != b->keys_count || !same_program(a->module, b->module)) return false;
    if (strcmp(a->flags ? a->flags : "", b->flags ? b->flags : "") != 0) return false;
    for (int i = 0; i < a->keys_count; i++)
        if (!a->keys[i].value || !b->keys[i].value || strcmp(a->keys[i].name, b->keys[i].name) != 0 ||
            strcmp(a->keys[i].value, b->keys[i].value) != 0)
            return false;
    return true;
}

/* A word that MaxText takes for a key, has no such key, and stops: "steps", "=", "2" of "steps = 2". Those
 * that only a run could tell are none. */
static bool is_stray(const char *word)
{
    const size_t name = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    const size_t rest = name + strspn(word + name, "+.0123456789");
    const size_t blanks = strspn(word + name, " \t");
    if (*word == '=') return true;
    return name > 0 && (word[rest] == '\0' || (blanks > 0 && word[name + blanks] == '='));
}

/* The word at `at` and its neighbours as one word, if that is a key with its value. */
static const char *without_blanks(const struct adv_shell_command *command, int at, struct adv_arena *arena)
{
    enum { WORDS = 3 };
    const int last = command->words_count - 1;
    const char *before = strrchr(command->words[at - 1], '='); /* the program is in front of all */
    const bool is_value = before && before[1] == '\0';
    int first = is_value ? at - 1 : at, end = is_value || strchr(command->words[at], ' ') ? at : at + 1;
    if (end == at + 1 && end <= last && strcmp(command->words[end], "=") == 0) end++;
    size_t bytes = 1;
    for (int i = first; i <= end && i <= last; i++) bytes += strlen(command->words[i]);
    char *joined = end <= last && end - first < WORDS ? adv_arena_alloc(arena, bytes) : NULL;
    size_t length = 0;
    for (int i = first; joined && i <= end; i++)
        for (const char *from = command->words[i]; *from; from++)
            if (*from != ' ' && *from != '\t') joined[length++] = *from;
    return joined && key_length(joined) > 0 ? joined : NULL;
}

/* The command that trains, from the word that names the program on. */
static void add_run(struct reader *reader, struct adv_shell *shell, const struct adv_shell_command *command,
                    int program)
{
    struct adv_recipe *recipe = reader->recipe;
    enum { KEYS_MAX = ADV_LIMIT_CONFIG_KEYS };
    struct keys keys = {reader, adv_arena_array(reader->arena, KEYS_MAX, sizeof *keys.rows), 0, KEYS_MAX};
    struct adv_recipe_run run = {.module = command->words[program],
                                 .flags = flags_of(shell, command, reader->arena),
                                 .machine = reader->launcher,
                                 .line = command->line,
                                 .may_not_run = command->may_not_run};
    if (!keys.rows || !run.module) return;
    adv_shell_each(shell, add_variable, &keys);
    for (int i = program + 1; i < command->words_count; i++) {
        const char *word = after_marks(command->words[i]);
        const size_t length = key_length(word);
        const char *value = word + length + 1;
        if (length && adv_shell_uncertain(command->words[i]) && !adv_shell_uncertain(value)) {
            char *marked = adv_arena_alloc(reader->arena, strlen(value) + 2);
            if (!marked) return;
            marked[0] = command->words[i][0];
            memcpy(marked + 1, value, strlen(value));
            value = marked;
        }
        if (length)
            add_key(&keys, lower(reader->arena, word, length), value, false);
        else if (is_file(word) && !run.config_file)
            run.config_file = word;
        else if (!run.stray && is_stray(word)) {
            run.stray = word;
            run.stray_meaning = without_blanks(command, i, reader->arena);
        }
    }
    for (int i = 0; i < keys.count && !run.flags; i++)
        if (strcmp(keys.rows[i].name, "compile_xla_flags") == 0) run.flags = keys.rows[i].value;
    run.keys = keys.rows;
    run.keys_count = keys.count;
    for (int i = 0; i < recipe->runs_count; i++) {
        if (!same_run(&recipe->runs[i], &run)) continue;
        if (strncmp(run.module, "maxtext.", strlen("maxtext.")) == 0) recipe->runs[i].module = run.module;
        return;
    }
    if (recipe->runs_count == ADV_LIMIT_RECIPE_RUNS)
        recipe->runs_lost++;
    else
        recipe->runs[recipe->runs_count++] = run;
}

/* An option of a launcher that names the machine. */
static const struct option {
    const char *name;
    enum { TYPE, COMPUTE_TYPE, TOPOLOGY, SLICES } what;
} options[] = {
    {"device-type", TYPE},          {"tpu-type", TYPE},
    {"accelerator-type", TYPE},     {"type", TYPE},
    {"compute-type", COMPUTE_TYPE}, {"topology", TOPOLOGY},
    {"num-slices", SLICES},         {"node-count", SLICES},
    {"machine-type", COMPUTE_TYPE}, {"tpu-topology", TOPOLOGY},
};

/* "--tpu_type" and "--TPU_TYPE" are --tpu-type; the length of the name, 0 for another word. */
static size_t option_length(const char *word, const char *name)
{
    if (word[0] != '-' || word[1] != '-') return 0;
    size_t i = 0;
    for (word += 2; name[i]; i++) {
        const char letter = (char)(word[i] == '_' ? '-' : tolower((unsigned char)word[i]));
        if (letter != name[i]) return 0;
    }
    return word[i] == '=' || word[i] == '\0' ? i + 2 : 0;
}

/* Of "--type", which many programs have. */
static bool is_generation(const char *value)
{
    return (value[0] == 'v' && isdigit((unsigned char)value[1])) || strncmp(value, "tpu", 3) == 0;
}

static void take_option(const struct adv_shell_command *command, int at, struct adv_recipe_machine *machine)
{
    const char *word = command->words[at];
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const size_t length = option_length(word, options[i].name);
        const char *next = at + 1 < command->words_count ? command->words[at + 1] : "";
        const char *value = !length ? NULL : word[length] == '=' ? word + length + 1 : next;
        if (!value || !*value) continue;
        if (options[i].what == TOPOLOGY) {
            machine->topology = value;
        } else if (options[i].what == SLICES) {
            machine->slices = value;
        } else if (strcmp(options[i].name, "type") != 0 || is_generation(value)) {
            machine->type = value;
            machine->is_compute_type = options[i].what == COMPUTE_TYPE;
        }
    }
}

/* -e NAME=value, --env NAME=value, --env=NAME=value of docker and xpk: variables of the commands inside. */
static void take_environment(struct adv_shell *shell, struct adv_arena *arena,
                             const struct adv_shell_command *command, int at)
{
    const char *word = command->words[at];
    const char *pair = NULL;
    if ((strcmp(word, "-e") == 0 || strcmp(word, "--env") == 0) && at + 1 < command->words_count)
        pair = command->words[at + 1];
    else if (strncmp(word, "--env=", 6) == 0)
        pair = word + 6;
    const char *equals = pair ? strchr(pair, '=') : NULL;
    if (!equals || equals == pair || strcspn(pair, " \t") < (size_t)(equals - pair)) return;
    char *name = adv_arena_copy(arena, pair);
    if (!name) return;
    name[equals - pair] = '\0';
    adv_shell_set(shell, name, equals + 1);
}

/* Whether a text may hold a command that trains. */
static bool may_train(const char *text)
{
    return strpbrk(text, " \t\n") && (strstr(text, "train") || strstr(text, "benchmark_runner"));
}

static bool is_manifest(const char *text)
{
    return strstr(text, "apiVersion:") && strstr(text, "kind:");
}

static void take_here_text(struct reader *reader, struct adv_shell *shell, const char *text)
{
    struct adv_recipe *recipe = reader->recipe;
    if (is_manifest(text)) {
        if (recipe->documents_count < ADV_LIMIT_RECIPE_DOCUMENTS)
            recipe->documents[recipe->documents_count++] = text;
    } else if (may_train(text)) {
        adv_shell_nested(shell, text);
    }
}

static int find_program(const struct adv_shell_command *command)
{
    for (int i = 0; i < command->words_count; i++) {
        if (!trains(command->words[i])) continue;
        const bool is_module = i > 0 && strcmp(command->words[i - 1], "-m") == 0;
        const size_t length = strlen(command->words[i]);
        const bool is_script = length > 3 && strcmp(command->words[i] + length - 3, ".py") == 0;
        for (int k = i + 1; k < command->words_count && !is_module && !is_script; k++)
            if (is_file(command->words[k])) return i;
        if (is_module || is_script) return i;
    }
    return -1;
}

static void visit(void *context, struct adv_shell *shell, const struct adv_shell_command *command)
{
    static const char *const silent[] = {"echo", "printf", "grep", "sed", "test", "pip", "source", "."};
    struct reader *reader = context;
    const struct adv_recipe_machine outer = reader->launcher;
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        if (strcmp(command->words[0], silent[i]) == 0) return;
    const int program = find_program(command);
    if (program >= 0) {
        add_run(reader, shell, command, program);
        return;
    }
    for (int i = 0; i < command->words_count; i++) {
        take_option(command, i, &reader->launcher);
        take_environment(shell, reader->arena, command, i);
        if (is_called(command->words[i], "benchmark_runner") && !reader->recipe->unread) {
            reader->recipe->unread = command->words[i];
            reader->recipe->unread_line = command->line;
        }
    }
    if (reader->launcher.type) reader->recipe->machine = reader->launcher;
    for (int i = 0; i < command->words_count; i++) {
        const char *word = command->words[i], *equals = strchr(word, '=');
        const bool option = word[0] == '-' && equals && strcspn(word, " \t\n") > (size_t)(equals - word);
        if (may_train(word)) adv_shell_nested(shell, option ? equals + 1 : word);
    }
    if (command->here_text) take_here_text(reader, shell, command->here_text);
    reader->launcher = outer;
}

adv_code adv_recipe_read(const char *text, size_t text_bytes, const char *const *names,
                         const char *const *values, int variables_count, struct adv_arena *arena,
                         struct adv_recipe *recipe, adv_err *err)
{
    struct reader reader = {.recipe = recipe, .arena = arena};
    memset(recipe, 0, sizeof *recipe);
    return adv_shell_read(text, text_bytes, names, values, variables_count, visit, &reader, arena, err);
}

/* shell.c: the commands of a script, one after the other. Read shell_internal.h first. */
#include "engine/recipe/shell.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "engine/recipe/shell_internal.h"

/* "A=1 B=$A": what stands earlier in the same command counts, as long as nothing but assignments does. */
static const char *assigned_before(const struct shell_reader *reader, const char *name)
{
    const size_t length = strlen(name);
    if (!reader || reader->words_count != reader->assignments_count) return NULL;
    for (int i = reader->assignments_count - 1; i >= 0; i--)
        if (strncmp(reader->words[i], name, length) == 0 && reader->words[i][length] == '=')
            return reader->words[i] + length + 1;
    return NULL;
}

static const char *value_of(const struct adv_shell *shell, const char *name)
{
    for (int i = shell->variables_count - 1; i >= 0; i--)
        if (strcmp(shell->variables[i].name, name) == 0) return shell->variables[i].value;
    return NULL;
}

const char *adv_shell_get(const struct adv_shell *shell, const char *name)
{
    const char *before = assigned_before(shell->reader, name);
    return before ? before : value_of(shell, name);
}

static void set(struct adv_shell *shell, const char *name, const char *value)
{
    int i = 0;
    while (i < shell->variables_count && strcmp(shell->variables[i].name, name) != 0) i++;
    if (i == SHELL_VARIABLES_MAX) {
        adv_shell_stop(shell, ADV_E_TOO_LARGE, "more than 1024 variables");
        return;
    }
    if (i == shell->variables_count) {
        shell->variables[i].name = adv_shell_keep(shell, name, strlen(name));
        shell->variables_count++;
    }
    shell->variables[i].value = value;
}

/* Under a condition that only a run could tell, a value that is known stays, and one that is changed is
 * marked as uncertain, word by word. */
void adv_shell_set(struct adv_shell *shell, const char *name, const char *value)
{
    const char *old = value_of(shell, name);
    struct adv_text marked = adv_text_empty(ADV_LIMIT_SHELL_WORD);
    if (!shell->may_not_run || (old && strcmp(old, value) == 0)) {
        set(shell, name, value);
        return;
    }
    if (strchr(value, MARK_UNKNOWN) && old && !adv_shell_is_empty(old)) return;
    const char mark = MARK_UNCERTAIN;
    for (const char *at = value; *at; at++) {
        if ((at == value || isspace((unsigned char)at[-1])) && !isspace((unsigned char)*at))
            adv_text_append_bytes(&marked, &mark, 1);
        adv_text_append_bytes(&marked, at, 1);
    }
    set(shell, name, adv_shell_keep(shell, marked.data, marked.length_bytes));
    adv_text_free(&marked);
}

void adv_shell_each(const struct adv_shell *shell,
                    void (*each)(void *context, const char *name, const char *value), void *context)
{
    for (int i = 0; i < shell->variables_count; i++)
        if (shell->variables[i].value) each(context, shell->variables[i].name, shell->variables[i].value);
}

bool adv_shell_unknown(const char *text, char name[ADV_LIMIT_NAME])
{
    const char *at = strchr(text, MARK_UNKNOWN);
    if (!at) return false;
    const size_t length = strcspn(at + 1, "\x02");
    (void)snprintf(name, ADV_LIMIT_NAME, "%s%.*s", at[1] == '$' ? "" : "$",
                   (int)(length < ADV_LIMIT_NAME ? length : ADV_LIMIT_NAME), at + 1);
    return true;
}

bool adv_shell_uncertain(const char *text)
{
    return strchr(text, MARK_UNCERTAIN) != NULL;
}

const char *adv_shell_plain(struct adv_arena *arena, const char *text)
{
    struct adv_text out = adv_text_empty(ADV_LIMIT_SHELL_WORD * 2);
    adv_text_append(&out, "");
    bool named = false;
    for (; *text; text++) {
        if (*text == MARK_UNKNOWN) {
            named = text[1] != '$';
            adv_text_append(&out, named ? "${" : "");
        } else if (*text == MARK_UNKNOWN_END) {
            adv_text_append(&out, named ? "}" : "");
        } else if (*text == MARK_ELEMENT) {
            adv_text_append(&out, " ");
        } else if (*text != MARK_UNCERTAIN) {
            adv_text_append_bytes(&out, text, 1);
        }
    }
    const char *plain = out.data ? adv_arena_copy(arena, out.data) : NULL;
    adv_text_free(&out);
    return plain ? plain : "";
}

/* Whether the commands here run, by all that is open. */
static enum shell_truth runs(const struct shell_reader *reader)
{
    enum shell_truth all = SHELL_TRUE;
    for (int i = 0; i < reader->depth; i++) {
        const struct shell_level *level = &reader->levels[i];
        if (level->in_condition) continue;
        if (level->runs == SHELL_FALSE) return SHELL_FALSE;
        if (level->runs == SHELL_MAYBE) all = SHELL_MAYBE;
    }
    return all;
}

static bool in_condition(const struct shell_reader *reader)
{
    return reader->depth > 0 && reader->levels[reader->depth - 1].in_condition;
}

static void open_level(struct shell_reader *reader, enum shell_level_kind kind, bool with_condition)
{
    if (reader->depth == SHELL_LEVELS_MAX) {
        adv_shell_stop(reader->shell, ADV_E_TOO_LARGE, "nested deeper than 32");
        return;
    }
    reader->levels[reader->depth++] =
        (struct shell_level){.kind = kind, .runs = SHELL_TRUE, .in_condition = with_condition};
}

static void close_level(struct shell_reader *reader, enum shell_level_kind kind)
{
    if (reader->depth > 0 && reader->levels[reader->depth - 1].kind == kind) reader->depth--;
}

static enum shell_truth never_both(enum shell_truth taken, enum shell_truth now)
{
    if (taken == SHELL_TRUE || now == SHELL_FALSE) return SHELL_FALSE;
    return taken == SHELL_MAYBE ? SHELL_MAYBE : now;
}

static void take_branch(struct shell_level *level, enum shell_truth condition)
{
    level->in_condition = false;
    level->runs = never_both(level->taken, condition);
    if (condition == SHELL_TRUE || (condition == SHELL_MAYBE && level->taken == SHELL_FALSE))
        level->taken = condition;
}

/* for NAME in words; do: one word is its value, several are known to a run only. */
static void begin_loop(struct shell_reader *reader)
{
    const char *const *words = reader->words;
    const bool over_words = strcmp(words[0], "for") == 0 && reader->words_count > 1;
    if (over_words && reader->words_count == 4)
        adv_shell_set(reader->shell, words[1], words[3]);
    else if (over_words)
        set(reader->shell, words[1], NULL);
    open_level(reader, LEVEL_LOOP, false);
}

/* One of "a | b)" of a case; `more`: another follows. */
static void take_pattern(struct shell_level *level, const char *pattern, bool more)
{
    enum shell_truth fits = fnmatch(pattern, level->subject, 0) == 0 ? SHELL_TRUE : SHELL_FALSE;
    if (strpbrk(level->subject, "\x01\x03")) fits = SHELL_MAYBE; /* what the caller says decides */
    fits = never_both(level->taken, fits);
    if (fits != SHELL_FALSE) {
        level->taken = fits;
        level->runs = fits;
    }
    if (!more) level->wants_pattern = false;
}

static void begin_case(struct shell_reader *reader)
{
    open_level(reader, LEVEL_CASE, false);
    if (reader->depth == 0) return;
    struct shell_level *level = &reader->levels[reader->depth - 1];
    level->subject = reader->words_count > 1 ? reader->words[1] : "";
    level->wants_pattern = true;
    level->runs = SHELL_FALSE;
    if (reader->words_count > 3) take_pattern(level, reader->words[3], false); /* on the line of its "in" */
}

/* The first word, if it is one of the shell's grammar: true, and it is taken off. */
static bool take_keyword(struct shell_reader *reader)
{
    const char *word = reader->words[0];
    struct shell_level *level = reader->depth > 0 ? &reader->levels[reader->depth - 1] : NULL;
    const bool conditional = level && level->kind == LEVEL_IF;
    if (strcmp(word, "if") == 0) {
        open_level(reader, LEVEL_IF, true);
    } else if (strcmp(word, "then") == 0 && conditional) {
        take_branch(level, reader->status);
    } else if (strcmp(word, "elif") == 0 && conditional) {
        level->in_condition = true;
    } else if (strcmp(word, "else") == 0 && conditional) {
        take_branch(level, SHELL_TRUE);
    } else if (strcmp(word, "fi") == 0) {
        close_level(reader, LEVEL_IF);
    } else if (strcmp(word, "for") == 0 || strcmp(word, "while") == 0 || strcmp(word, "until") == 0 ||
               strcmp(word, "select") == 0) {
        begin_loop(reader);
        reader->words_count = 1;
    } else if (strcmp(word, "done") == 0) {
        close_level(reader, LEVEL_LOOP);
    } else if (strcmp(word, "case") == 0) {
        begin_case(reader);
        reader->words_count = 1;
    } else if (strcmp(word, "function") == 0) {
        reader->names_function = true;
        reader->words_count = 1;
    } else if (strcmp(word, "{") == 0) {
        open_level(reader, reader->names_function ? LEVEL_FUNCTION : LEVEL_GROUP, false);
        reader->names_function = false;
    } else if (strcmp(word, "}") == 0) {
        if (level && level->kind == LEVEL_FUNCTION)
            reader->depth--;
        else
            close_level(reader, LEVEL_GROUP);
    } else if (strcmp(word, "do") != 0 && strcmp(word, "time") != 0) {
        return false;
    }
    for (int i = 1; i < reader->words_count; i++) reader->words[i - 1] = reader->words[i];
    reader->words_count--;
    if (reader->assignments_count > reader->words_count) reader->assignments_count = reader->words_count;
    return true;
}

static void assign(struct adv_shell *shell, const char *word)
{
    const size_t length = adv_shell_assignment(word);
    const bool adds = word[length] == '+';
    const char *name = adv_shell_keep(shell, word, length);
    const char *value = word + length + 1 + adds, *old = adds ? value_of(shell, name) : NULL;
    if (!old && *value == MARK_ELEMENT) value++;
    if (old) {
        struct adv_text both = adv_text_empty(ADV_LIMIT_SHELL_WORD);
        adv_text_append(&both, old);
        adv_text_append(&both, value);
        if (both.overflow) adv_shell_stop(shell, ADV_E_TOO_LARGE, "a value is longer than 128 KiB");
        value = adv_shell_keep(shell, both.data, both.length_bytes);
        adv_text_free(&both);
    }
    adv_shell_set(shell, name, value);
}

static bool is(const struct adv_shell_command *command, const char *name)
{
    return strcmp(command->words[0], name) == 0;
}

/* read [-r] [-d ''] NAME: the here-document, or its first line. */
static void read_variable(struct adv_shell *shell, const struct adv_shell_command *command)
{
    bool whole = false;
    const char *name = NULL;
    for (int i = 1; i < command->words_count; i++) {
        whole |= strcmp(command->words[i], "-d") == 0;
        if (command->words[i][0] != '-' && command->words[i][0]) name = command->words[i];
    }
    if (!name || !command->here_text) return;
    const size_t length = whole ? strlen(command->here_text) : strcspn(command->here_text, "\n");
    adv_shell_set(shell, name, adv_shell_keep(shell, command->here_text, length));
}

/* Runs a command that changes the reader itself; true when there is nothing else to do with the command. */
static bool take_builtin(struct shell_reader *reader, const struct adv_shell_command *command)
{
    struct adv_shell *shell = reader->shell;
    const bool declares = is(command, "export") || is(command, "declare") || is(command, "local") ||
                          is(command, "readonly") || is(command, "typeset");
    if (declares || is(command, "unset")) {
        for (int i = 1; i < command->words_count; i++) {
            if (declares && adv_shell_assignment(command->words[i])) assign(shell, command->words[i]);
            if (!declares) set(shell, command->words[i], NULL);
        }
        return true;
    }
    if (is(command, "read")) {
        read_variable(shell, command);
        return true;
    }
    if (is(command, "exit") || is(command, "return")) {
        /* An exit with a status is a way out that whoever runs the recipe as meant does not take. */
        bool goes_on =
            command->may_not_run || (command->words_count > 1 && strcmp(command->words[1], "0") != 0);
        for (int i = 0; i < reader->depth; i++) goes_on |= reader->levels[i].kind == LEVEL_FUNCTION;
        reader->stops = !goes_on;
        return true;
    }
    return is(command, ":") || is(command, "set") || is(command, "cd") || is(command, "shopt") ||
           is(command, "break") || is(command, "continue") || is(command, "shift") || is(command, "trap");
}

/* The words of a test, and what it says. */
static bool take_test(struct shell_reader *reader, const struct adv_shell_command *command)
{
    const char *last = command->words[command->words_count - 1];
    const bool closes = strcmp(last, "]]") == 0;
    if (reader->open_test) { /* [[ a && b ]] came as two commands */
        reader->status = SHELL_MAYBE;
        reader->open_test = !closes;
        return true;
    }
    bool negated = command->words_count > 1 && is(command, "!");
    const char *const *words = command->words + negated;
    const int count = command->words_count - negated;
    if (strcmp(words[0], "[") != 0 && strcmp(words[0], "[[") != 0 && strcmp(words[0], "test") != 0)
        return false;
    reader->open_test = strcmp(words[0], "[[") == 0 && !closes;
    const enum shell_truth says = reader->open_test ? SHELL_MAYBE : adv_shell_test(words + 1, count - 1);
    reader->status = !negated || says == SHELL_MAYBE ? says : says == SHELL_TRUE ? SHELL_FALSE : SHELL_TRUE;
    return true;
}

/* Leading NAME=value: for good when nothing follows, else for this command. */
static void execute_words(struct shell_reader *reader)
{
    struct adv_shell *shell = reader->shell;
    const int assignments = reader->assignments_count > 0 ? reader->assignments_count : 0;
    const bool alone = reader->words_count == assignments;
    const int variables = shell->variables_count;
    struct shell_variable *before = NULL;
    if (!alone && assignments) {
        before = adv_arena_array(shell->arena, (size_t)variables + 1, sizeof *before);
        if (!before) {
            adv_shell_stop(shell, ADV_E_MEMORY, "out of memory");
            return;
        }
        memcpy(before, shell->variables, (size_t)variables * sizeof *before);
    }
    for (int i = 0; i < assignments; i++) assign(shell, reader->words[i]);
    if (!reader->open_test) reader->status = SHELL_TRUE;
    if (alone) return;
    const struct adv_shell_command command = {reader->words + assignments, reader->words_count - assignments,
                                              reader->here_text, shell->line, shell->may_not_run};
    if (!take_test(reader, &command) && !take_builtin(reader, &command)) {
        reader->status = in_condition(reader) ? SHELL_MAYBE : SHELL_TRUE;
        if (shell->capture && !adv_shell_output(shell, &command, shell->capture)) {
            struct adv_text name = adv_text_empty(ADV_LIMIT_NAME);
            adv_text_format(&name, "$(%.40s …)", command.words[0]);
            if (name.data) adv_shell_mark(shell->capture, name.data, name.length_bytes);
            adv_text_free(&name);
        }
        if (shell->visit) shell->visit(shell->context, shell, &command);
    }
    if (!before) return;
    memcpy(shell->variables, before, (size_t)variables * sizeof *before);
    shell->variables_count = variables;
}

static void execute(struct shell_reader *reader)
{
    struct adv_shell *shell = reader->shell;
    const enum shell_truth here = runs(reader);
    enum shell_truth then = here;
    if (reader->before == END_AND)
        then = never_both(reader->status == SHELL_FALSE ? SHELL_TRUE : SHELL_FALSE, here);
    if (reader->before == END_OR)
        then = never_both(reader->status == SHELL_TRUE ? SHELL_TRUE : SHELL_FALSE, here);
    const bool chained = reader->before == END_AND || reader->before == END_OR;
    if (chained && then == SHELL_TRUE && reader->status == SHELL_MAYBE && !reader->open_test)
        then = SHELL_MAYBE;
    if (then == SHELL_FALSE) return;
    const bool outer = shell->may_not_run;
    shell->may_not_run = outer || then == SHELL_MAYBE;
    execute_words(reader);
    shell->may_not_run = outer;
}

/* Takes over the command that adv_shell_next_command has read. */
static void take_command(struct shell_reader *reader, enum shell_operator ended)
{
    struct shell_level *level = reader->depth > 0 ? &reader->levels[reader->depth - 1] : NULL;
    const bool defines =
        ended == END_OPEN && reader->words_count == 1 && reader->at < reader->end && *reader->at == ')';
    if (level && level->kind == LEVEL_CASE && level->wants_pattern && reader->words_count > 0 &&
        strcmp(reader->words[0], "esac") != 0) {
        take_pattern(level, reader->words[0], ended == END_PIPE);
        return;
    }
    while (reader->words_count > 0 && reader->assignments_count == 0 && take_keyword(reader)) continue;
    while (reader->assignments_count < reader->words_count &&
           adv_shell_assignment(reader->words[reader->assignments_count]))
        reader->assignments_count++;
    if (reader->words_count > 0 && strcmp(reader->words[0], "esac") == 0) {
        close_level(reader, LEVEL_CASE);
    } else if (defines) {
        reader->names_function = true;
    } else if (reader->words_count > 0) {
        execute(reader);
    }
    level = reader->depth > 0 ? &reader->levels[reader->depth - 1] : NULL;
    if (ended == END_CASE && level && level->kind == LEVEL_CASE) {
        level->wants_pattern = true;
        level->runs = SHELL_FALSE;
    }
}

void adv_shell_run(struct adv_shell *shell, const char *text, size_t bytes)
{
    struct shell_reader *reader = adv_arena_alloc(shell->arena, sizeof *reader);
    if (!reader || shell->nesting >= ADV_LIMIT_SHELL_NESTING) {
        if (!reader) adv_shell_stop(shell, ADV_E_MEMORY, "out of memory");
        return;
    }
    *reader = (struct shell_reader){.shell = shell,
                                    .at = text,
                                    .end = text + bytes,
                                    .counted = text,
                                    .line = 1,
                                    .word = adv_text_empty(ADV_LIMIT_SHELL_WORD)};
    const struct shell_reader *outer = shell->reader;
    shell->reader = reader;
    shell->nesting++;
    while (reader->at < reader->end && shell->code == ADV_OK && !reader->stops) {
        reader->words_count = reader->assignments_count = 0;
        reader->is_declaring = false;
        reader->here_text = NULL;
        while (reader->at < reader->end && isspace((unsigned char)*reader->at)) reader->at++;
        for (; reader->counted < reader->at; reader->counted++) reader->line += *reader->counted == '\n';
        if (shell->nesting == 1) shell->line = reader->line;
        const enum shell_operator ended = adv_shell_next_command(reader);
        if (++shell->commands_count > ADV_LIMIT_SHELL_COMMANDS)
            adv_shell_stop(shell, ADV_E_TOO_LARGE, "more than 20000 commands");
        if (shell->code == ADV_OK) take_command(reader, ended);
        reader->before = ended;
    }
    shell->nesting--;
    shell->reader = outer;
    adv_text_free(&reader->word);
}

void adv_shell_nested(struct adv_shell *shell, const char *text)
{
    adv_shell_run(shell, text, strlen(text));
}

adv_code adv_shell_read(const char *text, size_t text_bytes, const char *const *names,
                        const char *const *values, int variables_count, adv_shell_visit visit, void *context,
                        struct adv_arena *arena, adv_err *err)
{
    struct adv_shell *shell = adv_arena_alloc(arena, sizeof *shell);
    char *copy = adv_arena_alloc(arena, text_bytes + 1);
    if (!shell || !copy) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "out of memory");
    for (size_t i = 0; i < text_bytes; i++) { /* no byte that is a mark here */
        const unsigned char byte = (unsigned char)text[i];
        copy[i] = byte < ' ' && !isspace(byte) ? ' ' : text[i];
    }
    *shell = (struct adv_shell){.arena = arena, .err = err, .visit = visit, .context = context, .line = 1};
    for (int i = 0; i < variables_count; i++) set(shell, names[i], values[i]);
    adv_shell_run(shell, copy, text_bytes);
    return shell->code;
}

/* shell_internal.h: what the parts of the shell reader share: shell_words.c (text to words), shell_expand.c
 * ($), shell_arithmetic.c ($((…))), shell_test.c ([ … ]), shell_output.c (printf, echo, cat) and shell.c
 * (commands). */
#pragma once

#include "engine/base/text.h"
#include "engine/recipe/shell.h"

/* Marks inside words. A text that is read has none of these bytes. */
enum { MARK_UNKNOWN = 1, MARK_UNKNOWN_END = 2, MARK_UNCERTAIN = 3, MARK_ELEMENT = 0x1f };

enum shell_truth { SHELL_FALSE, SHELL_TRUE, SHELL_MAYBE };
enum { SHELL_VARIABLES_MAX = 1024, SHELL_LEVELS_MAX = 32, SHELL_EXPANSIONS_MAX = 24 };

struct shell_reader;

struct shell_variable {
    const char *name, *value; /* NULL: unset */
};

struct adv_shell {
    struct adv_arena *arena;
    adv_err *err;
    adv_code code; /* why reading stopped */
    adv_shell_visit visit;
    void *context;
    struct shell_variable variables[SHELL_VARIABLES_MAX];
    int variables_count, commands_count, nesting, line;
    int expansions;                    /* ${a:-${b:-…}} and arrays that are open */
    const struct shell_reader *reader; /* the text that is being read */
    size_t bytes;
    struct adv_text *capture; /* of the $(…) that is being read */
    bool may_not_run;
};

/* if, case, loop, function or group that is open. */
struct shell_level {
    enum shell_level_kind { LEVEL_IF, LEVEL_CASE, LEVEL_LOOP, LEVEL_FUNCTION, LEVEL_GROUP } kind;
    enum shell_truth runs;  /* the branch that is being read */
    enum shell_truth taken; /* whether an earlier branch was */
    bool in_condition, wants_pattern;
    const char *subject; /* of case */
};

enum shell_operator { END_TEXT, END_LINE, END_AND, END_OR, END_PIPE, END_OPEN, END_CLOSE, END_CASE };

/* A text that is being read. */
struct shell_reader {
    struct adv_shell *shell;
    const char *at, *end;
    const char *counted; /* lines up to here are counted */
    int line;
    const char *here_at; /* where the next here-document of this line starts; NULL: after this line */
    const char *words[ADV_LIMIT_SHELL_WORDS];
    int words_count, assignments_count;
    struct adv_text word;
    bool has_word, is_declaring;
    const char *here_text;
    struct shell_level levels[SHELL_LEVELS_MAX];
    int depth;
    enum shell_truth status;
    enum shell_operator before; /* what ended the last command */
    bool open_test, names_function, stops;
};

/* shell_words.c */
enum shell_operator adv_shell_next_command(struct shell_reader *reader);
void adv_shell_stop(struct adv_shell *shell, adv_code code, const char *what);
/* Whether one expansion more may be inside those that are open; stops the reading otherwise. */
bool adv_shell_enter(struct adv_shell *shell);
const char *adv_shell_keep(struct adv_shell *shell, const char *text, size_t bytes);
/* Length of "NAME" when the text starts with "NAME=" or "NAME+="; 0 otherwise. */
size_t adv_shell_assignment(const char *word);
size_t adv_shell_name(const char *at, const char *end);
/* A text without word splitting: quotes resolved, $ expanded. */
const char *adv_shell_expand(struct adv_shell *shell, const char *text, size_t bytes);

/* shell_expand.c: what stands at a '$' or '`', appended to `out`; returns where the text goes on. */
const char *adv_shell_dollar(struct adv_shell *shell, const char *at, const char *end, struct adv_text *out);
/* Of a backquote. */
const char *adv_shell_backquote(struct adv_shell *shell, const char *at, const char *end,
                                struct adv_text *out);
/* Past the bracket that closes the one at `at`. */
const char *adv_shell_closing(const char *at, const char *end);
void adv_shell_mark(struct adv_text *out, const char *name, size_t bytes);
bool adv_shell_is_empty(const char *value); /* nothing but variables that nobody sets */
bool adv_shell_computed(const char *value); /* holds what a command would have written */

/* shell_arithmetic.c: false when a part is not known or not whole. */
bool adv_shell_arithmetic(const char *text, long *value);

/* shell_test.c: the words of [, [[ or test, the first one aside. */
enum shell_truth adv_shell_test(const char *const *words, int words_count);

/* shell_output.c: what echo, printf or cat writes; false: another command. */
bool adv_shell_output(struct adv_shell *shell, const struct adv_shell_command *command, struct adv_text *out);

/* shell.c: reads `text` to its end. */
void adv_shell_run(struct adv_shell *shell, const char *text, size_t bytes);

/* shell.h: the commands of a shell script as they stand once its variables are put in.
 *
 * Reads the shell that recipes are written in: quotes, variables with defaults, arrays, here-documents, if,
 * case,
 * && and ||, loops, functions (read where they are defined), printf, echo and cat in $(…). Nothing is run, no
 * file and no variable of the environment is read: the script is taken as called without arguments. What only
 * a run could say stays in the words as a mark (adv_shell_unknown), never as an empty string. Not thread
 * safe; all memory is in the arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/arena.h"
#include "engine/base/err.h"

#define ADV_LIMIT_SHELL_WORD     (128 * 1024)       /* one word; a whole script in quotes has 20 KiB */
#define ADV_LIMIT_SHELL_WORDS    2048               /* words of one command; the longest known has 90 */
#define ADV_LIMIT_SHELL_COMMANDS 20000              /* commands of a script with its nested ones */
#define ADV_LIMIT_SHELL_BYTES    (16 * 1024 * 1024) /* text of all words; stops what doubles itself */
#define ADV_LIMIT_SHELL_NESTING  6                  /* a command in quotes in a command … */

struct adv_shell; /* opaque: variables and the place in the text */

struct adv_shell_command {
    const char *const *words; /* expanded, without redirections and leading assignments */
    int words_count;
    const char *here_text; /* text of its here-document or here-string, NULL without */
    int line;              /* of the script, from 1; of the outermost one for nested commands */
    bool may_not_run;      /* under a condition that only a run could tell */
};

/* Called for every command that is not the shell's own. It may call the functions below. */
typedef void (*adv_shell_visit)(void *context, struct adv_shell *shell,
                                const struct adv_shell_command *command);

/* Reads a script from its first to its last command. ADV_E_TOO_LARGE: beyond a limit above; ADV_E_MEMORY.
 * Whatever else the text holds is no error: it is read as well as it can be. */
ADV_MUST_CHECK adv_code adv_shell_read(const char *text, size_t text_bytes, const char *const *names,
                                       const char *const *values, int variables_count, adv_shell_visit visit,
                                       void *context, struct adv_arena *arena, adv_err *err);

/* Reads a word as a script of its own, with the variables as they are: "bash -c '…'". */
void adv_shell_nested(struct adv_shell *shell, const char *text);

/* A variable's value; NULL when it is not set. */
const char *adv_shell_get(const struct adv_shell *shell, const char *name);
void adv_shell_set(struct adv_shell *shell, const char *name, const char *value);

/* Calls `each` for every variable that is set. */
void adv_shell_each(const struct adv_shell *shell,
                    void (*each)(void *context, const char *name, const char *value), void *context);

/* The part of `text` that only a run could tell, in words ("$BATCH"), written to `name`; false when all is
 * known. */
bool adv_shell_unknown(const char *text, char name[ADV_LIMIT_NAME]);

/* Whether the value depends on a condition that only a run could tell. */
bool adv_shell_uncertain(const char *text);

/* `text` as a person would write it: marks of what is unknown as ${NAME}, other marks left out. */
const char *adv_shell_plain(struct adv_arena *arena, const char *text);

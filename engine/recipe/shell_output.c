/* shell_output.c: what echo, printf and cat write, for $(…). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/recipe/shell_internal.h"

/* As one word of a shell. */
static void quote(const char *text, struct adv_text *out)
{
    adv_text_append(out, "'");
    for (; *text; text++) {
        if (*text == '\'')
            adv_text_append(out, "'\\''");
        else
            adv_text_append_bytes(out, text, 1);
    }
    adv_text_append(out, "'");
}

/* One conversion of printf, from the '%' on; returns what follows. */
static const char *convert(const char *at, const char *argument, struct adv_text *out)
{
    const char *digits = at + 1 + strspn(at + 1, "-+ #0123456789");
    const bool cuts = *digits == '.';
    const size_t most = cuts ? (size_t)strtoul(digits + 1, NULL, 10) : SIZE_MAX;
    if (cuts) digits += 1 + strspn(digits + 1, "0123456789");
    const size_t length = strlen(argument);
    if (*digits == 'q')
        quote(argument, out);
    else if (*digits == '%')
        adv_text_append(out, "%");
    else if (cuts && length > most && strchr(argument, MARK_UNKNOWN))
        adv_shell_mark(out, "$(printf …)", strlen("$(printf …)"));
    else
        adv_text_append_bytes(out, argument, length < most ? length : most);
    return *digits ? digits + 1 : digits;
}

static void print(const char *const *words, int count, struct adv_text *out)
{
    int next = 1;
    do {
        const int before = next;
        for (const char *at = words[0]; *at;) {
            if (*at == '%') {
                const bool is_percent = at[1] == '%';
                at = convert(at, !is_percent && next < count ? words[next] : "", out);
                next += !is_percent;
            } else if (*at == '\\' && at[1]) {
                const char character = at[1] == 'n' ? '\n' : at[1] == 't' ? '\t' : at[1];
                adv_text_append_bytes(out, &character, 1);
                at += 2;
            } else {
                adv_text_append_bytes(out, at++, 1);
            }
        }
        if (next == before) return;
    } while (next < count);
}

bool adv_shell_output(struct adv_shell *shell, const struct adv_shell_command *command, struct adv_text *out)
{
    (void)shell;
    const char *const *words = command->words;
    int count = command->words_count, first = 1;
    if (strcmp(words[0], "cat") == 0 && command->here_text) {
        adv_text_append(out, command->here_text);
        return true;
    }
    if (strcmp(words[0], "printf") == 0 && count > 1) {
        print(words + 1, count - 1, out);
        return true;
    }
    if (strcmp(words[0], "echo") != 0) return false;
    while (first < count && words[first][0] == '-' && strspn(words[first] + 1, "neE") > 0) first++;
    for (int i = first; i < count; i++) {
        if (i > first) adv_text_append(out, " ");
        adv_text_append(out, words[i]);
    }
    return true;
}

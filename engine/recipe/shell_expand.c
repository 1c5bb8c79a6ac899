/* shell_expand.c: variables, their defaults and $(…). */
#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "engine/recipe/shell_internal.h"

enum { PATTERN_BYTES_MAX = 4096 }; /* of a value that a pattern is matched with, end by end */

void adv_shell_mark(struct adv_text *out, const char *name, size_t bytes)
{
    const char open = MARK_UNKNOWN, close = MARK_UNKNOWN_END;
    adv_text_append_bytes(out, &open, 1);
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)name[i] >= ' ') adv_text_append_bytes(out, name + i, 1);
    adv_text_append_bytes(out, &close, 1);
}

/* The next part of a value that is not known; *computed: written by a command, else a variable nobody sets.
 */
static const char *next_unknown(const char *value, bool *computed)
{
    const char *at = strchr(value, MARK_UNKNOWN);
    if (at) *computed = at[1] == '$';
    return at;
}

bool adv_shell_is_empty(const char *value)
{
    bool computed = false;
    while (*value == MARK_UNKNOWN || *value == MARK_UNCERTAIN) {
        if (*value == MARK_UNCERTAIN) {
            value++;
            continue;
        }
        (void)next_unknown(value, &computed);
        const char *close = strchr(value, MARK_UNKNOWN_END);
        if (computed || !close) return false;
        value = close + 1;
    }
    return *value == '\0';
}

bool adv_shell_computed(const char *value)
{
    bool computed = false;
    for (const char *at = next_unknown(value, &computed); at; at = next_unknown(at + 1, &computed))
        if (computed) return true;
    return false;
}

const char *adv_shell_closing(const char *at, const char *end)
{
    const char open = *at, close = open == '(' ? ')' : '}';
    int depth = 0;
    for (; at < end; at++) {
        if (*at == '\\') {
            at++;
        } else if (*at == '\'' || *at == '"') {
            const char quote = *at;
            for (at++; at < end && *at != quote; at++)
                if (*at == '\\' && quote == '"') at++;
        } else if (*at == open) {
            depth++;
        } else if (*at == close && --depth == 0) {
            return at + 1;
        }
    }
    return end;
}

/* Appends the output of the commands of $(…). */
static void substitute(struct adv_shell *shell, const char *text, size_t bytes, struct adv_text *out)
{
    struct adv_text written = adv_text_empty(ADV_LIMIT_SHELL_WORD), *outer = shell->capture;
    const adv_shell_visit visit = shell->visit;
    if (shell->nesting >= ADV_LIMIT_SHELL_NESTING) {
        adv_shell_mark(out, "$(…)", strlen("$(…)"));
        return;
    }
    shell->capture = &written;
    shell->visit = NULL;
    adv_shell_run(shell, text, bytes);
    shell->capture = outer;
    shell->visit = visit;
    while (written.length_bytes && written.data[written.length_bytes - 1] == '\n') written.length_bytes--;
    if (written.overflow || written.length_bytes == 0)
        adv_shell_mark(out, "$(…)", strlen("$(…)"));
    else
        adv_text_append_bytes(out, written.data, written.length_bytes);
    adv_text_free(&written);
}

const char *adv_shell_backquote(struct adv_shell *shell, const char *at, const char *end,
                                struct adv_text *out)
{
    const char *close = memchr(at + 1, '`', (size_t)(end - at - 1));
    substitute(shell, at + 1, (size_t)((close ? close : end) - at - 1), out);
    return close ? close + 1 : end;
}

static void arithmetic(struct adv_shell *shell, const char *text, size_t bytes, struct adv_text *out)
{
    const char *expanded = adv_shell_expand(shell, text, bytes);
    struct adv_text named = adv_text_empty(ADV_LIMIT_SHELL_WORD);
    for (const char *at = expanded; *at;) { /* names need no $ here */
        const size_t length = adv_shell_name(at, at + strlen(at));
        if (length) {
            const char *value = adv_shell_get(shell, adv_shell_keep(shell, at, length));
            adv_text_append(&named, value ? value : "?");
            at += length;
        } else if (isdigit((unsigned char)*at)) {
            const size_t digits = strspn(at, "0123456789");
            adv_text_append_bytes(&named, at, digits);
            at += digits;
        } else {
            adv_text_append_bytes(&named, at++, 1);
        }
    }
    long value = 0;
    if (named.data && !named.overflow && adv_shell_arithmetic(named.data, &value))
        adv_text_format(out, "%ld", value);
    else
        adv_shell_mark(out, "$((…))", strlen("$((…))"));
    adv_text_free(&named);
}

/* "a*" off the front or the end of the value, the shortest or the longest that fits. */
static void trim(const char *value, const char *pattern, bool front, bool longest, struct adv_text *out)
{
    const size_t length = strlen(value);
    char part[PATTERN_BYTES_MAX];
    if (length >= sizeof part || adv_shell_computed(value)) {
        adv_shell_mark(out, "$(…)", strlen("$(…)"));
        return;
    }
    for (size_t i = 0; i <= length; i++) {
        const size_t cut = longest ? length - i : i;
        memcpy(part, front ? value : value + length - cut, cut);
        part[cut] = '\0';
        if (fnmatch(pattern, part, 0) != 0) continue;
        adv_text_append_bytes(out, front ? value + cut : value, length - cut);
        return;
    }
    adv_text_append(out, value);
}

static void replace(const char *value, const char *from, const char *to, bool all, struct adv_text *out)
{
    const size_t length = strlen(from);
    while (length && *value) {
        const char *at = strstr(value, from);
        if (!at) break;
        adv_text_append_bytes(out, value, (size_t)(at - value));
        adv_text_append(out, to);
        value = at + length;
        if (!all) break;
    }
    adv_text_append(out, value);
}

/* ${value/from/to} */
static void substitute_text(struct adv_shell *shell, const char *value, const char *at, const char *end,
                            struct adv_text *out)
{
    const bool all = at < end && *at == '/';
    at += all;
    const char *slash = memchr(at, '/', (size_t)(end - at));
    const char *stop = slash ? slash : end;
    const char *from = adv_shell_expand(shell, at, (size_t)(stop - at));
    const char *to = slash ? adv_shell_expand(shell, slash + 1, (size_t)(end - slash - 1)) : "";
    if (adv_shell_computed(value) || strpbrk(from, "*?["))
        adv_shell_mark(out, "$(…)", strlen("$(…)"));
    else
        replace(value, from, to, all, out);
}

/* ${value:from:length} */
static void cut(struct adv_shell *shell, const char *value, const char *at, const char *end,
                struct adv_text *out)
{
    const char *text = adv_shell_expand(shell, at, (size_t)(end - at));
    char *stop = NULL;
    const long length = (long)strlen(value);
    long from = strtol(text, &stop, 10), count = *stop == ':' ? strtol(stop + 1, &stop, 10) : length;
    if (*stop || adv_shell_computed(value)) {
        adv_shell_mark(out, "$(…)", strlen("$(…)"));
        return;
    }
    if (from < 0) from = from + length < 0 ? 0 : from + length;
    if (from > length) from = length;
    if (count < 0) count = length - from + count < 0 ? 0 : length - from + count;
    if (count > length - from) count = length - from;
    adv_text_append_bytes(out, value + from, (size_t)count);
}

static void change_case(const char *value, char how, bool all, struct adv_text *out)
{
    for (const char *at = value; *at; at++) {
        const int letter = (unsigned char)*at;
        const char changed = (char)(how == '^' ? toupper(letter) : tolower(letter));
        adv_text_append_bytes(out, all || at == value ? &changed : at, 1);
    }
}

/* An array's value with blanks between its elements; one of them for [N]. */
static const char *element_of(struct adv_shell *shell, const char *value, const char *index, size_t bytes)
{
    char *copy = adv_arena_copy(shell->arena, value);
    if (!copy || (bytes == 1 && *index == '@')) return value;
    if (bytes == 1 && *index == '*') {
        for (char *at = copy; *at; at++)
            if (*at == MARK_ELEMENT) *at = ' ';
        return copy;
    }
    long wanted = strtol(index, NULL, 10);
    for (; wanted > 0 && copy; wanted--) {
        copy = strchr(copy, MARK_ELEMENT);
        if (copy) copy++;
    }
    if (copy) copy[strcspn(copy, "\x1f")] = '\0';
    return copy;
}

/* Applies the modifier that follows the name in ${name…}. */
static void modify(struct adv_shell *shell, const char *name, const char *value, const char *at,
                   const char *end, struct adv_text *out)
{
    const bool colon = at + 1 < end && *at == ':' && strchr("-=+?", at[1]);
    const bool is_set =
        value && (!colon || !adv_shell_is_empty(value)) && !(*value && adv_shell_is_empty(value));
    const char *operator= at + colon;
    const size_t rest = (size_t)(end - operator) - 1;
    if (*operator== '-' || * operator== '=') {
        const char *other = is_set ? value : adv_shell_expand(shell, operator+ 1, rest);
        if (*operator== '=' && !is_set) adv_shell_set(shell, name, other);
        adv_text_append(out, other);
    } else if (*operator== '+') {
        if (is_set) adv_text_append(out, adv_shell_expand(shell, operator+ 1, rest));
    } else if (!value || *operator== '?') {
        if (is_set)
            adv_text_append(out, value);
        else
            adv_shell_mark(out, name, strlen(name));
    } else if (*operator== ':') {
        cut(shell, value, at + 1, end, out);
    } else if (*operator== '/') {
        substitute_text(shell, value, at + 1, end, out);
    } else if (*operator== '%' || * operator== '#') {
        const bool longest = rest > 0 && operator[1] == * operator;
        trim(value, adv_shell_expand(shell, operator+ 1 + longest, rest - longest), *operator== '#', longest,
             out);
    } else if (*operator== '^' || * operator== ',') {
        change_case(value, *operator, rest> 0, out);
    } else {
        adv_text_append(out, value);
    }
}

/* ${…}; `at` is behind the brace, `end` before the one that closes it. */
static void braces(struct adv_shell *shell, const char *at, const char *end, struct adv_text *out)
{
    const bool counts = at < end && *at == '#' && at + 1 < end;
    if (counts || (at < end && *at == '!')) at++;
    size_t length = adv_shell_name(at, end);
    if (length == 0 && at < end) length = isdigit((unsigned char)*at) ? strspn(at, "0123456789") : 1;
    if (length > (size_t)(end - at)) length = (size_t)(end - at);
    const char *name = adv_shell_keep(shell, at, length);
    const char *value = adv_shell_get(shell, name);
    const bool indirect = at[-1] == '!';
    at += length;
    if (strcmp(name, "@") == 0 || strcmp(name, "*") == 0) return;
    if (at < end && *at == '[') {
        const char *close = memchr(at, ']', (size_t)(end - at));
        if (close && value) value = element_of(shell, value, at + 1, (size_t)(close - at - 1));
        if (close) at = close + 1;
    }
    if (indirect) value = value ? adv_shell_get(shell, value) : NULL;
    if (counts && value && !adv_shell_computed(value))
        adv_text_format(out, "%zu", strlen(value));
    else if (counts)
        adv_shell_mark(out, "$(…)", strlen("$(…)"));
    else if (at < end)
        modify(shell, name, value, at, end, out);
    else if (value)
        adv_text_append(out, value);
    else
        adv_shell_mark(out, name, strlen(name));
}

/* $1, $@, $?, …: there are no arguments. */
static const char *special(const char *at, struct adv_text *out)
{
    char name[3] = {'$', at[1], '\0'};
    if (isdigit((unsigned char)at[1]))
        adv_shell_mark(out, name + 1, 1);
    else if (at[1] == '#' || at[1] == '?')
        adv_text_append(out, "0");
    else if (at[1] != '@' && at[1] != '*')
        adv_shell_mark(out, name, 2);
    return at + 2;
}

const char *adv_shell_dollar(struct adv_shell *shell, const char *at, const char *end, struct adv_text *out)
{
    const char *next = at + 1;
    const size_t length = adv_shell_name(next, end);
    if (next < end && (*next == '{' || *next == '(')) {
        if (!adv_shell_enter(shell)) return end;
        const char *close = adv_shell_closing(next, end);
        const char *stop = close > next + 1 && strchr(")}", close[-1]) ? close - 1 : close;
        const bool counts = *next == '(' && stop - next > 2 && next[1] == '(' && stop[-1] == ')';
        if (*next == '{')
            braces(shell, next + 1, stop, out);
        else if (counts)
            arithmetic(shell, next + 2, (size_t)(stop - next - 3), out);
        else
            substitute(shell, next + 1, (size_t)(stop - next - 1), out);
        shell->expansions--;
        return close;
    }
    if (length > 0) {
        const char *name = adv_shell_keep(shell, next, length);
        const char *value = adv_shell_get(shell, name);
        if (value)
            adv_text_append_bytes(out, value, strcspn(value, "\x1f"));
        else
            adv_shell_mark(out, name, length);
        return next + length;
    }
    if (next < end && (isdigit((unsigned char)*next) || strchr("@*#?$!-", *next))) return special(at, out);
    adv_text_append(out, "$");
    return next;
}

/* shell_test.c: [ -z "$X" ], [[ $A == b* ]], test 2 -gt 1. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "engine/recipe/shell_internal.h"

static enum shell_truth truth(bool value)
{
    return value ? SHELL_TRUE : SHELL_FALSE;
}

static enum shell_truth compare_numbers(const char *left, const char *operator, const char * right)
{
    static const struct {
        const char *name;
        bool less, equal, greater;
    } rows[] = {{"-eq", false, true, false}, {"-ne", true, false, true},  {"-lt", true, false, false},
                {"-le", true, true, false},  {"-gt", false, false, true}, {"-ge", false, true, true}};
    char *left_end = NULL, *right_end = NULL;
    const long a = strtol(left, &left_end, 10), b = strtol(right, &right_end, 10);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, operator) != 0) continue;
        if (left_end == left || *left_end || right_end == right || *right_end) return SHELL_MAYBE;
        return truth(a < b ? rows[i].less : a > b ? rows[i].greater : rows[i].equal);
    }
    return SHELL_MAYBE;
}

/* A variable that nobody sets is empty: the script is taken as it stands. */
static const char *operand(const char *word)
{
    return adv_shell_is_empty(word) ? "" : word;
}

static enum shell_truth compare(const char *left, const char *operator, const char * right)
{
    left = operand(left);
    right = operand(right);
    if (strpbrk(left, "\x01\x03") || strpbrk(right, "\x01\x03")) return SHELL_MAYBE;
    if (strcmp(operator, "=") == 0 || strcmp(operator, "==") == 0) return truth(fnmatch(right, left, 0) == 0);
    if (strcmp(operator, "!=") == 0) return truth(fnmatch(right, left, 0) != 0);
    return compare_numbers(left, operator, right);
}

static enum shell_truth judge(const char *const *words, int count)
{
    if (count > 0 && strcmp(words[0], "!") == 0) {
        const enum shell_truth other = judge(words + 1, count - 1);
        return other == SHELL_MAYBE ? SHELL_MAYBE : truth(other == SHELL_FALSE);
    }
    if (count == 0) return SHELL_FALSE;
    if (count == 1) return adv_shell_computed(words[0]) ? SHELL_MAYBE : truth(*operand(words[0]) != '\0');
    if (count == 2 && (strcmp(words[0], "-z") == 0 || strcmp(words[0], "-n") == 0)) {
        const bool empty = *operand(words[1]) == '\0';
        if (!empty && strchr(words[1], MARK_UNCERTAIN)) return SHELL_MAYBE;
        return truth(empty == (words[0][1] == 'z'));
    }
    return count == 3 ? compare(words[0], words[1], words[2]) : SHELL_MAYBE;
}

enum shell_truth adv_shell_test(const char *const *words, int words_count)
{
    const bool closed = words_count > 0 && (strcmp(words[words_count - 1], "]") == 0 ||
                                            strcmp(words[words_count - 1], "]]") == 0);
    return judge(words, words_count - closed);
}

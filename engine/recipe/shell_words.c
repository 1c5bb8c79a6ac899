/* shell_words.c: the text of a script as the words of its next command. */
#include <ctype.h>
#include <string.h>

#include "engine/recipe/shell_internal.h"

void adv_shell_stop(struct adv_shell *shell, adv_code code, const char *what)
{
    if (shell->code != ADV_OK) return;
    shell->code = adv_err_add(shell->err, code, "", "give the command that trains alone", "line %d: %s",
                              shell->line, what);
}

bool adv_shell_enter(struct adv_shell *shell)
{
    if (shell->expansions == SHELL_EXPANSIONS_MAX)
        adv_shell_stop(shell, ADV_E_TOO_LARGE, "expansions are nested deeper than 24");
    else
        shell->expansions++;
    return shell->code == ADV_OK;
}

const char *adv_shell_keep(struct adv_shell *shell, const char *text, size_t bytes)
{
    char *copy = NULL;
    shell->bytes += bytes + 1;
    if (shell->bytes > ADV_LIMIT_SHELL_BYTES)
        adv_shell_stop(shell, ADV_E_TOO_LARGE, "the variables of the script grow beyond any recipe");
    else if (!(copy = adv_arena_alloc(shell->arena, bytes + 1)))
        adv_shell_stop(shell, ADV_E_MEMORY, "out of memory");
    if (!copy) return "";
    if (bytes) memcpy(copy, text, bytes);
    return copy;
}

size_t adv_shell_name(const char *at, const char *end)
{
    const char *from = at;
    if (at < end && isdigit((unsigned char)*at)) return 0;
    while (at < end && (isalnum((unsigned char)*at) || *at == '_')) at++;
    return (size_t)(at - from);
}

size_t adv_shell_assignment(const char *word)
{
    const size_t length = adv_shell_name(word, word + strlen(word));
    return length && (word[length] == '=' || (word[length] == '+' && word[length + 1] == '=')) ? length : 0;
}

static void append(struct adv_text *out, const char *from, const char *to)
{
    if (to > from) adv_text_append_bytes(out, from, (size_t)(to - from));
}

/* '…' at `at`; returns what follows. */
static const char *single_quoted(const char *at, const char *end, struct adv_text *out)
{
    const char *close = memchr(at + 1, '\'', (size_t)(end - at - 1));
    append(out, at + 1, close ? close : end);
    return close ? close + 1 : end;
}

/* A backslash in double quotes or in a here-document. */
static const char *escaped(const char *at, const char *end, bool in_quotes, struct adv_text *out)
{
    const char *next = at + 1;
    if (next < end && *next == '\r' && next + 1 < end && next[1] == '\n') next++;
    if (next < end && *next == '\n') return next + 1;
    const bool special = next < end && (strchr("$`\\", *next) || (in_quotes && *next == '"'));
    append(out, special ? next : at, next < end ? next + 1 : next);
    return next < end ? next + 1 : end;
}

/* One character, or what it starts, of a text in double quotes. */
static const char *quoted_piece(struct adv_shell *shell, const char *at, const char *end, bool in_quotes,
                                struct adv_text *out)
{
    if (*at == '\\') return escaped(at, end, in_quotes, out);
    if (*at == '$') return adv_shell_dollar(shell, at, end, out);
    if (*at == '`') return adv_shell_backquote(shell, at, end, out);
    append(out, at, at + 1);
    return at + 1;
}

static const char *double_quoted(struct adv_shell *shell, const char *at, const char *end,
                                 struct adv_text *out)
{
    at++;
    while (at < end && *at != '"') at = quoted_piece(shell, at, end, true, out);
    return at < end ? at + 1 : end;
}

/* $'…': of its escapes those that stand for white space and quotes. */
static const char *ansi_quoted(const char *at, const char *end, struct adv_text *out)
{
    for (at += 2; at < end && *at != '\''; at++) {
        char character = *at;
        if (*at == '\\' && at + 1 < end) {
            at++;
            character = *at == 'n' ? '\n' : *at == 't' ? '\t' : *at;
        }
        adv_text_append_bytes(out, &character, 1);
    }
    return at < end ? at + 1 : end;
}

static const char *take(struct adv_shell *shell, struct adv_text *text)
{
    if (text->overflow) adv_shell_stop(shell, ADV_E_TOO_LARGE, "a word is longer than 128 KiB");
    const char *kept = adv_shell_keep(shell, text->data, text->length_bytes);
    adv_text_free(text);
    return kept;
}

const char *adv_shell_expand(struct adv_shell *shell, const char *text, size_t bytes)
{
    const char *at = text, *end = text + bytes;
    struct adv_text out = adv_text_empty(ADV_LIMIT_SHELL_WORD);
    while (at < end && shell->code == ADV_OK) {
        if (*at == '\'')
            at = single_quoted(at, end, &out);
        else if (*at == '"')
            at = double_quoted(shell, at, end, &out);
        else if (*at == '\\' && at + 1 < end && at[1] != '\n') {
            append(&out, at + 1, at + 2);
            at += 2;
        } else
            at = quoted_piece(shell, at, end, true, &out);
    }
    return take(shell, &out);
}

/* The same of a here-document: quotes are letters. */
static const char *expand_here(struct adv_shell *shell, const char *text, size_t bytes)
{
    const char *at = text, *end = text + bytes;
    struct adv_text out = adv_text_empty(ADV_LIMIT_SHELL_WORD);
    while (at < end && shell->code == ADV_OK) at = quoted_piece(shell, at, end, false, &out);
    return take(shell, &out);
}

static void finish_word(struct shell_reader *reader)
{
    static const char *const declaring[] = {"export", "declare", "local", "readonly", "typeset"};
    struct adv_shell *shell = reader->shell;
    if (!reader->has_word) return;
    if (reader->word.overflow) adv_shell_stop(shell, ADV_E_TOO_LARGE, "a word is longer than 128 KiB");
    const char *word = adv_shell_keep(shell, reader->word.data, reader->word.length_bytes);
    reader->word.length_bytes = 0;
    reader->has_word = false;
    if (reader->words_count == ADV_LIMIT_SHELL_WORDS) {
        adv_shell_stop(shell, ADV_E_TOO_LARGE, "a command has more than 2048 words");
        return;
    }
    if (reader->words_count == reader->assignments_count) {
        if (adv_shell_assignment(word)) reader->assignments_count++;
        for (size_t i = 0; i < sizeof declaring / sizeof *declaring; i++)
            reader->is_declaring |= strcmp(word, declaring[i]) == 0;
    }
    reader->words[reader->words_count++] = word;
}

/* Whether the word that is being read is an assignment, whose value is not split. */
static bool is_assigning(const struct shell_reader *reader)
{
    static const char *const openings[] = {"then", "else", "do", "{", "!"};
    const char *last = reader->words_count > 0 ? reader->words[reader->words_count - 1] : "";
    bool first = reader->is_declaring || reader->words_count == reader->assignments_count;
    for (size_t i = 0; i < sizeof openings / sizeof *openings; i++) first |= strcmp(last, openings[i]) == 0;
    return first && reader->word.length_bytes > 0 && adv_shell_assignment(reader->word.data);
}

/* An expansion into the word: split at white space when it stands without quotes, at its elements unless it
 * is assigned. */
static void add_expansion(struct shell_reader *reader, const struct adv_text *value, bool quoted)
{
    const bool assigning = is_assigning(reader), splits = !quoted && !assigning;
    for (size_t i = 0; i < value->length_bytes; i++) {
        const char *at = value->data + i;
        if (*at == MARK_UNKNOWN) {
            const char *close = memchr(at, MARK_UNKNOWN_END, value->length_bytes - i);
            const size_t length = close ? (size_t)(close - at) + 1 : value->length_bytes - i;
            adv_text_append_bytes(&reader->word, at, length);
            reader->has_word = true;
            i += length - 1;
        } else if ((*at == MARK_ELEMENT && !assigning) || (splits && isspace((unsigned char)*at))) {
            finish_word(reader);
        } else {
            adv_text_append_bytes(&reader->word, *at == MARK_ELEMENT ? " " : at, 1);
            reader->has_word = true;
        }
    }
}

static const char *expansion(struct shell_reader *reader, const char *at, bool quoted)
{
    struct adv_text value = adv_text_empty(ADV_LIMIT_SHELL_WORD);
    at = *at == '`' ? adv_shell_backquote(reader->shell, at, reader->end, &value)
                    : adv_shell_dollar(reader->shell, at, reader->end, &value);
    if (value.overflow) adv_shell_stop(reader->shell, ADV_E_TOO_LARGE, "a value is longer than 128 KiB");
    add_expansion(reader, &value, quoted);
    adv_text_free(&value);
    return at;
}

static const char *quoted_words(struct shell_reader *reader, const char *at)
{
    reader->has_word = true;
    at++;
    while (at < reader->end && *at != '"' && reader->shell->code == ADV_OK) {
        if (*at == '$' && at + 1 < reader->end && at[1] == '@') {
            at += 2; /* "$@": no arguments, no word */
            if (reader->word.length_bytes == 0 && at < reader->end && *at == '"') reader->has_word = false;
        } else if (*at == '$' || *at == '`') {
            at = expansion(reader, at, true);
        } else {
            at = quoted_piece(reader->shell, at, reader->end, true, &reader->word);
        }
    }
    return at < reader->end ? at + 1 : at;
}

/* NAME=( … ): its words as one value. */
static const char *array(struct shell_reader *reader, const char *at)
{
    const bool adds =
        reader->word.length_bytes > 1 && reader->word.data[reader->word.length_bytes - 2] == '+';
    if (!adv_shell_enter(reader->shell)) return reader->end;
    const char *close = adv_shell_closing(at, reader->end);
    struct shell_reader *inner = adv_arena_alloc(reader->shell->arena, sizeof *inner);
    if (!inner) {
        adv_shell_stop(reader->shell, ADV_E_MEMORY, "out of memory");
        return close;
    }
    *inner = (struct shell_reader){.shell = reader->shell,
                                   .at = at + 1,
                                   .end = close > at + 1 ? close - 1 : close,
                                   .word = adv_text_empty(ADV_LIMIT_SHELL_WORD),
                                   .assignments_count = -1}; /* its words are no assignments */
    while (inner->at < inner->end && reader->shell->code == ADV_OK) (void)adv_shell_next_command(inner);
    for (int i = 0; i < inner->words_count; i++) {
        const char element = MARK_ELEMENT;
        if (i || adds) adv_text_append_bytes(&reader->word, &element, 1);
        adv_text_append(&reader->word, inner->words[i]);
    }
    adv_text_free(&inner->word);
    reader->shell->expansions--;
    return close;
}

static bool ends_word(const char *at, const char *end)
{
    (void)end;
    return isspace((unsigned char)*at) || strchr(";&|()<>", *at);
}

/* One word from reader->at on; leaves it at what ended it. */
static void read_word(struct shell_reader *reader)
{
    const char *at = reader->at, *end = reader->end;
    while (at < end && reader->shell->code == ADV_OK) {
        struct adv_text *word = &reader->word;
        if (*at == '(' && reader->has_word && is_assigning(reader) &&
            word->data[word->length_bytes - 1] == '=')
            at = array(reader, at);
        else if (ends_word(at, end))
            break;
        else if (*at == '\\' && at + 1 < end) {
            const bool carriage = at[1] == '\r' && at + 2 < end && at[2] == '\n';
            if (!carriage && at[1] != '\n') {
                append(word, at + 1, at + 2);
                reader->has_word = true;
            }
            at += carriage ? 3 : 2;
        } else if (*at == '\'') {
            reader->has_word = true;
            at = single_quoted(at, end, word);
        } else if (*at == '"')
            at = quoted_words(reader, at);
        else if (*at == '$' && at + 1 < end && at[1] == '\'') {
            reader->has_word = true;
            at = ansi_quoted(at, end, word);
        } else if (*at == '$' || *at == '`')
            at = expansion(reader, at, false);
        else if (*at == MARK_UNKNOWN) {
            const char *close = memchr(at, MARK_UNKNOWN_END, (size_t)(end - at));
            append(word, at, close ? close + 1 : end);
            reader->has_word = true;
            at = close ? close + 1 : end;
        } else {
            append(word, at, at + 1);
            reader->has_word = true;
            at++;
        }
    }
    reader->at = at;
}

/* The here-document that ends at a line of `delimiter`. */
static void read_here(struct shell_reader *reader, const char *delimiter, bool expands, bool strips)
{
    const char *from = reader->here_at;
    if (!from) {
        from = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
        from = from ? from + 1 : reader->end;
    }
    struct adv_text body = adv_text_empty(ADV_LIMIT_SHELL_WORD);
    const char *at = from;
    while (at < reader->end) {
        const char *stop = memchr(at, '\n', (size_t)(reader->end - at));
        const char *line_end = stop ? stop : reader->end;
        const char *line = at;
        while (strips && line < line_end && *line == '\t') line++;
        const char *text_end = line_end > line && line_end[-1] == '\r' ? line_end - 1 : line_end;
        at = stop ? stop + 1 : reader->end;
        if ((size_t)(text_end - line) == strlen(delimiter) &&
            strncmp(line, delimiter, strlen(delimiter)) == 0)
            break;
        append(&body, line, at);
    }
    reader->here_at = at;
    if (body.overflow) adv_shell_stop(reader->shell, ADV_E_TOO_LARGE, "a here-document is too long");
    const char *text = body.data ? body.data : "";
    reader->here_text = expands ? expand_here(reader->shell, text, body.length_bytes)
                                : adv_shell_keep(reader->shell, text, body.length_bytes);
    adv_text_free(&body);
}

/* > file, 2>&1, << END, <<< text, <( … ): the word before it and the one after are no words of the command.
 */
static void redirect(struct shell_reader *reader)
{
    const char *end = reader->end;
    const bool reads = *reader->at == '<';
    if (reads && reader->at + 2 < end && strncmp(reader->at, "<<<", 3) == 0) {
        reader->at += 3;
        while (reader->at < end && (*reader->at == ' ' || *reader->at == '\t')) reader->at++;
        read_word(reader);
        reader->here_text = adv_shell_keep(reader->shell, reader->word.data, reader->word.length_bytes);
        reader->word.length_bytes = 0;
        reader->has_word = false;
        return;
    }
    const bool is_here = reads && reader->at + 1 < end && reader->at[1] == '<';
    const bool strips = is_here && reader->at + 2 < end && reader->at[2] == '-';
    reader->at += is_here ? 2 + strips : 1;
    if (!is_here && reader->at < end && *reader->at == '(') {
        reader->at = adv_shell_closing(reader->at, end);
        return;
    }
    while (!is_here && reader->at < end && strchr(">&|", *reader->at)) reader->at++;
    while (reader->at < end && (*reader->at == ' ' || *reader->at == '\t')) reader->at++;
    const char *from = reader->at;
    read_word(reader);
    const size_t length = (size_t)(reader->at - from);
    const bool quoted = memchr(from, '\'', length) || memchr(from, '"', length) || memchr(from, '\\', length);
    const char *target = adv_shell_keep(reader->shell, reader->word.data, reader->word.length_bytes);
    reader->word.length_bytes = 0;
    reader->has_word = false;
    if (is_here) read_here(reader, target, !quoted, strips);
}

static bool is_number(const struct adv_text *word)
{
    for (size_t i = 0; i < word->length_bytes; i++)
        if (!isdigit((unsigned char)word->data[i])) return false;
    return true;
}

/* The operator at reader->at; moves past it. */
static enum shell_operator read_operator(struct shell_reader *reader)
{
    const char *at = reader->at;
    const bool twice = at + 1 < reader->end && at[1] == *at;
    reader->at += twice && strchr("&|;", *at) ? 2 : 1;
    switch (*at) {
    case '&':
        return twice ? END_AND : END_LINE;
    case '|':
        if (!twice && reader->at < reader->end && *reader->at == '&') reader->at++;
        return twice ? END_OR : END_PIPE;
    case ';':
        return twice ? END_CASE : END_LINE;
    case '(':
        return END_OPEN;
    case ')':
        return END_CLOSE;
    default: /* the end of the line, and of its here-documents */
        if (reader->here_at) reader->at = reader->here_at;
        reader->here_at = NULL;
        return END_LINE;
    }
}

enum shell_operator adv_shell_next_command(struct shell_reader *reader)
{
    while (reader->at < reader->end && reader->shell->code == ADV_OK) {
        const char at = *reader->at;
        if (at == ' ' || at == '\t' || at == '\r') {
            reader->at++;
        } else if (at == '#') {
            const char *line_end = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
            reader->at = line_end ? line_end : reader->end;
        } else if (at == '&' && reader->at + 1 < reader->end && reader->at[1] == '>') {
            reader->at++;
            redirect(reader);
        } else if (at == '<' || at == '>') {
            redirect(reader);
        } else if (isspace((unsigned char)at) || strchr(";&|()", at)) {
            return read_operator(reader);
        } else {
            read_word(reader);
            const bool descriptor = reader->at < reader->end && strchr("<>", *reader->at) &&
                                    reader->has_word && is_number(&reader->word);
            if (descriptor) {
                reader->word.length_bytes = 0;
                reader->has_word = false;
            }
            finish_word(reader);
        }
    }
    return END_TEXT;
}

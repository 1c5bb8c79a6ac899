#include "server/tokens.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LINE_BYTES 512 /* name, scopes, digest, project and end take 300 */

struct adv_tokens {
    int count;
    struct adv_token rows[ADV_LIMIT_TOKENS];
};

struct adv_keyring {
    pthread_rwlock_t lock;
    struct adv_tokens *parts[ADV_KEYRING_PARTS]; /* NULL = none yet */
};

struct adv_tokens *adv_tokens_new(void)
{
    return calloc(1, sizeof(struct adv_tokens));
}

bool adv_tokens_add(struct adv_tokens *tokens, const struct adv_token *token)
{
    if (tokens->count == ADV_LIMIT_TOKENS) return false;
    tokens->rows[tokens->count++] = *token;
    return true;
}

/* A scope brings the ones below it. */
unsigned adv_tokens_scopes(char *list)
{
    unsigned scopes = 0;
    char *rest = NULL;
    for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        if (strcmp(name, "read") == 0)
            scopes |= ADV_SCOPE_READ;
        else if (strcmp(name, "write") == 0)
            scopes |= ADV_SCOPE_READ | ADV_SCOPE_WRITE;
        else if (strcmp(name, "admin") == 0)
            scopes |= ADV_SCOPE_ALL;
        else
            return 0;
    }
    return scopes;
}

/* `project=NAME` or `expires=SECONDS`. */
static const char *parse_option(struct adv_token *token, const char *word)
{
    static const char project[] = "project=", expires[] = "expires=";
    if (strncmp(word, project, sizeof project - 1) == 0) {
        word += sizeof project - 1;
        if (!*word || strlen(word) >= sizeof token->project) return "a project has 1 to 95 bytes";
        memcpy(token->project, word, strlen(word) + 1);
        return NULL;
    }
    char *end = NULL;
    if (strncmp(word, expires, sizeof expires - 1) == 0)
        token->expires_s = strtoll(word + sizeof expires - 1, &end, 10);
    if (!end || *end || token->expires_s <= 0)
        return "after the digest come project=NAME and expires=SECONDS of the Unix clock";
    return NULL;
}

static bool has_digest(const struct adv_tokens *tokens, const char *digest)
{
    for (int i = 0; i < tokens->count; i++)
        if (strcmp(tokens->rows[i].digest, digest) == 0) return true;
    return false;
}

static const char *parse_line(struct adv_tokens *tokens, char *line)
{
    struct adv_token token = {0};
    char *rest = NULL;
    char *name = strtok_r(line, " \t\r\n", &rest);
    if (!name || name[0] == '#') return NULL;
    char *scopes = strtok_r(NULL, " \t\r\n", &rest);
    char *digest = strtok_r(NULL, " \t\r\n", &rest);
    if (!digest) return "expected NAME SCOPES SHA256";
    token.scopes = adv_tokens_scopes(scopes);
    if (!token.scopes) return "scopes are read, write and admin, separated by commas";
    if (strlen(digest) != ADV_SHA256_HEX - 1 || strspn(digest, "0123456789abcdef") != ADV_SHA256_HEX - 1)
        return "the digest is 64 lower-case hex digits";
    if (has_digest(tokens, digest)) return "the token is in a line before; which of both counts is not clear";
    if (strlen(name) >= sizeof token.name) return "the name is longer than 63 bytes";
    memcpy(token.name, name, strlen(name) + 1);
    memcpy(token.digest, digest, ADV_SHA256_HEX);
    const char *mistake = NULL;
    for (char *word; !mistake && (word = strtok_r(NULL, " \t\r\n", &rest));)
        mistake = parse_option(&token, word);
    return mistake || adv_tokens_add(tokens, &token) ? mistake : "too many tokens";
}

/* Reads the lines of the file into `tokens`; what is wrong is printed. */
static adv_code read_lines(FILE *file, const char *path, struct adv_tokens *tokens, FILE *errors)
{
    adv_code code = ADV_OK;
    char line[LINE_BYTES];
    errno = 0;
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        const bool is_whole = strchr(line, '\n') || fgetc(file) == EOF;
        const char *mistake = is_whole ? parse_line(tokens, line) : "the line is longer than 511 bytes";
        while (!is_whole && !strchr(line, '\n') && fgets(line, sizeof line, file)) continue;
        if (!mistake) continue;
        (void)fprintf(errors, "tpu-advisor: %s, line %d: %s\n", path, number, mistake);
        code = ADV_E_INVALID;
    }
    if (ferror(file)) { /* a folder, say: what was read so far is not all */
        (void)fprintf(errors, "tpu-advisor: cannot read the tokens in %s: %s\n", path, strerror(errno));
        return ADV_E_IO;
    }
    if (!code && tokens->count == 0) {
        (void)fprintf(errors, "tpu-advisor: %s has no token\n", path);
        return ADV_E_INVALID;
    }
    return code;
}

adv_code adv_tokens_load(const char *path, struct adv_tokens **tokens, FILE *errors)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        (void)fprintf(errors, "tpu-advisor: cannot read the tokens in %s: %s\n", path, strerror(errno));
        return ADV_E_IO;
    }
    struct adv_tokens *loaded = adv_tokens_new();
    const adv_code code = loaded ? read_lines(file, path, loaded, errors) : ADV_E_MEMORY;
    (void)fclose(file);
    if (code)
        free(loaded);
    else
        *tokens = loaded;
    return code;
}

struct adv_keyring *adv_keyring_new(void)
{
    struct adv_keyring *keyring = calloc(1, sizeof *keyring);
    if (keyring) (void)pthread_rwlock_init(&keyring->lock, NULL);
    return keyring;
}

void adv_keyring_free(struct adv_keyring *keyring)
{
    if (!keyring) return;
    for (int i = 0; i < ADV_KEYRING_PARTS; i++) free(keyring->parts[i]);
    (void)pthread_rwlock_destroy(&keyring->lock);
    free(keyring);
}

void adv_keyring_set(struct adv_keyring *keyring, enum adv_keyring_part part, struct adv_tokens *tokens)
{
    (void)pthread_rwlock_wrlock(&keyring->lock);
    struct adv_tokens *before = keyring->parts[part];
    keyring->parts[part] = tokens;
    (void)pthread_rwlock_unlock(&keyring->lock);
    free(before);
}

bool adv_keyring_has(struct adv_keyring *keyring, enum adv_keyring_part part)
{
    (void)pthread_rwlock_rdlock(&keyring->lock);
    const bool has = keyring->parts[part] != NULL;
    (void)pthread_rwlock_unlock(&keyring->lock);
    return has;
}

static bool is_in_force(const struct adv_token *token, int64_t now_s)
{
    return !token->expires_s || token->expires_s > now_s;
}

/* Every digest is compared: the time does not tell which one it was. */
static void look_up(const struct adv_tokens *tokens, const char *digest, int64_t now_s,
                    struct adv_caller *caller)
{
    for (int i = 0; tokens && i < tokens->count; i++) {
        const struct adv_token *token = &tokens->rows[i];
        if (!adv_sha256_equal(digest, token->digest)) continue;
        caller->expired = !is_in_force(token, now_s);
        caller->scopes = caller->expired ? 0 : token->scopes;
        memcpy(caller->name, token->name, sizeof caller->name);
        memcpy(caller->project, token->project, sizeof caller->project);
    }
}

void adv_keyring_check(struct adv_keyring *keyring, const char *authorization, int64_t now_s,
                       struct adv_caller *caller)
{
    memset(caller, 0, sizeof *caller);
    if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0) return;
    const char *token = authorization + 7;
    while (*token == ' ') token++;
    size_t length = strlen(token);
    while (length && token[length - 1] == ' ') length--;
    if (!length) return;
    char digest[ADV_SHA256_HEX];
    adv_sha256_hex(token, length, digest);
    (void)pthread_rwlock_rdlock(&keyring->lock);
    for (int i = 0; i < ADV_KEYRING_PARTS; i++) look_up(keyring->parts[i], digest, now_s, caller);
    (void)pthread_rwlock_unlock(&keyring->lock);
}

bool adv_keyring_allows(struct adv_keyring *keyring, enum adv_keyring_part part,
                        const struct adv_caller *caller, int64_t now_s)
{
    bool allows = false;
    (void)pthread_rwlock_rdlock(&keyring->lock);
    const struct adv_tokens *tokens = keyring->parts[part];
    for (int i = 0; tokens && !allows && i < tokens->count; i++) {
        const struct adv_token *token = &tokens->rows[i];
        allows = strcmp(token->name, caller->name) == 0 && is_in_force(token, now_s) &&
                 (token->scopes & caller->scopes) == caller->scopes &&
                 (!token->project[0] || strcmp(token->project, caller->project) == 0);
    }
    (void)pthread_rwlock_unlock(&keyring->lock);
    return allows;
}

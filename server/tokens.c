#include "server/tokens.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/sha256.h"

struct adv_tokens {
    int count;
    struct {
        unsigned scopes;
        char name[64];
        char digest[ADV_SHA256_HEX];
    } rows[ADV_LIMIT_TOKENS];
};

/* "read,write" as a set; 0 when a name is unknown. A scope brings the ones below it. */
static unsigned parse_scopes(char *list)
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

static const char *parse_line(struct adv_tokens *tokens, char *line)
{
    char *rest = NULL;
    char *name = strtok_r(line, " \t\r\n", &rest);
    if (!name || name[0] == '#') return NULL;
    char *scopes = strtok_r(NULL, " \t\r\n", &rest);
    char *digest = strtok_r(NULL, " \t\r\n", &rest);
    if (!digest || strtok_r(NULL, " \t\r\n", &rest)) return "expected NAME SCOPES SHA256";
    if (tokens->count == ADV_LIMIT_TOKENS) return "too many tokens";
    unsigned set = parse_scopes(scopes);
    if (!set) return "scopes are read, write and admin, separated by commas";
    if (strlen(digest) != ADV_SHA256_HEX - 1 || strspn(digest, "0123456789abcdef") != ADV_SHA256_HEX - 1)
        return "the digest is 64 lower-case hex digits";
    if (strlen(name) >= sizeof tokens->rows[0].name) return "the name is longer than 63 bytes";
    memcpy(tokens->rows[tokens->count].name, name, strlen(name) + 1);
    tokens->rows[tokens->count].scopes = set;
    memcpy(tokens->rows[tokens->count].digest, digest, ADV_SHA256_HEX);
    tokens->count++;
    return NULL;
}

adv_code adv_tokens_load(const char *path, struct adv_tokens **tokens, FILE *errors)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        (void)fprintf(errors, "tpu-advisor: cannot read the tokens in %s: %s\n", path, strerror(errno));
        return ADV_E_IO;
    }
    struct adv_tokens *loaded = calloc(1, sizeof *loaded);
    adv_code code = loaded ? ADV_OK : ADV_E_MEMORY;
    char line[512];
    for (int number = 1; loaded && fgets(line, sizeof line, file); number++) {
        const char *mistake = parse_line(loaded, line);
        if (!mistake) continue;
        (void)fprintf(errors, "tpu-advisor: %s, line %d: %s\n", path, number, mistake);
        code = ADV_E_INVALID;
    }
    (void)fclose(file);
    if (!code && loaded->count == 0) {
        (void)fprintf(errors, "tpu-advisor: %s has no token\n", path);
        code = ADV_E_INVALID;
    }
    if (code)
        adv_tokens_free(loaded);
    else
        *tokens = loaded;
    return code;
}

void adv_tokens_free(struct adv_tokens *tokens)
{
    free(tokens);
}

unsigned adv_tokens_check(const struct adv_tokens *tokens, const char *authorization, const char **name)
{
    *name = "";
    if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0) return 0;
    const char *token = authorization + 7;
    while (*token == ' ') token++;
    size_t length = strlen(token);
    while (length && token[length - 1] == ' ') length--;
    if (!length) return 0;
    char digest[ADV_SHA256_HEX];
    adv_sha256_hex(token, length, digest);
    unsigned scopes = 0;
    for (int i = 0; i < tokens->count; i++) {
        if (!adv_sha256_equal(digest, tokens->rows[i].digest)) continue;
        scopes |= tokens->rows[i].scopes;
        *name = tokens->rows[i].name;
    }
    return scopes;
}

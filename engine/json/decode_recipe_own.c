/* decode_recipe_own.c: what the first lines of a file say that the advisor wrote itself (emit/script.c). */
#include <stdio.h>
#include <string.h>

#include "engine/catalog/releases.h"
#include "engine/json/decode_recipe.h"
#include "engine/maxtext/run.h"

enum { LINE_BYTES = 4 * ADV_LIMIT_NAME };

/* The line at *at, as far as there is room; *at moves behind it. False: the text is over. */
static bool next_line(const char **at, const char *end, char line[LINE_BYTES])
{
    if (*at >= end) return false;
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    const int length = (int)((stop ? stop : end) - *at);
    (void)snprintf(line, LINE_BYTES, "%.*s", length, *at);
    *at += length + 1;
    return true;
}

/* Moves *at behind the headline, "# MODEL on CHIP TOPOLOGY x N slices: predicted …", of which `line` is what
 * stands before the colon. */
static bool find_headline(const char **at, const char *end, char line[LINE_BYTES])
{
    while (next_line(at, end, line)) {
        char *close = *line == '#' ? strstr(line, ": predicted ") : NULL;
        if (!close) continue;
        *close = '\0';
        return true;
    }
    return false;
}

json_t *adv_recipe_own_cluster(const char *text, size_t text_bytes)
{
    char line[LINE_BYTES], chip[ADV_LIMIT_NAME], topology[ADV_LIMIT_NAME];
    const char *at = text;
    while (find_headline(&at, text + text_bytes, line)) {
        const char *machine = NULL; /* behind the last " on ": a model's name may have one */
        for (const char *found = strstr(line, " on "); found; found = strstr(found + 1, " on "))
            machine = found;
        int slices = 1;
        if (machine && sscanf(machine, " on %95s %95s x %6d slices", chip, topology, &slices) >= 2)
            return json_pack("{s:s, s:s, s:i}", "chip", chip, "topology", topology, "slices", slices);
    }
    return NULL;
}

/* The release behind the words, where they stand; "" otherwise. */
static void release_behind(const char *line, const char *words, char release[ADV_LIMIT_RELEASE])
{
    const char *found = strstr(line, words);
    *release = '\0';
    if (found && sscanf(found + strlen(words), "%23[^ ,\n]", release) != 1) *release = '\0';
}

static bool is_known(const struct adv_catalog_releases *releases, const char *maxtext)
{
    for (int i = 0; i < releases->maxtext_count; i++)
        if (strcmp(releases->maxtext[i], maxtext) == 0) return true;
    return false;
}

json_t *adv_recipe_own_software(const struct adv_catalog *catalog, const char *text, size_t text_bytes)
{
    const struct adv_catalog_releases *releases = adv_catalog_releases(catalog);
    char line[LINE_BYTES], maxtext[ADV_LIMIT_RELEASE], jax[ADV_LIMIT_RELEASE], libtpu[ADV_LIMIT_RELEASE];
    const char *at = text, *end = text + text_bytes;
    if (!find_headline(&at, end, line)) return NULL;
    while (next_line(&at, end, line) && *line == '#') {
        release_behind(line, ADV_RELEASE_MARK, maxtext);
        if (!is_known(releases, maxtext)) continue; /* another line, or an engine's that knew more */
        release_behind(line, ADV_RELEASE_JAX, jax);
        release_behind(line, ADV_RELEASE_LIBTPU, libtpu);
        if (!*jax && !*libtpu && strcmp(maxtext, releases->pinned.maxtext) == 0) return NULL;
        json_t *software = json_pack("{s:s}", "maxtext", maxtext);
        if (*jax) (void)json_object_set_new(software, "jax", json_string(jax));
        if (*libtpu) (void)json_object_set_new(software, "libtpu", json_string(libtpu));
        return software;
    }
    return NULL;
}

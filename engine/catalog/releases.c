#include "engine/catalog/releases.h"

#include <string.h>

#include "engine/base/text.h"
#include "engine/catalog/catalog_data.h"

const struct adv_catalog_releases *adv_catalog_releases(const struct adv_catalog *catalog)
{
    return &catalog->releases;
}

const struct adv_software *adv_catalog_pinned(const struct adv_catalog *catalog)
{
    return &catalog->releases.pinned;
}

const struct adv_catalog_refusal *adv_catalog_refusals(const struct adv_catalog *catalog, const char *libtpu,
                                                       int *count)
{
    *count = 0;
    for (int i = 0; i < catalog->releases.libtpu_count; i++) {
        const struct adv_catalog_libtpu *release = &catalog->releases.libtpu[i];
        if (strcmp(release->release, libtpu) != 0) continue;
        *count = release->refusals_count;
        return release->refusals;
    }
    return NULL;
}

bool adv_catalog_refusal_on(const struct adv_catalog_refusal *refusal, const char *chip)
{
    if (!refusal->value) return true;
    for (int i = 0; i < refusal->chips_count; i++)
        if (strcmp(refusal->chips[i], chip) == 0) return true;
    return false;
}

/* The value of flag `name` among "--name=value"; NULL when it is not given. */
static const char *value_of(const char *name, size_t length, const char *const *flags, int count)
{
    for (int i = 0; i < count; i++)
        if (strncmp(flags[i], "--", 2) == 0 && strncmp(flags[i] + 2, name, length) == 0 &&
            flags[i][2 + length] == '=')
            return flags[i] + 3 + length;
    return NULL;
}

bool adv_catalog_refusal_met(const struct adv_catalog_refusal *refusal, const char *const *flags, int count)
{
    const char *own = value_of(refusal->flag, strlen(refusal->flag), flags, count);
    if (!refusal->value || (own && strcmp(own, refusal->value) != 0)) return false;
    for (int i = 0; i < refusal->with_count; i++) {
        const size_t length = strcspn(refusal->with[i], "=");
        const char *value = value_of(refusal->with[i], length, flags, count);
        if (!value || strcmp(value, refusal->with[i] + length + 1) != 0) return false;
    }
    return true;
}

bool adv_catalog_option_unknown(const struct adv_catalog *catalog, const char *libtpu, const char *flag)
{
    int count = 0;
    const struct adv_catalog_refusal *refusals = adv_catalog_refusals(catalog, libtpu, &count);
    for (int i = 0; i < count; i++)
        if (!refusals[i].value && strcmp(refusals[i].flag, flag) == 0) return true;
    return false;
}

const struct adv_catalog_ignored *adv_catalog_flag_ignored(const struct adv_catalog *catalog,
                                                           const char *libtpu, const char *chip,
                                                           const char *flag)
{
    for (int i = 0; i < catalog->releases.libtpu_count; i++) {
        const struct adv_catalog_libtpu *release = &catalog->releases.libtpu[i];
        if (strcmp(release->release, libtpu) != 0) continue;
        for (int k = 0; k < release->ignored_count; k++) {
            const struct adv_catalog_ignored *ignored = &release->ignored[k];
            if (strcmp(ignored->flag, flag) != 0) continue;
            for (int c = 0; c < ignored->chips_count; c++)
                if (strcmp(ignored->chips[c], chip) == 0) return ignored;
        }
    }
    return NULL;
}

static const struct adv_catalog_range *missing(const struct adv_catalog_releases *releases,
                                               const char *maxtext, const struct adv_catalog_range *ranges,
                                               int count, const char *name)
{
    int at = 0;
    while (at < releases->maxtext_count && strcmp(releases->maxtext[at], maxtext) != 0) at++;
    if (at == releases->maxtext_count) return NULL;
    for (int i = 0; i < count; i++)
        if (adv_text_same(ranges[i].name, name))
            return at < ranges[i].since || at > ranges[i].last ? &ranges[i] : NULL;
    return NULL;
}

const struct adv_catalog_range *adv_catalog_key_missing(const struct adv_catalog *catalog,
                                                        const char *maxtext, const char *key)
{
    const struct adv_catalog_releases *releases = &catalog->releases;
    return missing(releases, maxtext, releases->keys, releases->keys_count, key);
}

const struct adv_catalog_range *adv_catalog_model_missing(const struct adv_catalog *catalog,
                                                          const char *maxtext, const char *model_name)
{
    const struct adv_catalog_releases *releases = &catalog->releases;
    return missing(releases, maxtext, releases->models, releases->models_count, model_name);
}

const char *adv_catalog_jax_asks(const struct adv_catalog *catalog, const char *jax)
{
    for (int i = 0; i < catalog->releases.jax_count; i++)
        if (strcmp(catalog->releases.jax[i].release, jax) == 0) return catalog->releases.jax[i].libtpu;
    return NULL;
}

bool adv_catalog_release_matches(const char *asked, const char *release)
{
    const size_t length = strlen(asked);
    if (length < 2 || strcmp(asked + length - 2, ".*") != 0) return strcmp(asked, release) == 0;
    const size_t stem = length - 2;
    return strncmp(asked, release, stem) == 0 && (release[stem] == '.' || release[stem] == '\0');
}

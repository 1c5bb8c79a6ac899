#include "engine/json/decode_software.h"

#include <stdio.h>
#include <string.h>

static void take_release(const json_t *object, const char *member, char release[ADV_LIMIT_RELEASE],
                         adv_err *err)
{
    const char *text = NULL;
    if (!adv_json_string(object, "/software", member, ADV_JSON_OPTIONAL, &text, err)) return;
    const size_t length = strlen(text);
    if (length > 0 && length < ADV_LIMIT_RELEASE && strspn(text, "0123456789.abcdevoprst+") == length)
        (void)snprintf(release, ADV_LIMIT_RELEASE, "%s", text);
    else
        (void)adv_err_add(err, ADV_E_INVALID, ADV_AT("/software", member), "0.12.0.1", "this is no release");
}

/* The release among those that were asked which a JAX wants: "0.0.50.*" is 0.0.50.1. Of another one the stem
 * stands. */
static void follow_jax(const struct adv_catalog_releases *releases, const char *asked,
                       struct adv_software *software)
{
    if (!asked) return;
    (void)snprintf(software->libtpu, sizeof software->libtpu, "%.*s", (int)strcspn(asked, "*") - 1, asked);
    for (int i = 0; i < releases->libtpu_count; i++)
        if (adv_catalog_release_matches(asked, releases->libtpu[i].release))
            (void)snprintf(software->libtpu, sizeof software->libtpu, "%s", releases->libtpu[i].release);
}

void adv_decode_software(const struct adv_catalog *catalog, const json_t *root, struct adv_software *software,
                         adv_err *err)
{
    static const char *const names[] = {"maxtext", "jax", "libtpu"};
    const struct adv_catalog_releases *releases = adv_catalog_releases(catalog);
    int index = 0;
    *software = releases->pinned;
    const json_t *object = adv_json_object(root, "", "software", ADV_JSON_OPTIONAL, err);
    if (!object) return;
    (void)adv_json_known_members(object, "/software", names, 3, err);
    if (adv_json_choice(object, "/software", "maxtext", ADV_JSON_OPTIONAL, releases->maxtext,
                        releases->maxtext_count, &index, err))
        (void)snprintf(software->maxtext, sizeof software->maxtext, "%s", releases->maxtext[index]);
    if (adv_json_has(object, "jax")) {
        take_release(object, "jax", software->jax, err);
        follow_jax(releases, adv_catalog_jax_asks(catalog, software->jax), software);
    }
    take_release(object, "libtpu", software->libtpu, err);
}

#include "engine/maxtext/software.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/text.h"
#include "engine/maxtext/entries.h"
#include "engine/maxtext/flags.h"
#include "engine/maxtext/run.h"

/* The last of the flags that a refusal takes is the one that gives way. */
static void give_way(const struct adv_catalog_refusal *refusal, struct adv_flags *flags)
{
    char name[ADV_LIMIT_XLA_FLAG];
    if (refusal->with_count == 0) return;
    const char *last = refusal->with[refusal->with_count - 1];
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(last, "="), last);
    signed char *own = adv_flags_switch(flags, name);
    if (own) *own = 0;
}

void adv_software_settle(const struct adv_catalog *catalog, const struct adv_software *software,
                         struct adv_chip *chip)
{
    int count = 0;
    const struct adv_catalog_refusal *refusals = adv_catalog_refusals(catalog, software->libtpu, &count);
    for (int i = 0; i < count; i++) {
        if (!refusals[i].value || !adv_catalog_refusal_on(&refusals[i], chip->name)) continue;
        give_way(&refusals[i], &chip->recipe.flags);
        give_way(&refusals[i], &chip->recipe.flags_with_experts);
    }
    adv_flags_ignored(catalog, software->libtpu, chip->name, &chip->ignored_flags);
}

/* `axes`: over so many torus axes; 0: over any. */
static void report_ignored(const struct adv_software *software, const struct adv_catalog_ignored *ignored,
                           const char *chip, int axes, const char *at, const char *hint, adv_err *warnings)
{
    char over[32] = "";
    if (axes > 0) (void)snprintf(over, sizeof over, " over %s torus axes", axes == 2 ? "two" : "three");
    (void)adv_err_add_rule(warnings, ADV_OK, "ignored-flag", at, hint,
                           "libtpu %s takes %s on %s and changes nothing by it: %s%s", software->libtpu,
                           ignored->flag, chip, ignored->what, over);
}

/* What depends on the axes that gathers span is adv_software_warn_gathers' to say. */
static void warn_of_ignored(const struct adv_catalog *catalog, const struct adv_software *software,
                            const char *text, const char *chip, const char *at, adv_err *warnings)
{
    char name[ADV_LIMIT_XLA_FLAG];
    const char *equals = strchr(text, '=');
    if (!equals || strncmp(text, "--", 2) != 0 || strcasecmp(equals + 1, "false") == 0) return;
    (void)snprintf(name, sizeof name, "%.*s", (int)(equals - text - 2), text + 2);
    const struct adv_catalog_ignored *ignored =
        adv_catalog_flag_ignored(catalog, software->libtpu, chip, name);
    if (ignored && !ignored->unless[0])
        report_ignored(software, ignored, chip, 0, at, "leave it out", warnings);
}

void adv_software_warn_gathers(const struct adv_catalog *catalog, const struct adv_software *software,
                               const struct adv_flags *flags, const char *chip, int axes, const char *at,
                               adv_err *warnings)
{
    char hint[ADV_LIMIT_DETAIL];
    const struct adv_catalog_ignored *ignored = adv_catalog_flag_ignored(
        catalog, software->libtpu, chip, "xla_tpu_enable_sparse_core_collective_offload_all_gather");
    if (!ignored || !ignored->unless[0] || flags->sc_all_gather != 1 || !adv_flags_lack_axes(flags, axes))
        return;
    (void)snprintf(hint, sizeof hint, "set --%s beside it", ignored->unless[axes > 2]);
    report_ignored(software, ignored, chip, axes, at, hint, warnings);
}

static void warn_of_unknown(const struct adv_catalog *catalog, const struct adv_software *software,
                            const char *flag, const char *at, adv_err *warnings)
{
    char name[ADV_LIMIT_XLA_FLAG];
    const char *equals = strchr(flag, '=');
    if (!equals || strncmp(flag, "--", 2) != 0) return;
    (void)snprintf(name, sizeof name, "%.*s", (int)(equals - flag - 2), flag + 2);
    if (!adv_catalog_option_unknown(catalog, software->libtpu, name)) return;
    (void)adv_err_add_rule(warnings, ADV_OK, "refused-flag", at, "leave it out",
                           "libtpu %s has no compile option %s", software->libtpu, name);
}

static void warn_of_refusal(const struct adv_software *software, const struct adv_catalog_refusal *refusal,
                            const char *chip, const char *at, adv_err *warnings)
{
    char hint[ADV_LIMIT_DETAIL];
    const char *beside = refusal->with_count > 0 ? refusal->with[refusal->with_count - 1] : "these flags";
    (void)snprintf(hint, sizeof hint, "set --%s=false", refusal->flag);
    (void)adv_err_add_rule(warnings, ADV_OK, "refused-flag", at, hint,
                           "libtpu %s refuses %s=%s, given or by its default, on %s beside %s",
                           software->libtpu, refusal->flag, refusal->value, chip, beside);
}

void adv_software_warn_flags(const struct adv_catalog *catalog, const struct adv_software *software,
                             const struct adv_config *config, const char *chip, const char *at,
                             adv_err *warnings)
{
    int count = 0;
    const struct adv_catalog_refusal *refusals = adv_catalog_refusals(catalog, software->libtpu, &count);
    for (int i = 0; i < config->flags_count; i++) {
        warn_of_unknown(catalog, software, config->flags[i], at, warnings);
        warn_of_ignored(catalog, software, config->flags[i], chip, at, warnings);
    }
    const char *said = NULL; /* one finding a flag */
    for (int i = 0; i < count; i++) {
        if (!adv_catalog_refusal_on(&refusals[i], chip) || (said && strcmp(said, refusals[i].flag) == 0) ||
            !adv_catalog_refusal_met(&refusals[i], config->flags, config->flags_count))
            continue;
        warn_of_refusal(software, &refusals[i], chip, at, warnings);
        said = refusals[i].flag;
    }
}

/* "MaxText 0.2.2 to 0.2.5 have it". */
static void who_has_it(const struct adv_catalog_releases *releases, const struct adv_catalog_range *range,
                       char hint[ADV_LIMIT_DETAIL])
{
    const char *first = releases->maxtext[range->since], *last = releases->maxtext[range->last];
    if (range->since == range->last)
        (void)snprintf(hint, ADV_LIMIT_DETAIL, "MaxText %s has it", first);
    else
        (void)snprintf(hint, ADV_LIMIT_DETAIL, "MaxText %s to %s have it", first, last);
}

void adv_software_find_model(const struct adv_catalog *catalog, const struct adv_software *software,
                             const char *model_name, const char *at, adv_err *findings)
{
    const struct adv_catalog_range *range = adv_catalog_model_missing(catalog, software->maxtext, model_name);
    if (!range) return;
    char hint[ADV_LIMIT_DETAIL];
    who_has_it(adv_catalog_releases(catalog), range, hint);
    (void)adv_err_add_rule(findings, ADV_OK, "model-not-in-release", at, hint,
                           "MaxText %s does not know the model %s and refuses the configuration",
                           software->maxtext, model_name);
}

/* The one value that a release refuses of a key that it has. */
static int find_value(const struct adv_software *software, const struct adv_config *config, const char *at,
                      adv_err *findings)
{
    const char *key = adv_tensor_name(ADV_TENSOR_DECODER_LAYER_INPUT);
    const char *value = adv_config_find(config, key);
    if (!value || strcmp(value, "\"remat\"") != 0 || adv_maxtext_recomputes_inputs(software->maxtext))
        return 0;
    (void)adv_err_add_rule(findings, ADV_OK, "value-not-in-release", ADV_AT(at, key), "device, or offload",
                           "MaxText %s refuses %s=remat", software->maxtext, key);
    return 1;
}

int adv_software_find_keys(const struct adv_catalog *catalog, const struct adv_software *software,
                           const struct adv_config *config, const char *at, adv_err *findings)
{
    const struct adv_catalog_releases *releases = adv_catalog_releases(catalog);
    /* Of an old key the reader of the configuration has spoken, with its present name. */
    const bool pinned = strcmp(software->maxtext, releases->pinned.maxtext) == 0;
    int found = 0;
    for (int i = 0; i < config->count; i++) {
        const char *key = config->entries[i].key;
        const struct adv_catalog_range *range = adv_catalog_key_missing(catalog, software->maxtext, key);
        if (!range || (pinned && adv_catalog_old_key(catalog, key))) continue;
        char hint[ADV_LIMIT_DETAIL];
        who_has_it(releases, range, hint);
        (void)adv_err_add_rule(findings, ADV_OK, "key-not-in-release", ADV_AT(at, key), hint,
                               "MaxText %s does not know %s and refuses the configuration", software->maxtext,
                               key);
        found++;
    }
    return found + find_value(software, config, at, findings);
}

static bool lacks(const struct adv_catalog *catalog, const struct adv_software *software, const char *key)
{
    return adv_catalog_key_missing(catalog, software->maxtext, key) != NULL;
}

int adv_software_lacks(const struct adv_catalog *catalog, const struct adv_software *software,
                       const struct adv_model *model, const struct adv_cluster *cluster,
                       const struct adv_plan *plan, const struct adv_key *keys[ADV_KEYS_MAX])
{
    bool spoken[ADV_OFS];
    int count = 0;
    adv_keys_spoken(model, cluster, plan, spoken);
    for (int i = 0; i < adv_keys_count; i++) {
        const struct adv_key *key = &adv_keys[i];
        if (key->plan_bytes > 0 && key->of != ADV_OF_WINDOWS && spoken[key->of] &&
            lacks(catalog, software, key->name))
            keys[count++] = key;
    }
    return count;
}

bool adv_software_has_local_tiles(const struct adv_catalog *catalog, const struct adv_software *software)
{
    for (int i = 0; i < adv_keys_count; i++)
        if (adv_keys[i].of == ADV_OF_WINDOWS && lacks(catalog, software, adv_keys[i].name)) return false;
    return true;
}

void adv_software_drop_keys(const struct adv_catalog *catalog, const struct adv_software *software,
                            struct adv_config *config)
{
    int kept = 0;
    for (int i = 0; i < config->count; i++) {
        const struct adv_config_entry entry = config->entries[i];
        const struct adv_key *key = adv_key_find(entry.key);
        char usual[ADV_LIMIT_NAME] = "";
        if (key && lacks(catalog, software, entry.key))
            (void)adv_key_text(key, key->usual, usual, sizeof usual);
        if (!usual[0] || strcmp(usual, entry.value_json) != 0) config->entries[kept++] = entry;
    }
    config->count = kept;
}

/* Of a JAX that nobody has asked, the libtpu is that of the request, or the pinned one. */
static void warn_of_jax(const struct adv_catalog *catalog, const struct adv_software *software,
                        adv_err *warnings)
{
    const struct adv_catalog_releases *releases = adv_catalog_releases(catalog);
    char hint[ADV_LIMIT_DETAIL] = "give software.libtpu beside it, or a release that is known:";
    for (int i = 0; i < releases->jax_count; i++)
        adv_append(hint, sizeof hint, "%s %s", i > 0 ? "," : "", releases->jax[i].release);
    (void)adv_err_add_rule(warnings, ADV_OK, "jax-not-known", "/software/jax", hint,
                           "which libtpu JAX %s asks for is not known: the answer is for libtpu %s",
                           software->jax, software->libtpu);
}

void adv_software_warn_pair(const struct adv_catalog *catalog, const struct adv_software *software,
                            adv_err *warnings)
{
    const char *asked = adv_catalog_jax_asks(catalog, software->jax);
    int count = 0;
    if (!adv_catalog_refusals(catalog, software->libtpu, &count))
        (void)adv_err_add_rule(warnings, ADV_OK, "libtpu-not-known", "/software/libtpu",
                               "verify the plan with that release",
                               "which flags libtpu %s takes is not known", software->libtpu);
    if (!asked) warn_of_jax(catalog, software, warnings);
    if (!asked || adv_catalog_release_matches(asked, software->libtpu)) return;
    char hint[ADV_LIMIT_DETAIL];
    (void)snprintf(hint, sizeof hint, "pip install --no-deps 'libtpu==%s'", asked);
    (void)adv_err_add_rule(
        warnings, ADV_OK, "libtpu-not-asked-for", "/software/libtpu", hint,
        "JAX %s asks for libtpu %s, not %s: another assigns buffers differently and may need more "
        "memory than is predicted",
        software->jax, asked, software->libtpu);
}

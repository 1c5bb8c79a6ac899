/* releases.h: what releases of MaxText, JAX and libtpu know and refuse, as they said themselves (make
 * releases).
 *
 * Strings live in the catalog. Thread safe.
 */
#pragma once

#include "engine/catalog/catalog.h"
#include "engine/spec/software.h"

/* A flag that a libtpu does not take. */
struct adv_catalog_refusal {
    const char *flag;         /* without dashes */
    const char *value;        /* that it refuses, also as its default; NULL: no such compile option at all */
    const char *const *chips; /* on which; all when there is no such option */
    int chips_count;
    const char *const *with; /* "name=value": beside all of these only */
    int with_count;
};

/* A flag that a libtpu takes on some chips and changes nothing by. */
struct adv_catalog_ignored {
    const char *flag;         /* without dashes */
    const char *const *chips; /* on which */
    int chips_count;
    /* "name=value": beside these it does what it says over two and over three torus axes, and over one by
     * itself; NULL: never */
    const char *unless[2];
    const char *what; /* what the compiled program has instead, for people */
};

struct adv_catalog_libtpu {
    const char *release;
    struct adv_catalog_refusal *refusals;
    int refusals_count;
    struct adv_catalog_ignored *ignored;
    int ignored_count;
};

/* A key or a model that not every MaxText has. */
struct adv_catalog_range {
    const char *name;
    int since, last; /* indices of adv_catalog_releases.maxtext */
};

struct adv_catalog_jax {
    const char *release, *libtpu; /* the libtpu it asks for: "0.0.50.*" */
};

struct adv_catalog_releases {
    struct adv_software pinned; /* what plans are for when a request does not say */
    const char *const *maxtext; /* oldest first */
    int maxtext_count;
    struct adv_catalog_range *keys, *models; /* models by what model_name takes */
    int keys_count, models_count;
    struct adv_catalog_jax *jax;
    int jax_count;
    struct adv_catalog_libtpu *libtpu;
    int libtpu_count;
};

const struct adv_catalog_releases *adv_catalog_releases(const struct adv_catalog *catalog);

/* The releases of a request that names none. */
const struct adv_software *adv_catalog_pinned(const struct adv_catalog *catalog);

/* Whether this libtpu does not have the compile option; false where nobody has asked it.
 */
bool adv_catalog_option_unknown(const struct adv_catalog *catalog, const char *libtpu, const char *flag);

/* What this libtpu takes on the chip and changes nothing by, under `flag`; NULL: it does, or nobody has
 * asked. */
const struct adv_catalog_ignored *adv_catalog_flag_ignored(const struct adv_catalog *catalog,
                                                           const char *libtpu, const char *chip,
                                                           const char *flag);

/* The refusals of a libtpu; NULL and 0 where it was not asked. */
const struct adv_catalog_refusal *adv_catalog_refusals(const struct adv_catalog *catalog, const char *libtpu,
                                                       int *count);
bool adv_catalog_refusal_on(const struct adv_catalog_refusal *refusal, const char *chip);
/* Whether `flags` are what is refused: all that it takes are there, and the flag itself is not said to be
 * another value than the refused one, which is its default. */
bool adv_catalog_refusal_met(const struct adv_catalog_refusal *refusal, const char *const *flags, int count);

/* Which releases have the key, or the model, when this one does not; NULL: it has. */
const struct adv_catalog_range *adv_catalog_key_missing(const struct adv_catalog *catalog,
                                                        const char *maxtext, const char *key);
const struct adv_catalog_range *adv_catalog_model_missing(const struct adv_catalog *catalog,
                                                          const char *maxtext, const char *model_name);

/* The libtpu that a JAX release asks for, NULL unknown; whether a libtpu is one of those. */
const char *adv_catalog_jax_asks(const struct adv_catalog *catalog, const char *jax);
bool adv_catalog_release_matches(const char *asked, const char *release);

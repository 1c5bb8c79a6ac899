/* recipe.h: what a recipe starts: the MaxText commands of a script with their keys, flags and machine.
 *
 * Knows the forms that recipes have (python3 -m maxtext…train, xpk workload create, gcluster job submit,
 * gcloud, docker, a here-document for kubectl), not what a key or a chip is. Texts are as the script has
 * them, its variables put in; what only a run could say is marked (shell.h).
 */
#pragma once

#include "engine/base/text.h"
#include "engine/recipe/shell.h"

#define ADV_LIMIT_RECIPE_RUNS      16 /* trainings of one recipe that can be chosen from */
#define ADV_LIMIT_RECIPE_DOCUMENTS 8  /* manifests inside a script */

/* The machine as a launcher names it; NULL: not said. */
struct adv_recipe_machine {
    const char *type;     /* "tpu7x-4x4x4", "v6e-256", "ct6e-standard-4t" */
    const char *topology; /* "4x4x4" */
    const char *slices;
    bool is_compute_type; /* the type is one of machines or hosts: with a topology it says the chip only */
};

struct adv_recipe_key {
    const char *name, *value; /* "--steps" where the word has dashes, which MaxText does not take */
    bool is_variable;         /* M_STEPS=5 before the command */
};

/* One command that trains. */
struct adv_recipe_run {
    const char *module;      /* "maxtext.trainers.pre_train.train" */
    const char *config_file; /* the YAML file it starts from, NULL without */
    const struct adv_recipe_key *keys;
    int keys_count;
    const char *flags; /* LIBTPU_INIT_ARGS, else XLA_FLAGS; NULL without */
    struct adv_recipe_machine machine;
    const char *stray; /* the first word that is no key=value, file or option; NULL without */
    const char
        *stray_meaning; /* what it and its neighbours are without blanks; NULL where they make no key */
    int line;
    bool may_not_run;
};

struct adv_recipe {
    struct adv_recipe_run runs[ADV_LIMIT_RECIPE_RUNS];
    int runs_count, runs_lost;
    struct adv_recipe_machine machine; /* of a command that makes the slice and trains nothing itself */
    const char *documents[ADV_LIMIT_RECIPE_DOCUMENTS]; /* manifests in here-documents */
    int documents_count;
    const char *unread; /* a command that trains in a way that is not read (benchmark_runner), NULL without */
    int unread_line;
};

/* Reads a script (or, with `words`, one command whose words are known). `names`, `values`: variables that are
 * set outside. Strings live in `arena`. Errors are those of adv_shell_read. */
ADV_MUST_CHECK adv_code adv_recipe_read(const char *text, size_t text_bytes, const char *const *names,
                                        const char *const *values, int variables_count,
                                        struct adv_arena *arena, struct adv_recipe *recipe, adv_err *err);

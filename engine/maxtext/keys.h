/* keys.h: THE table of the MaxText keys that change a prediction: one row per key, and all that is known of
 * it.
 *
 * Reading (read.h), writing (write.h), changes and their groups (changes.h), and the search over single keys
 * go through the rows; none of them names a key that a row can describe. A new key that the engine prices is
 * a member of struct adv_plan, a row here, and its use in engine/cost/. Thread safe; nothing allocates.
 */
#pragma once

#include "engine/spec/plan.h"

/* The kinds of values. */
enum adv_key_holds {
    ADV_HOLDS_BOOL,
    ADV_HOLDS_INT,
    ADV_HOLDS_INT64,
    ADV_HOLDS_NUMBER,
    ADV_HOLDS_CHOICE,
    ADV_HOLDS_DEGREE,      /* of a mesh axis: an integer; -1 takes what the others leave */
    ADV_HOLDS_PLACEMENT,   /* of a tensor: "remat" "device" "offload" */
    ADV_HOLDS_CALIBRATION, /* a method: true where it begins with "fixed" */
    ADV_HOLDS_NOTHING      /* the engine has no model of the key: said aloud when not at its default */
};

/* A value that MaxText takes, what it becomes, and what to say when the engine only comes near it. */
struct adv_key_choice {
    const char *name; /* NULL: the end of the list */
    int value;        /* of an enum; or one of the two below */
    const char *caveat;
};
enum { ADV_CHOICE_NOT_ON_TPU = -1, ADV_CHOICE_NO_MODEL = -2 };

/* Keys that only make sense together, for stepping from one plan to another. */
enum adv_key_group {
    ADV_GROUP_MESH,
    ADV_GROUP_REMAT,
    ADV_GROUP_LOSS,
    ADV_GROUP_ATTENTION,
    ADV_GROUP_EXPERTS,
    ADV_GROUP_FORMATS,
    ADV_GROUP_OPTIMIZER,
    ADV_GROUP_FLAGS, /* the XLA flags; no key */
    ADV_GROUPS,
    ADV_GROUP_NONE = ADV_GROUPS /* the job's, not the plan's: never taken over */
};

/* The models, machines and plans whose configurations speak of a key. */
enum adv_key_of {
    ADV_OF_ALL,
    ADV_OF_SLICES,
    ADV_OF_EXPERTS,
    ADV_OF_MEGABLOX, /* experts without use_tokamax_gmm, which MaxText asks for first */
    ADV_OF_DENSE,
    ADV_OF_WINDOWS,
    ADV_OFS
};

/* The condition under which MaxText reads a key. Without it, a plan that changes the key is predicted
 * like the one that does not (a property test holds the cost model to it). */
enum adv_key_needs {
    ADV_NEEDS_NOTHING,
    ADV_NEEDS_CUSTOM_REMAT,
    ADV_NEEDS_CONTEXT,
    ADV_NEEDS_STAGES,
    ADV_NEEDS_EXPERT_SHARDS,
    ADV_NEEDS_EXPERT_TILES,
    ADV_NEEDS_SPLIT_BACKWARD
};

/* Which values a search over single keys tries. */
enum adv_key_tries {
    ADV_TRIES_NOTHING,
    ADV_TRIES_LISTED,    /* row.values */
    ADV_TRIES_UP_TO_SEQ, /* those of row.values up to the sequence */
    ADV_TRIES_IF_EXPERTS,
    ADV_TRIES_IF_FORMAT_OPEN, /* where the workload leaves the number format open */
    ADV_TRIES_IF_TWO_STAGES,  /* where two axes share the weights */
    ADV_TRIES_POLICIES,
    ADV_TRIES_PLACES,
    ADV_TRIES_DEGREES,
    ADV_TRIES_BATCHES,
    ADV_TRIES_STEPS,
    ADV_TRIES_STAGE_DEPTHS,
    ADV_TRIES_MICROBATCHES,
    ADV_TRIES_GROUPED_MATMULS
};

/* When every published recipe of a generation sets a key to row.recipe. */
enum adv_key_suits {
    ADV_SUITS_NEVER,
    ADV_SUITS_ALWAYS,
    ADV_SUITS_TOKAMAX,      /* chips that Tokamax's kernels are tuned for, and sparse attention */
    ADV_SUITS_LONG,         /* long sequences under the tokamax kernel */
    ADV_SUITS_FIXED_SCALES, /* chips with fp8 */
};

/* Searches open keys by turn: the policy before the tensors that it decides about, the mesh, the batch, then
 * all others, with what decides whether a key is read before that key. */
enum { ADV_TURN_NONE, ADV_TURN_REMAT, ADV_TURN_MESH, ADV_TURN_BATCH, ADV_TURN_LAST = 23 };

enum { ADV_KEYS_MAX = 256 };

struct adv_key {
    const char *name;
    enum adv_key_holds holds;
    size_t read_at;             /* where reading puts the value, in struct adv_config_state of read.h */
    size_t plan_at, plan_bytes; /* the member of struct adv_plan that the key decides; 0 bytes: none */
    size_t follows_at;          /* a key that is not given takes this member's value; 0: base.yml's */
    double usual;               /* base.yml's value */
    double low, high;           /* the range of a number */
    const struct adv_key_choice *choices;        /* CHOICE; the first of a value is its name */
    double (*says)(const struct adv_plan *plan); /* the value that a plan gives a key that shares its member
                                                    with others; NULL: the member's own */
    bool always;                                 /* written at its default, too */
    bool unpriced;  /* read for the rules of plans alone: said aloud, like a key without a model */
    bool uncounted; /* no departure from MaxText's defaults: a tuned value, or told by other rows */
    enum adv_key_group group;
    enum adv_key_of of;
    enum adv_key_needs needs;
    enum adv_key_suits suits;
    double recipe; /* the value that recipes set */
    int turn;      /* rows of one turn are opened in their order */
    enum adv_key_tries tries;
    const double *values; /* as numbers: 0 and 1 of a switch, values of an enum */
    int values_count;
};

/* The rows, in the order in which a configuration is written. */
extern const struct adv_key adv_keys[];
extern const int adv_keys_count;

const struct adv_key *adv_key_find(const char *name); /* NULL: the key changes no prediction */

/* The key of an axis' degree inside a slice ("ici_fsdp_parallelism"), or between slices ("dcn_…"). */
const char *adv_key_of_axis(bool is_dcn, enum adv_axis axis);

/* Which kinds of keys the configuration of `plan` speaks of. */
void adv_keys_spoken(const struct adv_model *model, const struct adv_cluster *cluster,
                     const struct adv_plan *plan, bool spoken[ADV_OFS]);

/* MaxText's defaults (base.yml) for `model`; parallelism all 1, ici_fsdp and dcn_data to be filled by the
 * caller. */
void adv_plan_defaults(struct adv_plan *plan, const struct adv_model *model);

/* The member at `at`, of the kind that the key decides, as a number. */
double adv_key_number(const struct adv_key *key, const void *at);

/* The value that the plan gives the key. */
double adv_key_says(const struct adv_key *key, const struct adv_plan *plan);

/* Writes a number into `bytes` at `at`, as what the key holds. */
void adv_key_put(const struct adv_key *key, void *at, size_t bytes, double value);

/* Whether MaxText would read the key in this plan. */
bool adv_key_is_read(const struct adv_key *key, const struct adv_plan *plan);

/* The key's value in MaxText's spelling as JSON text, at most `bytes` long; false when longer. */
bool adv_key_text(const struct adv_key *key, double value, char *text, size_t bytes);

/* The choices that are priced as what they say; returns how many. */
enum { ADV_KEY_CHOICES_MAX = 16 };
int adv_key_plain_choices(const struct adv_key *key, const char *names[ADV_KEY_CHOICES_MAX]);

/* request.h: decoded requests, ready for the engine. Filled by engine/json/decode_*.c; arena-owned strings.
 */
#pragma once

#include "engine/base/budget.h"
#include "engine/spec/cluster.h"
#include "engine/spec/model.h"
#include "engine/spec/plan.h"
#include "engine/spec/software.h"
#include "engine/spec/store_wish.h"

/* One MaxText key as it was given, kept for the answer: values as JSON text. */
struct adv_config_entry {
    const char *key;
    const char *value_json;
};

struct adv_config {
    int count;
    struct adv_config_entry entries[ADV_LIMIT_CONFIG_KEYS];
    int flags_count;
    const char *flags[ADV_LIMIT_XLA_FLAGS]; /* "--xla_…=v" */
};

/* Members of an answer that are there when a request asks for them: "include": ["timeline"]. */
enum adv_include {
    ADV_INCLUDE_TIMELINE = 1 << 0,
    ADV_INCLUDE_ROOFLINE = 1 << 1,
    ADV_INCLUDE_LINKS = 1 << 2,
    ADV_INCLUDE_SCALING = 1 << 3,
    ADV_INCLUDE_TRADE_OFF = 1 << 4,
};

struct adv_estimate_request {
    struct adv_model model;
    struct adv_cluster cluster;
    struct adv_plan plan;
    struct adv_config config;
    int model_keys_count; /* as in adv_advise_request */
    const struct adv_pin *model_keys;
    enum adv_flops_convention flops_convention;
    unsigned include; /* bits of enum adv_include */
    struct adv_store_wish wish;
    struct adv_software software; /* that the plan is for */
};

enum adv_objective {
    ADV_OBJECTIVE_STEP_TIME,
    ADV_OBJECTIVE_TOKENS_PER_S,
    ADV_OBJECTIVE_USD_PER_TOKEN,
    ADV_OBJECTIVE_HBM,
    ADV_OBJECTIVE_STEP_TIME_HIGH /* of the 90 % interval: what one can count on */
};
#define ADV_OBJECTIVE_NAMES "step_time", "tokens_per_s", "usd_per_token", "hbm", "step_time_high"

struct adv_workload {
    int64_t seq_len;
    double global_batch_sequences; /* 0 = not given; exactly one of the three is */
    double per_device_batch_size;
    double tokens_per_step;
    bool any_quantization; /* "any": none and the chip's native formats */
    struct adv_plan base;  /* defaults with the workload's formats and the pins applied */
};

struct adv_pin {
    const char *key;
    const char *value_json;
};

enum { ADV_CHANGES_ANY = -1 };

struct adv_advise_request {
    struct adv_model model;
    struct adv_cluster cluster;
    const char *const *shapes; /* "4x4x4": the slices of this chip in the catalog, by size; for advice */
    int shapes_count;
    struct adv_workload workload;
    int pins_count;
    struct adv_pin pins[ADV_LIMIT_CONFIG_KEYS];
    int model_keys_count; /* architecture keys of a model that is not one of MaxText's own, as given */
    const struct adv_pin *model_keys;
    bool axis_pinned[ADV_AXIS_COUNT]; /* ICI degree fixed by a pin to workload.base.ici[axis] */
    /* remat_policy is: it and the tensor keys say where everything is. Tensor keys alone fix these tensors
     * only, and remat_policy=custom alone fixes none (custom_pinned): its tensors are the search's to choose.
     */
    bool remat_pinned, custom_pinned;
    bool tiles_pinned, batch_pinned, vocab_tiling_pinned, cp_strategy_pinned;
    bool has_one_tile_set;             /* layers with a window have the tiles of all others */
    bool saves_layer_inputs;           /* the release refuses to compute decoder_layer_input again */
    bool axis_allowed[ADV_AXIS_COUNT]; /* search.axes; all searchable ones when absent */
    bool has_baseline;
    struct adv_plan baseline;
    struct adv_config baseline_config;
    enum adv_objective objective;
    int top_k;
    int max_changes; /* keys of the baseline; 0 = the baseline itself, ADV_CHANGES_ANY = as many as it takes
                      */
    long max_evaluations;       /* 0 = the default budget */
    double fit_probability;     /* with which a ranked plan must fit its memory */
    bool fit_probability_given; /* else it is the default, and a baseline may show that less is enough */
    double memory_frac;         /* of the memory limits, that a ranked plan may plan with */
    unsigned include;           /* bits of enum adv_include */
    bool wants_sensitivities;   /* of the first plan, in the answer */
    struct adv_store_wish wish;
    struct adv_software software;    /* that plans are written for */
    adv_err job_warnings;            /* of the model and the machine; keys are at /pins */
    const struct adv_budget *budget; /* the caller's, not the document's; NULL = none */
};

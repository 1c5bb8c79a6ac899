#include "engine/answer/needs.h"

#include <stdlib.h>
#include <string.h>

#include "engine/cost/context.h"
#include "engine/maxtext/entries.h"
#include "engine/maxtext/names.h"
#include "engine/maxtext/software.h"

/* MaxText hashes n-grams of tokens: it opens the tokenizer when it reads the configuration. */
static void warn_of_tokenizer(const struct adv_model *model, adv_err *warnings)
{
    if (model->engram_layers == 0) return;
    ADV_WARN(warnings, "engram-tokenizer", "/config/tokenizer_path",
             "give tokenizer_path (in EXTRA_ARGS of a script) and the environment variable HF_TOKEN",
             "%s builds its n-gram tables from the tokenizer: MaxText refuses the run without tokenizer_path "
             "and hf_access_token, which it takes from HF_TOKEN",
             model->name);
}

static bool is_true(const struct adv_config *config, const char *key)
{
    const char *value = adv_config_find(config, key);
    return value && strcmp(value, "true") == 0;
}

/* loss_fn in MaxText's train.py: without indexer_sparse_training the step is a warm-up of the indexer. */
static void warn_of_warm_up(const struct adv_config *config, adv_err *warnings)
{
    if (is_true(config, ADV_NAME_INDEXER_SPARSE_TRAINING)) return;
    ADV_WARN(
        warnings, "indexer-warm-up", "/config/" ADV_NAME_INDEXER_SPARSE_TRAINING,
        "set " ADV_NAME_INDEXER_SPARSE_TRAINING " true",
        "with use_indexer MaxText leaves the model's loss out of the step unless " ADV_NAME_INDEXER_SPARSE_TRAINING
        " is true: the model is not trained, and XLA removes its work; "
        "the prediction is of a step that trains it");
}

static void warn_of_batch_split(const struct adv_model *model, const struct adv_config *config,
                                adv_err *warnings)
{
    const char *factor = adv_config_find(config, ADV_NAME_BATCH_SPLIT_FACTOR);
    if (!model->splits_batch) return;
    ADV_WARN(
        warnings, "batch-split-unmodelled", "/config/" ADV_NAME_MODEL_NAME,
        "let verify ask the compiler for the memory",
        "the batch-split schedule of %s is counted as the plain one; a compiled step needed an eighth more "
        "memory",
        model->name);
    if (factor && strtod(factor, NULL) == 2.0) return;
    ADV_WARN(warnings, "batch-split-factor", "/config/" ADV_NAME_BATCH_SPLIT_FACTOR,
             "set " ADV_NAME_BATCH_SPLIT_FACTOR " 2",
             "MaxText 0.2.5 compiles the batch-split schedule of %s with " ADV_NAME_BATCH_SPLIT_FACTOR
             " 2 only",
             model->name);
}

static bool takes_pictures(const struct adv_model *model, const struct adv_config *config)
{
    return adv_config_find(config, ADV_NAME_USE_MULTIMODAL) ? is_true(config, ADV_NAME_USE_MULTIMODAL)
                                                            : model->is_multimodal;
}

/* The engine prices the language model alone. */
static void warn_of_pictures(const struct adv_model *model, const struct adv_config *config,
                             adv_err *warnings)
{
    if (takes_pictures(model, config))
        ADV_WARN(warnings, "multimodal-unmodelled", "/config/" ADV_NAME_USE_MULTIMODAL,
                 "set " ADV_NAME_USE_MULTIMODAL " false to train on text alone",
                 "the encoders of pictures and speech are left out of the prediction: a step with them takes "
                 "longer and needs more memory");
    else if (model->is_multimodal)
        ADV_WARN(warnings, "text-alone", "/config/" ADV_NAME_USE_MULTIMODAL,
                 "pin " ADV_NAME_USE_MULTIMODAL " true to keep the encoders, which the prediction leaves out",
                 "%s is trained on text alone: " ADV_NAME_USE_MULTIMODAL " is false", model->name);
}

void adv_deepstack_warn(const struct adv_model *model, const struct adv_plan *plan,
                        const struct adv_config *config, adv_err *warnings)
{
    const char *layers = adv_config_find(config, ADV_NAME_DEEPSTACK_VISUAL_INDEXES_FOR_VIT);
    if (!model->has_deepstack || !plan->family.scan_layers) return;
    if (layers && strcmp(layers, "[]") == 0) return;
    ADV_WARN(warnings, "deepstack-scan", "/config/" ADV_NAME_DEEPSTACK_VISUAL_INDEXES_FOR_VIT,
             "set " ADV_NAME_DEEPSTACK_VISUAL_INDEXES_FOR_VIT " [], or " ADV_NAME_SCAN_LAYERS " false",
             "MaxText 0.2.5 refuses to scan the layers of %s while " ADV_NAME_DEEPSTACK_VISUAL_INDEXES_FOR_VIT
             " names some, even without pictures",
             model->name);
}

static void warn_of_index_loss(const struct adv_config *config, adv_err *warnings)
{
    const char *scale = adv_config_find(config, ADV_NAME_INDEXER_LOSS_SCALING_FACTOR);
    if (!scale || !(strtod(scale, NULL) > 0.0)) return;
    ADV_WARN(warnings, "not-modelled", "/config/" ADV_NAME_INDEXER_LOSS_SCALING_FACTOR, NULL,
             "the indexer's own loss computes all scores of attention once more, which the prediction leaves "
             "out");
}

static void warn_of_index(const struct adv_model *model, int64_t seq_len, adv_err *warnings)
{
    const struct adv_layer *layer = model->layers;
    while (layer < model->layers + model->layer_kinds_count && !adv_layer_picks_keys(layer, seq_len)) layer++;
    if (layer == model->layers + model->layer_kinds_count) return;
    ADV_WARN(
        warnings, "indexer-unmeasured", "/config/max_target_length",
        "let verify ask the compiler for the memory, and compare step times rather than mfu_frac",
        "beyond %d keys the indexer scores and sorts all %lld x %lld pairs of a sequence, and the flash "
        "kernel still computes all causal blocks: this is priced by counting operations, as no such step "
        "is measured, while mfu_frac counts the %d best keys",
        layer->indexer_topk, (long long)seq_len, (long long)seq_len, layer->indexer_topk);
}

void adv_needs_warn(const struct adv_model *model, int64_t seq_len, const struct adv_config *config,
                    adv_err *warnings)
{
    warn_of_tokenizer(model, warnings);
    warn_of_batch_split(model, config, warnings);
    warn_of_pictures(model, config, warnings);
    if (!adv_model_has_indexer(model)) return;
    warn_of_warm_up(config, warnings);
    warn_of_index_loss(config, warnings);
    warn_of_index(model, seq_len, warnings);
}

void adv_gathers_warn(const struct adv_catalog *catalog, const struct adv_software *software,
                      const struct adv_cluster *cluster, const struct adv_plan *plan, const char *at,
                      adv_err *warnings)
{
    adv_software_warn_gathers(catalog, software, &plan->flags, cluster->chip.name,
                              adv_cost_gather_axes(cluster, plan), at, warnings);
}

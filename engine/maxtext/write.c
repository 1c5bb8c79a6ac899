#include "engine/maxtext/write.h"

#include <string.h>

#include "engine/maxtext/entries.h"
#include "engine/maxtext/keys.h"
#include "engine/maxtext/model_keys.h"
#include "engine/maxtext/names.h"

/* Where a configuration is being written. */
struct writer {
    struct adv_arena *arena;
    struct adv_config *config;
    bool full; /* memory or keys exhausted */
};

static void put(struct writer *writer, const char *key, const char *value_json)
{
    writer->full |= adv_config_put(writer->config, writer->arena, key, value_json) != ADV_OK;
}

/* Several of MaxText's values may be one to the engine, which prices intmp as int8: a pin that says what the
 * plan says keeps its word, since MaxText tells them apart. NULL: no pin does. */
static const char *pinned_word(const struct adv_key *key, double value, const struct adv_pin *pins,
                               int pins_count)
{
    for (int i = 0; key->holds == ADV_HOLDS_CHOICE && i < pins_count; i++) {
        const char *word = pins[i].value_json;
        if (strcmp(pins[i].key, key->name) != 0 || word[0] != '"') continue;
        for (const struct adv_key_choice *choice = key->choices; choice->name; choice++) {
            const size_t length = strlen(choice->name);
            if (choice->value == (int)value && strncmp(word + 1, choice->name, length) == 0 &&
                strcmp(word + 1 + length, "\"") == 0)
                return word;
        }
    }
    return NULL;
}

static void put_plan(struct writer *writer, const struct adv_plan *plan, const struct adv_model *model,
                     const struct adv_cluster *cluster, const struct adv_pin *pins, int pins_count)
{
    bool spoken[ADV_OFS];
    struct adv_plan defaults;
    adv_keys_spoken(model, cluster, plan, spoken);
    adv_plan_defaults(&defaults, model);
    defaults.family.seq_len = plan->family.seq_len; /* base.yml's tiles as they are read for this sequence */
    adv_plan_clamp_blocks(&defaults);
    for (int i = 0; i < adv_keys_count && !writer->full; i++) {
        const struct adv_key *key = &adv_keys[i];
        char text[ADV_LIMIT_NAME];
        if (key->plan_bytes == 0 || !spoken[key->of]) continue;
        double value = adv_key_says(key, plan);
        double usual = key->follows_at ? adv_key_number(key, (const char *)plan + key->follows_at)
                                       : adv_key_says(key, &defaults);
        if (value == usual && !key->always) continue; /* exact: both are copied, never computed */
        const char *word = pinned_word(key, value, pins, pins_count);
        if (!word) writer->full |= !adv_key_text(key, value, text, sizeof text);
        put(writer, key->name, word ? word : text);
    }
}

static void put_pins(struct writer *writer, const struct adv_pin *pins, int pins_count)
{
    for (int i = 0; i < pins_count; i++) {
        size_t length = strlen(pins[i].key);
        bool is_degree = length > 12 && strcmp(pins[i].key + length - 12, "_parallelism") == 0;
        if (!is_degree && !adv_config_find(writer->config, pins[i].key)) /* degrees above 1 are written */
            put(writer, pins[i].key, pins[i].value_json);
    }
}

/* Without the key a step of a model with a sparse-attention indexer trains the indexer at most: MaxText then
 * leaves the model's loss out. */
static void put_sparse_training(struct writer *writer, const struct adv_model *model)
{
    if (adv_model_has_indexer(model) && !adv_config_find(writer->config, ADV_NAME_INDEXER_SPARSE_TRAINING))
        put(writer, ADV_NAME_INDEXER_SPARSE_TRAINING, "true");
}

/* MaxText 0.2.5 compiles the batch-split schedule in two parts only, and its default is one. */
static void put_batch_split(struct writer *writer, const struct adv_model *model)
{
    if (model->splits_batch && !adv_config_find(writer->config, ADV_NAME_BATCH_SPLIT_FACTOR))
        put(writer, ADV_NAME_BATCH_SPLIT_FACTOR, "2");
}

/* MaxText 0.2.5 builds the encoder of speech whatever use_multimodal says (models.py:139), and checks the
 * layers that take pictures in even where no picture comes (types.py:4278). */
static void put_text_alone(struct writer *writer, const struct adv_plan *plan, const struct adv_model *model)
{
    if (plan->family.use_multimodal) return;
    if (model->has_audio && !adv_config_find(writer->config, ADV_NAME_USE_AUDIO))
        put(writer, ADV_NAME_USE_AUDIO, "false");
    if (model->has_deepstack && plan->family.scan_layers &&
        !adv_config_find(writer->config, ADV_NAME_DEEPSTACK_VISUAL_INDEXES_FOR_VIT))
        put(writer, ADV_NAME_DEEPSTACK_VISUAL_INDEXES_FOR_VIT, "[]");
}

adv_code adv_config_write(const struct adv_plan *plan, const struct adv_model *model,
                          const struct adv_cluster *cluster, const struct adv_pin *pins, int pins_count,
                          struct adv_arena *arena, struct adv_config *config, adv_err *err)
{
    config->count = 0;
    struct writer writer = {arena, config, false};
    if (adv_config_write_model(model, arena, config) != ADV_OK) writer.full = true;
    put_plan(&writer, plan, model, cluster, pins, pins_count);
    put_pins(&writer, pins, pins_count);
    put_sparse_training(&writer, model);
    put_batch_split(&writer, model);
    put_text_alone(&writer, plan, model);
    if (!writer.full) return ADV_OK;
    return adv_err_add(err, ADV_E_MEMORY, "", NULL,
                       "the configuration has more than %d keys or the request's memory is used up",
                       ADV_LIMIT_CONFIG_KEYS);
}

int adv_config_departures(const struct adv_plan *plan)
{
    int count = adv_config_axes_count(plan) + (plan->policy != ADV_POLICY_FULL) +
                (plan->family.moe != ADV_MOE_MEGABLOX);
    for (int i = 0; i < adv_keys_count; i++)
        count += !adv_keys[i].uncounted && adv_key_says(&adv_keys[i], plan) != adv_keys[i].usual;
    return count;
}

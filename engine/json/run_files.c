#include "engine/json/run_files.h"

#include <string.h>

#include "engine/maxtext/names.h"
#include "engine/maxtext/write.h"
#include "engine/maxtext/model_keys.h"
#include "engine/json/decode_answer.h"
#include "engine/json/decode_model.h"
#include "engine/json/decode_plan.h"
#include "engine/json/decode_request.h"
#include "engine/json/model_in_front.h"

static bool append(struct adv_config *config, struct adv_config_entry entry)
{
    if (config->count == ADV_LIMIT_CONFIG_KEYS) return false;
    config->entries[config->count++] = entry;
    return true;
}

/* The keys that say which model it is: its name, or its dimensions as they were given. */
static bool write_model(const struct adv_model *model, const json_t *value, struct adv_arena *arena,
                        struct adv_config *keys)
{
    const struct adv_pin *given = NULL;
    int given_count = 0;
    if (adv_config_write_model(model, arena, keys) != ADV_OK) return false;
    if (adv_decode_model_given(value, arena, &given, &given_count) != ADV_OK) return false;
    for (int i = 0; i < given_count; i++) {
        int at = 0;
        while (at < keys->count && strcmp(keys->entries[at].key, given[i].key) != 0) at++;
        struct adv_config_entry entry = {given[i].key, given[i].value_json};
        if (at < keys->count)
            keys->entries[at] = entry;
        else if (!append(keys, entry))
            return false;
    }
    return true;
}

static adv_code add_model(const struct adv_catalog *catalog, const char *request_json,
                          struct adv_arena *arena, struct adv_config *config, adv_err *err)
{
    ADV_JSON_OWN json_t *root = NULL;
    struct adv_model model;
    struct adv_config *keys = adv_arena_alloc(arena, sizeof *keys);
    adv_err ignored = adv_err_empty(); /* warnings were given with the answer */
    adv_code code = adv_json_parse(request_json, strlen(request_json), &root, err);
    if (code != ADV_OK) return code;
    const json_t *value = json_object_get(root, "model");
    const json_t *given = json_object_get(root, "config");
    if (!value ||
        !adv_decode_request_model(catalog, value, "/model", given, "/config", &model, err, &ignored))
        code = adv_err_add(err, ADV_E_INVALID, "", "estimate it again",
                           "the model of this run is not known any more: its files would train another");
    if (code == ADV_OK && (!keys || !write_model(&model, value, arena, keys) ||
                           !adv_put_model_in_front(catalog, keys, given, arena, config)))
        code = adv_err_add(err, ADV_E_MEMORY, "", NULL, "the configuration has more than %d keys",
                           ADV_LIMIT_CONFIG_KEYS);
    return code;
}

const char *adv_run_file_name(const char *name)
{
    return adv_artifact_current_name(name);
}

const char *adv_run_file_type(const char *name)
{
    return adv_artifact_media_type(name);
}

adv_code adv_artifact_from_run(const struct adv_catalog *catalog, const struct adv_run_documents *run,
                               const char *name, int rank, struct adv_text *text, adv_err *err)
{
    struct adv_arena arena;
    adv_arena_init(&arena, ADV_LIMIT_ARENA_BYTES);
    struct adv_artifact_source *source = adv_arena_alloc(&arena, sizeof *source);
    adv_code code = source ? adv_decode_answer(catalog, run->response_json, strlen(run->response_json), rank,
                                               &arena, source, err)
                           : adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the answer");
    if (code == ADV_OK && source && run->is_estimate)
        code = add_model(catalog, run->request_json, &arena, &source->config, err);
    if (code == ADV_OK) code = adv_artifact_write(name, source, text, err);
    adv_arena_free(&arena);
    return code;
}

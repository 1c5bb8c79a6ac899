/* "The best plan within k changed keys" against brute force: configurations are changed as a user would, key
 * by key in MaxText's own words, decoded, checked and estimated one by one; none may beat an answer that says
 * it is exhaustive.
 */
#include "tests/unit/advise_fixture.h"

#include <string.h>

#include "engine/rank/rank.h"
#include "tests/unit/draw.h"

static const struct {
    const char *model, *cluster, *config;
    int seq_len, sequences;
} jobs[] = {
    {"llama3.1-70b", "{\"accelerator\":\"tpu7x-128\"}",
     "\"max_target_length\":8192,\"per_device_batch_size\":2,\"ici_fsdp_parallelism\":64,"
     "\"ici_tensor_parallelism\":2,\"remat_policy\":\"full\",\"attention\":\"flash\",\"use_tokamax_splash\":"
     "true",
     8192, 256},
    {"llama3.1-8b", "{\"chip\":\"v6e\",\"topology\":\"4x4\"}",
     "\"max_target_length\":8192,\"per_device_batch_size\":2,\"ici_fsdp_parallelism\":16,"
     "\"remat_policy\":\"custom\",\"context\":\"device\",\"mlpwi_0\":\"offload\",\"attention\":\"flash\"",
     8192, 32},
    {"qwen3-30b-a3b", "{\"accelerator\":\"tpu7x-32\"}",
     "\"max_target_length\":4096,\"per_device_batch_size\":2,\"ici_fsdp_parallelism\":32,"
     "\"remat_policy\":\"full\",\"attention\":\"flash\",\"use_tokamax_gmm\":true",
     4096, 64},
};
enum { JOBS = sizeof jobs / sizeof *jobs, PAIRS = 3000, CONFIG_BYTES = 2048 };

static const struct {
    const char *key, *values[6];
} keys[] = {
    {"ici_fsdp_parallelism", {"8", "16", "32", "64", "128"}},
    {"ici_tensor_parallelism", {"1", "2", "4"}},
    {"ici_context_parallelism", {"1", "2", "4"}},
    {"ici_data_parallelism", {"1", "2", "4"}},
    {"ici_expert_parallelism", {"1", "2", "4"}},
    {"per_device_batch_size", {"0.5", "1", "2", "4"}},
    {"gradient_accumulation_steps", {"1", "2", "4"}},
    {"remat_policy", {"\"full\"", "\"minimal\"", "\"save_qkv_proj\"", "\"custom\"", "\"minimal_offloaded\""}},
    {"context", {"\"device\"", "\"offload\"", "\"remat\""}},
    {"query_proj", {"\"device\"", "\"offload\""}},
    {"key_proj", {"\"device\"", "\"offload\""}},
    {"value_proj", {"\"device\"", "\"offload\""}},
    {"out_proj", {"\"device\"", "\"offload\""}},
    {"mlpwi_0", {"\"device\"", "\"offload\"", "\"remat\""}},
    {"mlpwi_1", {"\"device\"", "\"offload\""}},
    {"decoder_layer_input", {"\"offload\"", "\"device\""}},
    {"num_vocab_tiling", {"1", "2", "4", "8", "16"}},
    {"use_tokamax_splash", {"true", "false"}},
    {"sa_use_fused_bwd_kernel", {"true", "false"}},
    {"use_iota_embed", {"true", "false"}},
    {"optimizer_memory_host_offload", {"true", "false"}},
    {"sa_block_q", {"256", "1024", "2048", "4096"}},
    {"sa_block_kv", {"256", "1024", "2048", "4096"}},
    {"sa_block_kv_compute", {"256", "1024", "2048"}},
    {"sa_block_q_dkv", {"256", "1024", "2048"}},
    {"sa_block_kv_dkv", {"256", "1024", "2048", "4096"}},
    {"sa_block_kv_dkv_compute", {"256", "1024", "2048"}},
    {"sa_k_layout", {"\"SEQ_MINOR\"", "\"HEAD_DIM_MINOR\""}},
    {"sa_v_layout", {"\"SEQ_MINOR\"", "\"HEAD_DIM_MINOR\""}},
};
enum { KEYS = sizeof keys / sizeof *keys };

static uint64_t random_state = 0x2545f4914f6cdd1du;
static int pick(int count)
{
    return (int)(draw_next(&random_state) % (uint64_t)count);
}

static int values_of(int key)
{
    int count = 0;
    while (count < 6 && keys[key].values[count]) count++;
    return count;
}

/* Cautious metric of the job's configuration with the changes in `changed` (a JSON object); INFINITY: not
 * decoded, not legal, does not fit, or of another batch. */
static double brute(int job, const json_t *changed)
{
    static struct adv_estimate_request request;
    char text[CONFIG_BYTES];
    snprintf(text, sizeof text, "{\"model\":\"%s\",\"cluster\":%s,\"config\":{%s}}", jobs[job].model,
             jobs[job].cluster, jobs[job].config);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    json_object_update(json_object_get(root, "config"), (json_t *)(uintptr_t)changed);
    struct adv_arena arena;
    struct adv_estimate estimate;
    struct adv_mesh mesh;
    adv_err err;
    double metric = (double)INFINITY;
    adv_arena_init(&arena, 1 << 22);
    adv_err_init(&err);
    adv_code code = adv_decode_estimate_request(fixture_catalog(), root, &arena, &request, &err, NULL);
    const struct adv_catalog_chip *chip = adv_catalog_chip(fixture_catalog(), request.cluster.chip.name);
    struct adv_estimate_input input = {&request.model, &request.cluster, &chip->constants, &request.plan,
                                       ADV_FLOPS_CAUSAL_HALF};
    if (code == ADV_OK && adv_plan_broken_rule(&request.plan, &request.model, &request.cluster) == NULL &&
        adv_estimate_plan(&input, &estimate, NULL, NULL) == ADV_OK &&
        adv_rank_fits(&estimate, adv_rank_memory_frac(&estimate)) &&
        adv_plan_global_batch(&request.plan, &request.cluster) == jobs[job].sequences &&
        adv_mesh_place(&request.cluster, &request.plan, &mesh, NULL) == ADV_OK &&
        (!mesh.needs_split || request.plan.family.allow_split_physical_axes))
        metric = adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &estimate);
    adv_arena_free(&arena);
    json_decref(root);
    return metric;
}

static double best_within(int job, int limit)
{
    static struct fixture fixture;
    struct adv_search_result result;
    char text[CONFIG_BYTES];
    snprintf(text, sizeof text,
             "{\"model\":\"%s\",\"cluster\":%s,\"workload\":{\"seq_len\":%d,\"global_batch_sequences\":%d},"
             "\"baseline\":{\"config\":{%s}},\"search\":{\"max_changes\":%d,\"top_k\":20}}",
             jobs[job].model, jobs[job].cluster, jobs[job].seq_len, jobs[job].sequences, jobs[job].config,
             limit);
    fixture_search(&fixture, text, &result);
    assert_true(result.exhaustive);
    double best = (double)INFINITY;
    for (int i = 0; i < result.found_count; i++)
        best = fmin(best, adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &result.found[i].estimate));
    fixture_close(&fixture);
    return best;
}

static json_t *change(int key, int value)
{
    json_t *changed = json_object();
    json_object_set_new(changed, keys[key].key, json_loads(keys[key].values[value], JSON_DECODE_ANY, NULL));
    return changed;
}

static void no_single_key_beats_the_answer(void **state)
{
    (void)state;
    for (int job = 0; job < JOBS; job++) {
        double best = best_within(job, 1);
        int better = 0;
        double before = brute(job, NULL);
        assert_true(best <= before);
        for (int key = 0; key < KEYS; key++) {
            for (int value = 0; value < values_of(key); value++) {
                json_t *changed = change(key, value);
                double metric = brute(job, changed);
                json_decref(changed);
                better += metric < before;
                if (metric < best * (1 - 1e-9))
                    fail_msg("job %d: %s=%s is better: %.9g against %.9g", job, keys[key].key,
                             keys[key].values[value], metric, best);
            }
        }
        assert_true(better > 0); /* there was something to find */
    }
}

static void no_pair_of_keys_beats_the_answer(void **state)
{
    (void)state;
    double best = best_within(0, 2);
    for (int i = 0; i < PAIRS; i++) {
        int a = pick(KEYS), b = pick(KEYS), x = pick(values_of(a)), y = pick(values_of(b));
        json_t *changed = change(a, x), *other = change(b, y);
        json_object_update(changed, other);
        double metric = brute(0, changed);
        json_decref(changed);
        json_decref(other);
        if (metric < best * (1 - 1e-9))
            fail_msg("%s=%s with %s=%s is better: %.9g against %.9g", keys[a].key, keys[a].values[x],
                     keys[b].key, keys[b].values[y], metric, best);
    }
}

/* Dense baselines are small enough for three: meshes of other devices and keys that nothing reads are not
 * gone through. */
static void no_three_keys_beat_the_answer(void **state)
{
    (void)state;
    for (int job = 0; job < 2; job++) {
        double best = best_within(job, 3);
        assert_true(best <= best_within(job, 2));
        for (int i = 0; i < PAIRS; i++) {
            json_t *changed = json_object();
            char text[256] = "";
            for (int k = 0; k < 3; k++) {
                int key = pick(KEYS), value = pick(values_of(key));
                json_t *one = change(key, value);
                size_t used = strlen(text);
                snprintf(text + used, sizeof text - used, " %s=%s", keys[key].key, keys[key].values[value]);
                json_object_update(changed, one);
                json_decref(one);
            }
            double metric = brute(job, changed);
            json_decref(changed);
            if (metric < best * (1 - 1e-9))
                fail_msg("job %d:%s is better: %.9g against %.9g", job, text, metric, best);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_single_key_beats_the_answer),
        cmocka_unit_test(no_pair_of_keys_beats_the_answer),
        cmocka_unit_test(no_three_keys_beat_the_answer),
    };
    return run_group(tests);
}

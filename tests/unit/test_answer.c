#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/json/json_read.h"
#include "tests/unit/catalog_fixture.h"

static const char advise_request[] =
    "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"2x4\"},\"search\":{\"top_k\":3},"
    "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":32}}";

static struct adv_answer ask(enum adv_request_kind kind, const char *text)
{
    adv_err err;
    struct adv_answer answer;
    adv_err_init(&err);
    adv_code code = adv_answer_request(catalog, kind, text, strlen(text), &answer, &err);
    for (int i = 0; i < err.count; i++)
        print_error("%s: %s\n", err.findings[i].pointer, err.findings[i].detail);
    assert_int_equal(code, ADV_OK);
    return answer;
}

static void ranked_plans_given_back_are_estimated_the_same_and_pass_strictly(void **state)
{
    (void)state;
    struct adv_answer advice = ask(ADV_REQUEST_ADVISE, advise_request);
    json_t *root = json_loads(advice.json, 0, NULL);
    json_t *ranked = json_object_get(root, "ranked");
    assert_int_equal(json_array_size(ranked), 3);
    for (size_t i = 0; i < json_array_size(ranked); i++) {
        json_t *row = json_array_get(ranked, i);
        json_t *document =
            json_pack("{s:s, s:{s:s, s:s}, s:O, s:O, s:b}", "model", "llama3.1-8b", "cluster", "chip", "v6e",
                      "topology", "2x4", "config", json_object_get(row, "config"), "xla_flags",
                      json_object_get(row, "xla_flags"), "strict", 1);
        char *text = json_dumps(document, 0);
        struct adv_answer again = ask(ADV_REQUEST_ESTIMATE, text);
        json_t *estimate = json_object_get(row, "estimate");
        assert_close(again.step_time_s, json_number_value(json_object_get(estimate, "step_time_s")), 1e-11);
        assert_close(again.hbm_bytes_per_device,
                     json_number_value(json_object_get(estimate, "hbm_bytes_per_device")), 1e-9);
        adv_answer_free(&again);
        free(text);
        json_decref(document);
    }
    json_decref(root);
    adv_answer_free(&advice);
}

static void elapsed_time_is_filled_in_by_who_has_a_clock(void **state)
{
    (void)state;
    struct adv_answer answer = ask(ADV_REQUEST_ADVISE, advise_request);
    assert_non_null(strstr(answer.json, "\"elapsed_ms\":null"));
    adv_answer_set_elapsed(&answer, 0.5);
    assert_int_equal(strlen(answer.json), answer.json_bytes);
    json_t *root = json_loads(answer.json, 0, NULL);
    json_t *search = json_object_get(root, "search");
    assert_close(json_number_value(json_object_get(search, "elapsed_ms")), 500, 0);
    assert_close(json_number_value(json_object_get(search, "evaluations_per_s")),
                 2.0 * (double)answer.evaluations, 1e-5);
    json_decref(root);
    adv_answer_free(&answer);
}

static void answers_carry_what_a_store_wants_to_know(void **state)
{
    (void)state;
    struct adv_answer answer =
        ask(ADV_REQUEST_ESTIMATE,
            "{\"model\":\"llama3.1-8b\",\"cluster\":{\"accelerator\":\"v6e-8\"},\"store\":true,"
            "\"label\":\"nightly\",\"project\":\"p\",\"git_ref\":\"abc\","
            "\"config\":{\"per_device_batch_size\":1}}");
    assert_true(answer.wants_store && answer.fits);
    assert_string_equal(answer.label, "nightly");
    assert_string_equal(answer.project, "p");
    assert_string_equal(answer.git_ref, "abc");
    assert_string_equal(answer.model, "llama3.1-8b");
    assert_string_equal(answer.topology, "2x4");
    assert_true(answer.step_time_s > 0);
    adv_answer_free(&answer);
}

static void tuning_never_loses_to_the_default_tiles(void **state)
{
    (void)state;
    static const char *const requests[] = {
        "{\"chip\":\"tpu7x\",\"kernel\":\"splash_bwd_fused\",\"shape\":{\"q_heads\":16,\"kv_heads\":4,\"q_"
        "len\":4096,\"head_dim_qk\":128},\"top_k\":2}",
        "{\"chip\":\"v6e\",\"kernel\":\"gmm\",\"shape\":{\"m\":16384,\"k\":4096,\"n\":14336,\"num_groups\":8}"
        ",\"top_k\":2}",
        "{\"chip\":\"tpu7x\",\"kernel\":\"linear_xent\",\"shape\":{\"tokens\":4096,\"emb_dim\":4096,"
        "\"vocab\":128256},\"top_k\":2}"};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct adv_answer answer = ask(ADV_REQUEST_TUNE, requests[i]);
        json_t *root = json_loads(answer.json, 0, NULL);
        json_t *best = json_array_get(json_object_get(root, "ranked"), 0);
        json_t *second = json_array_get(json_object_get(root, "ranked"), 1);
        json_t *standard = json_object_get(root, "default");
        double best_us = json_number_value(json_object_get(best, "time_us"));
        assert_true(best_us > 0 && best_us <= json_number_value(json_object_get(second, "time_us")));
        assert_true(json_is_object(standard));
        if (json_is_true(json_object_get(standard, "fits_vmem"))) {
            assert_true(best_us <= json_number_value(json_object_get(standard, "time_us")) * (1 + 1e-9));
        }
        json_decref(root);
        adv_answer_free(&answer);
    }
}

static json_t *tuned(const char *request)
{
    struct adv_answer answer = ask(ADV_REQUEST_TUNE, request);
    json_t *root = json_loads(answer.json, 0, NULL);
    adv_answer_free(&answer);
    return root;
}

/* The first finding of a refused request; the caller frees. */
static char *refusal(const char *request, char *pointer, size_t pointer_bytes)
{
    struct adv_answer answer;
    adv_err err;
    adv_err_init(&err);
    assert_int_not_equal(
        adv_answer_request(catalog, ADV_REQUEST_TUNE, request, strlen(request), &answer, &err), ADV_OK);
    (void)snprintf(pointer, pointer_bytes, "%s", err.findings[0].pointer);
    return strdup(err.findings[0].hint);
}

static const char *const narrow =
    "{\"chip\":\"tpu7x\",\"kernel\":\"%s\",\"shape\":%s,\"scoped_vmem_limit_kib\":%.0f,\"top_k\":3}";
static const char *const attention_shape =
    "{\"q_heads\":16,\"kv_heads\":16,\"q_len\":8192,\"head_dim_qk\":128}";
static const char *const xent_shape = "{\"tokens\":8192,\"emb_dim\":4096,\"vocab\":128256}";
static const char *const gmm_shape = "{\"m\":32768,\"k\":2048,\"n\":4096,\"num_groups\":16}";

/* Under the limit that an answer names, its next better tile is found, and it is as fast as was said. */
static void the_next_better_tile_wins_under_the_limit_it_needs(void **state)
{
    (void)state;
    const struct {
        const char *kernel, *shape;
    } cases[] = {{"splash_fwd", attention_shape},
                 {"splash_bwd_fused", attention_shape},
                 {"gmm", gmm_shape},
                 {"tgmm", gmm_shape},
                 {"linear_xent", xent_shape},
                 {"linear_xent_bwd", xent_shape}};
    int climbed_all = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char request[512];
        double limit_kib = 12288.0, time_us = 0.0;
        int climbed = 0;
        for (; climbed < 50; climbed++) {
            (void)snprintf(request, sizeof request, narrow, cases[i].kernel, cases[i].shape, limit_kib);
            json_t *root = tuned(request);
            json_t *best = json_array_get(json_object_get(root, "ranked"), 0);
            const double best_us = json_number_value(json_object_get(best, "time_us"));
            if (climbed > 0) assert_true(best_us <= time_us * (1.0 + 1e-9));
            json_t *next = json_object_get(root, "next_better");
            const bool ends = json_is_null(next);
            if (!ends) {
                const double higher = json_number_value(json_object_get(next, "scoped_vmem_limit_kib"));
                time_us = json_number_value(json_object_get(next, "time_us"));
                assert_true(time_us < best_us && higher > limit_kib && higher <= 65536.0);
                limit_kib = higher;
            }
            json_decref(root);
            if (ends) break;
        }
        assert_true(climbed < 50);
        climbed_all += climbed;
    }
    assert_true(climbed_all >= 3);
}

/* The fastest time and the next better's limit and time of tgmm on v5e; 0 where there is no next. */
static void tgmm_under(const char *shape, int limit_kib, double *best_us, double *next_kib, double *next_us)
{
    char request[512];
    (void)snprintf(request, sizeof request,
                   "{\"chip\":\"v5e\",\"kernel\":\"tgmm\",\"shape\":%s,"
                   "\"scoped_vmem_limit_kib\":%d,\"top_k\":1}",
                   shape, limit_kib);
    json_t *root = tuned(request), *next = json_object_get(root, "next_better");
    *best_us =
        json_number_value(json_object_get(json_array_get(json_object_get(root, "ranked"), 0), "time_us"));
    *next_kib = json_number_value(json_object_get(next, "scoped_vmem_limit_kib"));
    *next_us = json_number_value(json_object_get(next, "time_us"));
    json_decref(root);
}

/* Also when all that a higher limit gives is one more buffer of the same tile; and no lower limit gives a
 * faster one. */
static void the_next_better_tile_needs_the_lowest_limit_that_helps(void **state)
{
    (void)state;
    static const char *const shapes[] = {"{\"m\":8192,\"k\":768,\"n\":2048,\"num_groups\":256}",
                                         "{\"m\":8192,\"k\":7168,\"n\":2048,\"num_groups\":64}"};
    for (int i = 0; i < 2; i++)
        for (int limit_kib = 4096; limit_kib <= 12288; limit_kib += 4096) {
            double best_us, next_kib, next_us, between_us, unused_kib, unused_us;
            tgmm_under(shapes[i], limit_kib, &best_us, &next_kib, &next_us);
            if (next_kib <= 0.0) continue;
            assert_true(next_us < best_us);
            for (int kib = limit_kib + 1024; kib <= (int)next_kib; kib += 1024) {
                tgmm_under(shapes[i], kib, &between_us, &unused_kib, &unused_us);
                if (kib < (int)next_kib) assert_true(between_us > best_us * (1.0 - 1e-3));
            }
            assert_close(between_us, next_us, 1e-9);
        }
}

/* The hint of a refused tuning does make it fit. */
static void a_refused_tuning_says_what_would_fit(void **state)
{
    (void)state;
    char request[512], pointer[ADV_LIMIT_POINTER];
    const char *const kernels[] = {"splash_fwd_residuals", "splash_bwd_dkv", "gmm", "tgmm",
                                   "linear_xent_bwd"};
    for (int i = 0; i < 5; i++) {
        const char *shape = i < 2 ? attention_shape : i < 4 ? gmm_shape : xent_shape;
        (void)snprintf(request, sizeof request, narrow, kernels[i], shape, 90.0);
        char *hint = refusal(request, pointer, sizeof pointer);
        assert_string_equal(pointer, "/scoped_vmem_limit_kib");
        double limit_kib = 0.0;
        assert_int_equal(sscanf(hint, "scoped_vmem_limit_kib %lf", &limit_kib), 1);
        free(hint);
        (void)snprintf(request, sizeof request, narrow, kernels[i], shape, limit_kib);
        json_t *root = tuned(request);
        assert_true(json_array_size(json_object_get(root, "ranked")) > 0);
        json_decref(root);
    }
    char *hint = refusal("{\"chip\":\"v6e\",\"kernel\":\"gmm\",\"shape\":{\"m\":4100,\"k\":2048,\"n\":1024,"
                         "\"num_groups\":8}}",
                         pointer, sizeof pointer);
    assert_string_equal(pointer, "/shape/m");
    assert_string_equal(hint, "4096 or 4160");
    free(hint);
    hint = refusal("{\"chip\":\"v6e\",\"kernel\":\"gmm\",\"shape\":{\"m\":4096,\"k\":400100,\"n\":1024,"
                   "\"num_groups\":8}}",
                   pointer, sizeof pointer);
    assert_non_null(strstr(hint, "400128"));
    free(hint);
    json_decref(tuned("{\"chip\":\"v6e\",\"kernel\":\"gmm\",\"shape\":{\"m\":4096,\"k\":400128,\"n\":1024,"
                      "\"num_groups\":8}}"));
}

static void a_tuning_gives_maxtext_keys_and_a_sweep_of_its_list(void **state)
{
    (void)state;
    char request[512];
    (void)snprintf(request, sizeof request, narrow, "gmm", gmm_shape, 32768.0);
    json_t *root = tuned(request);
    json_t *keys = json_object_get(root, "maxtext_keys"), *wi = json_object_get(keys, "wi"),
           *wo = json_object_get(keys, "wo");
    json_t *tile = json_object_get(json_array_get(json_object_get(root, "ranked"), 0), "tile");
    assert_true(json_equal(json_object_get(wi, "wi_tile_fwd_embed_dim"), json_object_get(tile, "tile_k")));
    assert_true(json_equal(json_object_get(wi, "wi_tile_fwd_mlp_dim"), json_object_get(tile, "tile_n")));
    assert_true(json_equal(json_object_get(wo, "wo_tile_fwd_mlp_dim"), json_object_get(tile, "tile_k")));
    json_t *sweep = json_object_get(root, "sweep");
    assert_int_equal(json_array_size(json_object_get(sweep, "tiles")), 5);
    assert_non_null(
        strstr(json_string_value(json_object_get(sweep, "tune_jax")), "M, K, N, GROUPS = 32768, 2048"));
    json_decref(root);
    (void)snprintf(request, sizeof request, narrow, "splash_bwd_fused", attention_shape, 32768.0);
    root = tuned(request);
    keys = json_object_get(json_object_get(root, "maxtext_keys"), "attention");
    tile = json_object_get(json_array_get(json_object_get(root, "ranked"), 0), "tile");
    assert_true(json_equal(json_object_get(keys, "sa_block_q_dkv"), json_object_get(tile, "block_q_dkv")));
    assert_true(json_is_string(json_object_get(keys, "sa_q_layout")));
    json_t *list = json_object_get(root, "short_list"), *entry;
    size_t i, runs = 0;
    json_array_foreach(list, i, entry) runs += 1 + json_array_size(json_object_get(entry, "near_equal"));
    assert_int_equal(json_array_size(list), 5);
    assert_int_equal(runs, json_array_size(json_object_get(json_object_get(root, "sweep"), "tiles")));
    assert_true(runs > 5); /* sub-blocks do not crowd out pairs */
    json_decref(root);
}

/* The picture of an answer ends where its time does, without what is outside the kernel. */
static void a_timeline_and_a_trace_are_given_when_asked(void **state)
{
    (void)state;
    char request[512];
    (void)snprintf(request, sizeof request,
                   "{\"chip\":\"tpu7x\",\"kernel\":\"splash_fwd\",\"shape\":%s,\"tile\":{\"block_q\":1024,"
                   "\"block_kv\":1024},\"timeline\":true,\"trace\":true}",
                   attention_shape);
    struct adv_answer answer = ask(ADV_REQUEST_SIMULATE, request);
    json_t *root = json_loads(answer.json, 0, NULL), *timeline = json_object_get(root, "timeline"), *part;
    size_t i;
    double outside_us = 0.0;
    json_array_foreach(json_object_get(timeline, "outside_kernel"), i, part) outside_us +=
        json_number_value(json_object_get(part, "us"));
    const double omitted = json_number_value(json_object_get(json_object_get(timeline, "omitted"), "count"));
    assert_int_equal(json_array_size(json_object_get(timeline, "steps")), ADV_LIMIT_TIMELINE_STEPS);
    assert_close(omitted + ADV_LIMIT_TIMELINE_STEPS, json_number_value(json_object_get(root, "grid_steps")),
                 0.0);
    assert_close(json_number_value(json_object_get(timeline, "end_us")) + outside_us,
                 json_number_value(json_object_get(root, "time_us")), 1e-5);
    assert_true(json_array_size(json_object_get(json_object_get(root, "trace"), "traceEvents")) >
                3 * ADV_LIMIT_TIMELINE_STEPS);
    json_decref(root);
    adv_answer_free(&answer);
}

static void a_simulation_gives_the_maxtext_keys_of_its_tile(void **state)
{
    (void)state;
    char request[512];
    (void)snprintf(request, sizeof request,
                   "{\"chip\":\"tpu7x\",\"kernel\":\"splash_fwd\",\"shape\":%s,\"tile\":{\"block_q\":1024,"
                   "\"block_kv\":2048}}",
                   attention_shape);
    struct adv_answer answer = ask(ADV_REQUEST_SIMULATE, request);
    json_t *root = json_loads(answer.json, 0, NULL);
    const json_t *keys = json_object_get(json_object_get(root, "maxtext_keys"), "attention");
    assert_int_equal(json_integer_value(json_object_get(keys, "sa_block_q")), 1024);
    assert_int_equal(json_integer_value(json_object_get(keys, "sa_block_kv")), 2048);
    json_decref(root);
    adv_answer_free(&answer);
    answer = ask(ADV_REQUEST_SIMULATE,
                 "{\"chip\":\"tpu7x\",\"kernel\":\"matmul\",\"shape\":{\"m\":4096,\"k\":4096,"
                 "\"n\":4096}}");
    root = json_loads(answer.json, 0, NULL);
    assert_true(json_is_null(json_object_get(root, "maxtext_keys")));
    json_decref(root);
    adv_answer_free(&answer);
}

/* Every wrong thing of a simulation at once, each with what is legal. */
static void a_bad_simulation_is_refused_with_the_nearest_legal_values(void **state)
{
    (void)state;
    struct adv_answer answer;
    adv_err err;
    adv_err_init(&err);
    const char *tiles = "{\"chip\":\"v6e\",\"kernel\":\"splash_fwd\",\"shape\":{\"q_heads\":8,\"kv_heads\":8,"
                        "\"q_len\":4096,\"head_dim_qk\":128},\"tile\":{\"block_q\":1000,\"block_kv\":3072,"
                        "\"block_kv_compute\":700}}";
    assert_int_not_equal(
        adv_answer_request(catalog, ADV_REQUEST_SIMULATE, tiles, strlen(tiles), &answer, &err), ADV_OK);
    assert_int_equal(err.count, 3);
    assert_non_null(strstr(err.findings[0].hint, "512"));
    assert_non_null(strstr(err.findings[1].hint, "2048 or 4096"));
    assert_non_null(strstr(err.findings[2].hint, "512"));
    adv_err_init(&err);
    const char *groups = "{\"chip\":\"v6e\",\"kernel\":\"gmm\",\"shape\":{\"m\":1024,\"k\":512,\"n\":512,"
                         "\"num_groups\":3,\"group_sizes\":[1,2,3]},\"tile\":{\"tile_m\":128,\"tile_k\":128,"
                         "\"tile_n\":128}}";
    assert_int_not_equal(
        adv_answer_request(catalog, ADV_REQUEST_SIMULATE, groups, strlen(groups), &answer, &err), ADV_OK);
    assert_string_equal(err.findings[0].pointer, "/shape/group_sizes");
    assert_string_equal(err.findings[0].hint, "m 6, or sizes that sum to 1024");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranked_plans_given_back_are_estimated_the_same_and_pass_strictly),
        cmocka_unit_test(elapsed_time_is_filled_in_by_who_has_a_clock),
        cmocka_unit_test(answers_carry_what_a_store_wants_to_know),
        cmocka_unit_test(tuning_never_loses_to_the_default_tiles),
        cmocka_unit_test(the_next_better_tile_wins_under_the_limit_it_needs),
        cmocka_unit_test(the_next_better_tile_needs_the_lowest_limit_that_helps),
        cmocka_unit_test(a_refused_tuning_says_what_would_fit),
        cmocka_unit_test(a_tuning_gives_maxtext_keys_and_a_sweep_of_its_list),
        cmocka_unit_test(a_simulation_gives_the_maxtext_keys_of_its_tile),
        cmocka_unit_test(a_bad_simulation_is_refused_with_the_nearest_legal_values),
        cmocka_unit_test(a_timeline_and_a_trace_are_given_when_asked),
    };
    return run_group_with_catalog(tests);
}

/* Every kernel on every chip with every documented option, through the text interface: what is tuned can be
 * simulated, and every answer adds up. */
#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "engine/advise.h"
#include "tests/unit/catalog_fixture.h"

static const char *const chips[] = {"tpu7x", "v6e", "v5p", "v5e", "v4"};
static const char *const splash_kernels[] = {"splash_fwd", "splash_fwd_residuals", "splash_bwd_fused",
                                             "splash_bwd_dq", "splash_bwd_dkv"};
enum { CHIPS = sizeof chips / sizeof *chips, SPLASH = sizeof splash_kernels / sizeof *splash_kernels };

/* The answer to a request, which is given up; fails with the findings when it is refused. */
static json_t *answer_of(enum adv_request_kind kind, json_t *request)
{
    struct adv_answer answer;
    adv_err err;
    adv_err_init(&err);
    char *text = json_dumps(request, JSON_COMPACT);
    const adv_code code = adv_answer_request(catalog, kind, text, strlen(text), &answer, &err);
    for (int i = 0; i < err.count; i++)
        print_error("%s\n%s: %s (%s)\n", text, err.findings[i].pointer, err.findings[i].detail,
                    err.findings[i].hint);
    assert_int_equal(code, ADV_OK);
    json_t *root = json_loads(answer.json, 0, NULL);
    assert_non_null(root);
    adv_answer_free(&answer);
    free(text);
    json_decref(request);
    return root;
}

static double number(const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);
    if (!json_is_number(value)) fail_msg("%s is not a number", member);
    return json_number_value(value);
}

static double sum_of(const json_t *list, const char *member)
{
    double sum = 0.0;
    for (size_t i = 0; i < json_array_size(list); i++) sum += number(json_array_get(list, i), member);
    return sum;
}

/* {chip, kernel, shape[, tile], …rest}; `shape` and `rest` are JSON texts, `tile` is borrowed. */
static json_t *request_of(const char *chip, const char *kernel, const char *shape, const json_t *tile,
                          const char *rest)
{
    json_t *request = json_loads(rest, 0, NULL), *members = json_loads(shape, 0, NULL);
    assert_non_null(request);
    assert_non_null(members);
    (void)json_object_set_new(request, "chip", json_string(chip));
    (void)json_object_set_new(request, "kernel", json_string(kernel));
    (void)json_object_set_new(request, "shape", members);
    if (tile) (void)json_object_set_new(request, "tile", json_deep_copy(tile));
    return request;
}

/* Parts make up the time, buffers the VMEM, and the verdict is that of the limit. */
static void assert_adds_up(const json_t *answer)
{
    const double time_us = number(answer, "time_us"), bytes = number(answer, "vmem_bytes");
    assert_true(time_us > 0.0 && isfinite(time_us));
    assert_close(sum_of(json_object_get(answer, "parts"), "us"), time_us, 1e-9);
    const json_t *buffers = json_object_get(answer, "vmem_parts"), *needed;
    if (json_array_size(buffers) > 0) assert_close(sum_of(buffers, "bytes"), bytes, 1e-9);
    needed = json_object_get(answer, "scoped_vmem_limit_needed_kib");
    if (json_is_true(json_object_get(answer, "fits_vmem")) && json_is_number(needed))
        assert_true(json_number_value(needed) <=
                    1024.0 * ceil(number(answer, "vmem_limit_bytes") / 1048576.0));
    else if (json_is_number(needed))
        assert_true(json_number_value(needed) * 1024.0 > number(answer, "vmem_limit_bytes"));
}

/* Bars lie inside their steps, steps follow each other, and the last ends where time_us does without what is
 * outside; made-up group sizes end within a few per cent. */
static void assert_pictures_add_up(const json_t *answer)
{
    static const char *const lanes[] = {"dma_in", "mxu", "vector", "dma_out"};
    const json_t *timeline = json_object_get(answer, "timeline"), *steps = json_object_get(timeline, "steps");
    const double outside_us = sum_of(json_object_get(timeline, "outside_kernel"), "us");
    const double time_us = number(answer, "time_us"), end_us = number(timeline, "end_us");
    const bool rough = json_is_true(json_object_get(timeline, "representative_groups"));
    assert_close(end_us + outside_us, time_us, rough ? 0.1 : 1e-3 / time_us + 1e-6);
    double now_us = 0.0;
    assert_true(json_array_size(steps) >= 1);
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        assert_true(number(step, "start_us") >= now_us - 2e-4);
        now_us = number(step, "end_us");
        for (int lane = 0; lane < 4; lane++) {
            const json_t *span = json_object_get(step, lanes[lane]);
            if (json_is_null(span)) continue;
            assert_true(json_number_value(json_array_get(span, 1)) <= end_us + 2e-4);
            assert_true(json_number_value(json_array_get(span, 0)) <
                        json_number_value(json_array_get(span, 1)));
        }
    }
    assert_true(now_us <= end_us + 2e-4);
    const json_t *events = json_object_get(json_object_get(answer, "trace"), "traceEvents");
    double last_us = 0.0;
    size_t traced = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        const char *phase = json_string_value(json_object_get(event, "ph"));
        if (strcmp(phase, "M") == 0) continue;
        if (strcmp(json_string_value(json_object_get(event, "name")), "step") == 0) {
            const json_t *step = json_array_get(steps, traced++);
            assert_close(number(event, "ts"), number(step, "start_us"), 0.0);
            assert_true(fabs(number(event, "ts") + number(event, "dur") - number(step, "end_us")) < 2.1e-4);
        }
        assert_string_equal(phase, "X");
        assert_true(number(event, "dur") >= 0.0);
        last_us = fmax(last_us, number(event, "ts") + number(event, "dur"));
    }
    assert_int_equal(traced, json_array_size(steps));
    assert_close(last_us, end_us + outside_us, 2e-3 / last_us + 1e-9);
    const bool walked = json_is_true(json_object_get(timeline, "walked"));
    assert_true(walked == json_is_null(json_object_get(timeline, "why_not_walked")));
    if (walked)
        assert_close((double)json_array_size(steps) + number(json_object_get(timeline, "omitted"), "count"),
                     number(answer, "grid_steps"), rough ? 0.1 : 0.0);
}

static double simulate(const char *chip, const char *kernel, const char *shape, const json_t *tile,
                       const char *rest)
{
    json_t *answer = answer_of(ADV_REQUEST_SIMULATE, request_of(chip, kernel, shape, tile, rest));
    assert_adds_up(answer);
    if (json_object_get(answer, "timeline")) assert_pictures_add_up(answer);
    const double time_us = number(answer, "time_us");
    json_decref(answer);
    return time_us;
}

static const char *const pictures = "{\"timeline\":true,\"trace\":true}";

/* Tunes; checks that the ranking ascends, that each of its tiles and the default cost what simulate says, and
 * that what is listed is legal and fits. Returns the best tile; the caller gives it back. */
static json_t *tune(const char *chip, const char *kernel, const char *shape, const char *rest)
{
    json_t *answer = answer_of(ADV_REQUEST_TUNE, request_of(chip, kernel, shape, NULL, rest));
    const json_t *ranked = json_object_get(answer, "ranked"), *standard = json_object_get(answer, "default");
    double before_us = 0.0;
    assert_true(json_array_size(ranked) >= 1);
    for (size_t i = 0; i < json_array_size(ranked); i++) {
        const json_t *row = json_array_get(ranked, i);
        const double time_us = number(row, "time_us");
        assert_true(time_us >= before_us && json_is_true(json_object_get(row, "fits_vmem")));
        assert_close(simulate(chip, kernel, shape, json_object_get(row, "tile"), rest), time_us, 1e-9);
        before_us = time_us;
    }
    if (json_is_object(standard))
        assert_close(simulate(chip, kernel, shape, json_object_get(standard, "tile"), rest),
                     number(standard, "time_us"), 1e-9);
    json_t *best = json_deep_copy(json_object_get(json_array_get(ranked, 0), "tile"));
    json_decref(answer);
    return best;
}

static const char *const typical_attention =
    "{\"batch\":2,\"q_heads\":8,\"kv_heads\":2,\"q_len\":4096,\"head_dim_qk\":128}";
static const char *const typical_gmm = "{\"m\":8192,\"k\":2048,\"n\":1536,\"num_groups\":16}";
static const char *const typical_xent = "{\"tokens\":4096,\"emb_dim\":4096,\"vocab\":128256}";

static void every_kernel_is_tuned_simulated_and_drawn_on_every_chip(void **state)
{
    (void)state;
    static const struct {
        const char *kernel, *const *shape;
    } rows[] = {
        {"splash_fwd", &typical_attention},
        {"splash_fwd_residuals", &typical_attention},
        {"splash_bwd_fused", &typical_attention},
        {"splash_bwd_dq", &typical_attention},
        {"splash_bwd_dkv", &typical_attention},
        {"gmm", &typical_gmm},
        {"tgmm", &typical_gmm},
        {"linear_xent", &typical_xent},
        {"linear_xent_bwd", &typical_xent},
    };
    static const char *const spreads[] = {"balanced", "multinomial", "zipf", "worst", "multinomial"};
    for (int c = 0; c < CHIPS; c++) {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            json_t *best = tune(chips[c], rows[i].kernel, *rows[i].shape, "{}");
            (void)simulate(chips[c], rows[i].kernel, *rows[i].shape, best, pictures);
            json_decref(best);
        }
        (void)simulate(chips[c], "matmul", "{\"m\":4096,\"k\":4096,\"n\":4096}", NULL, pictures);
        for (size_t i = 0; i < sizeof spreads / sizeof *spreads; i++) {
            char shape[256];
            (void)snprintf(shape, sizeof shape,
                           "{\"m\":16384,\"k\":2048,\"n\":1536,\"num_groups\":%d,\"version\":2,"
                           "\"group_distribution\":\"%s\"}",
                           i % 2 ? 16 : 128, spreads[i]);
            (void)simulate(chips[c], "gmm", shape, NULL, pictures);
        }
        for (size_t i = 0; i < SPLASH; i++) {
            static const char *const ring =
                "{\"q_heads\":8,\"kv_heads\":2,\"q_len\":1024,\"head_dim_qk\":128,\"context_shards\":4,"
                "\"context_parallel_strategy\":\"ring\",\"context_load_balanced\":true}";
            json_t *best = tune(chips[c], splash_kernels[i], ring, "{}");
            (void)simulate(chips[c], splash_kernels[i], ring, best, pictures);
            json_decref(best);
        }
    }
}

/* XLA's work without a Pallas kernel is simulated beside it: attention that keeps its scores in VMEM is
 * faster everywhere, and where nothing was timed the answer says so. */
static void baselines_of_xla_are_simulated_on_every_chip(void **state)
{
    (void)state;
    static const struct {
        const char *kernel, *const *shape, *rival, *timed_on;
    } rows[] = {
        {"attention_xla", &typical_attention, "splash_fwd", "tpu7x v6e v5p"},
        {"attention_xla_bwd", &typical_attention, "splash_bwd_fused", "tpu7x"},
        {"ragged_dot_xla", &typical_gmm, NULL, "tpu7x v6e v5p v5e"},
        {"ragged_dot_xla_tgmm", &typical_gmm, NULL, "tpu7x v6e v5p v5e"},
    };
    for (int c = 0; c < CHIPS; c++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const double xla_us = simulate(chips[c], rows[i].kernel, *rows[i].shape, NULL, pictures);
            json_t *best = rows[i].rival ? tune(chips[c], rows[i].rival, *rows[i].shape, "{}") : NULL;
            if (best) assert_true(simulate(chips[c], rows[i].rival, *rows[i].shape, best, "{}") < xla_us);
            json_decref(best);
            json_t *answer = answer_of(ADV_REQUEST_SIMULATE,
                                       request_of(chips[c], rows[i].kernel, *rows[i].shape, NULL, "{}"));
            assert_int_equal(json_is_true(json_object_get(answer, "extrapolated")),
                             !strstr(rows[i].timed_on, chips[c]));
            assert_int_equal(json_array_size(json_object_get(answer, "vmem_parts")), 0);
            json_decref(answer);
        }
}

/* Masks, head sizes, sharings: each with every splash kernel, tuned, simulated and drawn. */
static void every_attention_shape_works_with_every_kernel(void **state)
{
    (void)state;
    const char *const load_balanced =
        "{\"q_heads\":8,\"kv_heads\":8,\"q_len\":2048,\"kv_len\":8192,\"head_dim_qk\":128,"
        "\"context_shards\":4,\"context_load_balanced\":true}";
    const char *const ring =
        "{\"q_heads\":8,\"kv_heads\":8,\"q_len\":2048,\"head_dim_qk\":128,\"context_shards\":4,"
        "\"context_parallel_strategy\":\"ring\"}";
    const char *const balanced_ring =
        "{\"q_heads\":8,\"kv_heads\":4,\"q_len\":2048,\"head_dim_qk\":128,\"context_shards\":4,"
        "\"context_parallel_strategy\":\"ring\",\"context_parallel_load_balance\":true}";
    const char *const ulysses =
        "{\"q_heads\":8,\"kv_heads\":8,\"q_len\":2048,\"head_dim_qk\":128,\"context_shards\":4,"
        "\"context_parallel_strategy\":\"ulysses\"}";
    const char *const shapes[] = {
        "{\"q_heads\":8,\"kv_heads\":8,\"q_len\":4096,\"head_dim_qk\":128,\"causal\":false}",
        "{\"q_heads\":8,\"kv_heads\":1,\"q_len\":4096,\"head_dim_qk\":128,\"window\":1000}",
        "{\"q_heads\":8,\"kv_heads\":8,\"q_len\":4096,\"head_dim_qk\":128,\"chunk\":1024}",
        "{\"q_heads\":8,\"kv_heads\":8,\"q_len\":4096,\"head_dim_qk\":128,\"segment_ids\":true}",
        load_balanced,
        "{\"q_heads\":8,\"kv_heads\":8,\"q_len\":2048,\"head_dim_qk\":128,\"context_shards\":4}",
        ring,
        balanced_ring,
        ulysses,
        "{\"q_heads\":8,\"kv_heads\":8,\"q_len\":4096,\"head_dim_qk\":192,\"head_dim_v\":128}",
        "{\"q_heads\":8,\"kv_heads\":8,\"q_len\":4096,\"head_dim_qk\":64}",
        "{\"q_heads\":8,\"kv_heads\":8,\"q_len\":4096,\"head_dim_qk\":72}",
        "{\"q_heads\":8,\"kv_heads\":8,\"q_len\":4096,\"head_dim_qk\":96}",
        "{\"q_heads\":8,\"kv_heads\":4,\"q_len\":4096,\"head_dim_qk\":256,\"dtype\":\"float32\"}",
        "{\"q_heads\":8,\"kv_heads\":8,\"q_len\":512,\"head_dim_qk\":128}",
        "{\"q_heads\":8,\"kv_heads\":8,\"q_len\":2688,\"head_dim_qk\":128}",
        "{\"batch\":3,\"q_heads\":8,\"kv_heads\":8,\"q_len\":1024,\"kv_len\":4096,\"head_dim_qk\":128}",
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int k = 0; k < SPLASH; k++) {
            json_t *best = tune("tpu7x", splash_kernels[k], shapes[i], "{\"scoped_vmem_limit_kib\":65536}");
            (void)simulate("tpu7x", splash_kernels[k], shapes[i], best,
                           "{\"timeline\":true,\"trace\":true,\"scoped_vmem_limit_kib\":65536}");
            json_decref(best);
        }
}

/* Ulysses is whole sequences of a share of the heads; a ring computes the all-gather's tiles, and its merges
 * and launches come on top, so more shards' keys never make it faster than one gather. */
static void context_strategies_differ_in_what_a_device_computes(void **state)
{
    (void)state;
    static const char *const shared = "{\"q_heads\":8,\"kv_heads\":8,\"q_len\":2048,\"head_dim_qk\":128,"
                                      "\"context_shards\":4,\"context_parallel_strategy\":\"%s\"}";
    static const char *const whole = "{\"q_heads\":2,\"kv_heads\":2,\"q_len\":8192,\"head_dim_qk\":128}";
    for (int k = 0; k < SPLASH; k++) {
        double time_us[3];
        static const char *const names[] = {"all_gather", "ring", "ulysses"};
        json_t *tile =
            json_loads("{\"block_q\":1024,\"block_kv\":1024,\"block_q_dkv\":1024,\"block_kv_dkv\":1024,"
                       "\"block_q_dq\":1024,\"block_kv_dq\":1024}",
                       0, NULL);
        for (int i = 0; i < 3; i++) {
            char shape[256];
            (void)snprintf(shape, sizeof shape, shared, names[i]);
            time_us[i] = simulate("tpu7x", splash_kernels[k], shape, tile, "{}");
        }
        assert_true(time_us[1] > time_us[0]);
        assert_true(time_us[2] < time_us[0]); /* the last of four shards has 7/4 of the mean */
        assert_close(time_us[2], simulate("tpu7x", splash_kernels[k], whole, tile, "{}"), 1e-12);
        json_decref(tile);
    }
}

/* Less to look at is never slower: a window, a chunk, one of the shards that share a sequence. */
static void masks_save_time(void **state)
{
    (void)state;
    static const char *const whole = "{\"q_heads\":8,\"kv_heads\":8,\"q_len\":8192,\"head_dim_qk\":128%s}";
    static const char *const rest[] = {",\"causal\":false", "", ",\"window\":2048", ",\"chunk\":1024"};
    for (int k = 0; k < SPLASH; k++) {
        double before_us = (double)INFINITY;
        for (int i = 0; i < 4; i++) {
            char shape[256];
            (void)snprintf(shape, sizeof shape, whole, rest[i]);
            json_t *tile =
                json_loads("{\"block_q\":512,\"block_kv\":512,\"block_q_dkv\":512,\"block_kv_dkv\":512,"
                           "\"block_q_dq\":512,\"block_kv_dq\":512}",
                           0, NULL);
            const double time_us = simulate("v6e", splash_kernels[k], shape, tile, "{}");
            assert_true(time_us < before_us);
            before_us = time_us;
            json_decref(tile);
        }
    }
}

static void every_layout_and_flag_is_taken(void **state)
{
    (void)state;
    static const char *const flags[] = {"{\"flags\":{\"use_max_logit_estimate\":30.5}}",
                                        "{\"flags\":{\"dq_reduction_steps\":3}}",
                                        "{\"flags\":{\"attn_logits_soft_cap\":50}}",
                                        "{\"flags\":{\"kernel_only\":true}}",
                                        "{\"flags\":{\"use_experimental_scheduler\":true}}",
                                        "{\"flags\":{\"xla_tpu_scoped_vmem_limit_kib\":49152}}"};
    for (int c = 0; c < CHIPS; c++)
        for (int k = 0; k < SPLASH; k++) {
            for (int layouts = 0; layouts < 8; layouts++) {
                json_t *tile = json_pack(
                    "{s:i,s:i,s:i,s:i,s:i,s:i,s:s,s:i,s:i,s:b,s:b}", "block_q", 1024, "block_kv", 1024,
                    "block_q_dkv", 1024, "block_kv_dkv", 1024, "block_q_dq", 512, "block_kv_dq", 512,
                    "q_layout", layouts & 4 ? "SEQ_MINOR" : "HEAD_DIM_MINOR", "k_layout", layouts & 2 ? 2 : 1,
                    "v_layout", layouts & 1 ? 2 : 1, "use_base2_exp", 1, "use_experimental_scheduler", 1);
                (void)simulate(chips[c], splash_kernels[k], typical_attention, tile, flags[layouts % 6]);
                json_decref(tile);
            }
        }
}

static void every_grouped_shape_works_with_both_kernels(void **state)
{
    (void)state;
    static const char *const shapes[] = {
        "{\"m\":8192,\"k\":2048,\"n\":1536,\"num_groups\":16,\"group_distribution\":\"balanced\"}",
        "{\"m\":8192,\"k\":2048,\"n\":1536,\"num_groups\":16,\"group_distribution\":\"zipf\"}",
        "{\"m\":8192,\"k\":2048,\"n\":1536,\"num_groups\":16,\"group_distribution\":\"worst\"}",
        "{\"m\":4096,\"k\":2048,\"n\":1536,\"num_groups\":4,\"group_sizes\":[0,100,3000,996]}",
        "{\"m\":8192,\"k\":2048,\"n\":1536,\"num_groups\":16,\"rhs_transposed\":true}",
        "{\"m\":8192,\"k\":2048,\"n\":1536,\"num_groups\":16,\"return_residuals\":true}",
        "{\"m\":8192,\"k\":2048,\"n\":1536,\"num_groups\":16,\"dtype\":\"fp8\"}",
        "{\"m\":8192,\"k\":2048,\"n\":1536,\"num_groups\":16,\"dtype\":\"int8\",\"out_dtype\":\"float32\"}",
        "{\"m\":8192,\"k\":2880,\"n\":2880,\"num_groups\":32}",
        "{\"m\":300,\"k\":256,\"n\":100,\"num_groups\":2}",
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int t = 0; t < 2; t++) {
            const char *kernel = t ? "tgmm" : "gmm";
            json_t *best = tune("v6e", kernel, shapes[i], "{}");
            (void)simulate("v6e", kernel, shapes[i], best, pictures);
            json_decref(best);
        }
    (void)simulate("tpu7x", "gmm", "{\"m\":8192,\"k\":2048,\"n\":1536,\"num_groups\":16,\"version\":2}", NULL,
                   pictures);
}

static bool warns_of(const json_t *answer, const char *code)
{
    size_t index;
    json_t *warning;
    json_array_foreach(
        json_object_get(answer, "warnings"), index,
        warning) if (!strcmp(json_string_value(json_object_get(warning, "code")), code)) return true;
    return false;
}

/* Short blocks waste less of a short causal square: the default ranks there, though the field's space starts
 * at 1024. A default that masks the contraction's tail is not ranked, and said to be faster. */
static void a_default_beats_the_ranking_only_where_its_tail_is_masked(void **state)
{
    (void)state;
    static const struct {
        const char *chip, *kernel, *shape;
        bool beats;
    } cases[] = {
        {"v5p", "splash_fwd_residuals", "{\"q_heads\":16,\"kv_heads\":16,\"q_len\":1024,\"head_dim_qk\":256}",
         false},
        {"v5p", "splash_fwd", "{\"q_heads\":8,\"kv_heads\":8,\"q_len\":1024,\"head_dim_qk\":128}", false},
        {"v6e", "gmm", "{\"m\":8192,\"k\":2880,\"n\":2880,\"num_groups\":8}", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int wide = 0; wide < 2; wide++) {
            json_t *request =
                json_pack("{s:s, s:s, s:o, s:b}", "chip", cases[i].chip, "kernel", cases[i].kernel, "shape",
                          json_loads(cases[i].shape, 0, NULL), "wide", wide);
            json_t *answer = answer_of(ADV_REQUEST_TUNE, request);
            double best_us = number(json_array_get(json_object_get(answer, "ranked"), 0), "time_us");
            double default_us = number(json_object_get(answer, "default"), "time_us");
            assert_int_equal(default_us < best_us, cases[i].beats);
            assert_int_equal(warns_of(answer, "default-outside-space"), cases[i].beats);
            json_decref(answer);
        }
}

/* Spreading the rows unevenly costs: worst straddles every tile edge, balanced as few as can be. */
static void distributions_are_ordered(void **state)
{
    (void)state;
    static const char *const names[] = {"balanced", "multinomial", "worst"};
    json_t *tile = json_pack("{s:i,s:i,s:i}", "tile_m", 128, "tile_k", 2048, "tile_n", 1536);
    double before_us = 0.0;
    for (int i = 0; i < 3; i++) {
        char shape[256];
        (void)snprintf(shape, sizeof shape,
                       "{\"m\":8192,\"k\":2048,\"n\":1536,\"num_groups\":64,\"group_distribution\":\"%s\"}",
                       names[i]);
        const double time_us = simulate("v6e", "gmm", shape, tile, "{}");
        assert_true(time_us > before_us * (i == 1 ? 1.0 : 0.999));
        before_us = time_us;
    }
    json_decref(tile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_is_tuned_simulated_and_drawn_on_every_chip),
        cmocka_unit_test(baselines_of_xla_are_simulated_on_every_chip),
        cmocka_unit_test(every_attention_shape_works_with_every_kernel),
        cmocka_unit_test(masks_save_time),
        cmocka_unit_test(context_strategies_differ_in_what_a_device_computes),
        cmocka_unit_test(every_layout_and_flag_is_taken),
        cmocka_unit_test(every_grouped_shape_works_with_both_kernels),
        cmocka_unit_test(a_default_beats_the_ranking_only_where_its_tail_is_masked),
        cmocka_unit_test(distributions_are_ordered),
    };
    return run_group_with_catalog(tests);
}

/* Two-stage gathers and experts sharded by their number, against brute force: the search builds few of these
 * plans and proves the others no better (search/space.c); here each of them is built and priced. */
#include "tests/unit/advise_fixture.h"

#include <math.h>
#include <string.h>

#include "engine/hardware/mesh.h"
#include "engine/rank/rank.h"
#include "engine/search/space_choices.h"
#include "engine/search/space_tiles.h"
#include "tests/unit/draw.h"

enum { PROBLEMS = 150 };

static uint64_t random_state = 0x853c49e6748fea9bu;
static int pick(int count)
{
    return (int)(draw_next(&random_state) % (uint64_t)count);
}

struct oracle {
    const struct fixture *fixture;
    struct adv_plan base;
    struct adv_tile_memo *tiles;
    long priced, two_stage, sharded; /* plans, and those that the search need not build */
    double best;
    struct adv_plan best_plan;
};

static void price(struct oracle *oracle, struct adv_plan plan)
{
    const struct adv_advise_request *request = oracle->fixture->request;
    struct adv_estimate estimate;
    adv_tile_memo_apply(oracle->tiles, &plan);
    if (adv_plan_broken_rule(&plan, &request->model, &request->cluster)) return;
    adv_choices_finish(&plan);
    struct adv_estimate_input input = {&request->model, &request->cluster, oracle->fixture->constants, &plan,
                                       ADV_FLOPS_CAUSAL_HALF};
    if (adv_estimate_plan(&input, &estimate, NULL, NULL) != ADV_OK) return;
    oracle->priced++;
    oracle->two_stage += plan.family.two_stage_gather;
    oracle->sharded += plan.family.shard_exp_on_fsdp || plan.family.use_2d_fsdp_sharding ||
                       plan.family.rule != ADV_RULE_DEFAULT;
    double metric = adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &estimate);
    if (!adv_rank_fits(&estimate, adv_rank_memory_frac(&estimate)) || metric >= oracle->best) return;
    oracle->best = metric;
    oracle->best_plan = plan;
}

/* All that is left open on one mesh and batch. */
static void over_gathers(struct oracle *oracle, const struct adv_plan *start)
{
    for (int variant = 0; variant < 2 * 2 * 2 * 2 * 2; variant++) {
        struct adv_plan plan = *start;
        plan.family.two_stage_gather = variant & 1;
        plan.family.use_ring_of_experts = variant >> 1 & 1;
        plan.family.shard_exp_on_fsdp = variant >> 2 & 1;
        plan.family.use_2d_fsdp_sharding = variant >> 3 & 1;
        plan.family.rule = variant >> 4 & 1 ? ADV_RULE_SHARD_EXP_ON_FSDP : ADV_RULE_DEFAULT;
        price(oracle, plan);
    }
}

static void enumerate(struct oracle *oracle, int sequences)
{
    const struct adv_cluster *cluster = &oracle->fixture->request->cluster;
    int devices = cluster->devices;
    for (int transpose = 1; transpose <= 8; transpose *= 2)
        for (int expert = 1; expert * transpose <= devices; expert++)
            for (int data = 1; data * expert * transpose <= devices; data++) {
                if (devices % (data * expert * transpose) != 0) continue;
                for (int steps = 1; steps <= sequences; steps++) {
                    if (sequences % steps != 0) continue;
                    struct adv_plan plan = oracle->base;
                    struct adv_mesh mesh;
                    plan.family.ici[ADV_AXIS_FSDP_TRANSPOSE] = transpose;
                    plan.family.ici[ADV_AXIS_EXPERT] = expert;
                    plan.family.ici[ADV_AXIS_DATA] = data;
                    plan.family.ici[ADV_AXIS_FSDP] = devices / (data * expert * transpose);
                    plan.family.gradient_accumulation_steps = steps;
                    plan.family.per_device_batch_size = (double)sequences / steps / devices;
                    assert_int_equal(adv_mesh_place(cluster, &plan, &mesh, NULL), ADV_OK);
                    plan.family.allow_split_physical_axes = mesh.needs_split;
                    over_gathers(oracle, &plan);
                }
            }
}

static void write_request(char *text, size_t text_bytes, int sequences, bool fixed_fp8)
{
    static const char *const topologies[] = {"2x2x1", "2x2x2", "2x2x4"};
    static const int experts[] = {8, 16, 32};
    double gib = 6 + pick(24); /* enough for some plans only */
    snprintf(text, text_bytes,
             "{\"model\":{\"decoder_block\":\"qwen3_moe\",\"base_emb_dim\":%d,\"base_num_query_heads\":8,"
             "\"base_num_kv_heads\":4,\"head_dim\":128,\"base_mlp_dim\":%d,\"base_moe_mlp_dim\":%d,"
             "\"num_experts\":%d,\"num_experts_per_tok\":%d,\"base_num_decoder_layers\":%d,\"vocab_size\":"
             "32768,\"mlp_activations\":[\"silu\",\"linear\"]},\"cluster\":{\"chip\":\"tpu7x\",\"topology\":"
             "\"%s\",\"overrides\":{\"hbm_usable_bytes_per_device\":%.0f}},\"workload\":{\"seq_len\":2048,"
             "\"global_batch_sequences\":%d%s},\"pins\":{\"remat_policy\":\"full\",\"num_vocab_tiling\":1%s},"
             "\"search\":{\"top_k\":100,\"axes\":[\"data\",\"fsdp\",\"fsdp_transpose\",\"expert\"]}}",
             1024 * (1 + pick(3)), 1024, 1024, experts[pick(3)], 1 << pick(3), 4 + 4 * pick(4),
             topologies[pick(3)], gib * 1073741824.0, sequences,
             fixed_fp8 ? ",\"quantization\":\"fp8_full\"" : "",
             fixed_fp8 ? ",\"weight_quantization_calibration_method\":\"fixed,-224,224\","
                         "\"act_quantization_calibration_method\":\"fixed,-224,224\""
                       : "");
}

static double best_of(const struct adv_search_result *result)
{
    double best = (double)INFINITY;
    for (int i = 0; i < result->found_count; i++)
        best = fmin(best, adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &result->found[i].estimate));
    return best;
}

static void no_gather_or_sharding_of_experts_beats_those_that_are_searched(void **state)
{
    (void)state;
    static struct fixture fixture;
    long two_stage = 0, sharded = 0, compared = 0, halved = 0;
    for (int p = 0; p < PROBLEMS; p++) {
        char text[2048];
        struct adv_search_result result;
        int sequences = 32 * (1 + pick(4));
        bool fixed_fp8 = pick(2);
        write_request(text, sizeof text, sequences, fixed_fp8);
        fixture_search(&fixture, text, &result);
        struct oracle oracle = {.fixture = &fixture, .base = result.base, .best = (double)INFINITY};
        oracle.base.optimizer_host_offload = false;
        /* as in every fp8 plan of the search */
        if (fixed_fp8) oracle.base.family.moe = ADV_MOE_TOKAMAX, oracle.base.family.use_qwix = true;
        oracle.tiles = adv_tile_memo_create(&fixture.request->model, &fixture.request->cluster,
                                            fixture.constants, NULL, &fixture.arena);
        assert_non_null(oracle.tiles);
        enumerate(&oracle, sequences);
        two_stage += oracle.two_stage;
        sharded += oracle.sharded;
        if (isfinite(oracle.best)) {
            compared++;
            assert_true(result.exhaustive);
            /* of plans alike to 1e-3 on meshes that shard alike the answer has one */
            if (fabs(best_of(&result) / oracle.best - 1) > 1.001e-3)
                fail_msg("search %.9g, brute force %.9g", best_of(&result), oracle.best);
        }
        for (int i = 0; i < result.found_count; i++) {
            const struct adv_plan *plan = &result.found[i].plan;
            bool shards = plan->family.shard_exp_on_fsdp || plan->family.rule == ADV_RULE_SHARD_EXP_ON_FSDP;
            assert_true(fixed_fp8 || !shards);
            halved += shards;
        }
        fixture_close(&fixture);
    }
    assert_true(compared > PROBLEMS / 2);
    assert_true(two_stage > 1000 && sharded > 1000 && halved > 0); /* both sides were seen */
}

/* Beside data both ways are in the space: at least one problem has each. */
static void two_stages_are_offered_where_one_axis_cannot_stand_for_them(void **state)
{
    (void)state;
    static struct fixture fixture;
    static const char *const pins[] = {"\"ici_fsdp_transpose_parallelism\":2,\"ici_data_parallelism\":2",
                                       "\"ici_fsdp_transpose_parallelism\":2",
                                       "\"ici_fsdp_transpose_parallelism\":2,"
                                       "\"moe_fsdp_use_two_stage_all_gather\":false",
                                       "\"ici_fsdp_transpose_parallelism\":2,"
                                       "\"moe_fsdp_use_two_stage_all_gather\":true"};
    for (int i = 0; i < 4; i++) {
        char text[1024];
        struct adv_search_result result;
        bool seen[2] = {false, false};
        snprintf(text, sizeof text,
                 "{\"model\":\"qwen3-30b-a3b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"2x2x4\"},"
                 "\"workload\":{\"seq_len\":4096,\"global_batch_sequences\":128},\"pins\":{%s},"
                 "\"search\":{\"top_k\":50}}",
                 pins[i]);
        fixture_search(&fixture, text, &result);
        assert_true(result.found_count > 0 && result.exhaustive);
        for (int k = 0; k < result.found_count; k++)
            seen[result.found[k].plan.family.two_stage_gather] = true;
        assert_int_equal(seen[0], i != 3);
        assert_int_equal(seen[1], i != 2);
        fixture_close(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_gather_or_sharding_of_experts_beats_those_that_are_searched),
        cmocka_unit_test(two_stages_are_offered_where_one_axis_cannot_stand_for_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

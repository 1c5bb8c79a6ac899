/* The search against brute force: every mesh, batch, placement of every tensor, of the input and of the
 * optimizer state, and tiling of small random problems is priced one by one, by loops that share nothing with
 * the search but the cost model and the tiles. */
#include "tests/unit/advise_fixture.h"

#include <string.h>

#include "engine/cost/regime.h"
#include "engine/cost/scratch.h"
#include "engine/hardware/mesh.h"
#include "engine/rank/rank.h"
#include "engine/search/space_choices.h"
#include "engine/search/space_tiles.h"
#include "tests/unit/draw.h"

enum { WIDE_PROBLEMS = 10, NARROW_PROBLEMS = 2500, FAMILIES_MAX = 512 };

static uint64_t random_state = 0x9e3779b97f4a7c15u;
static int pick(int count)
{
    return (int)(draw_next(&random_state) % (uint64_t)count);
}

/* Tensors of a dense gated layer, each on its own. */
static const enum adv_tensor tensors[] = {
    ADV_TENSOR_CONTEXT,  ADV_TENSOR_QUERY_PROJ, ADV_TENSOR_KEY_PROJ, ADV_TENSOR_VALUE_PROJ,
    ADV_TENSOR_OUT_PROJ, ADV_TENSOR_MLPWI_0,    ADV_TENSOR_MLPWI_1,
};
enum { TENSORS = sizeof tensors / sizeof *tensors, COMBINATIONS = 2187 }; /* 3^7 */
#define NOT_PINNED ((enum adv_placement)3)

struct family {
    struct adv_plan plan;
    bool fits;
    double best_s; /* of the fastest that fits */
};

struct oracle {
    const struct fixture *fixture;
    struct adv_plan base;
    struct adv_tile_memo *tiles;
    bool narrow;                      /* only fsdp */
    double host_frac;                 /* see chips */
    int tiling_pinned;                /* 0 = open */
    const enum adv_placement *pinned; /* of each of the tensors; NOT_PINNED: open */
    struct adv_cost_scratch scratch;
    double log_sd, spread, memory_frac; /* of the plan that was last asked about; NAN: of none */
    int count;
    struct family families[FAMILIES_MAX];
};

static bool price(struct oracle *oracle, const struct adv_plan *plan, struct adv_estimate *estimate)
{
    const struct adv_advise_request *request = oracle->fixture->request;
    struct adv_plan finished = *plan;
    adv_choices_finish(&finished); /* the flags that go with its placements */
    struct adv_estimate_input input = {&request->model, &request->cluster, oracle->fixture->constants,
                                       &finished, ADV_FLOPS_CAUSAL_HALF};
    return adv_estimate_again(&input, &oracle->scratch, estimate, NULL) == ADV_OK;
}

/* The share depends on two numbers alone, and finding it takes longer than pricing a plan. */
static bool fits(struct oracle *oracle, const struct adv_estimate *estimate)
{
    if (estimate->fit_curve.log_sd != oracle->log_sd || estimate->memory_spread != oracle->spread) {
        oracle->log_sd = estimate->fit_curve.log_sd;
        oracle->spread = estimate->memory_spread;
        oracle->memory_frac = adv_rank_memory_frac(estimate);
    }
    return adv_rank_fits(estimate, oracle->memory_frac);
}

/* Rules that read placements read the context's. */
static bool goes_where_it_may_not(const struct oracle *oracle, const struct adv_plan *plan)
{
    const struct adv_advise_request *request = oracle->fixture->request;
    return plan->placements[ADV_TENSOR_CONTEXT] == ADV_PLACE_OFFLOAD &&
           adv_plan_broken_rule(plan, &request->model, &request->cluster) != NULL;
}

/* All placements of one family. */
static void enumerate_family(struct oracle *oracle, const struct adv_plan *start)
{
    struct family *family = &oracle->families[oracle->count++];
    *family = (struct family){.plan = *start};
    const bool in_blocks = oracle->fixture->request->model.layers[0].scan_block > 1;
    for (int tiling = 1; tiling <= 16; tiling *= 2) {
        if (oracle->tiling_pinned && tiling != oracle->tiling_pinned) continue;
        if (tiling > 1 && fmod(adv_plan_tokens(start), tiling) != 0) continue;
        if (!oracle->tiling_pinned && adv_memory_tiles_gather(oracle->fixture->constants, start, tiling))
            continue;
        for (int combination = 0; combination < 3 * COMBINATIONS; combination++) {
            const enum adv_placement input = (enum adv_placement)(combination / COMBINATIONS);
            if (input == ADV_PLACE_DEVICE && !in_blocks) continue; /* is where it stays */
            struct adv_plan plan = *start;
            plan.policy = ADV_POLICY_CUSTOM;
            adv_policy_placements(ADV_POLICY_FULL, plan.placements);
            plan.num_vocab_tiling = tiling;
            plan.placements[ADV_TENSOR_DECODER_LAYER_INPUT] = input;
            bool honours_pins = true;
            for (int t = 0, digits = combination % COMBINATIONS; t < TENSORS; t++, digits /= 3) {
                plan.placements[tensors[t]] = (enum adv_placement)(digits % 3);
                honours_pins = honours_pins && (oracle->pinned[t] == NOT_PINNED ||
                                                oracle->pinned[t] == plan.placements[tensors[t]]);
            }
            struct adv_estimate estimate;
            if (!honours_pins || goes_where_it_may_not(oracle, &plan) || !price(oracle, &plan, &estimate) ||
                !fits(oracle, &estimate))
                continue;
            if (family->fits && estimate.step_time_s >= family->best_s) continue;
            family->fits = true;
            family->best_s = estimate.step_time_s;
        }
    }
}

/* All meshes over data, fsdp, tensor and context (all-gather), all accumulations. */
static void enumerate(struct oracle *oracle, int sequences)
{
    const struct adv_cluster *cluster = &oracle->fixture->request->cluster;
    int devices = cluster->devices;
    for (int tensor = 1; tensor <= devices; tensor++)
        for (int context = 1; context * tensor <= devices; context++)
            for (int data = 1; data * context * tensor <= devices; data++) {
                if (devices % (data * context * tensor) != 0 ||
                    (oracle->narrow && data * context * tensor > 1))
                    continue;
                for (int steps = 1; steps <= sequences; steps++) {
                    if (sequences % steps != 0) continue;
                    struct adv_plan plan = oracle->base;
                    struct adv_mesh mesh;
                    plan.family.ici[ADV_AXIS_TENSOR] = tensor;
                    plan.family.ici[ADV_AXIS_CONTEXT] = context;
                    plan.family.ici[ADV_AXIS_DATA] = data;
                    plan.family.ici[ADV_AXIS_FSDP] = devices / (data * context * tensor);
                    plan.family.gradient_accumulation_steps = steps;
                    plan.family.per_device_batch_size = (double)sequences / steps / devices;
                    plan.family.allow_split_physical_axes =
                        adv_mesh_place(cluster, &plan, &mesh, NULL) != ADV_OK;
                    if (plan.family.allow_split_physical_axes &&
                        adv_mesh_place(cluster, &plan, &mesh, NULL) != ADV_OK)
                        continue;
                    adv_tile_memo_apply(oracle->tiles, &plan);
                    if (adv_plan_broken_rule(&plan, &oracle->fixture->request->model, cluster)) continue;
                    assert_true(oracle->count + 1 < FAMILIES_MAX);
                    for (int offload = 0; offload < 2; offload++) {
                        plan.optimizer_host_offload = offload;
                        enumerate_family(oracle, &plan);
                    }
                }
            }
}

/* Copies that come and go with tensors on the host are not fixed amounts per tensor, so the solver may miss
 * the best set by host_frac. v4's host copies take no padding. */
static const struct {
    const char *name, *topology;
    double host_frac;
} chips[] = {{"tpu7x", "2x2x1", 0.03}, {"v6e", "2x2", 0.03}, {"v4", "2x2x1", 0.04}};

/* A small random problem; memory_mib 0 = all the chip has. */
struct problem {
    int heads, kv_heads, emb, mlp, layers, block, vocab, seq_len,
        sequences; /* block: layers of a scan step */
    int chip;      /* of `chips` */
    bool wide_mean, narrow;
    enum adv_placement pinned[TENSORS];
};

static struct problem random_problem(bool narrow)
{
    static const int lengths[] = {1024, 2048, 4096};
    int kv = 1 << pick(3), block = 1 + (pick(3) == 0) * (1 + pick(3));
    struct problem problem = {
        .heads = kv * (1 << pick(3)),
        .kv_heads = kv,
        .emb = 1024 * (1 + pick(4)),
        .mlp = 2048 * (1 + pick(5)),
        .layers = block * (2 + pick(12 / block)),
        .block = block,
        .vocab = 8192 * (1 + pick(16)),
        .seq_len = lengths[pick(3)],
        .sequences = 8 * (1 + pick(3)),
        .chip = pick(3),
        .wide_mean = pick(2),
        .narrow = narrow,
    };
    /* most problems pin some tensors alone; brute force over all of them is for the others */
    bool pins = narrow && pick(4) > 0;
    for (int t = 0; t < TENSORS; t++)
        problem.pinned[t] = pins && pick(2) ? (enum adv_placement)pick(3) : NOT_PINNED;
    return problem;
}

static void write_pins(const struct problem *problem, char *text, size_t text_bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int t = 0; t < TENSORS; t++)
        if (problem->pinned[t] != NOT_PINNED)
            used += (size_t)snprintf(text + used, text_bytes - used, ",\"%s\":\"%s\"",
                                     adv_tensor_name(tensors[t]), adv_placement_name(problem->pinned[t]));
}

static void write_request(const struct problem *problem, double hbm_bytes, char *text, size_t text_bytes)
{
    char override[128] = "", pins[512];
    write_pins(problem, pins, sizeof pins);
    if (hbm_bytes > 0)
        snprintf(override, sizeof override, ",\"overrides\":{\"hbm_usable_bytes_per_device\":%.0f}",
                 hbm_bytes);
    snprintf(text, text_bytes,
             "{\"model\":{\"decoder_block\":\"llama2\",\"base_emb_dim\":%d,\"base_num_query_heads\":%d,"
             "\"base_num_kv_heads\":%d,"
             "\"head_dim\":128,\"base_mlp_dim\":%d,\"base_num_decoder_layers\":%d,"
             "\"inhomogeneous_layer_cycle_interval\":%d,\"vocab_size\":%d,\"mlp_"
             "activations\":[\"silu\",\"linear\"]},"
             "\"cluster\":{\"chip\":\"%s\",\"topology\":\"%s\"%s},\"workload\":{\"seq_len\":%d,\"global_"
             "batch_sequences\":%d%s},"
             "\"pins\":{\"context_parallel_strategy\":\"all_gather\"%s%s},"
             "\"search\":{\"top_k\":100,\"axes\":[%s]}}",
             problem->emb, problem->heads, problem->kv_heads, problem->mlp, problem->layers, problem->block,
             problem->vocab, chips[problem->chip].name, chips[problem->chip].topology, override,
             problem->seq_len, problem->sequences, problem->wide_mean ? "" : ",\"mu_dtype\":\"bfloat16\"",
             problem->narrow ? ",\"num_vocab_tiling\":2" : "", pins,
             problem->narrow ? "\"fsdp\"" : "\"data\",\"fsdp\",\"tensor\",\"context\"");
}

static bool same_family(const struct adv_plan *a, const struct adv_plan *b)
{
    return adv_rank_same_mesh(a, b) &&
           a->family.gradient_accumulation_steps == b->family.gradient_accumulation_steps &&
           a->optimizer_host_offload == b->optimizer_host_offload;
}

/* Memory between the smallest and the largest plan of the unconstrained front, so that it binds. */
static double binding_memory(const struct problem *problem)
{
    static struct fixture fixture;
    char text[1024];
    struct adv_search_result result;
    write_request(problem, 0, text, sizeof text);
    fixture_search(&fixture, text, &result);
    double bytes = 0;
    if (result.pareto_count > 0) {
        double most = result.pareto[0].estimate.hbm_bytes_per_device;
        double least = result.pareto[result.pareto_count - 1].estimate.hbm_bytes_per_device;
        bytes = least + (most - least) * (1 + pick(100)) / 100.0;
        bytes /= adv_rank_memory_frac(&result.pareto[0].estimate);
    }
    fixture_close(&fixture);
    return bytes;
}

static void check_answer(const struct oracle *oracle, const struct adv_search_result *result)
{
    bool any = false;
    double best_s = 0, found_s = 0;
    for (int i = 0; i < oracle->count; i++) {
        const struct family *family = &oracle->families[i];
        if (!family->fits) continue;
        if (!any || family->best_s < best_s) best_s = family->best_s;
        any = true;
        for (int k = 0; k < result->found_count; k++) {
            if (!same_family(&result->found[k].plan, &family->plan)) continue;
            double time_s = result->found[k].estimate.step_time_s;
            if (time_s < family->best_s * (1 - 1e-12) ||
                time_s > family->best_s * (1 + ADV_RANK_KEY_FRAC + oracle->host_frac))
                fail_msg("family: search %.9f s, brute force %.9f s (%d layers, steps of %d)", time_s,
                         family->best_s, oracle->fixture->request->model.layers_count,
                         oracle->fixture->request->model.layers[0].scan_block);
        }
    }
    for (int k = 0; k < result->found_count; k++)
        if (k == 0 || result->found[k].estimate.step_time_s < found_s)
            found_s = result->found[k].estimate.step_time_s;
    if (!any) {
        assert_true(result->found_count == 0 || result->compromised);
        return;
    }
    assert_true(result->exhaustive);
    assert_true(result->found_count > 0);
    if (found_s < best_s * (1 - 1e-12) || found_s > best_s * (1 + ADV_RANK_KEY_FRAC + oracle->host_frac))
        fail_msg("search %.9f s, brute force %.9f s", found_s, best_s);
}

static void compare(bool narrow, int problems)
{
    static struct fixture fixture;
    static struct oracle oracle = {.log_sd = (double)NAN};
    int bound_by_memory = 0, pinned = 0, offloaded = 0;
    for (int p = 0; p < problems; p++) {
        struct problem problem = random_problem(narrow);
        char text[1024];
        struct adv_search_result result;
        write_request(&problem, binding_memory(&problem), text, sizeof text);
        fixture_search(&fixture, text, &result);
        oracle.fixture = &fixture;
        oracle.base = result.base;
        oracle.count = 0;
        oracle.narrow = narrow;
        oracle.host_frac = chips[problem.chip].host_frac;
        oracle.pinned = problem.pinned;
        memset(&oracle.scratch, 0, sizeof oracle.scratch);
        oracle.tiling_pinned = narrow ? 2 : 0;
        oracle.tiles = adv_tile_memo_create(&fixture.request->model, &fixture.request->cluster,
                                            fixture.constants, NULL, &fixture.arena);
        assert_non_null(oracle.tiles);
        enumerate(&oracle, problem.sequences);
        check_answer(&oracle, &result);
        for (int i = 0; i < result.found_count; i++) {
            const struct adv_plan *plan = &result.found[i].plan;
            offloaded += plan->optimizer_host_offload;
            bound_by_memory += plan->policy != ADV_POLICY_MINIMAL_WITH_CONTEXT;
            for (int t = 0; t < TENSORS; t++) {
                if (problem.pinned[t] == NOT_PINNED) continue;
                pinned++;
                assert_int_equal(plan->placements[tensors[t]], problem.pinned[t]);
                assert_int_equal(plan->policy, ADV_POLICY_CUSTOM);
            }
        }
        fixture_close(&fixture);
    }
    assert_true(!narrow || pinned > problems);
    assert_true(offloaded > problems / 20);
    assert_true(bound_by_memory >
                problems / 2); /* the problems are not trivial: memory decides what is kept */
}

static void search_equals_brute_force_over_all_axes(void **state)
{
    (void)state;
    compare(false, WIDE_PROBLEMS);
}

static void placements_equal_brute_force_on_many_random_problems(void **state)
{
    (void)state;
    compare(true, NARROW_PROBLEMS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(search_equals_brute_force_over_all_axes),
        cmocka_unit_test(placements_equal_brute_force_on_many_random_problems),
    };
    return run_group(tests);
}

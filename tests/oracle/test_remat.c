/* Where the tensors of a family live, decided by the search and by trying all ways there are: for layers that
 * are not scanned, whose recomputation ahead of its turn shrinks with what is kept, and for blocks of layers
 * that may keep the input of each. */
#include "tests/unit/advise_fixture.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "engine/cost/scratch.h"
#include "engine/rank/rank.h"
#include "engine/search/remat_space.h"
#include "engine/search/space.h"
#include "engine/search/space_choices.h"
#include "tests/unit/draw.h"

enum { DRAWS = 40, OPEN_MOST = 5 };

static uint64_t random_state = 0x9e3779b97f4a7c15u;
static int pick(int count)
{
    return (int)(draw_next(&random_state) % (uint64_t)count);
}

/* What waits on its way to the host is no fixed amount per tensor: a set with tensors there may be missed by
 * this much. A set that stays on the device is not. */
static const double host_frac = 0.03;
/* Of the least memory: logits of the finest tiling are not the smallest to the byte. */
static const double least_frac = 5e-4;

static const struct job {
    const char *model, *cluster, *pins;
    int sequences;
} jobs[] = {
    {"llama3.1-8b", "\"chip\":\"tpu7x\",\"topology\":\"4x4x4\"", "\"scan_layers\":false", 128},
    {"llama3.1-8b", "\"chip\":\"tpu7x\",\"topology\":\"2x2x2\"", "\"scan_layers\":false", 32},
    {"llama3.1-8b", "\"chip\":\"v6e\",\"topology\":\"4x4\"", "\"scan_layers\":false", 16},
    {"qwen3-4b", "\"chip\":\"v5e\",\"topology\":\"4x8\"", "\"scan_layers\":false", 32},
    {"qwen3-30b-a3b", "\"chip\":\"tpu7x\",\"topology\":\"4x4x4\"", "\"scan_layers\":false", 128},
    {"gemma3-4b", "\"chip\":\"v5p\",\"topology\":\"2x2x2\"", "\"scan_layers\":true", 32},
    {"gemma3-4b", "\"chip\":\"v6e\",\"topology\":\"2x4\"", "\"scan_layers\":true", 16},
    {"gemma3-4b", "\"chip\":\"v5e\",\"topology\":\"4x4\"", "\"scan_layers\":true", 32},
    {"gemma3-12b", "\"chip\":\"v6e\",\"topology\":\"4x4\"", "\"scan_layers\":true", 32},
    {"gemma3-27b", "\"chip\":\"tpu7x\",\"topology\":\"2x2x2\",\"slices\":2", "\"scan_layers\":true", 64},
    {"gemma3-12b", "\"chip\":\"v4\",\"topology\":\"2x2x4\"", "\"scan_layers\":true", 32},
    {"gemma3-12b", "\"chip\":\"v5p\",\"topology\":\"2x2x2\"", "\"scan_layers\":true", 32},
    {"gemma3-4b", "\"chip\":\"tpu7x\",\"topology\":\"2x2x2\"", "\"scan_layers\":true", 64},
    {"llama4-17b-16e", "\"chip\":\"v5p\",\"topology\":\"4x4x4\"", "\"scan_layers\":true", 64},
};
enum { JOBS = sizeof jobs / sizeof *jobs };

/* One family of a job, and the space of its plans. */
struct problem {
    struct fixture fixture;
    struct adv_space space;
    struct adv_remat_space open;
    struct adv_plan family;
};

/* The fastest plan that fits, with nothing on the host and at all, and the smallest with nothing there. */
struct answer {
    double on_device_s, best_s, least_bytes;
};

static struct adv_cost_scratch scratch;

static struct adv_pricer pricer_of(const struct problem *problem, double memory_frac)
{
    return (struct adv_pricer){.request = problem->fixture.request,
                               .constants = problem->fixture.constants,
                               .scratch = &scratch,
                               .share = {1.0, memory_frac},
                               .budget = LONG_MAX};
}

static bool price(const struct problem *problem, const struct adv_plan *plan, struct adv_estimate *estimate)
{
    const struct adv_advise_request *request = problem->fixture.request;
    struct adv_plan finished = *plan;
    adv_choices_finish(&finished);
    const struct adv_estimate_input input = {&request->model, &request->cluster, problem->fixture.constants,
                                             &finished, ADV_FLOPS_CAUSAL_HALF};
    return adv_estimate_again(&input, &scratch, estimate, NULL) == ADV_OK;
}

static void judge(const struct adv_estimate *estimate, double memory_frac, bool on_device,
                  struct answer *answer)
{
    if (on_device) answer->least_bytes = fmin(answer->least_bytes, estimate->hbm_bytes_per_device);
    if (!adv_rank_fits(estimate, memory_frac)) return;
    answer->best_s = fmin(answer->best_s, estimate->step_time_s);
    if (on_device) answer->on_device_s = fmin(answer->on_device_s, estimate->step_time_s);
}

/* All open tensors everywhere, with the layer input and the tiling of `plan`. */
static void try_places(const struct problem *problem, struct adv_plan plan, double memory_frac,
                       struct answer *answer)
{
    const struct adv_remat_space *open = &problem->open;
    const struct adv_advise_request *request = problem->fixture.request;
    long ways = 1;
    for (int i = 0; i < open->units_count; i++) ways *= 3;
    for (long way = 0; way < ways; way++) {
        bool on_device = plan.placements[ADV_TENSOR_DECODER_LAYER_INPUT] != ADV_PLACE_OFFLOAD;
        bool refused = false;
        long digits = way;
        for (int i = 0; i < open->units_count; i++, digits /= 3) {
            const enum adv_tensor tensor = open->units[i].tensor;
            plan.placements[tensor] = (enum adv_placement)(digits % 3);
            refused = refused || (digits % 3 == ADV_PLACE_OFFLOAD &&
                                  adv_plan_host_refuses(&plan, &request->model, &request->cluster, tensor));
            on_device = on_device && digits % 3 != ADV_PLACE_OFFLOAD;
        }
        struct adv_estimate estimate;
        if (!refused && price(problem, &plan, &estimate)) judge(&estimate, memory_frac, on_device, answer);
    }
}

static struct answer brute_force(const struct problem *problem, double memory_frac)
{
    struct answer answer = {(double)INFINITY, (double)INFINITY, (double)INFINITY};
    for (int input = ADV_PLACE_REMAT; input <= ADV_PLACE_OFFLOAD; input++) {
        for (int t = 0; t < problem->open.tilings_count; t++) {
            struct adv_plan plan = problem->family;
            if (!adv_remat_may_tile(&problem->open, &plan, problem->open.tilings[t])) continue;
            adv_remat_set_all(&problem->open, &plan, ADV_PLACE_REMAT);
            plan.placements[ADV_TENSOR_DECODER_LAYER_INPUT] = (enum adv_placement)input;
            plan.num_vocab_tiling = problem->open.tilings[t];
            try_places(problem, plan, memory_frac, &answer);
        }
    }
    return answer;
}

/* Opens the job; `pins` beside its own, memory as the chip has it where `hbm_bytes` is 0. */
static void open_job(const struct job *job, int seq_len, const char *pins, double hbm_bytes,
                     struct problem *problem)
{
    char text[1024], memory[128] = "";
    if (hbm_bytes > 0)
        snprintf(memory, sizeof memory, ",\"overrides\":{\"hbm_usable_bytes_per_device\":%.0f}", hbm_bytes);
    snprintf(
        text, sizeof text,
        "{\"model\":\"%s\",\"cluster\":{%s%s},\"workload\":{\"seq_len\":%d,\"global_batch_sequences\":%d},"
        "\"pins\":{%s%s}}",
        job->model, job->cluster, memory, seq_len, job->sequences, job->pins, pins);
    fixture_open(&problem->fixture, text);
    assert_int_equal(adv_space_build(problem->fixture.request, problem->fixture.constants,
                                     &problem->fixture.arena, &problem->space, &problem->fixture.err),
                     ADV_OK);
    adv_remat_space_build(problem->fixture.request, problem->fixture.constants, &problem->open);
}

/* Pins the tiling, and tensors of the job until few are open. */
static void draw_pins(const struct adv_remat_space *open, char *pins, size_t pins_bytes)
{
    static const int tilings[] = {1, 2, 8};
    bool pinned[ADV_REMAT_UNITS] = {false};
    size_t used = (size_t)snprintf(pins, pins_bytes, ",\"num_vocab_tiling\":%d", tilings[pick(3)]);
    for (int left = open->units_count; left > OPEN_MOST;) {
        const int unit = pick(open->units_count);
        if (pinned[unit]) continue;
        pinned[unit] = true;
        left--;
        used += (size_t)snprintf(pins + used, pins_bytes - used, ",\"%s\":\"%s\"",
                                 adv_tensor_name(open->units[unit].tensor), pick(2) ? "device" : "remat");
    }
}

/* A limit between what the smallest plan of a family takes and what the largest does; 0: the family has none
 * that is known. */
static double binding_memory(const struct problem *problem, int family)
{
    struct adv_pricer pricer = pricer_of(problem, 1);
    struct adv_plan plan;
    struct adv_estimate most, least;
    adv_space_plan(&problem->space, &problem->space.families[family], &plan);
    scratch.valid = false;
    if (!adv_remat_smallest(&problem->open, &pricer, &plan, &least)) return 0;
    adv_remat_relax(&problem->open, &plan);
    if (!price(problem, &plan, &most)) return 0;
    const double low = fmin(least.hbm_bytes_per_device, most.hbm_bytes_per_device);
    const double high = fmax(least.hbm_bytes_per_device, most.hbm_bytes_per_device);
    const double frac =
        adv_rank_hbm_room_bytes(&least, (struct adv_rank_share){1.0, adv_rank_memory_frac(&least)}) /
        least.hbm_limit_bytes_per_device;
    return (low * 0.95 + (high - low) * pick(100) / 100.0) / frac;
}

static void check_family(const struct job *job, const struct problem *problem, int *fitting, int *parted)
{
    struct adv_plan plan = problem->family;
    struct adv_estimate estimate = {0}, least;
    scratch.valid = false;
    assert_true(price(problem, &plan, &estimate));
    const double memory_frac = adv_rank_memory_frac(&estimate);
    const struct answer answer = brute_force(problem, memory_frac);
    struct adv_pricer pricer = pricer_of(problem, memory_frac);
    scratch.valid = false;
    const enum adv_remat_outcome outcome =
        adv_remat_solve(&problem->open, &pricer, (double)INFINITY, &plan, &estimate);
    const double found_s = outcome == ADV_REMAT_SOLVED ? estimate.step_time_s : (double)INFINITY;
    if (found_s < answer.best_s * (1 - 1e-12) || found_s > answer.on_device_s * (1 + ADV_RANK_KEY_FRAC) ||
        found_s > answer.best_s * (1 + ADV_RANK_KEY_FRAC + host_frac))
        fail_msg("%s {%s}: search %.9f s, brute force %.9f s, on the device %.9f s", job->model, job->cluster,
                 found_s, answer.best_s, answer.on_device_s);
    *fitting += outcome == ADV_REMAT_SOLVED;
    *parted += outcome == ADV_REMAT_SOLVED && plan.family.scan_layers &&
               plan.placements[ADV_TENSOR_DECODER_LAYER_INPUT] == ADV_PLACE_DEVICE;
    plan = problem->family;
    assert_true(adv_remat_smallest(&problem->open, &pricer, &plan, &least));
    if (least.hbm_bytes_per_device > answer.least_bytes * (1 + least_frac))
        fail_msg("%s {%s}: search %.4g bytes, brute force %.4g bytes", job->model, job->cluster,
                 least.hbm_bytes_per_device, answer.least_bytes);
}

static void draw(const struct job *job, int *checked, int *fitting, int *parted)
{
    static struct problem problem;
    static const int lengths[] = {2048, 4096, 8192};
    const int seq_len = lengths[pick(3)];
    char pins[1024];
    open_job(job, seq_len, "", 0, &problem);
    draw_pins(&problem.open, pins, sizeof pins);
    fixture_close(&problem.fixture);
    open_job(job, seq_len, pins, 0, &problem);
    const int family = pick(problem.space.families_count);
    const bool offloads = pick(2);
    const double hbm_bytes = binding_memory(&problem, family);
    fixture_close(&problem.fixture);
    if (hbm_bytes <= 0) return;
    open_job(job, seq_len, pins, hbm_bytes, &problem);
    adv_space_plan(&problem.space, &problem.space.families[family], &problem.family);
    problem.family.optimizer_host_offload = offloads;
    check_family(job, &problem, fitting, parted);
    (*checked)++;
    fixture_close(&problem.fixture);
}

static void families_are_solved_as_by_brute_force(void **state)
{
    (void)state;
    int checked = 0, fitting = 0, parted = 0;
    for (int i = 0; i < DRAWS; i++)
        for (int j = 0; j < JOBS; j++) draw(&jobs[j], &checked, &fitting, &parted);
    assert_true(checked > DRAWS * JOBS * 9 / 10);
    assert_true(fitting > checked / 2);
    assert_true(parted > checked / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_are_solved_as_by_brute_force),
    };
    return run_group(tests);
}

/* space_fixture.h: the search space of a job and its plans at their most relaxed; for tests of families and
 * of what bounds them. */
#pragma once

#include "tests/unit/advise_fixture.h"

#include "engine/cost/scratch.h"
#include "engine/search/remat_space.h"
#include "engine/search/space.h"

static void build(struct fixture *fixture, const char *json, struct adv_space *space)
{
    fixture_open(fixture, json);
    assert_int_equal(
        adv_space_build(fixture->request, fixture->constants, &fixture->arena, space, &fixture->err), ADV_OK);
}

#define JOB(cluster, workload, rest)                                                                         \
    "{\"model\":\"llama3.1-8b\",\"cluster\":" cluster ",\"workload\":" workload rest "}"
#define V6E_16   "{\"chip\":\"v6e\",\"topology\":\"4x4\"}"
#define BATCH_64 "{\"seq_len\":8192,\"global_batch_sequences\":64}"

/* Experts by einsums: around grouped matmuls a pipeline has one depth. */
#define MOE_JOB                                                                                              \
    "{\"model\":\"deepseek2-16b\",\"cluster\":{\"chip\":\"v4\",\"topology\":\"2x2x2\",\"slices\":2},"        \
    "\"workload\":{\"seq_len\":2048,\"global_batch_sequences\":32},\"pins\":{\"sparse_matmul\":false}}"

/* The relaxed plan; `scratch` then holds what its pipeline takes. */
static struct adv_estimate relaxed_again(const struct fixture *fixture, const struct adv_plan *plan,
                                         struct adv_cost_scratch *scratch)
{
    struct adv_plan kept = *plan;
    struct adv_estimate estimate;
    struct adv_remat_space open;
    adv_remat_space_build(fixture->request, fixture->constants, &open);
    adv_remat_relax(&open, &kept);
    struct adv_estimate_input input = {&fixture->request->model, &fixture->request->cluster,
                                       fixture->constants, &kept, ADV_FLOPS_CAUSAL_HALF};
    scratch->valid = false; /* of another job */
    assert_int_equal(adv_estimate_again(&input, scratch, &estimate, NULL), ADV_OK);
    adv_estimate_again_interval(scratch, &estimate);
    return estimate;
}

static struct adv_estimate relaxed(const struct fixture *fixture, const struct adv_plan *plan)
{
    static struct adv_cost_scratch scratch;
    return relaxed_again(fixture, plan, &scratch);
}

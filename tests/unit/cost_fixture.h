/* cost_fixture.h: one model on one slice with one plan, for tests of engine/cost: change what matters, then
 * place.
 *
 * round_constants() replaces the fitted constants by round ones (rates at their peaks, launches free), so
 * that expected values can be worked out by hand and do not move with a refit.
 */
#pragma once

#include "tests/unit/check.h"

#include <string.h>

#include "engine/cost/estimate.h"
#include "engine/cost/step.h"
#include "engine/cost/memory.h"
#include "engine/cost/schedule.h"
#include "engine/maxtext/keys.h"
#include "tests/unit/machine.h"

struct bench {
    struct adv_model model;
    struct adv_cluster cluster;
    struct adv_constants constants;
    struct adv_plan plan;
    struct adv_mesh mesh;
    struct adv_cost cost;
    struct adv_account account;
    struct adv_model_params params;
    struct adv_ledger ledger;
    struct adv_estimate estimate;
};

static inline struct adv_model catalog_model(const char *name)
{
    static struct adv_catalog *catalog;
    struct adv_model model;
    adv_err err;
    memset(&model, 0, sizeof model);
    adv_err_init(&err);
    if (!catalog) catalog = adv_catalog_load(NULL, &err);
    if (!catalog || adv_catalog_model(catalog, name, &model, &err) != ADV_OK)
        fail_msg("%s", err.findings[0].detail);
    return model;
}

/* The slice x * y * z, all devices under FSDP, one sequence of 4096 tokens a device, everything else
 * MaxText's default. */
static inline void bench_open(struct bench *b, const char *model, const char *chip, int x, int y, int z)
{
    memset(b, 0, sizeof *b);
    b->model = catalog_model(model);
    b->cluster = machine(chip, x, y, z);
    b->cluster.devices_per_host = (int)(b->cluster.chip.chips_per_host * b->cluster.chip.devices_per_chip);
    b->cluster.price_usd_per_chip_hour = (double)NAN;
    b->constants = machine_constants(chip);
    adv_plan_defaults(&b->plan, &b->model);
    b->plan.family.ici[ADV_AXIS_FSDP] = b->cluster.devices_per_slice;
    b->plan.family.per_device_batch_size = 1;
    b->plan.family.seq_len = 4096;
    b->params = adv_model_params(&b->model);
}

/* Rates at their peaks, nothing fixed, every collective wholly exposed. */
static inline void round_constants(struct bench *b)
{
    struct adv_constants *c = &b->constants;
    c->step_matmul_frac = c->step_elementwise_frac = c->step_gather_frac = c->step_lowp_gain_frac = 1.0;
    c->step_attention_factor = c->step_gmm_factor = c->step_tokamax_factor = c->link_step_frac = 1.0;
    c->overlap_offload_exposed_frac = c->overlap_fusion_exposed_frac = c->overlap_async_exposed_frac = 1.0;
    c->overlap_none_exposed_frac = c->tensor_exposed_frac = c->dcn_exposed_frac = 1.0;
    c->step_matmul_results_per_s_per_device = 1e30;
    c->step_matmul_launch_s = c->collective_launch_s = c->step_overhead_s = c->ring_step_s = 0.0;
    c->all_gather_launch_s = c->all_reduce_launch_s = c->all_to_all_launch_s = c->permute_launch_s = 0.0;
    c->dcn_launch_s = c->dcn_straggler_frac = c->dcn_lockstep_frac = c->software_early_frac = 0.0;
    c->dcn_achieved_frac = 1.0;
    b->cluster.chip.ici_hop_latency_s = 0.0;
}

/* Degrees of two axes; the rest of the slice stays under FSDP. */
static inline void bench_axes(struct bench *b, enum adv_axis axis, int degree)
{
    b->plan.family.ici[axis] *= degree;
    b->plan.family.ici[ADV_AXIS_FSDP] /= degree;
}

static inline void bench_policy(struct bench *b, enum adv_policy policy)
{
    b->plan.policy = policy;
    adv_policy_placements(policy, b->plan.placements);
}

static inline struct adv_estimate_input bench_input(const struct bench *b)
{
    return (struct adv_estimate_input){&b->model, &b->cluster, &b->constants, &b->plan,
                                       ADV_FLOPS_CAUSAL_HALF};
}

/* Fills b->cost from what has been set; an empty account. */
static inline void bench_place(struct bench *b)
{
    struct adv_estimate_input input = bench_input(b);
    b->mesh = machine_place(&b->cluster, &b->plan);
    adv_cost_init(&b->cost, &input, &b->mesh, false);
    memset(&b->account, 0, sizeof b->account);
}

/* Prices one layer of kind `kind` (times 1) into a fresh account. */
static inline struct adv_layer_time bench_layer(struct bench *b, int kind)
{
    struct adv_layer_time time;
    adv_err err;
    adv_err_init(&err);
    bench_place(b);
    const struct adv_layer *layer = &b->model.layers[kind];
    if (adv_cost_layer_fixed(&b->cost, layer, 1.0, &b->account, &time, &err) != ADV_OK ||
        adv_cost_layer_placed(&b->cost, layer, 1.0, &b->account, &time, &err) != ADV_OK)
        fail_msg("%s", err.findings[0].detail);
    return time;
}

/* The whole step, with its ledger. */
static inline const struct adv_estimate *bench_estimate(struct bench *b)
{
    struct adv_estimate_input input = bench_input(b);
    adv_err err;
    adv_err_init(&err);
    if (adv_estimate_plan(&input, &b->estimate, &b->ledger, &err) != ADV_OK)
        fail_msg("%s", err.findings[0].detail);
    return &b->estimate;
}

/* A term of the ledger by name; all 0 when the step has none of it. */
static inline struct adv_term bench_term(const struct bench *b, const char *name)
{
    for (int i = 0; i < b->ledger.terms_count; i++)
        if (strcmp(b->ledger.terms[i].name, name) == 0) return b->ledger.terms[i];
    return (struct adv_term){.name = name};
}

/* A part of the memory by name, in bytes per device, before the optimizer updates; 0 when there is none. */
static inline double bench_bytes(const struct bench *b, const char *name)
{
    for (int i = 0; i < b->ledger.memory_count; i++)
        if (b->ledger.memory[i].at != ADV_AT_UPDATE && strcmp(b->ledger.memory[i].name, name) == 0)
            return b->ledger.memory[i].bytes_per_device;
    return 0.0;
}

static inline double bench_bytes_at(const struct bench *b, enum adv_memory_at at, const char *name)
{
    for (int i = 0; i < b->ledger.memory_count; i++)
        if (b->ledger.memory[i].at == at && strcmp(b->ledger.memory[i].name, name) == 0)
            return b->ledger.memory[i].bytes_per_device;
    return 0.0;
}

static inline double executed_flops(const struct bench *b)
{
    double flops = 0.0;
    for (int i = 0; i < ADV_TERM_COUNT; i++) flops += b->account.slots[i].flops;
    return flops;
}

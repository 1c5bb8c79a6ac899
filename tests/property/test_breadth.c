/* Rules of any legal plan: all models of the catalog on all generations and slice shapes, with every
 * kind of parallelism, number format, attention and expert path. The other property tests look deeper at few
 * models; this one looks wide. */
#include "tests/unit/check.h"

#include <string.h>

#include "engine/base/units.h"
#include "engine/cost/fit.h"
#include "engine/cost/estimate.h"
#include "engine/maxtext/keys.h"
#include "tests/unit/catalog_fixture.h"
#include "tests/unit/draw.h"

enum { DRAWS = 200000 };

static struct adv_ledger ledger;
static struct adv_model model;
static struct adv_cluster cluster;
static struct adv_constants constants;
static struct adv_plan plan;
static const char *drawn_model;
static uint64_t random_state = UINT64_C(0x452821e638d01377);

static int below(int bound)
{
    return (int)(draw_next(&random_state) % (uint64_t)bound);
}

static bool one_in(int n)
{
    return below(n) == 0;
}

static bool draw_job(void)
{
    static const char *const chips[] = {"tpu7x", "v6e", "v5p", "v5e", "v4"};
    adv_err err;
    adv_err_init(&err);
    drawn_model = adv_catalog_tables(catalog)->model_names[below(adv_catalog_tables(catalog)->models_count)];
    assert_int_equal(adv_catalog_model(catalog, drawn_model, &model, &err), ADV_OK);
    const struct adv_catalog_chip *chip = adv_catalog_chip(catalog, chips[below(5)]);
    const char *const *shapes = NULL;
    int shapes_count = adv_catalog_shapes(catalog, chip->chip.name, &shapes);
    memset(&cluster, 0, sizeof cluster);
    cluster.chip = chip->chip;
    constants = chip->constants;
    cluster.slices = one_in(3) ? 1 << below(6) : 1;
    cluster.price_usd_per_chip_hour = 1.0;
    int axes = chip->chip.ici_axes < 2.5 ? 2 : 3;
    const char *shape = shapes[below(shapes_count)];
    assert_true(adv_cluster_parse_shape(shape, axes, cluster.dims));
    return adv_cluster_build(&cluster, shapes, shapes_count, &err) == ADV_OK;
}

static void draw_mesh(void)
{
    static const enum adv_axis axes[] = {ADV_AXIS_DATA,    ADV_AXIS_FSDP_TRANSPOSE, ADV_AXIS_CONTEXT,
                                         ADV_AXIS_ULYSSES, ADV_AXIS_TENSOR,         ADV_AXIS_TENSOR_SEQUENCE,
                                         ADV_AXIS_EXPERT,  ADV_AXIS_STAGE};
    int left = cluster.devices_per_slice;
    for (int axis = 0; axis < ADV_AXIS_COUNT; axis++) plan.family.ici[axis] = plan.family.dcn[axis] = 1;
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        int degree = one_in(4) ? 1 << (1 + below(4)) : 1;
        if (axes[i] == ADV_AXIS_ULYSSES && plan.family.ici[ADV_AXIS_CONTEXT] == 1) degree = 1;
        if (left % degree != 0) continue;
        plan.family.ici[axes[i]] = degree;
        left /= degree;
    }
    plan.family.ici[one_in(4) ? ADV_AXIS_DATA : ADV_AXIS_FSDP] *= left;
    static const enum adv_axis between[] = {ADV_AXIS_DATA, ADV_AXIS_DATA, ADV_AXIS_FSDP, ADV_AXIS_STAGE};
    plan.family.dcn[between[below(4)]] = cluster.slices;
    plan.family.cp_strategy = plan.family.ici[ADV_AXIS_ULYSSES] > 1   ? ADV_CP_USP
                              : plan.family.ici[ADV_AXIS_CONTEXT] > 1 ? (enum adv_cp_strategy)below(3)
                                                                      : ADV_CP_ALL_GATHER;
    plan.family.cp_load_balance =
        plan.family.cp_strategy == ADV_CP_ALL_GATHER || plan.family.cp_strategy == ADV_CP_RING;
    plan.family.rule =
        one_in(6) ? (enum adv_mesh_rule)below(ADV_RULE_PIPELINE_LARGE_MOE + 1) : ADV_RULE_DEFAULT;
    plan.family.allow_split_physical_axes = one_in(2);
    plan.family.two_stage_gather = one_in(8);
    plan.family.shard_exp_on_fsdp = one_in(8);
    plan.family.use_2d_fsdp_sharding = one_in(8);
    if (adv_plan_degree(&plan, ADV_AXIS_STAGE) == 1) return;
    int stages = adv_plan_degree(&plan, ADV_AXIS_STAGE);
    plan.family.pipeline_microbatches = stages * (1 + below(3));
    plan.family.pipeline_layers = model.layers_count / stages * stages;
    plan.family.pipeline_fsdp_ag_once = one_in(2);
}

static void draw_formats(void)
{
    plan.family.quantization = one_in(2) ? ADV_QUANT_NONE : (enum adv_quantization)below(4);
    plan.family.use_qwix = plan.family.quantization == ADV_QUANT_FP8_FULL || one_in(4);
    plan.family.quantization_static = one_in(2);
    plan.family.optimizer = (enum adv_optimizer)below(3);
    plan.family.weight_dtype = one_in(3) ? ADV_FORMAT_BF16 : ADV_FORMAT_F32;
    plan.family.mu_dtype = one_in(3) ? ADV_FORMAT_BF16 : plan.family.weight_dtype;
    plan.family.grad_dtype = one_in(3) ? ADV_FORMAT_BF16 : ADV_FORMAT_F32;
    plan.optimizer_host_offload = one_in(6);
    plan.parameter_host_offload = one_in(10);
    plan.shard_optimizer_over_data = one_in(6);
    plan.family.gradient_accumulation_steps = one_in(3) ? 1 << below(5) : 1;
    plan.family.gradient_clipping_threshold = one_in(2) ? 0 : 1;
    plan.num_vocab_tiling = one_in(3) ? 1 << below(5) : 1;
    plan.family.use_iota_embed = one_in(2);
    plan.family.logits_dot_in_fp32 = one_in(4);
    plan.family.scan_layers = !one_in(3);
    plan.policy = (enum adv_policy)below(ADV_POLICY_COUNT);
    adv_policy_placements(plan.policy, plan.placements);
    for (int t = 0; plan.policy == ADV_POLICY_CUSTOM && t < ADV_TENSOR_COUNT; t++)
        plan.placements[t] = (enum adv_placement)below(3);
    if (plan.placements[ADV_TENSOR_DECODER_LAYER_INPUT] == ADV_PLACE_REMAT)
        plan.placements[ADV_TENSOR_DECODER_LAYER_INPUT] = ADV_PLACE_DEVICE;
}

static void draw_kernels(void)
{
    plan.family.attention = one_in(5) ? ADV_ATTENTION_IMPL_DOT_PRODUCT : ADV_ATTENTION_IMPL_FLASH;
    plan.family.use_tokamax_splash = one_in(2);
    plan.family.use_fused_bwd = plan.family.use_tokamax_splash || one_in(2);
    plan.family.max_logit_estimate = one_in(4) ? 30 : -1;
    plan.family.dq_reduction_steps = one_in(4) ? 3 : 0;
    int q = 512 << below(3), kv = 512 << below(3);
    plan.family.blocks[0] = (struct adv_splash_blocks){q, kv, 512, q, kv, 512, q, kv};
    plan.family.blocks[1] = plan.family.blocks[0];
    adv_plan_clamp_blocks(&plan);
    plan.family.moe = (enum adv_moe_impl)below(ADV_MOE_DENSE + 1);
    plan.family.capacity_factor = plan.family.moe == ADV_MOE_DENSE && one_in(2) ? 1.25 : -1;
    plan.family.use_ring_of_experts = one_in(3);
    plan.family.use_ragged_sort = one_in(2);
    plan.family.ragged_buffer_factor = one_in(3) ? 2.0 : -1.0;
    plan.family.use_random_routing = one_in(3);
    adv_flags_unset(&plan.flags);
    signed char *const switches[] = {&plan.flags.sc_all_gather, &plan.flags.cf_all_gather,
                                     &plan.flags.cf_all_reduce, &plan.flags.async_all_gather,
                                     &plan.flags.collective_matmul_disabled};
    for (int i = 0; i < 5; i++) *switches[i] = (signed char)(below(3) - 1);
    plan.flags.scoped_vmem_limit_kib = one_in(2) ? 0 : 32768 << below(2);
}

/* A legal plan of any model on any slice; false when the draw is not one. */
static bool draw(void)
{
    if (!draw_job()) return false;
    adv_plan_defaults(&plan, &model);
    plan.family.seq_len = 512 << below(9);
    draw_mesh();
    draw_formats();
    draw_kernels();
    static const double batches[] = {0.125, 0.25, 0.5, 1, 1, 2, 3, 4, 8, 16};
    plan.family.per_device_batch_size = batches[below(10)];
    double tokens =
        adv_plan_tokens(&plan) * plan.family.ici[ADV_AXIS_TENSOR] * plan.family.ici[ADV_AXIS_TENSOR_SEQUENCE];
    if (tokens > 1 << 22) return false; /* more rows than requests may have */
    return adv_plan_broken_rule(&plan, &model, &cluster) == NULL;
}

static struct adv_estimate estimate(struct adv_ledger *book)
{
    struct adv_estimate_input input = {&model, &cluster, &constants, &plan, ADV_FLOPS_CAUSAL_HALF};
    struct adv_estimate result;
    adv_err err;
    adv_err_init(&err);
    if (adv_estimate_plan(&input, &result, book, &err) != ADV_OK)
        fail_msg("%s on %s %s: refused: %s", drawn_model, cluster.chip.name, cluster.topology,
                 err.findings[0].detail);
    return result;
}

static void check_sums(const struct adv_estimate *e)
{
    double exposed = 0;
    for (int t = 0; t < ledger.terms_count; t++) {
        const struct adv_term *term = &ledger.terms[t];
        assert_true(term->seconds >= 0 && term->exposed_seconds >= 0);
        assert_true(term->exposed_seconds <= term->seconds * (1 + 1e-12));
        exposed += term->exposed_seconds;
    }
    assert_close(exposed, e->step_time_s, 1e-9);
    double always = 0, at[3] = {0};
    for (int p = 0; p < ledger.memory_count; p++) {
        assert_true(ledger.memory[p].bytes_per_device >= 0);
        if (ledger.memory[p].at == ADV_AT_ALWAYS)
            always += ledger.memory[p].bytes_per_device;
        else
            at[ledger.memory[p].at == ADV_AT_LOSS       ? 0
               : ledger.memory[p].at == ADV_AT_BACKWARD ? 1
                                                        : 2] += ledger.memory[p].bytes_per_device;
    }
    assert_close(always + adv_max(at[0], adv_max(at[1], at[2])), e->hbm_bytes_per_device, 1e-9);
}

/* Peak FLOPs of the fastest format the plan may use, and weights through the links of a chip that has to
 * gather all of them. Derived here from the specification alone. */
static double roofline_s(void)
{
    const struct adv_chip *chip = &cluster.chip;
    double peak = chip->peak_bf16_flops_per_s_per_chip;
    if (plan.family.quantization != ADV_QUANT_NONE) {
        peak = fmax(peak, chip->peak_int8_ops_per_s_per_chip); /* fmax passes over what is not published */
        peak = fmax(peak, chip->peak_fp8_flops_per_s_per_chip);
    }
    double sequences = plan.family.per_device_batch_size * plan.family.gradient_accumulation_steps;
    double flops = adv_model_flops(&model, sequences, plan.family.seq_len, ADV_FLOPS_PARAMS_ONLY).total *
                   chip->devices_per_chip;
    double compute_s = flops / peak;
    bool only_fsdp = plan.family.ici[ADV_AXIS_FSDP] == cluster.devices_per_slice && cluster.slices == 1;
    double chips = cluster.chips_per_slice;
    if (!only_fsdp || chips < 2) return compute_s;
    double bytes = adv_model_params(&model).total - (double)model.emb_dim * (double)model.vocab_size * 2;
    double link = fmax(chip->ici_link_bytes_per_s, chip->ici_link_achieved_bytes_per_s);
    double gather_s = bytes * (chips - 1) / chips / (2 * chip->ici_axes * link); /* a byte each, one pass */
    return adv_max(compute_s, gather_s);
}

static void describe(const char *what, const struct adv_estimate *e)
{
    print_error(
        "%s on %s %s x%d, batch %g of %lld, quantization %d, moe %d: %s (step %.9g s, mfu %g, hfu %g)\n",
        drawn_model, cluster.chip.name, cluster.topology, cluster.slices, plan.family.per_device_batch_size,
        (long long)plan.family.seq_len, (int)plan.family.quantization, (int)plan.family.moe, what,
        e->step_time_s, e->mfu_frac, e->hfu_frac);
}

static void any_legal_plan_gets_a_sound_answer(void **state)
{
    (void)state;
    int answered = 0;
    for (int i = 0; i < DRAWS; i++) {
        if (!draw()) continue;
        answered++;
        struct adv_estimate e = estimate(&ledger);
        check_sums(&e);
        bool is_sound = isfinite(e.step_time_s) && e.step_time_low_s < e.step_time_s &&
                        e.step_time_s < e.step_time_high_s && isfinite(e.hbm_bytes_per_device) &&
                        e.hbm_bytes_per_device > 0 && e.host_bytes_per_host >= 0 && e.mfu_frac > 0 &&
                        e.hfu_frac > 0;
        if (!is_sound) describe("not a sound answer", &e);
        assert_true(is_sound);
        double used = fmax(e.hbm_bytes_per_device / e.hbm_limit_bytes_per_device,
                           e.host_bytes_per_host / e.host_limit_bytes_per_host);
        double tight = fmin(1.2, exp(2.2 * e.fit_curve.log_sd));
        assert_true(e.fit != ADV_FIT_NO ? used < tight : used > 1); /* the verdict follows the bytes */
        double sure = adv_fit_limit_frac(&e.fit_curve, ADV_FIT_SURE_PROBABILITY);
        assert_true(e.fit == ADV_FIT_FITS ? used < 1 : used > sure * (1 - 1e-9));
    }
    assert_true(answered > DRAWS / 100);
    print_message("%d legal plans of %d draws\n", answered, DRAWS);
}

static void no_plan_beats_the_roofline(void **state)
{
    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        if (!draw()) continue;
        struct adv_estimate e = estimate(NULL);
        double bound_s = roofline_s();
        if (e.step_time_s < bound_s) {
            describe("faster than the roofline", &e);
            fail_msg("the bound is %g s", bound_s);
        }
        /* executed FLOPs, not the model's: MaxText's count of olmo3 has full attention where windows run */
        if (plan.family.quantization != ADV_QUANT_NONE || e.hfu_frac < 1) continue;
        describe("more FLOPs than the peak", &e);
        fail();
    }
}

static void better_hardware_is_never_slower(void **state)
{
    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        if (!draw()) continue;
        struct adv_chip *chip = &cluster.chip;
        struct {
            const char *name;
            double *value;
        } fields[] = {{"bf16 peak", &chip->peak_bf16_flops_per_s_per_chip},
                      {"fp8 peak", &chip->peak_fp8_flops_per_s_per_chip},
                      {"int8 peak", &chip->peak_int8_ops_per_s_per_chip},
                      {"HBM", &chip->hbm_bytes_per_s_per_chip},
                      {"links", &chip->ici_link_achieved_bytes_per_s},
                      {"die to die", &chip->d2d_bytes_per_s},
                      {"DCN", &chip->dcn_bytes_per_s_per_chip},
                      {"PCIe", &chip->pcie_bytes_per_s_per_chip},
                      {"clock", &chip->clock_hz}};
        struct adv_estimate before = estimate(NULL);
        for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
            double published = *fields[f].value;
            *fields[f].value *= 1.5;
            struct adv_estimate after = estimate(NULL);
            *fields[f].value = published;
            /* a grouped matmul of few rows may wait longer for weights than faster arithmetic saves: 0.1 % */
            double slack = strstr(fields[f].name, "peak") ? 1e-3 : 1e-12;
            if (after.step_time_s <= before.step_time_s * (1 + slack)) continue;
            describe(fields[f].name, &after);
            fail_msg("one and a half times the %s: %.9g s becomes %.9g s", fields[f].name, before.step_time_s,
                     after.step_time_s);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_legal_plan_gets_a_sound_answer),
        cmocka_unit_test(no_plan_beats_the_roofline),
        cmocka_unit_test(better_hardware_is_never_slower),
    };
    return run_group_with_catalog(tests);
}

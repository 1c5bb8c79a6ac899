#include "engine/cost/estimate.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/cost/step.h"
#include "engine/cost/interval.h"
#include "engine/cost/fit.h"
#include "engine/cost/memory.h"
#include "engine/cost/schedule.h"
#include "engine/cost/scratch.h"
#include "engine/cost/trace.h"

/* What is less sure to fit is tight from here on: a published plan that ran may be predicted somewhat above
 * the limit. */
static const double tight_probability = 0.1;
static const double interval_z = 1.645; /* 90 % of a normal distribution */

static const char *const fit_names[] = {"fits", "tight", "does_not_fit"};
static const char *const confidence_names[] = {"calibrated", "extrapolated", "unsupported"};

const char *adv_fit_name(enum adv_fit fit)
{
    return fit_names[fit];
}

const char *adv_fit_known(const char *name)
{
    for (size_t i = 0; name && i < sizeof fit_names / sizeof *fit_names; i++)
        if (strcmp(name, fit_names[i]) == 0) return fit_names[i];
    return NULL;
}

const char *adv_confidence_name(enum adv_confidence confidence)
{
    return confidence_names[confidence];
}

/* How often a layer of this kind runs in a step. */
static double times_of(const struct adv_cost *cost, const struct adv_layer *layer)
{
    return (double)layer->count / cost->stages * cost->passes;
}

/* The terms that are the same for all plans of a family, of every layer kind; remembered in the scratch. */
static adv_code add_fixed(const struct adv_cost *cost, struct adv_account *account,
                          struct adv_layer_time times[ADV_LIMIT_LAYER_KINDS], adv_err *err)
{
    struct adv_cost_scratch *scratch = cost->scratch;
    const int count = cost->model->layer_kinds_count;
    if (scratch && scratch->fixed_known && scratch->fixed_again == adv_scratch_again(scratch)) {
        account->exposed = scratch->exposed;
        memcpy(times, scratch->fixed, (size_t)count * sizeof *times);
        return ADV_OK;
    }
    for (int i = 0; i < count; i++) {
        const struct adv_layer *layer = &cost->model->layers[i];
        adv_trace_enter(account);
        adv_code code = adv_cost_layer_fixed(cost, layer, times_of(cost, layer), account, &times[i], err);
        if (code != ADV_OK) return code;
        adv_schedule_transpose(cost, layer, times_of(cost, layer), account);
        adv_trace_leave(account, i, times_of(cost, layer), &times[i]);
    }
    if (scratch) {
        scratch->exposed = account->exposed;
        memcpy(scratch->fixed, times, (size_t)count * sizeof *times);
        scratch->fixed_known = true;
        scratch->fixed_again = adv_scratch_again(scratch);
    }
    return ADV_OK;
}

/* The time of each layer without its transfers to the host: it depends on which tensors are kept, not where.
 */
static adv_code add_placed(const struct adv_cost *cost, struct adv_account *account,
                           struct adv_layer_time layer_times[ADV_LIMIT_LAYER_KINDS], adv_err *err)
{
    adv_code code = add_fixed(cost, account, layer_times, err);
    for (int i = 0; i < cost->model->layer_kinds_count && code == ADV_OK; i++) {
        const struct adv_layer *layer = &cost->model->layers[i];
        struct adv_layer_time *time = &layer_times[i];
        double times = times_of(cost, layer);
        adv_trace_enter(account);
        code = adv_cost_layer_placed(cost, layer, times, account, time, err);
        if (code != ADV_OK) return code;
        adv_schedule_context(cost, layer, times, time, account); /* before the weights: it is needed sooner */
        adv_schedule_weights(cost, layer, times, time, account);
        adv_schedule_tensor(cost, layer, times, account);
        adv_schedule_experts(cost, layer, times, account);
        adv_trace_leave(account, i, times, time);
    }
    return code;
}

/* The same for the tensors that the plan keeps, remembered in the scratch. */
static adv_code kept_of(const struct adv_cost *cost, struct adv_cost_kept **row, adv_err *err)
{
    struct adv_cost_kept *kept = *row = adv_scratch_kept(cost->scratch);
    if (kept->known) return ADV_OK;
    struct adv_account apart;
    apart.only_exposed = true;
    apart.ledger = NULL;
    apart.trace = NULL;
    memset(&apart.exposed, 0, sizeof apart.exposed);
    adv_code code = add_placed(cost, &apart, kept->times, err);
    kept->exposed = apart.exposed;
    kept->known = code == ADV_OK;
    return code;
}

static adv_code add_layers(const struct adv_cost *cost, struct adv_account *account, adv_err *err)
{
    struct adv_layer_time fresh[ADV_LIMIT_LAYER_KINDS];
    const struct adv_layer_time *layer_times = fresh;
    struct adv_cost_kept *row = NULL;
    adv_code code = cost->scratch ? kept_of(cost, &row, err) : add_placed(cost, account, fresh, err);
    if (code == ADV_OK && cost->scratch) {
        account->exposed = row->exposed;
        layer_times = row->times;
    }
    for (int i = 0; cost->offloads && i < cost->model->layer_kinds_count && code == ADV_OK; i++) {
        const struct adv_layer *layer = &cost->model->layers[i];
        double times = times_of(cost, layer);
        adv_trace_enter(account);
        adv_schedule_offload(cost, layer, times, &layer_times[i], account);
        adv_trace_leave(account, i, times, &layer_times[i]);
    }
    return code;
}

static double model_flops(const struct adv_estimate_input *input)
{
    const struct adv_plan *plan = input->plan;
    double sequences = plan->family.per_device_batch_size * plan->family.gradient_accumulation_steps;
    return adv_model_flops(input->model, sequences, plan->family.seq_len, input->flops_convention).total;
}

static void set_batch(const struct adv_estimate_input *input, double *sequences, double *tokens)
{
    *sequences = adv_plan_global_batch(input->plan, input->cluster);
    *tokens = *sequences * (double)input->plan->family.seq_len;
}

/* Of a step whose time and batch are known. */
static void set_rates(const struct adv_estimate_input *input, const struct adv_account *account,
                      struct adv_estimate *estimate)
{
    const struct adv_cluster *cluster = input->cluster;
    double per_chip = cluster->chip.devices_per_chip;
    double step_s = estimate->step_time_s;
    double flops = model_flops(input); /* of one device and step */
    double chips = (double)cluster->devices / per_chip;
    estimate->tokens_per_s_per_chip = estimate->tokens_per_step / chips / step_s;
    estimate->tflops_per_s_per_chip = flops * per_chip / step_s * 1e-12;
    double peak = cluster->chip.peak_bf16_flops_per_s_per_chip;
    estimate->mfu_frac = flops * per_chip / step_s / peak;
    double executed = 0.0;
    for (int i = 0; i < ADV_TERM_COUNT; i++) executed += account->slots[i].flops;
    estimate->hfu_frac = executed * per_chip / step_s / peak;
    double price = cluster->price_usd_per_chip_hour;
    estimate->usd_per_step = price * chips * step_s / 3600.0;
    estimate->usd_per_billion_tokens = estimate->usd_per_step / estimate->tokens_per_step * 1e9;
}

static void set_memory(const struct adv_cost *cost, const struct adv_memory *memory,
                       struct adv_estimate *estimate)
{
    const struct adv_chip *chip = cost->chip;
    estimate->loss_peak_bytes = memory->loss_peak_bytes;
    estimate->backward_peak_bytes = memory->backward_peak_bytes;
    estimate->update_peak_bytes = memory->update_peak_bytes;
    estimate->hbm_bytes_per_device =
        adv_max(memory->loss_peak_bytes, adv_max(memory->backward_peak_bytes, memory->update_peak_bytes));
    estimate->hbm_limit_bytes_per_device = chip->hbm_usable_bytes_per_device;
    estimate->host_bytes_per_host = memory->host_bytes_per_host;
    estimate->host_limit_bytes_per_host = chip->host_dram_bytes_per_host;
    estimate->fit_curve = adv_fit_curve(cost->constants, memory->log_sd);
    estimate->memory_spread = memory->log_sd / cost->constants->memory_log_sd;
}

struct adv_fit_curve adv_estimate_usual_curve(const struct adv_estimate *estimate)
{
    struct adv_fit_curve curve = estimate->fit_curve;
    curve.log_sd /= estimate->memory_spread;
    return curve;
}

void adv_estimate_verdict(struct adv_estimate *estimate)
{
    double bytes = estimate->hbm_bytes_per_device, limit = estimate->hbm_limit_bytes_per_device;
    const struct adv_fit_curve *curve = &estimate->fit_curve;
    estimate->hbm_low_bytes_per_device = bytes * exp(-interval_z * curve->log_sd);
    estimate->hbm_high_bytes_per_device = bytes * exp(interval_z * curve->log_sd);
    estimate->fit_probability = adv_fit_probability(curve, bytes, limit);
    const double host_bytes = estimate->host_bytes_per_host, host_limit = estimate->host_limit_bytes_per_host;
    /* What stands on the host is a few whole tensors, known to a percent or two; who else lives there is not.
     * Nothing presses what is too big. */
    if (host_bytes > host_limit)
        estimate->fit_probability = 0.0;
    else if (host_bytes > 0.0 && !isnan(host_limit)) {
        const struct adv_fit_curve usual = adv_estimate_usual_curve(estimate);
        estimate->fit_probability =
            adv_min(estimate->fit_probability, adv_fit_probability(&usual, host_bytes, host_limit));
    }
    estimate->fit = estimate->fit_probability >= ADV_FIT_SURE_PROBABILITY ? ADV_FIT_FITS
                    : estimate->fit_probability >= tight_probability      ? ADV_FIT_TIGHT
                                                                          : ADV_FIT_NO;
}

static enum adv_resource bound_of(const struct adv_account *account)
{
    double seconds[ADV_RES_COUNT];
    adv_account_resources(account, seconds);
    int bound = ADV_RES_MXU;
    for (int r = 0; r < ADV_RES_COUNT; r++)
        if (seconds[r] > seconds[bound]) bound = r;
    return (enum adv_resource)bound;
}

/* Mesh, groups and parameter counts: all that a family of plans shares before the first layer is priced.
 * What of them is `shared` with the family before is there already (adv_cost_init). */
enum shared { NOTHING, PLACEMENT, GROUPS };
static adv_code prepare(const struct adv_estimate_input *input, enum shared shared, struct adv_mesh *mesh,
                        struct adv_cost *cost, struct adv_model_params *params, adv_err *err)
{
    if (!input->cluster->chip.is_tpu) {
        (void)adv_err_add(err, ADV_E_UNSUPPORTED, "/cluster/chip",
                          "use a TPU generation; GPUs are headline rows for comparison",
                          "steps on %s are not modelled", input->cluster->chip.name);
        return ADV_E_UNSUPPORTED;
    }
    if (shared == NOTHING) {
        adv_code code = adv_mesh_place(input->cluster, input->plan, mesh, err);
        if (code != ADV_OK) return code;
        *params = adv_model_params(input->model);
    }
    adv_cost_init(cost, input, mesh, shared == GROUPS);
    cost->recompute_elided = adv_memory_keeps_everything(cost, params);
    return ADV_OK;
}

static void correct_slots(struct adv_slot *slots, double time)
{
    for (int i = 0; i < ADV_TERM_COUNT; i++) {
        slots[i].seconds *= time;
        slots[i].exposed_seconds *= time;
    }
}

/* What pictures of a layer read of a trace, so that they add up to the step. */
static void correct_layer(struct adv_layer_trace *layer, double time)
{
    correct_slots(layer->slots, time);
    for (int i = 0; i < ADV_PASS_COUNT; i++) layer->time.pass_s[i] *= time;
    layer->time.weights_forward_exposed_s *= time;
    layer->time.weights_backward_exposed_s *= time;
}

/* Measurements of a project on the chip correct the whole step and the whole of the memory alike: plans of
 * one machine keep their order, what fits may change. Kernels by themselves stay as they were simulated. */
static void correct_time(const struct adv_constants *constants, struct adv_account *account)
{
    const double time = 1.0 + constants->step_time_correction_frac;
    if (constants->step_time_correction_frac == 0.0) return;
    correct_slots(account->slots, time);
    for (int i = 0; i < ADV_TERM_COUNT; i++) account->exposed.seconds[i] *= time;
    account->exposed.hand_overs_s *= time;
    for (int i = 0; account->trace && i < ADV_LIMIT_LAYER_KINDS; i++)
        correct_layer(&account->trace->layers[i], time);
}

static void correct_memory(const struct adv_constants *constants, struct adv_memory *memory,
                           struct adv_ledger *ledger)
{
    const double bytes = 1.0 + constants->hbm_correction_frac;
    memory->loss_peak_bytes *= bytes;
    memory->backward_peak_bytes *= bytes;
    memory->update_peak_bytes *= bytes;
    for (int i = 0; ledger && i < ledger->memory_count; i++) ledger->memory[i].bytes_per_device *= bytes;
}

static void price_memory(const struct adv_cost *cost, const struct adv_model_params *params,
                         struct adv_ledger *ledger, struct adv_estimate *estimate)
{
    struct adv_memory memory;
    adv_memory_plan(cost, params, &memory, ledger);
    correct_memory(cost->constants, &memory, ledger);
    set_memory(cost, &memory, estimate);
}

/* Whether nothing that a step adds behind its layers reads what they take. */
static bool behind_is_apart(const struct adv_cost *cost)
{
    const struct adv_plan *plan = cost->plan;
    return !plan->parameter_host_offload && cost->cluster->slices <= 1 &&
           !(plan->family.software_date < cost->constants->software_settled_year);
}

/* The head, the update and the rest of a step behind its layers, where that can be added as it is; remembered
 * in the scratch. */
static const struct adv_cost_behind *behind_of(const struct adv_cost *cost,
                                               const struct adv_model_params *params)
{
    struct adv_cost_behind *row = adv_scratch_behind(cost->scratch);
    if (row->family == cost->scratch->family_number) return row;
    struct adv_account apart;
    apart.only_exposed = true;
    memset(&apart.exposed, 0, sizeof apart.exposed);
    adv_cost_head(cost, &apart);
    adv_schedule_step(cost, params, &apart);
    row->exposed = apart.exposed;
    row->family = cost->scratch->family_number;
    return row;
}

static void add_behind(const struct adv_cost *cost, const struct adv_model_params *params,
                       struct adv_account *account)
{
    if (cost->scratch && account->only_exposed && behind_is_apart(cost)) {
        const struct adv_cost_behind *row = behind_of(cost, params);
        for (int i = 0; i < ADV_TERM_COUNT; i++) account->exposed.seconds[i] += row->exposed.seconds[i];
        return;
    }
    adv_cost_head(cost, account);
    adv_schedule_step(cost, params, account);
}

/* All terms of a step; `account` starts empty where the family's fixed part is not known. */
static adv_code add_step(const struct adv_cost *cost, const struct adv_model_params *params,
                         struct adv_account *account, adv_err *err)
{
    adv_code code = add_layers(cost, account, err);
    if (code == ADV_OK) adv_schedule_pipeline(cost, account);
    if (code == ADV_OK) code = adv_cost_mtp(cost, account, err);
    if (code != ADV_OK) return code;
    add_behind(cost, params, account);
    correct_time(cost->constants, account);
    return ADV_OK;
}

/* Step time, batch and memory. */
static adv_code price(const struct adv_estimate_input *input, const struct adv_cost *cost,
                      const struct adv_model_params *params, struct adv_estimate *estimate,
                      struct adv_account *account, adv_err *err)
{
    adv_code code = add_step(cost, params, account, err);
    if (code != ADV_OK) return code;
    estimate->step_time_s = adv_account_total_s(account);
    price_memory(cost, params, account->ledger, estimate);
    set_batch(input, &estimate->global_batch_sequences, &estimate->tokens_per_step);
    return ADV_OK;
}

/* NAN: the experts take every token that is routed to them. */
static double expert_capacity(const struct adv_cost *cost)
{
    const struct adv_plan *plan = cost->plan;
    if (plan->family.moe != ADV_MOE_DENSE || plan->family.capacity_factor <= 0.0) return (double)NAN;
    for (int i = 0; i < cost->model->layer_kinds_count; i++)
        if (cost->model->layers[i].experts > 0) return plan->family.capacity_factor;
    return (double)NAN;
}

adv_code adv_estimate_plan(const struct adv_estimate_input *input, struct adv_estimate *estimate,
                           struct adv_ledger *ledger, adv_err *err)
{
    memset(estimate, 0, sizeof *estimate);
    if (ledger) memset(ledger, 0, sizeof *ledger);
    struct adv_cost cost;
    struct adv_model_params params;
    struct adv_account account = {.ledger = ledger};
    struct adv_mesh unsaid;
    adv_code code = prepare(input, NOTHING, ledger ? &ledger->mesh : &unsaid, &cost, &params, err);
    if (code == ADV_OK) code = price(input, &cost, &params, estimate, &account, err);
    if (code != ADV_OK) return code;
    adv_estimate_verdict(estimate);
    estimate->bound = bound_of(&account);
    set_rates(input, &account, estimate);
    estimate->expert_capacity_factor = expert_capacity(&cost);
    adv_interval_apply(&cost, estimate);
    adv_account_write(&account);
    return ADV_OK;
}

adv_code adv_trace_step(const struct adv_estimate_input *input, struct adv_step_trace *trace, adv_err *err)
{
    struct adv_model_params params;
    struct adv_estimate estimate;
    memset(trace, 0, sizeof *trace);
    memset(&estimate, 0, sizeof estimate);
    trace->account.trace = trace;
    adv_code code = prepare(input, NOTHING, &trace->mesh, &trace->cost, &params, err);
    return code == ADV_OK ? price(input, &trace->cost, &params, &estimate, &trace->account, err) : code;
}

/* Families with the same ICI mesh and device order (split axes are part of one made by hand) have one
 * placement; with the same sharding rule, context strategy and two-stage gathers they communicate in the same
 * groups. */
static enum shared shared_of(const struct adv_plan *a, const struct adv_plan *b)
{
    if (memcmp(a->family.ici, b->family.ici, sizeof a->family.ici) != 0 ||
        a->family.custom_mesh != b->family.custom_mesh ||
        a->family.allow_split_physical_axes != b->family.allow_split_physical_axes)
        return NOTHING;
    const bool same_width = (a->family.moe == ADV_MOE_DENSE) == (b->family.moe == ADV_MOE_DENSE);
    return same_width && a->family.rule == b->family.rule && a->family.cp_strategy == b->family.cp_strategy &&
                   a->family.two_stage_gather == b->family.two_stage_gather
               ? GROUPS
               : PLACEMENT;
}

/* Gets the scratch ready for another family; what still holds of the last one is kept. */
static adv_code enter_family(const struct adv_estimate_input *input, struct adv_cost_scratch *scratch,
                             adv_err *err)
{
    bool same_request = scratch->valid && scratch->model == input->model &&
                        scratch->cluster == input->cluster && scratch->constants == input->constants;
    const enum shared shared = same_request ? shared_of(&scratch->plan, input->plan) : NOTHING;
    if (!same_request) adv_scratch_clear(scratch);
    scratch->valid = false;
    adv_scratch_leave_family(scratch);
    scratch->mesh_number += shared != GROUPS;
    adv_code code = prepare(input, shared, &scratch->mesh, &scratch->cost, &scratch->params, err);
    if (code != ADV_OK) return code;
    scratch->cost.scratch = scratch;
    scratch->merges = adv_cost_has_merged(&scratch->cost);
    set_batch(input, &scratch->global_batch_sequences, &scratch->tokens_per_step);
    adv_scratch_enter_compute(scratch, input->plan);
    scratch->model = input->model;
    scratch->cluster = input->cluster;
    scratch->constants = input->constants;
    scratch->valid = true;
    return ADV_OK;
}

/* Where the plan keeps everything: two bits for each tensor, and above them those of weights and moments. */
static uint64_t places_of(const struct adv_cost *cost)
{
    _Static_assert(2 * (int)ADV_TENSOR_COUNT <= (int)ADV_PLACES_TENSOR_BITS, "room for all tensors");
    const struct adv_plan *plan = cost->plan;
    const unsigned others = (unsigned)plan->optimizer_host_offload |
                            (unsigned)plan->parameter_host_offload << 1 |
                            (unsigned)plan->shard_optimizer_over_data << 2 |
                            (unsigned)(plan->flags.host_offload_scheduling + 1) << 3;
    return cost->places | (uint64_t)others << ADV_PLACES_TENSOR_BITS;
}

/* Makes `plan` equal to `from`; `same_family`: all that families share is so already. */
static void copy_places(struct adv_plan *plan, const struct adv_plan *from, bool same_family)
{
    const size_t places_at = offsetof(struct adv_plan, policy);
    if (!same_family) {
        *plan = *from;
        return;
    }
    plan->flags = from->flags;
    memcpy((char *)plan + places_at, (const char *)from + places_at, sizeof *plan - places_at);
}

static void enter_places(struct adv_cost_scratch *scratch)
{
    memset(scratch->saved_known, 0, sizeof scratch->saved_known);
    scratch->placed = adv_scratch_placed(scratch, places_of(&scratch->cost));
}

/* Makes `input` the plan that is priced with this scratch. */
static adv_code enter_plan(const struct adv_estimate_input *input, struct adv_cost_scratch *scratch,
                           adv_err *err)
{
    /* equal bytes are equal plans; padding could only make equal plans look different, which costs a
     * recomputation */
    bool same = scratch->valid && scratch->model == input->model && scratch->cluster == input->cluster &&
                scratch->constants == input->constants && adv_plan_same_family(input->plan, &scratch->plan);
    adv_code code = same ? ADV_OK : enter_family(input, scratch, err);
    if (code != ADV_OK) return code;
    copy_places(&scratch->plan, input->plan, same);
    adv_cost_set_plan(&scratch->cost, &scratch->plan);
    enter_places(scratch);
    return ADV_OK;
}

/* Makes the plan that was priced last, with its tensors in other places, the one that is priced. Whoever
 * prices asks the context for them, not the plan. */
static void move_tensors(struct adv_cost_scratch *scratch, const struct adv_places *places,
                         signed char host_offload_scheduling)
{
    scratch->plan.num_vocab_tiling = places->num_vocab_tiling;
    scratch->plan.flags.host_offload_scheduling = host_offload_scheduling;
    adv_cost_set_places(&scratch->cost, places->tensors);
    enter_places(scratch);
}

/* Whether a step is the sum of its layers, their transfers to the host, and what stands behind them. */
static bool is_sum(const struct adv_cost *cost)
{
    return cost->stages <= 1 && cost->plan->family.mtp_layers <= 0 &&
           cost->constants->step_time_correction_frac == 0.0 && behind_is_apart(cost);
}

/* The time of such a step. */
static adv_code sum_step(struct adv_cost_scratch *scratch, double *time_s, adv_err *err)
{
    const struct adv_cost *cost = &scratch->cost;
    struct adv_cost_kept *kept;
    adv_code code = kept_of(cost, &kept, err);
    if (code != ADV_OK) return code;
    const struct adv_cost_behind *behind = behind_of(cost, &scratch->params);
    struct adv_kept_sum *known = &kept->sums[behind - scratch->behind];
    if (!known->known || known->key != behind->key)
        *known =
            (struct adv_kept_sum){true, behind->key, adv_account_open_sum(&kept->exposed, &behind->exposed)};
    double transfers_s = 0.0;
    for (int i = 0; cost->offloads && i < cost->model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &cost->model->layers[i];
        transfers_s += adv_schedule_offload_s(cost, layer, times_of(cost, layer), &kept->times[i]);
    }
    *time_s = adv_account_closed_s(&known->sum, transfers_s);
    return ADV_OK;
}

/* The time of any step, and of its pipeline. */
static adv_code add_up_step(struct adv_cost_scratch *scratch, struct adv_cost_step *step, adv_err *err)
{
    struct adv_account account;
    account.only_exposed = true;
    account.ledger = NULL;
    account.trace = NULL;
    adv_code code = add_step(&scratch->cost, &scratch->params, &account, err);
    if (code != ADV_OK) return code;
    step->time_s = adv_account_total_s(&account);
    step->bubble_s = account.exposed.seconds[ADV_TERM_PIPELINE_BUBBLE];
    step->hand_overs_s = account.exposed.hand_overs_s;
    return ADV_OK;
}

/* The step of the plan that is priced with this scratch. */
static adv_code price_step(struct adv_cost_scratch *scratch, adv_err *err)
{
    struct adv_cost_step *step = &scratch->placed->steps[scratch->plan.num_vocab_tiling > 1];
    if (!step->known) {
        step->bubble_s = step->hand_overs_s = 0.0;
        adv_code code =
            is_sum(&scratch->cost) ? sum_step(scratch, &step->time_s, err) : add_up_step(scratch, step, err);
        if (code != ADV_OK) return code;
        step->known = true;
    }
    scratch->step = *step;
    return ADV_OK;
}

/* Step and memory of the plan that was entered. */
static adv_code price_entered(struct adv_cost_scratch *scratch, struct adv_estimate *estimate, adv_err *err)
{
    adv_code code = price_step(scratch, err);
    if (code != ADV_OK) return code;
    estimate->step_time_s = scratch->step.time_s;
    estimate->global_batch_sequences = scratch->global_batch_sequences;
    estimate->tokens_per_step = scratch->tokens_per_step;
    price_memory(&scratch->cost, &scratch->params, NULL, estimate);
    return ADV_OK;
}

adv_code adv_estimate_again(const struct adv_estimate_input *input, struct adv_cost_scratch *scratch,
                            struct adv_estimate *estimate, adv_err *err)
{
    adv_code code = enter_plan(input, scratch, err);
    return code == ADV_OK ? price_entered(scratch, estimate, err) : code;
}

adv_code adv_estimate_placed(struct adv_cost_scratch *scratch, const struct adv_places *places,
                             signed char host_offload_scheduling, struct adv_estimate *estimate, adv_err *err)
{
    move_tensors(scratch, places, host_offload_scheduling);
    return price_entered(scratch, estimate, err);
}

void adv_estimate_memory_placed(struct adv_cost_scratch *scratch, const struct adv_places *places,
                                signed char host_offload_scheduling, struct adv_estimate *estimate)
{
    move_tensors(scratch, places, host_offload_scheduling);
    price_memory(&scratch->cost, &scratch->params, NULL, estimate);
}

void adv_estimate_again_interval(const struct adv_cost_scratch *scratch, struct adv_estimate *estimate)
{
    adv_interval_apply_numbers(&scratch->cost, estimate);
}

#include "engine/explain/why.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/list.h"
#include "engine/base/text.h"
#include "engine/base/units.h"
#include "engine/explain/diff.h"
#include "engine/hardware/roofline.h"
#include "engine/maxtext/names.h"
#include "engine/rank/rank.h"
#include "engine/search/space_batch.h"
#include "engine/search/space_choices.h"

/* The input of the sentences. */
struct account {
    const struct adv_advise_request *request;
    const struct adv_constants *constants;
    const struct adv_search_result *result;
    int index;
    const struct adv_candidate *candidate;
    const struct adv_ledger *ledger;
    struct adv_why *why;
};

ADV_PRINTF(2, 3)
static void say(struct adv_why *why, const char *format, ...)
{
    if (why->count == ADV_WHY_SENTENCES) return;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(why->sentences[why->count++], ADV_LIMIT_DETAIL, format, arguments);
    va_end(arguments);
}

static bool ledger_of(const struct account *account, const struct adv_plan *plan,
                      struct adv_estimate *estimate, struct adv_ledger *ledger)
{
    struct adv_estimate_input input = {&account->request->model, &account->request->cluster,
                                       account->constants, plan, ADV_FLOPS_CAUSAL_HALF};
    return adv_estimate_plan(&input, estimate, ledger, NULL) == ADV_OK;
}

static double share(double seconds, const struct account *account)
{
    return 100 * seconds / account->candidate->estimate.step_time_s;
}

/* "binds": the resource, and the groups of terms in descending order. */
static void what_binds(struct account *account)
{
    static const struct {
        const char *what;
        enum adv_term_group group;
    } groups[] = {{"dense matmuls", ADV_TERM_GROUP_MATMUL},
                  {"attention kernels", ADV_TERM_GROUP_ATTENTION},
                  {"expert matmuls", ADV_TERM_GROUP_EXPERTS},
                  {"expert routing", ADV_TERM_GROUP_ROUTING},
                  {"element-wise passes", ADV_TERM_GROUP_ELEMENTWISE},
                  {"logits and loss", ADV_TERM_GROUP_LOGITS},
                  {"cross entropy", ADV_TERM_GROUP_LOSS}};
    enum { GROUPS = sizeof groups / sizeof *groups };
    double seconds[GROUPS];
    int order[GROUPS];
    for (int i = 0, ordered = 0; i < GROUPS; i++) {
        int at = i;
        seconds[i] = adv_diff_group_s(account->ledger, groups[i].group);
        while (at > 0 && seconds[i] > seconds[order[at - 1]]) at--;
        (void)adv_list_open(order, sizeof *order, &ordered, GROUPS, at);
        order[at] = i;
    }
    double network_s = 0;
    for (int i = 0; i < account->ledger->terms_count; i++) {
        enum adv_resource resource = account->ledger->terms[i].resource;
        bool network = resource == ADV_RES_ICI || resource == ADV_RES_DCN || resource == ADV_RES_PCIE;
        network_s += network ? account->ledger->terms[i].exposed_seconds : 0;
    }
    char parts[ADV_LIMIT_DETAIL / 2] = "";
    for (int i = 0; i < 3; i++) {
        if (seconds[order[i]] <= 0) break;
        adv_append(parts, sizeof parts, "%s%.3f s (%.0f %%) %s", i ? ", " : "", seconds[order[i]],
                   share(seconds[order[i]], account), groups[order[i]].what);
    }
    say(account->why,
        "The %s binds the step of %.3f s: %s; %.3f s (%.0f %%) wait for transfers that compute does not "
        "hide.",
        adv_resource_name(account->candidate->estimate.bound), account->candidate->estimate.step_time_s,
        parts, network_s, share(network_s, account));
    static const double busy_percent = 75.0; /* from here on little more can be hidden */
    double host_s = 0.0;
    for (int i = 0; i < account->ledger->terms_count; i++)
        if (account->ledger->terms[i].resource == ADV_RES_PCIE)
            host_s += account->ledger->terms[i].seconds - account->ledger->terms[i].exposed_seconds;
    if (share(host_s, account) >= busy_percent)
        say(account->why,
            "The host link is busy %.0f %% of the step behind the compute: more offload, or a slower link, "
            "would show.",
            share(host_s, account));
}

static void memory_use(struct account *account)
{
    const struct adv_estimate *estimate = &account->candidate->estimate;
    static const char *const peaks[] = {[ADV_AT_LOSS] = "the loss",
                                        [ADV_AT_BACKWARD] = "the start of the backward pass",
                                        [ADV_AT_UPDATE] = "the optimizer update"};
    enum adv_memory_at peak =
        estimate->loss_peak_bytes >= estimate->backward_peak_bytes ? ADV_AT_LOSS : ADV_AT_BACKWARD;
    if (estimate->update_peak_bytes > adv_max(estimate->loss_peak_bytes, estimate->backward_peak_bytes))
        peak = ADV_AT_UPDATE;
    char parts[ADV_LIMIT_DETAIL / 2] = "";
    const struct adv_memory_part *largest[3] = {NULL, NULL, NULL};
    for (int i = 0; i < account->ledger->memory_count; i++) {
        const struct adv_memory_part *part = &account->ledger->memory[i];
        if (part->at != peak && part->at != ADV_AT_ALWAYS) continue;
        for (int at = 0; at < 3 && part; at++) {
            if (largest[at] && largest[at]->bytes_per_device >= part->bytes_per_device) continue;
            const struct adv_memory_part *pushed = largest[at];
            largest[at] = part;
            part = pushed;
        }
    }
    for (int i = 0; i < 3 && largest[i]; i++)
        adv_append(parts, sizeof parts, "%s%s %.1f", i ? ", " : "", largest[i]->name,
                   largest[i]->bytes_per_device / ADV_GIB);
    say(account->why, "Memory peaks at %s: %.1f of %.1f GiB per device, %.1f to spare (GiB: %s)%s.",
        peaks[peak], estimate->hbm_bytes_per_device / ADV_GIB, estimate->hbm_limit_bytes_per_device / ADV_GIB,
        (estimate->hbm_limit_bytes_per_device - estimate->hbm_bytes_per_device) / ADV_GIB, parts,
        estimate->host_bytes_per_host > 0 ? "; the rest of what is kept lives on the host" : "");
}

/* Whether the answer is made of steps from the baseline. */
static bool is_within_changes(const struct account *account)
{
    return account->result->has_baseline && account->request->max_changes != ADV_CHANGES_ANY;
}

/* Of activations that are computed again; "" where nothing is known. */
static const char *why_not_kept(const struct account *account)
{
    const struct adv_advise_request *request = account->request;
    if (request->remat_pinned) return ", as remat_policy is pinned";
    if (request->objective == ADV_OBJECTIVE_HBM) return "; keeping more takes memory";
    if (is_within_changes(account))
        return "; to keep more takes more changes or more memory, or does not pay";
    return account->result->exhaustive ? "; keeping more does not fit or does not pay" : "";
}

/* The recomputation that the placements save, against rematerialising everything. */
static void remat_gain(struct account *account)
{
    const struct adv_plan *plan = &account->candidate->plan;
    double again_s = adv_diff_group_s(account->ledger, ADV_TERM_GROUP_AGAIN);
    struct adv_plan full = *plan;
    full.policy = ADV_POLICY_FULL;
    adv_policy_placements(ADV_POLICY_FULL, full.placements);
    full.placements[ADV_TENSOR_DECODER_LAYER_INPUT] = plan->placements[ADV_TENSOR_DECODER_LAYER_INPUT];
    struct adv_estimate estimate;
    if (!ledger_of(account, &full, &estimate, NULL)) return;
    double saved_s = estimate.step_time_s - account->candidate->estimate.step_time_s;
    char kept[ADV_LIMIT_DETAIL / 3] = "";
    for (int i = 0; i < ADV_TENSOR_COUNT; i++) {
        bool offload = plan->placements[i] == ADV_PLACE_OFFLOAD;
        /* the layer input is there in any case: where it lives spares no recomputing */
        if (plan->placements[i] == ADV_PLACE_REMAT || i == ADV_TENSOR_DECODER_LAYER_INPUT) continue;
        adv_append(kept, sizeof kept, "%s%s%s", kept[0] ? ", " : "", adv_tensor_name((enum adv_tensor)i),
                   offload ? " (host)" : "");
    }
    if (plan->policy != ADV_POLICY_CUSTOM)
        (void)snprintf(kept, sizeof kept, "remat_policy=%s", adv_policy_name(plan->policy));
    if (saved_s <= 0 || !kept[0]) {
        say(account->why, "%.3f s (%.0f %%) go into computing activations again%s.", again_s,
            share(again_s, account), why_not_kept(account));
        return;
    }
    say(account->why,
        "Keeping %s saves %.3f s of recomputing (full remat: %.3f s); %.3f s (%.0f %%) are still computed "
        "again.",
        kept, saved_s, estimate.step_time_s, again_s, share(again_s, account));
}

static void mesh_text(const struct adv_plan *plan, char *text, size_t text_bytes)
{
    text[0] = '\0';
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        if (plan->family.ici[i] > 1)
            adv_append(text, text_bytes, "%s%s=%d", text[0] ? " x " : "", adv_axis_key((enum adv_axis)i),
                       plan->family.ici[i]);
        if (plan->family.dcn[i] > 1)
            adv_append(text, text_bytes, "%sdcn %s=%d", text[0] ? " x " : "", adv_axis_key((enum adv_axis)i),
                       plan->family.dcn[i]);
    }
    if (!text[0]) adv_append(text, text_bytes, "one device");
}

/* "+0.412 s context_collectives, -0.100 s …": the three largest moves from one ledger to another. */
static void moves_text(const struct adv_ledger *before, const struct adv_ledger *after, char *text,
                       size_t text_bytes)
{
    struct adv_term_move moves[ADV_LIMIT_LEDGER_TERMS];
    int count = adv_diff_terms(before, after, moves);
    text[0] = '\0';
    for (int i = 0; i < count && i < 3; i++) {
        double moved_s = moves[i].after_s - moves[i].before_s;
        if (fabs(moved_s) < 0.0005) break;
        adv_append(text, text_bytes, "%s%+.3f s %s", i ? ", " : "", moved_s, moves[i].name);
    }
    if (!text[0]) adv_append(text, text_bytes, "no term moves by more than 0.5 ms");
}

/* "fsdp=64 x context=2", and on the same mesh the first of what tells two plans apart. */
static void plan_text(const struct adv_plan *plan, const struct adv_plan *beside, char *text,
                      size_t text_bytes)
{
    mesh_text(plan, text, text_bytes);
    if (!adv_rank_same_mesh(plan, beside)) return;
    int steps = plan->family.gradient_accumulation_steps;
    if (steps != beside->family.gradient_accumulation_steps && steps > 1)
        adv_append(text, text_bytes, ", per_device_batch_size=%g in %d steps",
                   plan->family.per_device_batch_size, steps);
    else if (steps != beside->family.gradient_accumulation_steps)
        adv_append(text, text_bytes, ", per_device_batch_size=%g at once",
                   plan->family.per_device_batch_size);
    else if (plan->family.cp_strategy != beside->family.cp_strategy)
        adv_append(text, text_bytes, ", %s", adv_cp_strategy_name(plan->family.cp_strategy));
    else if (plan->family.quantization != beside->family.quantization)
        adv_append(text, text_bytes, ", %s",
                   plan->family.quantization == ADV_QUANT_NONE
                       ? "not quantised"
                       : adv_quantization_name(plan->family.quantization));
    else if (plan->family.use_ring_of_experts != beside->family.use_ring_of_experts)
        adv_append(text, text_bytes, ", %s",
                   plan->family.use_ring_of_experts ? "ring of experts" : "experts by all-to-all");
    else if (plan->family.two_stage_gather != beside->family.two_stage_gather)
        adv_append(text, text_bytes, ", %s",
                   plan->family.two_stage_gather ? "gathers in two stages" : "one gather");
    else if (plan->family.pipeline_microbatches != beside->family.pipeline_microbatches)
        adv_append(text, text_bytes, ", %d microbatches", plan->family.pipeline_microbatches);
    else if (plan->family.layers_per_stage != beside->family.layers_per_stage)
        adv_append(text, text_bytes, ", %d layer%s a stage", plan->family.layers_per_stage,
                   plan->family.layers_per_stage == 1 ? "" : "s");
    else if (memcmp(plan->placements, beside->placements, sizeof plan->placements) != 0)
        adv_append(text, text_bytes, ", other tensors kept");
    else
        adv_append(text, text_bytes, ", other tiles or switches");
}

/* That the plan fits; rounded down, since none is certain. */
static double sure_percent(const struct adv_candidate *candidate)
{
    return adv_min(99.9, floor(1000.0 * candidate->estimate.fit_probability) / 10.0);
}

/* Why the first of two tied plans is first. */
static void tie_text(const struct account *account, const struct adv_candidate *other, char *text,
                     size_t text_bytes)
{
    struct adv_simplicity mine = adv_rank_simplicity(account->candidate);
    struct adv_simplicity its = adv_rank_simplicity(other);
    const struct adv_estimate *estimate = &account->candidate->estimate;
    text[0] = '\0';
    if (is_within_changes(account))
        adv_append(text, text_bytes, "and first because changes of a baseline are ranked as predicted");
    else if (adv_rank_outdoes(account->request->objective, estimate, &other->estimate))
        adv_append(text, text_bytes,
                   "and first because it is faster and fits more surely (probability %.2f against %.2f)",
                   estimate->fit_probability, other->estimate.fit_probability);
    else if (!adv_rank_simpler(mine, its))
        adv_append(text, text_bytes, "which is no simpler");
    else if (mine.dangerous != its.dangerous)
        adv_append(text, text_bytes, "and first because it leaves memory to spare");
    else if (mine.quantised != its.quantised)
        adv_append(text, text_bytes, "and first because its matmuls are not quantised");
    else if (mine.unsure != its.unsure)
        adv_append(text, text_bytes, "and first because it fits more surely (with %.1f %% against %.1f %%)",
                   sure_percent(account->candidate), sure_percent(other));
    else if (mine.doubt_permille != its.doubt_permille)
        adv_append(text, text_bytes,
                   "and first because it is surer (at most %.1f %% slower than predicted, against %.1f %%)",
                   mine.doubt_permille / 10.0, its.doubt_permille / 10.0);
    else if (mine.axes != its.axes)
        adv_append(
            text, text_bytes,
            "and first because it is simpler (mesh axes, tensor twice, accumulation and host once each: "
            "%d against %d)",
            mine.axes, its.axes);
    else
        adv_append(text, text_bytes,
                   "and first because it is simpler (%d key%s away from the defaults against %d)", mine.keys,
                   mine.keys == 1 ? "" : "s", its.keys);
}

/* Where memory is the objective: bytes, and the time that goes with them. */
static void smaller_neighbour(struct account *account, const struct adv_candidate *other, const char *which)
{
    double apart = account->candidate->estimate.hbm_bytes_per_device - other->estimate.hbm_bytes_per_device;
    say(account->why, "%+.2f GiB a device against the %s; %.3f s a step against %.3f s.", apart / ADV_GIB,
        which, account->candidate->estimate.step_time_s, other->estimate.step_time_s);
}

/* Where the slower of two plans that are not tied is the one that one can count on: the upper ends of their
 * 90 % intervals, the plan's own first; else "". */
static void surer_text(const struct adv_candidate *own, const struct adv_candidate *other, char *text,
                       size_t text_bytes)
{
    const struct adv_estimate *mine = &own->estimate, *its = &other->estimate;
    const bool is_slower = mine->step_time_s > its->step_time_s;
    text[0] = '\0';
    if (is_slower == (mine->step_time_high_s < its->step_time_high_s))
        adv_append(text, text_bytes, ", but %s (at most %.3f s against %.3f s)",
                   is_slower ? "surer" : "less sure", mine->step_time_high_s, its->step_time_high_s);
}

/* The first plan against the second. */
static void next_neighbour(struct account *account, const struct adv_candidate *other, const char *name,
                           const char *moves)
{
    double slower_s = account->candidate->estimate.step_time_s - other->estimate.step_time_s;
    double percent = 100 * slower_s / other->estimate.step_time_s;
    if (account->candidate->tie_group == other->tie_group) {
        char reason[ADV_LIMIT_DETAIL / 2];
        tie_text(account, other, reason, sizeof reason);
        say(account->why, "Tied with the next plan (%s, predicted %.1f %% %s), %s: %s.", name, fabs(percent),
            percent > 0 ? "faster" : "slower", reason, moves);
    } else if (account->request->objective == ADV_OBJECTIVE_STEP_TIME_HIGH && slower_s > 0) {
        say(account->why,
            "At most %.3f s, and the next plan (%s) at most %.3f s, though it is predicted %.1f %% faster: %s.",
            account->candidate->estimate.step_time_high_s, name, other->estimate.step_time_high_s,
            100 * slower_s / account->candidate->estimate.step_time_s, moves);
    } else {
        char doubt[ADV_LIMIT_DETAIL / 4];
        surer_text(account->candidate, other, doubt, sizeof doubt);
        say(account->why, "%.3f s (%.1f %%) faster than the next plan (%s)%s: %s.", -slower_s, -percent, name,
            doubt, moves);
    }
}

/* The plan next to this one: the second for the first, whether or not the answer has it, the first for all
 * others. */
static void neighbour(struct account *account)
{
    const struct adv_search_result *result = account->result;
    const struct adv_candidate *other = account->index == 0 ? result->next : &result->found[0];
    if (!other && is_within_changes(account)) {
        say(account->why, "No other plan within %d changed keys is legal, fits and differs from it.",
            account->request->max_changes);
        return;
    }
    if (!other) {
        say(account->why, "No other plan of the %ld looked at is legal, fits and differs from it.",
            result->considered);
        return;
    }
    struct adv_ledger ledger;
    struct adv_estimate estimate;
    if (!ledger_of(account, &other->plan, &estimate, &ledger)) return;
    char name[ADV_LIMIT_NAME + 48], which[ADV_LIMIT_NAME + 64], moves[ADV_LIMIT_DETAIL / 2];
    plan_text(&other->plan, &account->candidate->plan, name, sizeof name);
    moves_text(&ledger, account->ledger, moves, sizeof moves);
    (void)snprintf(which, sizeof which, "%s plan (%s)", account->index == 0 ? "next" : "first", name);
    if (account->request->objective == ADV_OBJECTIVE_HBM) {
        smaller_neighbour(account, other, which);
        return;
    }
    if (account->index == 0) {
        next_neighbour(account, other, name, moves);
        return;
    }
    double slower_s = account->candidate->estimate.step_time_s - other->estimate.step_time_s;
    bool tied = account->candidate->tie_group == other->tie_group;
    char doubt[ADV_LIMIT_DETAIL / 4] = ", which counts as tied";
    if (!tied) surer_text(account->candidate, other, doubt, sizeof doubt);
    say(account->why, "%+.3f s (%+.1f %%) against the %s%s: %s.", slower_s,
        100 * slower_s / other->estimate.step_time_s, which, doubt, moves);
}

/* Why an axis cannot hide its collectives, where its arithmetic intensity is under what one torus axis needs;
 * else "". */
static void axis_reason(const struct account *account, enum adv_axis axis, int degree, char *text,
                        size_t text_bytes)
{
    const struct adv_chip *chip = &account->request->cluster.chip;
    const struct adv_model *model = &account->request->model;
    double one_axis = adv_roofline_ici_intensity(chip, 1, false);
    const struct adv_layer *first = &model->layers[0];
    int64_t mlp = 0, expert_mlp = 0;
    for (int i = 0; i < model->layer_kinds_count; i++) {
        expert_mlp = adv_max_i(expert_mlp, model->layers[i].moe_mlp_dim);
        mlp = adv_max_i(mlp, adv_max_i(model->layers[i].mlp_dim, model->layers[i].moe_mlp_dim));
    }
    double context =
        adv_roofline_context_intensity((double)account->candidate->plan.family.seq_len, first->q_heads,
                                       first->kv_heads > 0 ? first->kv_heads : 1, degree);
    double all_to_all = adv_roofline_min_expert_mlp_dim(chip, degree, false);
    text[0] = '\0';
    if (axis == ADV_AXIS_TENSOR && (double)(mlp / degree) < one_axis)
        adv_append(text, text_bytes, "; %lld / %d = %lld columns a device are under the %.0f of one ICI axis",
                   (long long)mlp, degree, (long long)(mlp / degree), one_axis);
    else if (axis == ADV_AXIS_EXPERT && (double)expert_mlp < all_to_all)
        adv_append(text, text_bytes, "; an expert width of %lld is under the %.0f its all-to-all needs",
                   (long long)expert_mlp, all_to_all);
    else if (axis == ADV_AXIS_CONTEXT && context < one_axis)
        adv_append(text, text_bytes,
                   "; %.0f FLOP per byte of keys and values are under the %.0f of one ICI axis", context,
                   one_axis);
}

/* What speaks of another plan's memory against this one; "" where it is no less sure to fit. */
static void doubtful_fit_text(const struct account *account, const struct adv_estimate *other, char *text,
                              size_t text_bytes)
{
    text[0] = '\0';
    if (other->fit == ADV_FIT_NO)
        adv_append(text, text_bytes, ", and it does not fit");
    else if (other->fit == ADV_FIT_TIGHT &&
             other->fit_probability < account->candidate->estimate.fit_probability)
        adv_append(text, text_bytes, ", and it fits with a probability of %.2f only", other->fit_probability);
}

/* Why the next family loses: half of fsdp moved to an axis the plan does not use. */
static void other_families(struct account *account)
{
    static const enum adv_axis axes[] = {ADV_AXIS_TENSOR, ADV_AXIS_CONTEXT, ADV_AXIS_EXPERT};
    const struct adv_plan *plan = &account->candidate->plan;
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        struct adv_plan other = *plan;
        if (plan->family.ici[axes[i]] > 1 || plan->family.ici[ADV_AXIS_FSDP] % 2 != 0) continue;
        if (axes[i] == ADV_AXIS_EXPERT && !adv_model_has_experts(&account->request->model)) continue;
        other.family.ici[axes[i]] = 2;
        other.family.ici[ADV_AXIS_FSDP] /= 2;
        struct adv_ledger ledger;
        struct adv_estimate estimate;
        if (adv_plan_broken_rule(&other, &account->request->model, &account->request->cluster)) continue;
        bool placed = ledger_of(account, &other, &estimate, &ledger);
        if (!placed) {
            other.family.allow_split_physical_axes = true;
            placed = ledger_of(account, &other, &estimate, &ledger);
        }
        if (!placed) continue;
        char moves[ADV_LIMIT_DETAIL / 3], reason[ADV_LIMIT_DETAIL / 3], fit[ADV_LIMIT_NAME];
        moves_text(account->ledger, &ledger, moves, sizeof moves);
        double slower_s = estimate.step_time_s - account->candidate->estimate.step_time_s;
        axis_reason(account, axes[i], 2, reason, sizeof reason);
        doubtful_fit_text(account, &estimate, fit, sizeof fit);
        say(account->why, "%s=2 with fsdp=%d instead: %+.3f s (%s%s)%s.", adv_axis_key(axes[i]),
            other.family.ici[ADV_AXIS_FSDP], slower_s, moves, slower_s > 0 ? reason : "", fit);
    }
}

/* A setting that recipes of the chip agree on, where the plan's own price is against it. */
static void dearer_recipe(struct account *account)
{
    const struct adv_advise_request *request = account->request;
    struct adv_plan other = account->candidate->plan;
    struct adv_estimate estimate;
    static const double told_frac = 0.001;
    if (!other.family.use_iota_embed || request->workload.base.family.use_iota_embed ||
        request->cluster.chip.recipe.embedding_lookups || adv_request_pins(request, ADV_NAME_USE_IOTA_EMBED))
        return;
    other.family.use_iota_embed = false;
    if (!ledger_of(account, &other, &estimate, NULL)) return;
    double saved_s = account->candidate->estimate.step_time_s - estimate.step_time_s;
    if (saved_s < told_frac * account->candidate->estimate.step_time_s) return;
    say(account->why,
        ADV_NAME_USE_IOTA_EMBED "=true is set although looking tokens up is priced %.3f s (%.1f %%) faster: "
                                "published recipes of %s set it, so too few measured steps there prove the "
                                "price of a look-up. Pin " ADV_NAME_USE_IOTA_EMBED "=false to plan with it.",
        saved_s, share(saved_s, account), request->cluster.chip.name);
}

void adv_why_explain(const struct adv_advise_request *request, const struct adv_constants *constants,
                     const struct adv_search_result *result, int index, const struct adv_ledger *ledger,
                     struct adv_why *why)
{
    struct account account = {request, constants, result, index, &result->found[index], ledger, why};
    why->count = 0;
    what_binds(&account);
    neighbour(&account);
    if (index == 0) other_families(&account);
    remat_gain(&account);
    dearer_recipe(&account);
    memory_use(&account);
}

#include "engine/explain/why.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/emit/config.h"
#include "engine/explain/diff.h"
#include "engine/hardware/roofline.h"
#include "engine/rank/rank.h"
#include "engine/search/choices.h"

/* What the sentences are made from. */
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

/* Appends to a bounded text. */
ADV_PRINTF(3, 4)
static void append(char *text, size_t text_bytes, const char *format, ...)
{
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text + length, text_bytes - length, format, arguments);
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
        const char *what, *part;
    } groups[] = {{"dense matmuls", "matmul_"},           {"attention kernels", "attention_"},
                  {"expert matmuls", "expert_matmul"},    {"expert routing", "expert_routing"},
                  {"element-wise passes", "elementwise"}, {"logits and loss", "logits"},
                  {"cross entropy", "cross_entropy"}};
    enum { GROUPS = sizeof groups / sizeof *groups };
    double seconds[GROUPS];
    int order[GROUPS];
    for (int i = 0; i < GROUPS; i++) {
        seconds[i] = adv_diff_exposed_s(account->ledger, groups[i].part);
        order[i] = i;
        if (i == 0)
            seconds[i] -=
                adv_diff_exposed_s(account->ledger, "expert_matmul"); /* its name holds "matmul_" too */
        if (i == 1)
            seconds[i] -=
                adv_diff_exposed_s(account->ledger, "ring_attention"); /* merging is counted as exposed */
        for (int at = i; at > 0 && seconds[order[at]] > seconds[order[at - 1]]; at--) {
            int swap = order[at];
            order[at] = order[at - 1];
            order[at - 1] = swap;
        }
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
        append(parts, sizeof parts, "%s%.3f s (%.0f %%) %s", i ? ", " : "", seconds[order[i]],
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
    const char *peak = estimate->loss_peak_bytes >= estimate->backward_peak_bytes
                           ? "the loss"
                           : "the start of the backward pass";
    if (estimate->update_peak_bytes > adv_max(estimate->loss_peak_bytes, estimate->backward_peak_bytes))
        peak = "the optimizer update";
    char parts[ADV_LIMIT_DETAIL / 2] = "";
    const struct adv_memory_part *largest[3] = {NULL, NULL, NULL};
    for (int i = 0; i < account->ledger->memory_count; i++) {
        const struct adv_memory_part *part = &account->ledger->memory[i];
        for (int at = 0; at < 3 && part; at++) {
            if (largest[at] && !strcmp(largest[at]->name, part->name))
                break; /* the same bytes at another peak */
            if (largest[at] && largest[at]->bytes_per_device >= part->bytes_per_device) continue;
            const struct adv_memory_part *pushed = largest[at];
            largest[at] = part;
            part = pushed;
        }
    }
    for (int i = 0; i < 3 && largest[i]; i++)
        append(parts, sizeof parts, "%s%s %.1f", i ? ", " : "", largest[i]->name,
               largest[i]->bytes_per_device / ADV_GIB);
    say(account->why, "Memory peaks at %s: %.1f of %.1f GiB per device, %.1f to spare (GiB: %s)%s.", peak,
        estimate->hbm_bytes_per_device / ADV_GIB, estimate->hbm_limit_bytes_per_device / ADV_GIB,
        (estimate->hbm_limit_bytes_per_device - estimate->hbm_bytes_per_device) / ADV_GIB, parts,
        estimate->host_bytes_per_host > 0 ? "; the rest of what is kept lives on the host" : "");
}

/* What the placements spare, against rematerialising everything. */
static void remat_gain(struct account *account)
{
    const struct adv_plan *plan = &account->candidate->plan;
    double again_s = adv_diff_exposed_s(account->ledger, "recompute");
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
        if (plan->placements[i] == ADV_PLACE_REMAT || (i == ADV_TENSOR_DECODER_LAYER_INPUT && !offload))
            continue;
        append(kept, sizeof kept, "%s%s%s", kept[0] ? ", " : "", adv_tensor_name((enum adv_tensor)i),
               offload ? " (host)" : "");
    }
    if (plan->policy != ADV_POLICY_CUSTOM)
        (void)snprintf(kept, sizeof kept, "remat_policy=%s", adv_policy_name(plan->policy));
    if (saved_s <= 0 || !kept[0]) {
        say(account->why,
            "%.3f s (%.0f %%) go into computing activations again; keeping more does not fit or does not "
            "pay.",
            again_s, share(again_s, account));
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
        if (plan->ici[i] > 1)
            append(text, text_bytes, "%s%s=%d", text[0] ? " x " : "", adv_axis_key((enum adv_axis)i),
                   plan->ici[i]);
        if (plan->dcn[i] > 1)
            append(text, text_bytes, "%sdcn %s=%d", text[0] ? " x " : "", adv_axis_key((enum adv_axis)i),
                   plan->dcn[i]);
    }
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
        append(text, text_bytes, "%s%+.3f s %s", i ? ", " : "", moved_s, moves[i].name);
    }
    if (!text[0]) append(text, text_bytes, "no term moves by more than 0.5 ms");
}

/* The plan next to this one in the answer: the second for the first, the first for all others. */
static void neighbour(struct account *account)
{
    const struct adv_search_result *result = account->result;
    if (result->found_count < 2) {
        say(account->why, "No other plan of the %ld looked at is legal, fits and differs from it.",
            result->considered);
        return;
    }
    int at = account->index == 0 ? 1 : 0;
    const struct adv_candidate *other = &result->found[at];
    struct adv_ledger ledger;
    struct adv_estimate estimate;
    if (!ledger_of(account, &other->plan, &estimate, &ledger)) return;
    char mesh[ADV_LIMIT_NAME], moves[ADV_LIMIT_DETAIL / 2];
    mesh_text(&other->plan, mesh, sizeof mesh);
    moves_text(&ledger, account->ledger, moves, sizeof moves);
    double slower_s = account->candidate->estimate.step_time_s - other->estimate.step_time_s;
    double percent = 100 * slower_s / other->estimate.step_time_s;
    bool tied = account->candidate->tie_group == other->tie_group;
    if (account->index > 0) {
        say(account->why, "%+.3f s (%+.1f %%) against the first plan (%s)%s: %s.", slower_s, percent, mesh,
            tied ? ", which counts as tied" : "", moves);
        return;
    }
    int axes = adv_emit_config_axes_count(&account->candidate->plan),
        other_axes = adv_emit_config_axes_count(&other->plan);
    if (tied)
        say(account->why,
            "Tied with the next plan (%s, predicted %.1f %% %s), and first because it is simpler (%d mesh "
            "ax%s "
            "against %d, %d keys away from the defaults against %d): %s.",
            mesh, fabs(percent), percent > 0 ? "faster" : "slower", axes, axes == 1 ? "is" : "es", other_axes,
            adv_emit_config_changes_count(&account->candidate->plan, &account->request->model),
            adv_emit_config_changes_count(&other->plan, &account->request->model), moves);
    else if (slower_s > 0)
        say(account->why,
            "Predicted %.3f s (%.1f %%) slower than the next plan (%s), but surer: at the upper end of the "
            "90 %% "
            "intervals it is the faster one (%.3f s against %.3f s): %s.",
            slower_s, percent, mesh, account->candidate->estimate.step_time_high_s,
            other->estimate.step_time_high_s, moves);
    else
        say(account->why, "%.3f s (%.1f %%) faster than the next plan (%s): %s.", -slower_s, -percent, mesh,
            moves);
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
    double context = adv_roofline_context_intensity((double)account->candidate->plan.seq_len, first->q_heads,
                                                    first->kv_heads > 0 ? first->kv_heads : 1, degree);
    double all_to_all = adv_roofline_min_expert_mlp_dim(chip, degree, false);
    text[0] = '\0';
    if (axis == ADV_AXIS_TENSOR && (double)(mlp / degree) < one_axis)
        append(text, text_bytes, "; %lld / %d = %lld columns a device are under the %.0f of one ICI axis",
               (long long)mlp, degree, (long long)(mlp / degree), one_axis);
    else if (axis == ADV_AXIS_EXPERT && (double)expert_mlp < all_to_all)
        append(text, text_bytes, "; an expert width of %lld is under the %.0f its all-to-all needs",
               (long long)expert_mlp, all_to_all);
    else if (axis == ADV_AXIS_CONTEXT && context < one_axis)
        append(text, text_bytes, "; %.0f FLOP per byte of keys and values are under the %.0f of one ICI axis",
               context, one_axis);
}

/* Why the next family loses: half of fsdp moved to an axis the plan does not use. */
static void other_families(struct account *account)
{
    static const enum adv_axis axes[] = {ADV_AXIS_TENSOR, ADV_AXIS_CONTEXT, ADV_AXIS_EXPERT};
    const struct adv_plan *plan = &account->candidate->plan;
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        struct adv_plan other = *plan;
        if (plan->ici[axes[i]] > 1 || plan->ici[ADV_AXIS_FSDP] % 2 != 0) continue;
        if (axes[i] == ADV_AXIS_EXPERT && !adv_model_has_experts(&account->request->model)) continue;
        other.ici[axes[i]] = 2;
        other.ici[ADV_AXIS_FSDP] /= 2;
        struct adv_ledger ledger;
        struct adv_estimate estimate;
        if (adv_plan_broken_rule(&other, &account->request->model, &account->request->cluster)) continue;
        bool placed = ledger_of(account, &other, &estimate, &ledger);
        if (!placed) {
            other.allow_split_physical_axes = true;
            placed = ledger_of(account, &other, &estimate, &ledger);
        }
        if (!placed) continue;
        char moves[ADV_LIMIT_DETAIL / 3], reason[ADV_LIMIT_DETAIL / 3];
        moves_text(account->ledger, &ledger, moves, sizeof moves);
        double slower_s = estimate.step_time_s - account->candidate->estimate.step_time_s;
        axis_reason(account, axes[i], 2, reason, sizeof reason);
        bool fits = adv_rank_fits(&estimate, 1);
        say(account->why, "%s=2 with fsdp=%d instead: %+.3f s (%s%s)%s.", adv_axis_key(axes[i]),
            other.ici[ADV_AXIS_FSDP], slower_s, moves, slower_s > 0 ? reason : "",
            fits ? "" : ", and it does not fit");
    }
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
    memory_use(&account);
}

#include "engine/explain/changes.h"

#include <math.h>
#include <string.h>

#include "engine/emit/flags.h"
#include "engine/rank/rank.h"

#define COPY(member) memcpy(&plan->member, &from->member, sizeof plan->member)

static void mesh_and_batch(const struct adv_plan *from, struct adv_plan *plan)
{
    COPY(ici);
    COPY(dcn);
    COPY(per_device_batch_size);
    COPY(gradient_accumulation_steps);
    COPY(rule);
    COPY(cp_strategy);
    COPY(cp_load_balance);
    COPY(allow_split_physical_axes);
    COPY(use_2d_fsdp_sharding);
    COPY(shard_exp_on_fsdp);
    COPY(two_stage_gather);
    COPY(shard_optimizer_over_data);
    COPY(pipeline_microbatches);
    COPY(pipeline_layers);
    COPY(layers_per_stage);
    COPY(pipeline_fsdp_ag_once);
    COPY(pipeline_delay_activation_forwarding);
    COPY(use_ring_of_experts);
    COPY(use_ragged_sort);
    COPY(use_random_routing);
    COPY(ragged_buffer_factor);
}

static void remat(const struct adv_plan *from, struct adv_plan *plan)
{
    COPY(policy);
    COPY(placements);
    COPY(scan_layers);
}

static void loss(const struct adv_plan *from, struct adv_plan *plan)
{
    COPY(num_vocab_tiling);
    COPY(use_iota_embed);
    COPY(cast_logits_to_fp32);
    COPY(logits_dot_in_fp32);
}

static void attention(const struct adv_plan *from, struct adv_plan *plan)
{
    COPY(attention);
    COPY(use_tokamax_splash);
    COPY(use_fused_bwd);
    COPY(use_splash_scheduler);
    COPY(blocks);
    COPY(q_layout);
    COPY(k_layout);
    COPY(v_layout);
    COPY(max_logit_estimate);
    COPY(dq_reduction_steps);
    COPY(float32_logits);
}

static void experts(const struct adv_plan *from, struct adv_plan *plan)
{
    COPY(moe);
    COPY(capacity_factor);
    COPY(float32_weight_sum);
    COPY(merge_gating_gmm);
    COPY(use_custom_sort_vjp);
    COPY(gmm_blocks);
}

static void formats(const struct adv_plan *from, struct adv_plan *plan)
{
    COPY(weight_dtype);
    COPY(dtype);
    COPY(grad_dtype);
    COPY(mu_dtype);
    COPY(quantization);
    COPY(quantization_static);
    COPY(use_qwix);
}

static void optimizer(const struct adv_plan *from, struct adv_plan *plan)
{
    COPY(optimizer);
    COPY(optimizer_host_offload);
    COPY(parameter_host_offload);
    COPY(gradient_clipping_threshold);
}

static void flags(const struct adv_plan *from, struct adv_plan *plan)
{
    COPY(flags);
}

static const struct {
    const char *name;
    void (*apply)(const struct adv_plan *from, struct adv_plan *plan);
} groups[ADV_CHANGE_GROUPS] = {
    {"mesh_and_batch", mesh_and_batch}, {"remat", remat},     {"loss_and_embedding", loss}, {"attention_kernel", attention},
    {"expert_kernel", experts},         {"formats", formats}, {"optimizer", optimizer},     {"xla_flags", flags},
};

const char *adv_change_group_name(int group)
{
    return groups[group].name;
}

void adv_change_group_apply(int group, const struct adv_plan *from, struct adv_plan *plan)
{
    groups[group].apply(from, plan);
}

/* Keys of one group: those by which the baseline with the group taken over differs from the baseline. */
static adv_code list_group(const struct adv_advise_request *request, const struct adv_plan *baseline, const struct adv_plan *changed,
                           int group, struct adv_arena *arena, struct adv_changes *changes, adv_err *err)
{
    struct adv_config_change keys[ADV_CHANGES_MAX];
    int count = 0;
    adv_code code = adv_emit_changes(baseline, changed, &request->model, &request->cluster, arena, keys,
                                     ADV_CHANGES_MAX - changes->count, &count, err);
    for (int i = 0; i < count; i++)
        changes->items[changes->count++] = (struct adv_change){keys[i].key, keys[i].from_json, keys[i].to_json, group};
    struct adv_flag_change switches[ADV_FLAG_CHANGES];
    count = code == ADV_OK ? adv_emit_flag_changes(&baseline->flags, &changed->flags, switches) : 0;
    for (int i = 0; i < count && changes->count < ADV_CHANGES_MAX; i++) {
        struct adv_change change = {switches[i].name, adv_arena_copy(arena, switches[i].from), adv_arena_copy(arena, switches[i].to), group};
        if (!change.from_json || !change.to_json) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
        changes->items[changes->count++] = change;
    }
    return code;
}

adv_code adv_changes_find(const struct adv_advise_request *request, const struct adv_constants *constants,
                          const struct adv_candidate *baseline, const struct adv_candidate *candidate,
                          struct adv_arena *arena, struct adv_changes *changes, adv_err *err)
{
    changes->count = 0;
    double now = adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &baseline->estimate);
    changes->gain_frac = 1 - adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &candidate->estimate) / now;
    for (int group = 0; group < ADV_CHANGE_GROUPS; group++) {
        struct adv_plan changed = baseline->plan;
        groups[group].apply(&candidate->plan, &changed);
        int before = changes->count;
        changes->group_gain_frac[group] = (double)NAN;
        changes->group_fits[group] = false;
        adv_code code = list_group(request, &baseline->plan, &changed, group, arena, changes, err);
        if (code != ADV_OK) return code;
        if (changes->count == before || adv_plan_broken_rule(&changed, &request->model, &request->cluster)) continue;
        struct adv_estimate estimate;
        struct adv_estimate_input input = {&request->model, &request->cluster, constants, &changed, ADV_FLOPS_CAUSAL_HALF};
        if (adv_estimate_plan(&input, &estimate, NULL, NULL) != ADV_OK) continue;
        changes->group_gain_frac[group] = 1 - adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &estimate) / now;
        changes->group_fits[group] = adv_rank_fits(&estimate, 1);
    }
    return ADV_OK;
}

#include "engine/answer/platforms.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/answer/answer.h"
#include "engine/answer/estimate.h"
#include "engine/answer/room.h"
#include "engine/json/decode_request.h"
#include "engine/search/search.h"

struct search {
    const struct adv_catalog *catalog;
    const struct adv_budget *budget;
    struct adv_platform_tour *tour;
    struct adv_arena *arena; /* of what stays */
    adv_err *err;
    int count; /* modelled machines */
    int job_of[ADV_PLATFORMS_MAX];
    struct adv_platform_row *rows; /* in the order of the request, as the next */
    struct adv_platform platforms[ADV_PLATFORMS_MAX];
    enum adv_objective objective;
    bool has_model; /* of a request that decoded: what headline rows are counted for */
    struct adv_model model;
    struct adv_workload workload;
    adv_err refused; /* findings of the first machine that was refused */
};

/* Pointers into the cluster of a plain request, as pointers into the document that was given. */
static void note_refusal(struct search *search, const struct adv_platform_job *job, const adv_err *found,
                         struct adv_platform_row *row)
{
    static const char own[] = "/cluster";
    const struct adv_finding *first = &found->findings[0];
    (void)snprintf(row->reason, sizeof row->reason, "%s", first->detail);
    size_t used = strlen(row->reason);
    if (first->hint[0] && used + strlen(first->hint) + 4 < sizeof row->reason)
        (void)snprintf(row->reason + used, sizeof row->reason - used, " (%.*s)",
                       (int)(sizeof row->reason - used - 4), first->hint);
    row->refused = true;
    if (search->refused.code != ADV_OK) return;
    search->refused = *found;
    for (int i = 0; i < search->refused.count; i++) {
        struct adv_finding *finding = &search->refused.findings[i];
        if (strncmp(finding->pointer, own, strlen(own)) != 0) continue;
        char joined[2 * ADV_LIMIT_POINTER];
        (void)snprintf(joined, sizeof joined, "%s%s", job->at, finding->pointer + strlen(own));
        (void)snprintf(finding->pointer, sizeof finding->pointer, "%.*s", ADV_LIMIT_POINTER - 1, joined);
    }
}

static void note_nothing_fits(const struct adv_search_result *found, struct adv_platform_row *row)
{
    const char *why = "no plan fits";
    if (found->near_count > 0) why = found->near_misses[0].reason;
    if (found->empty_why[0]) why = found->empty_why;
    (void)snprintf(row->reason, sizeof row->reason, "%s", why);
}

#define BUDGET_RULE "request-budget"

static bool is_budget(const adv_err *err)
{
    const char *rule = err->findings[0].rule;
    return rule && strcmp(rule, BUDGET_RULE) == 0;
}

adv_code adv_budget_check(const struct adv_budget *budget, int machines,
                          const struct adv_advise_request *request, adv_err *err)
{
    const int plans = machines * request->top_k * (request->wants_sensitivities ? 2 : 1);
    if (!budget) return ADV_OK;
    if (budget->machines_max > 0 && machines > budget->machines_max)
        return adv_err_add_rule(err, ADV_E_RANGE, BUDGET_RULE, "/clusters", "ask in several requests",
                                "%d machines are to be searched; a request may ask for %d", machines,
                                budget->machines_max);
    if (budget->plans_max > 0 && plans > budget->plans_max)
        return adv_err_add_rule(
            err, ADV_E_RANGE, BUDGET_RULE, "/search/top_k",
            "fewer machines, fewer plans, or no sensitivities",
            "%d machines times top_k %d%s are %d plans; a request may ask for %d", machines, request->top_k,
            request->wants_sensitivities ? ", twice with sensitivities," : "", plans, budget->plans_max);
    return ADV_OK;
}

/* Texts in a configuration may belong to the request, which goes. */
static const struct adv_config *copy_config(const struct adv_config *from, struct adv_arena *arena)
{
    struct adv_config *copy = adv_arena_alloc(arena, sizeof *copy);
    if (!copy) return NULL;
    *copy = *from;
    for (int i = 0; i < copy->count; i++) {
        struct adv_config_entry *entry = &copy->entries[i];
        entry->key = adv_arena_copy(arena, entry->key);
        entry->value_json = adv_arena_copy(arena, entry->value_json);
        if (!entry->key || !entry->value_json) return NULL;
    }
    for (int i = 0; i < copy->flags_count; i++)
        if (!(copy->flags[i] = adv_arena_copy(arena, copy->flags[i]))) return NULL;
    return copy;
}

/* The machine's first plan, in memory that stays. */
static adv_code tell_best(const struct search *search, const struct adv_advise_request *request,
                          const struct adv_plan *plan, struct adv_arena *scratch, struct adv_told_plan *best)
{
    const struct adv_catalog_chip *chip = adv_catalog_chip(search->catalog, request->cluster.chip.name);
    struct adv_teller teller = {search->catalog, request, &chip->constants, scratch, search->err};
    adv_code code = adv_tell_config(&teller, plan, &best->config);
    if (code != ADV_OK) return code;
    best->config = copy_config(best->config, search->arena);
    if (!best->config) return adv_answer_no_memory(search->err);
    teller.arena = search->arena;
    return adv_tell_estimate(&teller, plan, best);
}

static bool asks_for_training(const struct adv_platform_jobs *jobs)
{
    return !isnan(jobs->total_tokens) || !isnan(jobs->days_available);
}

/* The bytes that a checkpoint takes from HBM: optimizer state on the host is there already. */
static double state_bytes_per_device(const struct adv_ledger *ledger)
{
    double bytes = 0;
    for (int i = 0; i < ledger->memory_count; i++) {
        const struct adv_memory_part *part = &ledger->memory[i];
        if (part->at == ADV_AT_ALWAYS &&
            (strcmp(part->name, "weights") == 0 || strcmp(part->name, "optimizer_state") == 0))
            bytes += part->bytes_per_device;
    }
    return bytes;
}

static void plan_training(const struct search *search, struct adv_platform_row *row,
                          struct adv_platform *platform)
{
    const struct adv_platform_jobs *jobs = &search->tour->jobs;
    const struct adv_estimate *estimate = row->best.estimate;
    const struct adv_chip *chip = &row->cluster.chip;
    const struct adv_training_of of = {
        .tokens = jobs->total_tokens,
        .days_available = jobs->days_available,
        .step_time_s = estimate->step_time_s,
        .step_time_low_s = estimate->step_time_low_s,
        .step_time_high_s = estimate->step_time_high_s,
        .tokens_per_step = estimate->tokens_per_step,
        .state_bytes_per_device = state_bytes_per_device(row->best.ledger),
        .host_link_bytes_per_s_per_device = chip->pcie_bytes_per_s_per_chip / chip->devices_per_chip,
        .price_usd_per_chip_hour = platform->price_usd_per_chip_hour,
        .chips = platform->chips,
    };
    adv_training_plan(&of, &jobs->goodput, &row->training);
    platform->extra_time_frac = 1 / row->training.goodput_frac - 1;
    platform->end = row->training.in_time ? ADV_END_IN_TIME : ADV_END_LATE;
    if (!row->training.ends) platform->end = ADV_END_NEVER;
}

static adv_code search_one(struct search *search, const struct adv_platform_job *job, struct adv_arena *arena,
                           struct adv_platform_row *row, struct adv_platform *platform)
{
    struct adv_advise_request *request = adv_arena_alloc(arena, sizeof *request);
    struct adv_search_result *found = adv_arena_alloc(arena, sizeof *found);
    adv_err *own = adv_arena_alloc(arena, sizeof *own);
    if (!request || !found || !own) return adv_answer_no_memory(search->err);
    adv_err_init(own);
    adv_code code = adv_decode_advise_request(search->catalog, job->document, arena, request, own, NULL);
    if (code == ADV_OK && search->count == 1)
        code = adv_budget_check(search->budget, search->tour->jobs.modelled, request, own);
    if (code == ADV_OK) {
        search->objective = request->objective;
        search->model = request->model;
        search->workload = request->workload;
        search->has_model = true;
        request->top_k = 1;
        request->budget = search->budget;
        const struct adv_catalog_chip *chip = adv_catalog_chip(search->catalog, request->cluster.chip.name);
        const struct adv_reread *baseline;
        code = adv_reread_baseline(search->catalog, request, arena, &baseline, own);
        if (code == ADV_OK) code = adv_room_search(request, baseline, &chip->constants, arena, found, own);
        search->tour->evaluations += found->evaluated;
        search->tour->in_part_count += found->left_out > 0;
    }
    if (code == ADV_E_MEMORY || code == ADV_E_TIMEOUT || (code == ADV_E_RANGE && is_budget(own))) {
        adv_err_merge(search->err, own, "");
        return code;
    }
    row->cluster = request->cluster;
    platform->chips = request->cluster.chips_per_slice * request->cluster.slices;
    platform->price_usd_per_chip_hour = request->cluster.price_usd_per_chip_hour;
    platform->power_watts_per_chip = request->cluster.chip.power_watts_per_chip;
    platform->step_time_s = platform->tokens_per_step = platform->hbm_bytes_per_device = (double)NAN;
    platform->step_time_high_s = (double)NAN;
    if (code != ADV_OK) {
        note_refusal(search, job, own, row);
        return ADV_OK;
    }
    if (found->found_count == 0) {
        note_nothing_fits(found, row);
        return ADV_OK;
    }
    const struct adv_estimate *estimate = &found->found[0].estimate;
    platform->step_time_s = estimate->step_time_s;
    platform->step_time_high_s = estimate->step_time_high_s;
    platform->tokens_per_step = estimate->tokens_per_step;
    platform->hbm_bytes_per_device = estimate->hbm_bytes_per_device;
    row->has_best = true;
    code = tell_best(search, request, &found->found[0].plan, arena, &row->best);
    if (code == ADV_OK && asks_for_training(&search->tour->jobs)) plan_training(search, row, platform);
    return code;
}

static adv_code search_all(struct search *search)
{
    const struct adv_platform_jobs *jobs = &search->tour->jobs;
    adv_code code = ADV_OK;
    for (int i = 0; i < jobs->count && code == ADV_OK; i++) {
        if (!jobs->items[i].document) continue;
        struct adv_arena arena;
        adv_arena_init(&arena, ADV_LIMIT_ARENA_BYTES);
        int at = search->count++;
        search->job_of[at] = i;
        code = search_one(search, &jobs->items[i], &arena, &search->rows[at], &search->platforms[at]);
        adv_arena_free(&arena);
    }
    if (code != ADV_OK || search->has_model) return code;
    adv_err_merge(search->err, &search->refused, "");
    return search->refused.code;
}

static double tokens_per_step(const struct adv_workload *workload, int chips)
{
    double seq_len = (double)workload->seq_len;
    if (workload->tokens_per_step > 0) return workload->tokens_per_step;
    if (workload->global_batch_sequences > 0) return workload->global_batch_sequences * seq_len;
    return workload->per_device_batch_size * chips * seq_len;
}

/* The time that the model's FLOPs (MaxText's count) take at the GPUs' peak, over the MFU that the request
 * assumes. */
static void fill_headline(const struct search *search, const struct adv_platform_job *job,
                          struct adv_headline_row *row)
{
    const struct adv_chip *chip = job->chip;
    const struct adv_workload *workload = &search->workload;
    const bool assumed = !isnan(job->assumed_mfu_frac);
    const double tokens = tokens_per_step(workload, job->chips), seq_len = (double)workload->seq_len;
    const double flops =
        adv_model_flops(&search->model, tokens / seq_len, workload->seq_len, ADV_FLOPS_CAUSAL_HALF).total;
    row->chip = chip;
    row->mfu_frac = assumed ? job->assumed_mfu_frac : 1;
    row->platform = (struct adv_platform){
        .chips = job->chips,
        .step_time_s = flops / (chip->peak_bf16_flops_per_s_per_chip * job->chips * row->mfu_frac),
        .tokens_per_step = tokens,
        .price_usd_per_chip_hour = job->price_usd_per_chip_hour,
        .power_watts_per_chip = chip->power_watts_per_chip,
    };
    row->platform.step_time_high_s = row->platform.step_time_s;
    row->bill = adv_platform_bill_of(&row->platform, search->tour->jobs.total_tokens);
    if (assumed)
        (void)snprintf(row->label, sizeof row->label, "roofline at the request's MFU of %.3g, not modelled",
                       row->mfu_frac);
    else
        (void)snprintf(row->label, sizeof row->label, "roofline at peak, not modelled: real runs are slower");
}

static void finish(struct search *search)
{
    struct adv_platform_tour *tour = search->tour;
    struct adv_platforms_answer *answer = &tour->answer;
    int order[ADV_PLATFORMS_MAX];
    adv_platform_rank(search->objective, search->platforms, search->count, order);
    int best = 0; /* where no machine has a plan: the first whose request holds, for its near misses */
    while (best < search->count - 1 && search->rows[order[best]].refused) best++;
    if (search->rows[order[best]].refused) best = 0;
    tour->best = tour->jobs.items[search->job_of[order[best]]].document;
    answer->has_bill = !isnan(tour->jobs.total_tokens);
    answer->has_training = asks_for_training(&tour->jobs);
    for (int i = 0; i < search->count; i++) {
        struct adv_platform_row *row = answer->rows[answer->count++] = &search->rows[order[i]];
        row->platform = search->platforms[order[i]];
        row->bill = adv_platform_bill_of(&row->platform, tour->jobs.total_tokens);
    }
    for (int i = 0; i < tour->jobs.count; i++)
        if (!tour->jobs.items[i].document)
            fill_headline(search, &tour->jobs.items[i], &answer->headlines[answer->headlines_count++]);
}

void adv_platforms_warn(const struct adv_platform_tour *tour, adv_err *warnings)
{
    const struct adv_platforms_answer *answer = &tour->answer;
    const struct adv_platform_row *soonest = answer->count > 0 ? answer->rows[0] : NULL;
    if (!soonest || !soonest->has_best || soonest->platform.end == ADV_END_IN_TIME) return;
    if (soonest->platform.end == ADV_END_NEVER) {
        ADV_WARN(
            warnings, "training-never-ends", "/goodput",
            "fewer failures, shorter checkpoints and restarts, or fewer chips",
            "the training ends on no machine that was asked for: failures undo the work before it is saved");
        return;
    }
    for (int i = 1; i < answer->count; i++)
        if (answer->rows[i]->has_best && answer->rows[i]->training.days < soonest->training.days)
            soonest = answer->rows[i];
    ADV_WARN(
        warnings, "deadline-missed", "/workload/days_available", "more chips, fewer tokens or more days",
        "no machine that was asked for trains %.4g tokens in %.4g days: the soonest, %d x %s %s, takes %.4g",
        soonest->training.tokens, tour->jobs.days_available, soonest->cluster.slices,
        soonest->cluster.chip.name, soonest->cluster.topology, soonest->training.days);
}

adv_code adv_platforms_search(const struct adv_catalog *catalog, const json_t *root,
                              const struct adv_budget *budget, struct adv_arena *arena,
                              struct adv_platform_tour *tour, adv_err *err)
{
    memset(tour, 0, sizeof *tour);
    adv_code code = adv_decode_platforms(catalog, root, &tour->jobs, err);
    if (code != ADV_OK) return code;
    struct search *search = adv_arena_alloc(arena, sizeof *search);
    if (!search) return adv_answer_no_memory(err);
    search->catalog = catalog;
    search->budget = budget;
    search->tour = tour;
    search->arena = arena;
    search->err = err;
    search->rows = adv_arena_array(arena, (size_t)tour->jobs.count, sizeof *search->rows);
    if (!search->rows) return adv_answer_no_memory(err);
    code = search_all(search);
    if (code == ADV_OK) finish(search);
    return code;
}

#include "engine/answer/estimate.h"

#include <stdio.h>
#include <string.h>

#include "engine/answer/needs.h"
#include "engine/cost/over_vmem.h"
#include "engine/explain/whatif.h"
#include "engine/hardware/mesh.h"
#include "engine/json/decode_request.h"
#include "engine/json/encode_estimate.h"
#include "engine/json/encode_pictures.h"
#include "engine/json/lint_rules.h"
#include "engine/maxtext/flags.h"
#include "engine/maxtext/model_keys.h"
#include "engine/maxtext/names.h"
#include "engine/maxtext/software.h"
#include "engine/maxtext/write.h"

static adv_code include_scaling(struct adv_answer_job *job, const struct adv_estimate_input *input)
{
    const char *const *shapes = NULL;
    const int shapes_count = adv_catalog_shapes(job->catalog, input->cluster->chip.name, &shapes);
    struct adv_scaling *scaling = adv_arena_alloc(&job->arena, sizeof *scaling);
    if (!scaling) return adv_answer_no_memory(job->err);
    adv_code code =
        adv_scaling_find(input, shapes, shapes_count, job->budget, &job->arena, scaling, job->err);
    if (code == ADV_OK) (void)json_object_set_new(job->result, "scaling", adv_encode_scaling(scaling));
    return code;
}

static adv_code include_roofline(struct adv_answer_job *job, const struct adv_step_trace *trace)
{
    const int kinds = trace->cost.model->layer_kinds_count;
    struct adv_operations *operations = adv_arena_array(&job->arena, (size_t)kinds, sizeof *operations);
    if (!operations) return adv_answer_no_memory(job->err);
    for (int i = 0; i < kinds; i++) adv_operations_list(trace, i, &operations[i]);
    (void)json_object_set_new(job->result, "roofline", adv_encode_roofline(trace, operations));
    return ADV_OK;
}

/* Sets timeline, roofline, links and scaling in job->result where `include` has their bits. */
static adv_code include_pictures(struct adv_answer_job *job, unsigned include,
                                 const struct adv_estimate_input *input)
{
    if (!include) return ADV_OK;
    struct adv_step_trace *trace = adv_arena_alloc(&job->arena, sizeof *trace);
    struct adv_step_view *view = adv_arena_alloc(&job->arena, sizeof *view);
    struct adv_link_loads *loads = adv_arena_alloc(&job->arena, sizeof *loads);
    if (!trace || !view || !loads) return adv_answer_no_memory(job->err);
    adv_code code = adv_trace_step(input, trace, job->err);
    if (code != ADV_OK) return code;
    if (include & ADV_INCLUDE_TIMELINE) {
        adv_step_view_lay(trace, view);
        (void)json_object_set_new(job->result, "timeline", adv_encode_step_view(view, input->model));
    }
    if (include & ADV_INCLUDE_ROOFLINE) code = include_roofline(job, trace);
    if (code != ADV_OK) return code;
    if (include & ADV_INCLUDE_LINKS) {
        adv_link_loads_find(trace, loads);
        (void)json_object_set_new(job->result, "links", adv_encode_links(trace, loads));
    }
    return include & ADV_INCLUDE_SCALING ? include_scaling(job, input) : ADV_OK;
}

/* MFU follows MaxText's count of model FLOPs, which for a few models holds work that no plan does (olmo3's
 * windows, keys that a sparse indexer leaves out). */
static void warn_of_count(const struct adv_estimate *estimate, adv_err *warnings)
{
    const double notable_frac = 0.98;
    if (estimate->hfu_frac >= notable_frac * estimate->mfu_frac) return;
    ADV_WARN(
        warnings, "flops-count", "", "compare hfu_frac, or step times",
        "mfu_frac counts %.3g times the FLOPs that the plan executes: this convention, or MaxText's count "
        "of this model, has attention that windows, sparsity or causality skip",
        estimate->mfu_frac / estimate->hfu_frac);
}

/* Warnings that only the numbers show. */
static void warn_of_estimate(const struct adv_catalog *catalog, const struct adv_software *software,
                             const struct adv_estimate_input *input, const struct adv_config *config,
                             const struct adv_estimate *estimate, const struct adv_ledger *ledger,
                             adv_err *warnings)
{
    const struct adv_chip *chip = &input->cluster->chip;
    warn_of_count(estimate, warnings);
    adv_mesh_report_split(input->cluster, input->plan, ADV_OK, warnings);
    adv_gathers_warn(catalog, software, input->cluster, input->plan, "/xla_flags", warnings);
    adv_needs_warn(input->model, input->plan->family.seq_len, config, warnings);
    adv_deepstack_warn(input->model, input->plan, config, warnings);
    adv_over_vmem_report(ledger, chip, &input->plan->flags, ADV_OK, warnings);
    if (input->cluster->has_overrides)
        adv_whatif_idle(&adv_catalog_chip(catalog, chip->name)->chip, input, estimate, warnings);
}

/* Models of the catalog by name, others NULL: for the keys that a model's own file sets. */
static const char *model_name(const struct adv_advise_request *request)
{
    return request->model_keys_count > 0 ? NULL : request->model.name;
}

static bool is_pinned(const struct adv_advise_request *request, const char *key)
{
    for (int i = 0; i < request->pins_count; i++) {
        if (strcmp(request->pins[i].key, key) == 0) return true;
    }
    return false;
}

/* The model's own keys as they were given, in place of those that describe its layers. */
static void put_model_keys(const struct adv_advise_request *request, struct adv_config *config)
{
    for (int k = 0; k < request->model_keys_count; k++) {
        const struct adv_pin *key = &request->model_keys[k];
        int at = 0;
        while (at < config->count && strcmp(config->entries[at].key, key->key) != 0) at++;
        if (at == ADV_LIMIT_CONFIG_KEYS || is_pinned(request, key->key)) continue;
        config->entries[at] = (struct adv_config_entry){key->key, key->value_json};
        if (at == config->count) config->count++;
    }
}

adv_code adv_tell_config(const struct adv_teller *teller, const struct adv_plan *plan,
                         const struct adv_config **told)
{
    const struct adv_advise_request *request = teller->request;
    struct adv_config *config = adv_arena_alloc(teller->arena, sizeof *config);
    *told = config;
    if (!config) return adv_answer_no_memory(teller->err);
    adv_code code = adv_config_write(plan, &request->model, &request->cluster, request->pins,
                                     request->pins_count, teller->arena, config, teller->err);
    if (code != ADV_OK) return code;
    adv_software_drop_keys(teller->catalog, &request->software, config);
    put_model_keys(request, config);
    code = adv_say_over_model(teller->catalog, model_name(request), &request->model, &request->cluster, plan,
                              teller->arena, config, teller->err);
    if (code != ADV_OK) return code;
    return adv_flags_write(plan, &request->cluster, teller->catalog, &request->software, teller->arena,
                           config, teller->err);
}

/* Those of the model and the machine, as a request with the plan's keys in place of the pins would get them.
 */
static void repeat_job_warnings(const struct adv_advise_request *request, adv_err *warnings)
{
    static const char pins[] = "/pins";
    for (int i = 0; i < request->job_warnings.count; i++) {
        const struct adv_finding *finding = &request->job_warnings.findings[i];
        const bool of_pin = strncmp(finding->pointer, pins, sizeof pins - 1) == 0;
        char pointer[ADV_LIMIT_POINTER + sizeof "/config"];
        (void)snprintf(pointer, sizeof pointer, "%s%s", of_pin ? "/config" : "",
                       finding->pointer + (of_pin ? sizeof pins - 1 : 0));
        (void)adv_err_add_rule(warnings, finding->code, finding->rule, pointer, finding->hint, "%s",
                               finding->detail);
    }
}

/* Reads keys and flags of a plan as an estimate does. Refusals are not told: the plan was searched. */
static adv_code read_again(const struct adv_teller *teller, const struct adv_config *config,
                           struct adv_arena *scratch, adv_err *warnings)
{
    const struct adv_advise_request *request = teller->request;
    struct adv_config *echo = adv_arena_alloc(scratch, sizeof *echo);
    struct adv_config_source source;
    struct adv_plan plan;
    adv_err refused = adv_err_empty();
    if (!echo) return adv_answer_no_memory(teller->err);
    adv_code code = adv_config_source_open(&source, teller->catalog, &request->model, model_name(request),
                                           &request->cluster, config, scratch, teller->err);
    if (code != ADV_OK) return code;
    source.at = "/config";
    (void)!adv_config_read(&source, &plan, &refused, warnings);
    adv_config_contradictions(teller->catalog, model_name(request), &request->cluster, config, "/config",
                              warnings);
    struct adv_flags_reader reader = {.catalog = teller->catalog,
                                      .arena = scratch,
                                      .flags = &plan.flags,
                                      .config = echo,
                                      .err = &refused,
                                      .warnings = warnings};
    adv_flags_unset(&plan.flags);
    for (int i = 0; i < config->flags_count; i++)
        adv_flags_read_text(&reader, config->flags[i], ADV_AT_INDEX("/xla_flags", (size_t)i));
    adv_software_warn_flags(teller->catalog, &request->software, config, request->cluster.chip.name,
                            "/xla_flags", warnings);
    (void)adv_software_find_keys(teller->catalog, &request->software, config, "/config", warnings);
    (void)!adv_plan_check(&plan, &request->model, &request->cluster, &refused, warnings);
    return ADV_OK;
}

adv_code adv_tell_estimate(const struct adv_teller *teller, const struct adv_plan *plan,
                           struct adv_told_plan *told)
{
    const struct adv_advise_request *request = teller->request;
    struct adv_estimate *estimate = adv_arena_bare(teller->arena, sizeof *estimate);
    struct adv_ledger *ledger = adv_arena_bare(teller->arena, sizeof *ledger);
    adv_err *warnings = told->config ? adv_arena_bare(teller->arena, sizeof *warnings) : NULL;
    if (!estimate || !ledger || (told->config && !warnings)) return adv_answer_no_memory(teller->err);
    const struct adv_estimate_input input = {&request->model, &request->cluster, teller->constants, plan,
                                             ADV_FLOPS_CAUSAL_HALF};
    adv_code code = adv_estimate_plan(&input, estimate, ledger, teller->err);
    told->estimate = estimate;
    told->ledger = ledger;
    told->warnings = warnings;
    if (code != ADV_OK || !warnings) return code;
    struct adv_arena scratch;
    adv_arena_init(&scratch, ADV_LIMIT_ARENA_BYTES);
    adv_err_init(warnings);
    repeat_job_warnings(request, warnings);
    code = read_again(teller, told->config, &scratch, warnings);
    adv_arena_free(&scratch);
    warn_of_estimate(teller->catalog, &request->software, &input, told->config, estimate, ledger, warnings);
    adv_lint_rules_warn(teller->catalog, model_name(request), told->config, request->model_keys,
                        request->model_keys_count, warnings);
    return code;
}

adv_code adv_tell_advice(const struct adv_teller *teller, const struct adv_plan *plan,
                         const struct adv_reread *reread, bool searched, struct adv_told_plan *told)
{
    const struct adv_advise_request *request = teller->request;
    const struct adv_estimate_input input = {&request->model, &request->cluster, teller->constants, plan,
                                             ADV_FLOPS_CAUSAL_HALF};
    struct adv_advice_list *advice = adv_arena_bare(teller->arena, sizeof *advice);
    struct adv_reread *own = reread ? NULL : adv_arena_alloc(teller->arena, sizeof *own);
    if (!advice || (!reread && !own)) return adv_answer_no_memory(teller->err);
    if (own) {
        adv_code code = adv_reread_open(own, teller->catalog, &request->model, model_name(request),
                                        &request->cluster, told->config, teller->arena, teller->err);
        if (code != ADV_OK) return code;
    }
    adv_advice_find(&input, told->estimate, told->ledger, reread ? reread : own, searched, advice);
    told->advice = advice;
    return ADV_OK;
}

adv_code adv_answer_estimate(struct adv_answer_job *job)
{
    struct adv_arena *arena = &job->arena;
    struct adv_estimate_request *request = adv_arena_alloc(arena, sizeof *request);
    struct adv_estimate *estimate = adv_arena_bare(arena, sizeof *estimate);
    struct adv_ledger *ledger = adv_arena_bare(arena, sizeof *ledger);
    struct adv_advice_list *advice = adv_arena_bare(arena, sizeof *advice);
    struct adv_reread *reread = adv_arena_alloc(arena, sizeof *reread);
    if (!request || !estimate || !ledger || !advice || !reread) return adv_answer_no_memory(job->err);
    adv_code code =
        adv_decode_estimate_request(job->catalog, job->root, arena, request, job->err, job->warnings);
    if (code != ADV_OK) return code;
    const struct adv_catalog_chip *chip = adv_catalog_chip(job->catalog, request->cluster.chip.name);
    const struct adv_estimate_input input = {&request->model, &request->cluster, &chip->constants,
                                             &request->plan, request->flops_convention};
    code = adv_estimate_plan(&input, estimate, ledger, job->err);
    if (code != ADV_OK) return code;
    const char *name = json_string_value(json_object_get(job->root, "model"));
    warn_of_estimate(job->catalog, &request->software, &input, &request->config, estimate, ledger,
                     job->warnings);
    adv_answer_warn_of_calibration(job, &chip->constants);
    adv_lint_rules_warn(job->catalog, name, &request->config, request->model_keys, request->model_keys_count,
                        job->warnings);
    code = adv_reread_open(reread, job->catalog, &request->model, name, &request->cluster, &request->config,
                           arena, job->err);
    if (code != ADV_OK) return code;
    adv_advice_find(&input, estimate, ledger, reread, false, advice);
    adv_answer_tag(job, &request->model, &request->cluster, estimate);
    adv_answer_tag_wish(job, &request->wish);
    job->answer->evaluations = 1;
    job->result = adv_encode_estimate_answer(job->catalog, request, estimate, ledger, advice, job->warnings);
    return include_pictures(job, request->include, &input);
}

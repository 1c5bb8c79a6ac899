/* lint.c: everything that is wrong, old, ignored or unwise in a MaxText configuration and its XLA flags.
 *
 * Reads what an estimate reads and reports what it reports, plus what only a reader of the configuration
 * wants to know. Severity "error": MaxText or XLA refuses it (valid is then false); "warning": it runs, but
 * not as written or not everywhere; "info": good to know. Model and cluster come from the request, or from
 * model_name and compile_topology of the configuration. Rules that need a missing one are left out, and an
 * info says so. With both, the VMEM of every kernel is checked as an estimate checks it. `strict` makes
 * errors, and keys that MaxText does not have, findings of the request.
 */
#include "engine/answer/answer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/answer/needs.h"
#include "engine/base/units.h"
#include "engine/cost/estimate.h"
#include "engine/cost/over_vmem.h"
#include "engine/hardware/mesh.h"
#include "engine/json/decode_cluster.h"
#include "engine/json/decode_hf_families.h"
#include "engine/json/decode_members.h"
#include "engine/json/decode_plan.h"
#include "engine/json/decode_request.h"
#include "engine/json/decode_value.h"
#include "engine/json/encode_common.h"
#include "engine/json/decode_model.h"
#include "engine/json/lint_rules.h"
#include "engine/json/request_text.h"
#include "engine/maxtext/names.h"
#include "engine/maxtext/software.h"

/* Findings that only inform. All others that are no errors are warnings. */
static const char *const informing[] = {
    "approximated-value", "not-modelled",          "block-clamped", "block-unused",     "tile-unused",
    "vmem-limit-reached", "offload-with-clipping", "not-checked",   "model-overridden", "recipe-flags"};

struct lint_job {
    struct adv_model model;
    struct adv_cluster cluster;
    bool has_model, has_cluster;
    bool asked_model, asked_cluster; /* given, rightly or not */
    bool strict_keys, strict_flags;  /* unknown ones are errors, and flags that the release refuses */
    struct adv_plan plan;
    struct adv_config config;
    adv_err errors, notes;
};

enum lint_severity { LINT_ERROR, LINT_WARNING, LINT_INFO };

/* All findings in the order of the answer. */
struct lint_answer {
    int count, not_shown_count;
    struct lint_finding {
        enum lint_severity severity;
        const struct adv_finding *finding;
    } findings[2 * ADV_LIMIT_FINDINGS]; /* errors and notes */
};

static void note(struct lint_job *job, const char *rule, const char *pointer, const char *hint,
                 const char *detail)
{
    ADV_WARN(&job->notes, rule, pointer, hint, "%s", detail);
}

static const json_t *config_member(const json_t *config, const char *name)
{
    const json_t *value = json_object_get(config, name);
    return value && !json_is_null(value) ? value : NULL;
}

static void find_model(const struct adv_catalog *catalog, const json_t *root, const json_t *config,
                       struct lint_job *job)
{
    const json_t *value = json_object_get(root, "model");
    const char *at = value ? "/model" : "/config/model_name";
    if (!value) value = config_member(config, ADV_NAME_MODEL_NAME);
    const bool unnamed = !value && config_member(config, ADV_NAME_BASE_EMB_DIM);
    ADV_JSON_OWN json_t *standard = unnamed ? adv_decode_default_model(catalog) : NULL;
    if (standard) value = standard;
    job->asked_model = value != NULL;
    if (value)
        job->has_model = adv_decode_request_model(catalog, value, at, config, "/config", &job->model,
                                                  &job->errors, &job->notes);
    adv_hf_warn_of_window(value, at, json_integer_value(config_member(config, ADV_NAME_MAX_TARGET_LENGTH)),
                          &job->notes);
}

static void find_cluster(const struct adv_catalog *catalog, const json_t *root, const json_t *config,
                         struct lint_job *job)
{
    const json_t *value = json_object_get(root, "cluster");
    const json_t *topology = config_member(config, ADV_NAME_COMPILE_TOPOLOGY);
    const json_t *slices = config_member(config, ADV_NAME_COMPILE_TOPOLOGY_NUM_SLICES);
    ADV_JSON_OWN json_t *made = NULL;
    const char *at = "/cluster";
    if (!value && json_is_string(topology) && *json_string_value(topology)) {
        at = "/config/compile_topology";
        made = json_pack("{s:O}", "accelerator", (json_t *)(uintptr_t)topology);
        if (json_is_integer(slices) && json_integer_value(slices) > 0)
            (void)json_object_set(made, "slices", (json_t *)(uintptr_t)slices);
        else
            ADV_REFUSE(&job->errors, at, "set compile_topology_num_slices",
                       "compile_topology is set without a number of slices");
        value = made;
    }
    job->asked_cluster = value != NULL;
    if (value)
        job->has_cluster =
            adv_decode_cluster(catalog, value, at, &job->cluster, &job->errors, &job->notes) == ADV_OK;
    if (job->has_cluster) return;
    memset(&job->cluster, 0, sizeof job->cluster);
    job->cluster.chip.vmem_bytes_per_core = job->cluster.chip.peak_fp8_flops_per_s_per_chip = (double)NAN;
    job->cluster.chip.sparsecores_per_chip = (double)NAN;
}

/* Without a cluster the explicit axes say how many devices are meant; -1 counts as 1. */
static void assume_devices(const json_t *config, struct lint_job *job)
{
    double ici = 1;
    double dcn = 1;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        const enum adv_axis axis = (enum adv_axis)i;
        double degree = json_number_value(json_object_get(config, adv_key_of_axis(false, axis)));
        if (i != ADV_AXIS_SEQUENCE && degree > 1) ici *= degree;
        degree = json_number_value(json_object_get(config, adv_key_of_axis(true, axis)));
        if (i != ADV_AXIS_SEQUENCE && degree > 1) dcn *= degree;
    }
    job->cluster.devices_per_slice = (int)adv_min(ici, 1 << 20);
    job->cluster.slices = (int)adv_min(dcn, 1 << 10);
    job->cluster.devices = job->cluster.devices_per_slice * job->cluster.slices;
    job->cluster.chip.peak_int8_ops_per_s_per_chip = job->cluster.chip.peak_fp8_flops_per_s_per_chip = 1;
    if (!job->asked_cluster)
        note(job, "not-checked", "", "give cluster {chip, topology}",
             "no cluster is given: the product of the mesh axes is not checked");
}

/* Without a cluster: the axis that takes what the others leave, fsdp unless another one is -1. Sequences per
 * shard do not depend on its degree when it is one of those over the batch. */
static bool fill_is_a_batch_axis(const json_t *config)
{
    static const enum adv_axis others[] = {ADV_AXIS_TENSOR,
                                           ADV_AXIS_TENSOR_SEQUENCE,
                                           ADV_AXIS_CONTEXT,
                                           ADV_AXIS_ULYSSES,
                                           ADV_AXIS_STAGE,
                                           ADV_AXIS_AUTOREGRESSIVE,
                                           ADV_AXIS_CONTEXT_AUTOREGRESSIVE};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const json_t *degree = json_object_get(config, adv_key_of_axis(false, others[i]));
        if (json_is_number(degree) && json_number_value(degree) < 0) return false;
    }
    return true;
}

/* Rules that judge the batch by the number of devices. */
static void drop_batch(adv_err *broken)
{
    int kept = 0;
    for (int i = 0; i < broken->count; i++) {
        const char *rule = broken->findings[i].rule;
        if (rule && (strcmp(rule, "batch-by-shards") == 0 || strcmp(rule, "pipeline") == 0)) continue;
        if (kept != i) broken->findings[kept] = broken->findings[i];
        kept++;
    }
    broken->count = kept;
    if (kept == 0) broken->code = ADV_OK;
}

static void note_blocks(const json_t *config, struct lint_job *job)
{
    const struct adv_plan *plan = &job->plan;
    if (plan->family.attention != ADV_ATTENTION_IMPL_FLASH) return; /* adv_config_read has said so */
    for (struct adv_json_walk entry = {.in = config}; adv_json_next_member(&entry);) {
        bool is_block =
            strncmp(entry.key, "sa_block_", 9) == 0 || strncmp(entry.key, "local_sa_block_", 15) == 0;
        if (is_block && json_is_integer(entry.value) &&
            json_integer_value(entry.value) > plan->family.seq_len) {
            note(job, "block-clamped", ADV_AT("/config", entry.key), NULL,
                 "the block is longer than the sequence and is clamped to it");
        }
    }
    for (int i = 0; plan->family.use_fused_bwd && i < adv_keys_count; i++) {
        if (adv_keys[i].needs != ADV_NEEDS_SPLIT_BACKWARD || !config_member(config, adv_keys[i].name))
            continue;
        note(job, "block-unused", ADV_AT("/config", adv_keys[i].name), NULL,
             "the fused backward kernel does not read this block");
    }
}

static void note_tiles(const json_t *config, struct lint_job *job)
{
    const struct adv_plan *plan = &job->plan;
    if (plan->family.moe != ADV_MOE_TOKAMAX || plan->family.quantization != ADV_QUANT_NONE) return;
    for (struct adv_json_walk entry = {.in = config}; adv_json_next_member(&entry);) {
        if (strncmp(entry.key, "wi_tile_", 8) != 0 && strncmp(entry.key, "wo_tile_", 8) != 0) continue;
        note(job, "tile-unused", ADV_AT("/config", entry.key), "set use_gmm_v2, or leave it out",
             "the unquantized tokamax grouped matmul tunes its tiles itself");
    }
}

static void note_vmem(struct lint_job *job)
{
    double limit = job->plan.flags.scoped_vmem_limit_kib * ADV_KIB;
    double capacity = job->cluster.chip.vmem_bytes_per_core;
    if (!job->has_cluster || limit < capacity || limit > capacity) return;
    note(job, "vmem-limit-reached", "/xla_flags", NULL, "the scoped VMEM limit is all the VMEM a core has");
}

/* Whether the flags stand in another file than the keys: MaxText's YAML holds none. */
static bool flags_elsewhere(const struct lint_job *job)
{
    for (int i = 0; i < job->notes.count; i++)
        if (job->notes.findings[i].rule && strcmp(job->notes.findings[i].rule, "recipe-flags") == 0)
            return true;
    return false;
}

/* A kernel over the VMEM limit. Flags that the file cannot hold may raise the limit: no error of the file. */
static void report_vmem(const struct adv_ledger *ledger, struct lint_job *job)
{
    struct adv_over_vmem found;
    if (!adv_over_vmem_find(ledger, &job->cluster.chip, &job->plan.flags, &found)) return;
    if (!found.can_raise || !flags_elsewhere(job)) {
        adv_over_vmem_report(ledger, &job->cluster.chip, &job->plan.flags, ADV_E_ILLEGAL, &job->errors);
        return;
    }
    ADV_WARN(
        &job->notes, "kernel-over-vmem", "/config",
        "run it with LIBTPU_INIT_ARGS set (. ./libtpu.env), and give --xla_flags \"$LIBTPU_INIT_ARGS\" here",
        "without the flags of its run, which may raise xla_tpu_scoped_vmem_limit_kib: %s", found.detail);
}

/* Whether all kernels compile: the plan is priced as an estimate would, for the VMEM its kernels need. */
static void check_vmem(const struct adv_catalog *catalog, struct adv_arena *arena, struct lint_job *job)
{
    const struct adv_catalog_chip *chip = adv_catalog_chip(catalog, job->cluster.chip.name);
    struct adv_ledger *ledger = adv_arena_alloc(arena, sizeof *ledger);
    struct adv_estimate estimate;
    adv_err unpriced = adv_err_empty(); /* what cannot be priced is not lint's business */
    if (!job->has_cluster || !job->has_model || !chip || !ledger) return;
    struct adv_estimate_input input = {&job->model, &job->cluster, &chip->constants, &job->plan,
                                       ADV_FLOPS_CAUSAL_HALF};
    if (!adv_decode_rows_are_countable(&job->plan, &job->model, &unpriced) ||
        adv_estimate_plan(&input, &estimate, ledger, &unpriced) != ADV_OK)
        return;
    report_vmem(ledger, job);
}

static enum lint_severity severity_of(const struct adv_finding *finding, bool is_error)
{
    if (is_error) return finding->code == ADV_E_UNSUPPORTED ? LINT_WARNING : LINT_ERROR;
    if (finding->code == ADV_E_ILLEGAL) return LINT_ERROR;
    for (size_t i = 0; finding->rule && i < sizeof informing / sizeof *informing; i++) {
        if (strcmp(finding->rule, informing[i]) == 0) return LINT_INFO;
    }
    return LINT_WARNING;
}

/* Adds `found` to the answer; returns how many of them are errors, which go to `errors` too. */
static int add_findings(struct lint_answer *answer, const adv_err *found, bool is_error, adv_err *errors)
{
    int errors_count = is_error ? found->lost_count : 0;
    answer->not_shown_count += found->lost_count;
    for (int i = 0; i < found->count; i++) {
        const struct adv_finding *finding = &found->findings[i];
        enum lint_severity severity = severity_of(finding, is_error);
        answer->findings[answer->count++] = (struct lint_finding){severity, finding};
        if (severity != LINT_ERROR) continue;
        errors_count++;
        (void)adv_err_add_rule(errors, finding->code == ADV_OK ? ADV_E_INVALID : finding->code, finding->rule,
                               finding->pointer, finding->hint, "%s", finding->detail);
    }
    return errors_count;
}

static void inspect(const struct adv_catalog *catalog, const json_t *root, const json_t *config,
                    struct adv_arena *arena, struct lint_job *job)
{
    find_model(catalog, root, config, job);
    find_cluster(catalog, root, config, job);
    if (!job->has_cluster) assume_devices(config, job);
    if (!job->has_model && !job->asked_model)
        note(job, "not-checked", "", "give model or model_name",
             "no model is given: its dimensions are not checked against the mesh");
    const char *name =
        json_string_value(json_object_get(root, "model") ? json_object_get(root, "model")
                                                         : json_object_get(config, ADV_NAME_MODEL_NAME));
    const struct adv_pin *model_keys = NULL;
    int model_keys_count = 0;
    if (adv_decode_model_given(json_object_get(root, "model"), arena, &model_keys, &model_keys_count))
        (void)adv_err_add(&job->errors, ADV_E_MEMORY, "", NULL, "the request is too large");
    adv_lint_rules(catalog, name, config, model_keys, model_keys_count, &job->errors);
    struct adv_decode_config_input input = {catalog,   &job->model,      &job->cluster, config, name,
                                            "/config", job->strict_keys, arena,         false};
    bool decoded = adv_decode_config(&input, &job->plan, &job->config, &job->errors, &job->notes) == ADV_OK;
    decoded &= adv_decode_flags(catalog, json_object_get(root, "xla_flags"), "/xla_flags", job->strict_flags,
                                arena, &job->plan.flags, &job->config, &job->errors, &job->notes) == ADV_OK;
    struct adv_software software;
    adv_decode_software(catalog, root, &software, &job->errors);
    adv_software_warn_pair(catalog, &software, &job->notes);
    const bool refuses = json_object_get(root, "software") != NULL;
    (void)adv_software_find_keys(catalog, &software, &job->config, "/config",
                                 refuses ? &job->errors : &job->notes);
    adv_software_find_model(catalog, &software, job->model.maxtext_name,
                            json_object_get(root, "model") ? "/model" : "/config/model_name",
                            refuses ? &job->errors : &job->notes);
    if (job->has_cluster)
        adv_software_warn_flags(catalog, &software, &job->config, job->cluster.chip.name, "/xla_flags",
                                refuses || job->strict_flags ? &job->errors : &job->notes);
    adv_err broken = adv_err_empty();
    (void)!adv_plan_check(&job->plan, &job->model, &job->cluster, &broken, &job->notes);
    if (!job->has_cluster && !fill_is_a_batch_axis(config)) drop_batch(&broken);
    adv_decode_explain_batch(&broken, &job->notes);
    adv_err_merge(&job->errors, &broken, "");
    bool legal = broken.count == 0;
    struct adv_mesh mesh;
    if (job->has_cluster && legal && adv_mesh_place(&job->cluster, &job->plan, &mesh, &job->errors) != ADV_OK)
        return;
    if (job->has_cluster && legal) {
        adv_mesh_report_split(&job->cluster, &job->plan, ADV_E_ILLEGAL, &job->errors);
        adv_gathers_warn(catalog, &software, &job->cluster, &job->plan, "/xla_flags",
                         refuses || job->strict_flags ? &job->errors : &job->notes);
    }
    if (!decoded && !legal) return;
    note_blocks(config, job);
    note_tiles(config, job);
    note_vmem(job);
    if (job->has_model) adv_needs_warn(&job->model, job->plan.family.seq_len, &job->config, &job->notes);
    if (decoded && legal) check_vmem(catalog, arena, job);
}

adv_code adv_answer_lint(struct adv_answer_job *job)
{
    static const char *const severities[] = {"error", "warning", "info"};
    static const char *const members[] = {"config",  "xla_flags",    "model", "cluster", "strict",
                                          "lenient", "recipe_notes", "label", "software"};
    const json_t *root = job->root;
    adv_err *err = job->err;
    if (!adv_json_is_object(root, "", err)) return ADV_E_INVALID;
    bool strict = false;
    bool known = adv_json_known_members(root, "", members, (int)(sizeof members / sizeof *members), err);
    bool lenient = false;
    (void)adv_json_bool(root, "", "strict", ADV_JSON_OPTIONAL, &strict, err);
    if (adv_json_bool(root, "", "lenient", ADV_JSON_OPTIONAL, &lenient, err) && lenient && strict)
        ADV_REFUSE(err, "/lenient", "leave one of them out", "lenient and strict contradict each other");
    const json_t *given = adv_json_object(root, "", "config", ADV_JSON_OPTIONAL, err);
    struct lint_job *lint = adv_arena_alloc(&job->arena, sizeof *lint);
    struct lint_answer *answer = adv_arena_alloc(&job->arena, sizeof *answer);
    adv_err *errors = adv_arena_alloc(&job->arena, sizeof *errors);
    if (!known || err->code != ADV_OK) return err->code;
    if (!lint || !answer || !errors) return adv_answer_no_memory(err);
    adv_err_init(&lint->errors);
    adv_err_init(&lint->notes);
    adv_err_init(errors);
    adv_decode_recipe_notes(root, &lint->notes);
    ADV_JSON_OWN json_t *config = adv_decode_typed_config(job->catalog, given);
    lint->strict_keys = !lenient; /* MaxText does not start with a key that it does not have */
    lint->strict_flags = strict;
    inspect(job->catalog, root, config, &job->arena, lint);
    int errors_count = add_findings(answer, &lint->errors, true, errors);
    errors_count += add_findings(answer, &lint->notes, false, errors);
    if (strict && errors_count > 0) {
        adv_err_merge(err, errors, "");
        return err->code;
    }
    job->answer->refutes = errors_count > 0;
    ADV_LIST(list, i, answer->count,
             adv_encode_finding(severities[answer->findings[i].severity], answer->findings[i].finding));
    job->result = ADV_OBJECT(ADV_M("valid", json_boolean(errors_count == 0)), ADV_M("findings", list),
                             ADV_M("findings_not_shown", answer->not_shown_count),
                             ADV_M("engine", adv_encode_engine(job->catalog)));
    return ADV_OK;
}

#include "tests/unit/advise_fixture.h"

#include <string.h>

#include "engine/catalog/releases.h"
#include "engine/json/decode_answer.h"
#include "engine/json/decode_members.h"
#include "engine/json/decode_plan.h"
#include "engine/json/encode_common.h"
#include "engine/maxtext/changes.h"
#include "engine/maxtext/entries.h"
#include "engine/maxtext/flags.h"
#include "engine/maxtext/write.h"

static const char *const requests[] = {
    "{\"model\":\"llama3.1-70b\",\"cluster\":{\"accelerator\":\"tpu7x-128\"},\"workload\":{\"seq_len\":8192,"
    "\"global_batch_sequences\":256,"
    "\"mu_dtype\":\"bfloat16\"}}",
    "{\"model\":\"gpt-oss-120b\",\"cluster\":{\"accelerator\":\"tpu7x-128\"},\"workload\":{\"seq_len\":8192,"
    "\"global_batch_sequences\":1280,"
    "\"quantization\":\"any\"},\"search\":{\"top_k\":4}}",
    "{\"model\":\"gemma3-27b\",\"cluster\":{\"accelerator\":\"tpu7x-128\"},\"workload\":{\"seq_len\":8192,"
    "\"global_batch_sequences\":256}}",
    "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\",\"slices\":2},"
    "\"workload\":{\"seq_len\":8192,"
    "\"global_batch_sequences\":64,\"quantization\":\"any\"},\"search\":{\"top_k\":5}}",
    "{\"model\":\"llama3.1-70b\",\"cluster\":{\"accelerator\":\"tpu7x-512\"},\"workload\":{\"seq_len\":"
    "131072,\"global_batch_sequences\":64}}",
    "{\"model\":\"mixtral-8x7b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"4x4x4\"},\"workload\":{\"seq_"
    "len\":4096,"
    "\"global_batch_sequences\":256,\"optimizer\":\"adam_pax\"},\"pins\":{\"ici_expert_parallelism\":2,"
    "\"steps\":30}}",
};
enum { REQUESTS = sizeof requests / sizeof *requests };

/* Reads the emitted keys and flags back; all warnings of decoding and legality end up in fixture->warnings.
 */
static void read_back(struct fixture *fixture, struct adv_config *config, struct adv_plan *plan)
{
    json_t *keys = adv_encode_config(config);
    json_t *flags = adv_encode_flags(config);
    json_t *own = json_deep_copy(keys);
    json_object_del(own, "model_name");
    struct adv_decode_config_input input = {fixture->catalog,
                                            &fixture->request->model,
                                            &fixture->request->cluster,
                                            own,
                                            NULL,
                                            "/config",
                                            true,
                                            &fixture->arena,
                                            false};
    struct adv_config echo;
    memset(&echo, 0, sizeof echo);
    adv_err_init(&fixture->warnings);
    if (adv_decode_config(&input, plan, &echo, &fixture->err, &fixture->warnings) != ADV_OK)
        fail_msg("%s: %s", fixture->err.findings[0].pointer, fixture->err.findings[0].detail);
    if (adv_decode_flags(fixture->catalog, flags, "/xla_flags", true, &fixture->arena, &plan->flags, &echo,
                         &fixture->err, &fixture->warnings) != ADV_OK)
        fail_msg("%s: %s", fixture->err.findings[0].pointer, fixture->err.findings[0].detail);
    if (adv_plan_check(plan, &fixture->request->model, &fixture->request->cluster, &fixture->err,
                       &fixture->warnings) != ADV_OK)
        fail_msg("%s: %s", fixture->err.findings[0].pointer, fixture->err.findings[0].detail);
    json_decref(keys);
    json_decref(flags);
    json_decref(own);
}

static void emitted_keys_and_flags_decode_to_the_same_estimate_without_a_warning(void **state)
{
    (void)state;
    for (int r = 0; r < REQUESTS; r++) {
        static struct fixture fixture;
        static struct adv_config config;
        struct adv_search_result result;
        fixture_search(&fixture, requests[r], &result);
        assert_true(result.found_count > 0);
        for (int i = 0; i < result.found_count; i++) {
            const struct adv_candidate *candidate = &result.found[i];
            const struct adv_advise_request *request = fixture.request;
            assert_int_equal(adv_config_write(&candidate->plan, &request->model, &request->cluster,
                                              request->pins, request->pins_count, &fixture.arena, &config,
                                              &fixture.err),
                             ADV_OK);
            assert_int_equal(adv_flags_write(&candidate->plan, &request->cluster, fixture.catalog,
                                             adv_catalog_pinned(fixture.catalog), &fixture.arena, &config,
                                             &fixture.err),
                             ADV_OK);
            struct adv_plan plan;
            read_back(&fixture, &config, &plan);
            /* whether to clip is the training's matter: of what it costs beside offload they are told */
            const bool is_told = plan.optimizer_host_offload && plan.family.gradient_clipping_threshold > 0;
            if (fixture.warnings.count > is_told)
                fail_msg("%s: %s", fixture.warnings.findings[0].pointer, fixture.warnings.findings[0].detail);
            if (is_told)
                assert_string_equal(fixture.warnings.findings[0].pointer,
                                    "/config/gradient_clipping_threshold");
            struct adv_estimate estimate;
            struct adv_estimate_input input = {&request->model, &request->cluster, fixture.constants, &plan,
                                               ADV_FLOPS_CAUSAL_HALF};
            assert_int_equal(adv_estimate_plan(&input, &estimate, NULL, &fixture.err), ADV_OK);
            assert_close(estimate.step_time_s, candidate->estimate.step_time_s, 1e-12);
            assert_close(estimate.hbm_bytes_per_device, candidate->estimate.hbm_bytes_per_device, 1e-12);
            assert_close(estimate.host_bytes_per_host, candidate->estimate.host_bytes_per_host, 1e-12);
        }
        fixture_close(&fixture);
    }
}

static void mesh_keys_are_complete_so_that_no_axis_fills_up(void **state)
{
    (void)state;
    static struct fixture fixture;
    static struct adv_config config;
    fixture_open(&fixture, requests[3]);
    struct adv_plan plan = fixture.request->workload.base;
    plan.family.ici[ADV_AXIS_FSDP] = 1;
    plan.family.ici[ADV_AXIS_DATA] = 16;
    plan.family.dcn[ADV_AXIS_DATA] = 1;
    plan.family.dcn[ADV_AXIS_FSDP] = 2;
    assert_int_equal(adv_config_write(&plan, &fixture.request->model, &fixture.request->cluster, NULL, 0,
                                      &fixture.arena, &config, &fixture.err),
                     ADV_OK);
    assert_string_equal(adv_config_find(&config, "ici_fsdp_parallelism"), "1"); /* default -1 */
    assert_string_equal(adv_config_find(&config, "dcn_data_parallelism"), "1"); /* default -1 */
    assert_string_equal(adv_config_find(&config, "dcn_fsdp_parallelism"), "2");
    assert_string_equal(adv_config_find(&config, "model_name"), "\"llama3.1-8b\"");
    assert_null(adv_config_find(&config, "ici_tensor_parallelism"));
    fixture_close(&fixture);
}

static void keys_the_plan_does_not_speak_of_pass_through_as_pinned(void **state)
{
    (void)state;
    static struct fixture fixture;
    static struct adv_config config;
    fixture_open(&fixture, requests[5]);
    const struct adv_advise_request *request = fixture.request;
    assert_int_equal(adv_config_write(&request->workload.base, &request->model, &request->cluster,
                                      request->pins, request->pins_count, &fixture.arena, &config,
                                      &fixture.err),
                     ADV_OK);
    assert_string_equal(adv_config_find(&config, "steps"), "30");
    assert_string_equal(adv_config_find(&config, "opt_type"), "\"adam_pax\"");
    fixture_close(&fixture);
}

static void a_model_without_a_name_is_written_as_dimensions(void **state)
{
    (void)state;
    static struct fixture fixture;
    static struct adv_config config;
    fixture_open(&fixture, requests[0]);
    fixture.request->model.maxtext_name[0] = '\0';
    assert_int_equal(adv_config_write(&fixture.request->workload.base, &fixture.request->model,
                                      &fixture.request->cluster, NULL, 0, &fixture.arena, &config,
                                      &fixture.err),
                     ADV_OK);
    assert_null(adv_config_find(&config, "model_name"));
    assert_string_equal(adv_config_find(&config, "decoder_block"), "\"llama2\"");
    assert_string_equal(adv_config_find(&config, "base_emb_dim"), "8192");
    assert_string_equal(adv_config_find(&config, "base_num_kv_heads"), "8");
    assert_string_equal(adv_config_find(&config, "base_mlp_dim"), "28672");
    assert_string_equal(adv_config_find(&config, "base_num_decoder_layers"), "80");
    fixture_close(&fixture);
}

static void changes_name_exactly_the_keys_that_differ_with_defaults_spelled_out(void **state)
{
    (void)state;
    static struct fixture fixture;
    fixture_open(&fixture, requests[0]);
    struct adv_plan before = fixture.request->workload.base, after = before;
    after.policy = ADV_POLICY_CUSTOM;
    adv_policy_placements(ADV_POLICY_CUSTOM, after.placements);
    after.placements[ADV_TENSOR_CONTEXT] = ADV_PLACE_OFFLOAD;
    after.num_vocab_tiling = 4;
    struct adv_config_change changes[8];
    struct adv_config_changes found = {.items = changes, .capacity = 8};
    assert_int_equal(adv_config_changes(NULL, &before, &after, &fixture.request->model,
                                        &fixture.request->cluster, &fixture.arena, &found, &fixture.err),
                     ADV_OK);
    assert_int_equal(found.count, 3);
    assert_string_equal(changes[0].key, "remat_policy");
    assert_string_equal(changes[0].from_json, "\"full\"");
    assert_string_equal(changes[1].key, "context");
    assert_string_equal(changes[1].from_json, "\"remat\"");
    assert_string_equal(changes[1].to_json, "\"offload\"");
    assert_string_equal(changes[2].key, "num_vocab_tiling");
    assert_string_equal(changes[2].from_json, "1");
    fixture_close(&fixture);
}

static void each_flag_is_written_once_and_bundles_do_not_override_the_plan(void **state)
{
    (void)state;
    static struct fixture fixture;
    static struct adv_config config;
    fixture_open(&fixture, requests[0]);
    struct adv_plan plan = fixture.request->workload.base;
    plan.flags.sc_all_gather = 1;
    plan.flags.cf_all_gather = -1;
    plan.flags.host_offload_scheduling = 1;
    assert_int_equal(adv_flags_write(&plan, &fixture.request->cluster, fixture.catalog,
                                     adv_catalog_pinned(fixture.catalog), &fixture.arena, &config,
                                     &fixture.err),
                     ADV_OK);
    assert_true(config.flags_count > 10);
    for (int i = 0; i < config.flags_count; i++) {
        size_t length = strcspn(config.flags[i], "=");
        assert_int_not_equal(config.flags[i][length], '\0');
        assert_null(strstr(config.flags[i],
                           "fuse_all_gather")); /* left to the compiler by the plan, set by a bundle */
        for (int k = 0; k < i; k++)
            assert_false(strlen(config.flags[k]) > length &&
                         !strncmp(config.flags[k], config.flags[i], length + 1));
    }
    fixture_close(&fixture);
}

/* A small answer whose texts try to leave their quotes. */
static const char hostile_answer[] =
    "{\"model\":{\"name\":\"x\\nrm -rf "
    "/\"},\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\",\"slices\":2,\"accelerator\":\"tpu7x-128\","
    "\"chips\":128,\"hosts\":32},"
    "\"ranked\":[{\"rank\":1,\"tie_group\":1,\"config\":{\"model_name\":\"a'; touch /tmp/x; "
    "'\",\"steps\":7,\"mlp_activations\":[\"silu\",\"linear\"],"
    "\"remat_policy\":\"=cmd|x\",\"per_device_batch_size\":0.5},\"xla_flags\":[\"--xla_a=1\",\"--xla_b=2\"],"
    "\"why\":[\"a | b\"],"
    "\"estimate\":{\"step_time_s\":1.5,\"time_parts\":["
    "{\"name\":\"matmul\",\"resource\":\"mxu\",\"seconds\":1,\"exposed_seconds\":1},"
    "{\"name\":\"fsdp\\\"\",\"resource\":\"ici\",\"seconds\":2,\"exposed_seconds\":0.5}],\"mesh\":[{\"axis\":"
    "\"fsdp\",\"size\":64}],\"fit_verdict\":\"fits\"}}]"
    ","
    "\"engine\":{\"version\":\"1\"}}";

static void artifact_of(const char *answer, const char *name, struct adv_text *text)
{
    static adv_err err;
    adv_err_init(&err);
    adv_text_init(text, 65536);
    struct adv_catalog *catalog = adv_catalog_load(NULL, &err);
    if (adv_artifact_from_answer(catalog, name, answer, strlen(answer), 1, text, &err))
        fail_msg("%s", err.findings[0].detail);
    adv_catalog_free(catalog);
}

static void artifact(const char *name, struct adv_text *text)
{
    artifact_of(hostile_answer, name, text);
}

static void files_of_a_plan_that_does_not_fit_say_so_first(void **state)
{
    (void)state;
    static const char *const names[] = {"maxtext.sh",  "maxtext.yml", "libtpu.env", "xpk.sh",
                                        "gcluster.sh", "jobset.yaml", "report.md"};
    char answer[sizeof hostile_answer + 16];
    const char *verdict = strstr(hostile_answer, "\"fits\"");
    assert_non_null(verdict);
    (void)snprintf(answer, sizeof answer, "%.*s\"does_not_fit\"%s", (int)(verdict - hostile_answer),
                   hostile_answer, verdict + strlen("\"fits\""));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct adv_text text;
        artifact_of(answer, names[i], &text);
        assert_non_null(strstr(text.data, "GiB per device: DOES NOT FIT\n"));
        adv_text_free(&text);
        artifact(names[i], &text);
        assert_null(strstr(text.data, "DOES NOT FIT"));
        adv_text_free(&text);
    }
}

/* What makes the numbers of a file worth less stands above them, in each file that has them. */
static void files_tell_a_tight_plan_one_that_does_not_start_and_a_what_if_chip(void **state)
{
    (void)state;
    static const char doubts[] =
        "\"tight\",\"fit_probability\":0.223,\"warnings\":[{\"code\":\"kernel-over-vmem\",\"detail\":\"the "
        "kernel asks\\nfor more\"},{\"code\":\"what-if-hardware\",\"detail\":\"of another clock\"}]";
    static const char *const names[] = {"maxtext.sh", "maxtext.yml", "xpk.sh", "jobset.yaml", "report.md"};
    char answer[sizeof hostile_answer + sizeof doubts];
    const char *verdict = strstr(hostile_answer, "\"fits\"");
    assert_non_null(verdict);
    (void)snprintf(answer, sizeof answer, "%.*s%s%s", (int)(verdict - hostile_answer), hostile_answer, doubts,
                   verdict + strlen("\"fits\""));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct adv_text text;
        artifact_of(answer, names[i], &text);
        assert_non_null(strstr(text.data, "GiB per device: TIGHT, fits with a probability of 0.22\n"));
        assert_non_null(strstr(text.data, "# DOES NOT START: the kernel asks for more\n"));
        assert_non_null(strstr(text.data, "# WHAT-IF HARDWARE: of another clock\n"));
        adv_text_free(&text);
    }
}

/* Two slices: what no key says is data between them, as MaxText has it. */
static void tables_name_the_axes_between_slices(void **state)
{
    (void)state;
    static const struct {
        const char *keys, *mesh;
    } cases[] = {
        {"", "dcn_data=2 fsdp=64"},
        {"\"dcn_data_parallelism\":-1,", "dcn_data=2 fsdp=64"},
        {"\"dcn_fsdp_parallelism\":\"2\",", "dcn_fsdp=2 fsdp=64"},
        {"\"dcn_fsdp_parallelism\":-1,\"dcn_data_parallelism\":1,", "dcn_fsdp=2 fsdp=64"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char answer[sizeof hostile_answer + 128];
        const char *keys = strstr(hostile_answer, "\"steps\":7");
        assert_non_null(keys);
        (void)snprintf(answer, sizeof answer, "%.*s%s%s", (int)(keys - hostile_answer), hostile_answer,
                       cases[i].keys, keys);
        static const char *const names[] = {"ranked.csv", "report.md"};
        for (size_t j = 0; j < sizeof names / sizeof *names; j++) {
            struct adv_text text;
            artifact_of(answer, names[j], &text);
            assert_non_null(strstr(text.data, cases[i].mesh));
            adv_text_free(&text);
        }
    }
}

static void scripts_quote_what_came_from_a_request(void **state)
{
    (void)state;
    struct adv_text text;
    artifact("maxtext.sh", &text);
    assert_non_null(strstr(text.data, "'model_name=\"a'\\''; touch /tmp/x; '\\''\"'")); /* still one word */
    assert_null(strstr(text.data, "\nrm -rf")); /* the comment stays one line */
    assert_non_null(strstr(text.data, "'mlp_activations=[silu,linear]'"));
    assert_non_null(strstr(text.data, "'steps=7'")); /* as pinned */
    assert_null(strstr(text.data, "STEPS"));
    assert_non_null(strstr(text.data, "export LIBTPU_INIT_ARGS='--xla_a=1 --xla_b=2'"));
    assert_non_null(strstr(text.data, "export JAX_PLATFORMS=tpu,cpu ENABLE_PJRT_COMPATIBILITY=true\n"));
    adv_text_free(&text);
}

/* XPK puts the command into its manifest as it is: a second line would end the block. */
static void submitted_commands_are_one_line_with_the_readers_variables(void **state)
{
    (void)state;
    static const char *const names[] = {"xpk.sh", "gcluster.sh"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct adv_text text;
        artifact(names[i], &text);
        const char *command =
            strstr(text.data, "\nset -e && export LIBTPU_INIT_ARGS='--xla_a=1 --xla_b=2' && ");
        assert_non_null(command);
        const char *end = strchr(command + 1, '\n');
        assert_memory_equal(end, "\nEND_OF_COMMAND\n", strlen("\nEND_OF_COMMAND\n"));
        assert_non_null(strstr(end, " \"run_name=${RUN_NAME}\""));
        assert_non_null(strstr(end, " \"dataset_type=${DATASET_TYPE:-synthetic}\""));
        assert_null(strstr(end, "${STEPS")); /* the answer has steps */
        adv_text_free(&text);
    }
}

static void a_benchmark_writes_no_checkpoints_unless_the_answer_speaks_of_them(void **state)
{
    (void)state;
    static const char *const names[] = {"maxtext.sh",  "maxtext.yml", "xpk.sh",
                                        "gcluster.sh", "jobset.yaml", "verify.sh"};
    static const struct {
        const char *config;
        bool off;
    } rows[] = {{"{\"a\":1}", true},
                {"{\"enable_checkpointing\":true}", false},
                {"{\"load_full_state_path\":\"gs://a\"}", false}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            struct adv_text answer, text;
            static adv_err err;
            adv_err_init(&err);
            adv_text_init(&answer, 4096);
            adv_text_init(&text, 65536);
            adv_text_format(&answer,
                            "{\"model\":{\"name\":\"m\"},\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\","
                            "\"accelerator\":\"v6e-16\",\"slices\":1,\"chips\":16,\"hosts\":4},\"config\":%s,"
                            "\"xla_flags\":[],\"step_time_s\":1}",
                            rows[k].config);
            assert_int_equal(
                adv_artifact_from_answer(NULL, names[i], answer.data, answer.length_bytes, 1, &text, &err),
                ADV_OK);
            bool yaml = !strcmp(names[i], "maxtext.yml");
            const char *off = yaml ? "enable_checkpointing: false\n" : "enable_checkpointing=false";
            const char *last =
                yaml ? "save_checkpoint_on_completion: false\n" : "save_checkpoint_on_completion=false";
            assert_int_equal(strstr(text.data, off) != NULL, rows[k].off);
            assert_int_equal(strstr(text.data, last) != NULL, rows[k].off);
            assert_non_null(strstr(text.data, yaml ? "dataset_type: synthetic\n" : "dataset_type="));
            adv_text_free(&text);
            adv_text_free(&answer);
        }
    }
}

static void every_artifact_is_made_from_a_stored_answer(void **state)
{
    (void)state;
    static const struct {
        const char *name, *holds;
    } rows[] = {
        {"maxtext.yml", "per_device_batch_size: 0.5\n"},
        {"maxtext.yml", "# First, for its XLA flags: . ./libtpu.env\n"},
        {"maxtext.yaml", "per_device_batch_size: 0.5\n"}, /* its former name */
        {"libtpu.env", "export LIBTPU_INIT_ARGS='--xla_a=1 --xla_b=2'\n"},
        {"xpk.sh", "--tpu-type='tpu7x-4x4x4' --num-slices=2"},
        {"gcluster.sh", "--compute-type 'tpu7x-standard-4t' --topology '4x4x4' --num-slices 2"},
        {"gcluster.sh", " --gke-disable-parallel-containers "},
        {"report.md", "- a \\| b\n"},
        {"jobset.yaml", "                cloud.google.com/gke-tpu-topology: 4x4x4\n"},
        {"jobset.yaml", "      replicas: 2\n      template:\n        spec:\n          parallelism: 16\n"},
        {"jobset.yaml", "                      export LIBTPU_INIT_ARGS='--xla_a=1 --xla_b=2'\n"},
        {"jobset.yaml", "google.com/tpu: 4}"},
        {"jobset.yaml", "volumeMounts: [{name: dshm, mountPath: /dev/shm}]"},
        {"jobset.yaml", "{name: STEPS, value: \"${STEPS}\"}"},
        {"verify.sh", "TOPOLOGY='tpu7x-128' SLICES=2\n"},
        {"verify.sh", "FLAGS='--xla_a=1 --xla_b=2'\n"},
        {"trace.json", "\"ts\":1000000.000,\"dur\":500000.000,\"name\":\"fsdp\\\"\",\"cat\":\"ici\""},
        {"ranked.csv", "1,1,1.5,0,0,0,0,0,0.5,1,\"fits\",\"dcn_data=2 fsdp=64\",\"'=cmd|x\",\"MaxText "},
        {"ranked.csv", ",\"tpu7x\",\"4x4x4\",2\r\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct adv_text text;
        artifact(rows[i].name, &text);
        if (!strstr(text.data, rows[i].holds))
            fail_msg("%s does not hold %s:\n%s", rows[i].name, rows[i].holds, text.data);
        if (strstr(text.data, "{{"))
            fail_msg("%s has a word that no one fills in:\n%s", rows[i].name, text.data);
        assert_non_null(adv_artifact_media_type(rows[i].name));
        assert_non_null(strstr(text.data, "MaxText 0.2.5 (PyPI; keys of commit "));
        adv_text_free(&text);
    }
}

static void slices_go_by_the_names_of_each_tool(void **state)
{
    (void)state;
    static const struct {
        const char *chip, *topology;
        int chips, hosts;
        const char *name, *holds;
    } rows[] = {
        {"v5e", "16x16", 256, 64, "xpk.sh", "--tpu-type='v5litepod-256'"},
        {"v5e", "2x2", 4, 1, "xpk.sh",
         "echo 'XPK has no type for so small a slice:' 'v5e' '2x2' >&2\nexit 2\n"},
        {"v6e", "4x4", 16, 4, "xpk.sh", "--tpu-type='v6e-16'"},
        {"v5p", "8x16x16", 2048, 512, "xpk.sh", "--tpu-type='v5p-8x16x16'"},
        {"v5e", "4x4", 16, 4, "gcluster.sh", "--compute-type 'ct5lp-hightpu-4t' --topology '4x4'"},
        {"v6e", "1x1", 1, 1, "gcluster.sh", "--compute-type 'ct6e-standard-1t' --topology '1x1'"},
        {"v4", "4x4x4", 64, 16, "jobset.yaml", "gke-tpu-accelerator: tpu-v4-podslice\n"},
    };
    struct adv_catalog *catalog = fixture_catalog();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct adv_artifact_source source = {.model = "m",
                                             .chip = rows[i].chip,
                                             .nodes = &adv_catalog_chip(catalog, rows[i].chip)->chip.nodes,
                                             .topology = rows[i].topology,
                                             .accelerator = "",
                                             .engine_version = "1",
                                             .maxtext = "0.2.5",
                                             .slices = 1,
                                             .chips = rows[i].chips,
                                             .hosts = rows[i].hosts};
        struct adv_text text;
        static adv_err err;
        adv_err_init(&err);
        adv_text_init(&text, 65536);
        assert_int_equal(adv_artifact_write(rows[i].name, &source, &text, &err), ADV_OK);
        if (!strstr(text.data, rows[i].holds))
            fail_msg("%s does not hold %s:\n%s", rows[i].name, rows[i].holds, text.data);
        adv_text_free(&text);
    }
}

static void an_unknown_artifact_or_rank_is_not_found(void **state)
{
    (void)state;
    struct adv_text text;
    static adv_err err;
    adv_err_init(&err);
    adv_text_init(&text, 65536);
    assert_int_equal(
        adv_artifact_from_answer(NULL, "maxtext.exe", hostile_answer, strlen(hostile_answer), 1, &text, &err),
        ADV_E_NOT_FOUND);
    assert_int_equal(
        adv_artifact_from_answer(NULL, "maxtext.sh", hostile_answer, strlen(hostile_answer), 2, &text, &err),
        ADV_E_NOT_FOUND);
    assert_int_equal(adv_artifact_from_answer(NULL, "maxtext.sh", "[1", 2, 1, &text, &err), ADV_E_SYNTAX);
    assert_int_equal(adv_artifact_from_answer(NULL, "maxtext.sh", "{}", 2, 1, &text, &err), ADV_E_INVALID);
    adv_text_free(&text);
}

/* Compiled for each chip, these end a run: libtpu 0.0.50.1 has no such option, or refuses it there. */
static void no_flag_that_the_compiler_refuses_is_written(void **state)
{
    (void)state;
    static const char *const chips[] = {"tpu7x", "v6e", "v5p", "v5e", "v4"};
    struct adv_catalog *catalog = fixture_catalog();
    for (size_t c = 0; c < sizeof chips / sizeof *chips; c++) {
        struct adv_arena arena;
        struct adv_plan plan;
        static struct adv_config config;
        struct adv_cluster cluster = {.chip = adv_catalog_chip(catalog, chips[c])->chip};
        adv_err err;
        adv_err_init(&err);
        adv_arena_init(&arena, 1 << 20);
        memset(&plan, 0, sizeof plan);
        memset(&plan.flags, 1, sizeof plan.flags); /* every switch on, so every bundle is written */
        plan.flags.scoped_vmem_limit_kib = 65536;
        assert_int_equal(
            adv_flags_write(&plan, &cluster, catalog, adv_catalog_pinned(catalog), &arena, &config, &err),
            ADV_OK);
        assert_true(config.flags_count > 5);
        for (int i = 0; i < config.flags_count; i++) {
            assert_null(strstr(config.flags[i], "xla_sc_disjoint_spmem"));
            assert_null(strstr(config.flags[i], "xla_tpu_impure_enable_packed_bf16_math_ops"));
            bool fuses = strcmp(config.flags[i], "--xla_tpu_enable_async_collective_fusion=true") == 0;
            assert_false(fuses && (strcmp(chips[c], "v6e") == 0 || strcmp(chips[c], "v5p") == 0));
        }
        adv_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emitted_keys_and_flags_decode_to_the_same_estimate_without_a_warning),
        cmocka_unit_test(mesh_keys_are_complete_so_that_no_axis_fills_up),
        cmocka_unit_test(keys_the_plan_does_not_speak_of_pass_through_as_pinned),
        cmocka_unit_test(a_model_without_a_name_is_written_as_dimensions),
        cmocka_unit_test(changes_name_exactly_the_keys_that_differ_with_defaults_spelled_out),
        cmocka_unit_test(each_flag_is_written_once_and_bundles_do_not_override_the_plan),
        cmocka_unit_test(files_of_a_plan_that_does_not_fit_say_so_first),
        cmocka_unit_test(files_tell_a_tight_plan_one_that_does_not_start_and_a_what_if_chip),
        cmocka_unit_test(tables_name_the_axes_between_slices),
        cmocka_unit_test(scripts_quote_what_came_from_a_request),
        cmocka_unit_test(submitted_commands_are_one_line_with_the_readers_variables),
        cmocka_unit_test(a_benchmark_writes_no_checkpoints_unless_the_answer_speaks_of_them),
        cmocka_unit_test(no_flag_that_the_compiler_refuses_is_written),
        cmocka_unit_test(slices_go_by_the_names_of_each_tool),
        cmocka_unit_test(every_artifact_is_made_from_a_stored_answer),
        cmocka_unit_test(an_unknown_artifact_or_rank_is_not_found),
    };
    return run_group(tests);
}

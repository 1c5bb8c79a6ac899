/* Recipes as they lie in repositories: what a reader of the script would say it trains, the product says too.
 */
#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

#include "engine/json/json_load.h"
#include "tests/unit/answer_fixture.h"

#define TRAIN "python3 -m maxtext.trainers.pre_train.train maxtext/configs/base.yml "

static adv_err refused;

/* The request that a text means, NULL when it is refused. */
static json_t *expand_with(enum adv_request_kind kind, const char *text, const struct adv_given_member *given,
                           int count)
{
    char *json = NULL;
    size_t bytes = 0;
    adv_err_init(&refused);
    if (adv_request_expand(catalog, kind, text, strlen(text), given, count, &json, &bytes, &refused) !=
        ADV_OK)
        return NULL;
    json_t *root = json_loadb(json, bytes, 0, NULL);
    free(json);
    return root;
}

static json_t *expand(const char *text)
{
    json_t *root = expand_with(ADV_REQUEST_ESTIMATE, text, NULL, 0);
    if (!root) fail_msg("%s\n%s", refused.count ? refused.findings[0].detail : "", text);
    return root;
}

static void assert_member(const json_t *root, const char *path, const char *expected)
{
    char copy[256], *saved = NULL;
    (void)snprintf(copy, sizeof copy, "%s", path);
    const json_t *value = root;
    for (char *name = strtok_r(copy, "/", &saved); name; name = strtok_r(NULL, "/", &saved))
        value =
            json_is_array(value) ? json_array_get(value, (size_t)atoi(name)) : json_object_get(value, name);
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    if (!text || strcmp(text, expected) != 0)
        fail_msg("%s is %s, not %s", path, text ? text : "absent", expected);
    free(text);
}

/* A text, and what is at a path of the request that it means. */
struct reading {
    const char *text, *path, *value;
};

static void assert_readings(const struct reading *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_t *root = expand(rows[i].text);
        assert_member(root, rows[i].path, rows[i].value);
        json_decref(root);
    }
}
#define ASSERT_READINGS(rows) assert_readings(rows, sizeof(rows) / sizeof *(rows))

static void variables_have_the_value_they_have_in_a_shell(void **state)
{
    (void)state;
    static const struct reading rows[] = {
        {TRAIN "model_name=m steps=${STEPS:-30}\n", "config/steps", "30"},
        {"STEPS=7\n" TRAIN "steps=${STEPS:-30}\n", "config/steps", "7"},
        {"export STEPS=\n" TRAIN "steps=${STEPS:-30}\n", "config/steps", "30"},
        {"A=2 B=${A}0\n" TRAIN "steps=$B\n", "config/steps", "20"},
        {": \"${N:=4}\"\n" TRAIN "steps=${N}\n", "config/steps", "4"},
        {"ARGS=\"steps=3 \\\n  scan_layers=false\"\n" TRAIN "$ARGS\n", "config/scan_layers", "false"},
        {"ARGS=(steps=3 run_name='a b')\nARGS+=(scan_layers=false)\n" TRAIN "\"${ARGS[@]}\"\n",
         "config/run_name", "\"a b\""},
        {"N=$((2 * 4 + 1))\n" TRAIN "steps=$N\n", "config/steps", "9"},
        {"N=8\n" TRAIN "steps=$((N/2))\n", "config/steps", "4"},
        {"M=llama3.1-8b\n" TRAIN "model_name=${M%-8b}-70b\n", "config/model_name", "\"llama3.1-70b\""},
        {"M=LLAMA2-7B\n" TRAIN "model_name=${M,,}\n", "config/model_name", "\"llama2-7b\""},
        {"P=a_b\n" TRAIN "run_name=${P//_/-}\n", "config/run_name", "\"a-b\""},
        {"X=$(printf '%s-%d' run 7)\n" TRAIN "run_name=$X\n", "config/run_name", "\"run-7\""},
        {"C=$(cat <<'END'\n" TRAIN "steps=4\nEND\n)\nbash -c \"$C\"\n", "config/steps", "4"},
        {"STEPS=5 " TRAIN "steps=${STEPS:-1}\n", "config/steps", "1"},
        {"export M_STEPS=6\n" TRAIN "scan_layers=true\n", "config/steps", "6"},
        {TRAIN "steps=1 steps=2\n", "config/steps", "2"},
        {TRAIN "run_name=$USER-$(date +%s) steps=2\n", "config/run_name", "\"${USER}-$(date \xe2\x80\xa6)\""},
        {"# steps=9\n" TRAIN "steps=2 # steps=3\n", "config/steps", "2"},
    };
    ASSERT_READINGS(rows);
}

static void branches_are_taken_as_a_run_without_arguments_takes_them(void **state)
{
    (void)state;
    static const struct reading rows[] = {
        {"if [ -z \"$BATCH\" ]; then BATCH=2; else BATCH=9; fi\n" TRAIN "per_device_batch_size=$BATCH\n",
         "config/per_device_batch_size", "2"},
        {"N=4\nif [[ $N -gt 2 ]]; then S=1; elif [[ $N -gt 1 ]]; then S=2; else S=3; fi\n" TRAIN "steps=$S\n",
         "config/steps", "1"},
        {"N=4\n[ $N -eq 5 ] && N=6\n" TRAIN "steps=$N\n", "config/steps", "4"},
        {"D=v6e\ncase $D in v5p) S=1;; v6e|v5e) S=2;; *) S=3;; esac\n" TRAIN "steps=$S\n", "config/steps",
         "2"},
        {"S=1\nwhile [[ $# -gt 0 ]]; do case $1 in --steps) S=$2; shift;; esac; shift; done\n" TRAIN
         "steps=$S\n",
         "config/steps", "1"},
        {"usage() {\n  echo usage\n  exit 1\n}\n[ -z \"$PROJECT\" ] && usage\n" TRAIN "steps=3\n",
         "config/steps", "3"},
        {"if [ -z \"$PROJECT\" ]; then echo no; exit 1; fi\n" TRAIN "steps=3\n", "config/steps", "3"},
        {"set -e; cd x || exit 1; " TRAIN "steps=3 | tee log; exit ${PIPESTATUS[0]}\n", "config/steps", "3"},
        {"for S in 5; do\n" TRAIN "steps=$S\ndone\n", "config/steps", "5"},
    };
    ASSERT_READINGS(rows);
    json_t *root = expand("S=1\nif python3 -c 'import x'; then S=2; fi\n" TRAIN "steps=$S\n");
    assert_member(root, "config/steps", "2");
    assert_member(root, "recipe_notes/0/code", "\"recipe-condition\"");
    json_decref(root);
}

/* Recipes that start whichever MaxText the image has: one training, under two names. */
static void a_training_under_its_old_and_new_name_is_one(void **state)
{
    (void)state;
    static const char *const either =
        "ARGS=\"model_name=llama3.1-8b steps=3\"\n"
        "gcluster job submit --compute-type ct6e-standard-4t --topology 4x4 --command \"bash -c 'set +e; \\\\\n"
        "if [ -f MaxText/train.py ]; then \\\\\n"
        "  python3 -u MaxText/train.py MaxText/configs/base.yml ${ARGS} 2>&1 | tee train.log; \\\\\n"
        "else \\\\\n"
        "  " TRAIN "${ARGS} 2>&1 | tee train.log; \\\\\n"
        "fi; \\\\\nexit \\${PIPESTATUS[0]}'\"\n";
    json_t *root = expand(either);
    assert_member(root, "config/steps", "3");
    assert_member(root, "cluster/topology", "\"4x4\"");
    assert_null(json_object_get(root, "recipe_notes")); /* of the two, the name that MaxText still has */
    json_decref(root);
    assert_null(expand_with(ADV_REQUEST_ESTIMATE,
                            "python3 MaxText/train.py base.yml steps=3\n" TRAIN "steps=4\n", NULL, 0));
    assert_non_null(strstr(refused.findings[0].detail, "2 different trainings"));
}

static void launchers_name_the_machine(void **state)
{
    (void)state;
    static const struct reading rows[] = {
        {"xpk workload create --device-type=tpu7x-4x4x8 --num-slices=2 --command=\"" TRAIN "steps=2\"\n",
         "cluster", "{\"accelerator\":\"tpu7x-4x4x8\",\"slices\":2}"},
        {"xpk workload create --tpu-type v6e-32 --command '" TRAIN "steps=2'\n", "cluster",
         "{\"accelerator\":\"v6e-32\"}"},
        {"gcluster job submit --compute-type=tpu7x --topology=4x4x4 --num-slices=1 --command=\"" TRAIN
         "steps=2\"\n",
         "cluster", "{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\"}"},
        {"gcluster job submit --compute-type ct6e-standard-4t --topology 4x4 --command \"" TRAIN
         "steps=2\"\n",
         "cluster", "{\"chip\":\"v6e\",\"topology\":\"4x4\"}"},
        {"COMPUTE_TYPE=${COMPUTE_TYPE:-\"v6e-4\"}\ngcluster job submit --compute-type \"$COMPUTE_TYPE\" "
         "--topology 2x4 "
         "--command \"" TRAIN "steps=2\"\n",
         "cluster", "{\"chip\":\"v6e\",\"topology\":\"2x4\"}"},
        {"gcloud compute tpus tpu-vm create n --accelerator-type=v5litepod-256\ngcloud compute tpus tpu-vm "
         "ssh n "
         "--worker=all --command='" TRAIN "steps=2'\n",
         "cluster", "{\"accelerator\":\"v5litepod-256\"}"},
        {"gcloud compute tpus tpu-vm create n --type=v5p --topology=4x4x4\n" TRAIN "steps=2\n", "cluster",
         "{\"chip\":\"v5p\",\"topology\":\"4x4x4\"}"},
        {"python3 multihost_job.py --TPU_TYPE=v4-128 --NUM_SLICES=4 --COMMAND=\"" TRAIN "steps=2\"\n",
         "cluster", "{\"accelerator\":\"v4-128\",\"slices\":4}"},
        {TRAIN "model_name=llama2-7b compile_topology=v5p-128 compile_topology_num_slices=2\n", "cluster",
         "{\"accelerator\":\"v5p-128\",\"slices\":2}"},
        {"export LIBTPU_INIT_ARGS='--xla_tpu_scoped_vmem_limit_kib=65536 "
         "--xla_enable_async_all_gather=true'\n" TRAIN "steps=2\n",
         "xla_flags", "[\"--xla_tpu_scoped_vmem_limit_kib=65536\",\"--xla_enable_async_all_gather=true\"]"},
        {"docker run -e LIBTPU_INIT_ARGS=--xla_tpu_scoped_vmem_limit_kib=65536 image bash -c '" TRAIN
         "steps=2'\n",
         "xla_flags/0", "\"--xla_tpu_scoped_vmem_limit_kib=65536\""},
        {TRAIN "steps=2\n", "model", "\"default\""},
    };
    ASSERT_READINGS(rows);
}

#define JOBSET(env, command)                                                                                 \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nspec:\n  replicatedJobs:\n  - name: slice\n"        \
    "    replicas: 2\n    template:\n      spec:\n        parallelism: 32\n        template:\n          "    \
    "spec:\n"                                                                                                \
    "            containers:\n            - name: jax\n" command "              env:\n" env                  \
    "            nodeSelector:\n              cloud.google.com/gke-tpu-accelerator: tpu-v5p-slice\n"         \
    "              cloud.google.com/gke-tpu-topology: 4x4x8\n"

static void manifests_are_read_inside_their_containers(void **state)
{
    (void)state;
    static const char shell[] = "kind: ConfigMap\napiVersion: v1\ndata: {a: b}\n---\n" JOBSET(
        "              - {name: BATCH, value: \"4\"}\n              - {name: STEPS, value: \"${STEPS}\"}\n",
        "              command: [bash, -c]\n              args:\n              - |\n"
        "                set -e\n                " TRAIN "per_device_batch_size=$BATCH steps=${STEPS:-30}\n");
    static const char plain[] =
        JOBSET("              - {name: LIBTPU_INIT_ARGS, value: \"--xla_tpu_scoped_vmem_limit_kib=65536\"}\n"
               "              - {name: BATCH, value: 4}\n",
               "              command: [python3, -m, maxtext.trainers.pre_train.train, base.yml]\n"
               "              args: [\"per_device_batch_size=$(BATCH)\", \"run_name=a b\", \"steps=30\"]\n");
    static const char *const texts[] = {shell, plain};
    for (int i = 0; i < 2; i++) {
        json_t *root = expand(texts[i]);
        assert_member(root, "config/per_device_batch_size", "4");
        assert_member(root, "config/steps", "30");
        assert_member(root, "cluster", "{\"chip\":\"v5p\",\"topology\":\"4x4x8\",\"slices\":2}");
        json_decref(root);
    }
    json_t *root = expand(plain);
    assert_member(root, "xla_flags", "[\"--xla_tpu_scoped_vmem_limit_kib=65536\"]");
    json_decref(root);
    root = expand("kubectl apply -f - <<EOF\n" JOBSET("              - {name: A, value: b}\n",
                                                      "              command: [bash, -c, \"" TRAIN
                                                      "steps=8\"]\n") "EOF\n");
    assert_member(root, "config/steps", "8");
    assert_member(root, "cluster/slices", "2");
    json_decref(root);
    root = expand(JOBSET("              - {name: A, value: b}\n",
                         "              command: [python3, -m, maxtext.trainers.pre_train.train, base.yml]\n"
                         "              args: [\"hf_path=$$(A)/$$$$(A)/$(A)/$$A\", \"steps=8\"]\n"));
    assert_member(root, "config/hf_path", "\"$(A)/$$(A)/b/$A\"");
    json_decref(root);
}

static void what_a_recipe_leaves_open_is_asked_for(void **state)
{
    (void)state;
    static const struct {
        const char *text, *detail, *hint;
    } rows[] = {
        {TRAIN "per_device_batch_size=$BATCH\n", "$BATCH, which the recipe leaves", "in config"},
        {TRAIN "per_device_batch_size=$1\n", "is $1", "per_device_batch_size beside"},
        {TRAIN "model_name=${MODEL}\n", "model_name is $MODEL", "beside"},
        {TRAIN "steps=$(nproc)\n", "steps is $(nproc", "beside"},
        {"for B in 1 2 4; do\n" TRAIN "per_device_batch_size=$B\ndone\n", "$B", "beside"},
        {"xpk workload create --device-type=$TYPE --command='" TRAIN "steps=1'\n", "${TYPE}", "give cluster"},
        {TRAIN "model_name=llama2-7b\n" TRAIN "model_name=llama2-70b\n", "2 different trainings",
         "2: line 2, maxtext.trainers.pre_train.train llama2-70b"},
        {"python3 benchmarks/benchmark_runner.py --model_name=x\n", "takes its keys from a table", "prints"},
        {"python3 -m maxtext.trainers.post_train.rl.train_rl base.yml steps=1\n", "samples as well",
         "training step"},
        {"{{- if .Values.x }}\n", "template", "helm template"},
        {"apiVersion: v1\nkind: Pod\nspec: {containers: [{command: [sleep]}]}\n", "no container",
         "container"},
        {"echo hello\nls -l\n", "no command that trains", "script"},
        {"   \n", "empty", "MaxText"},
        {TRAIN "per_device_batch_size = 2 steps=1\n", "\"per_device_batch_size\" of the command",
         "write per_device_batch_size=2,"},
        {TRAIN "per_device_batch_size =2\n", "\"per_device_batch_size\"", "write per_device_batch_size=2,"},
        {TRAIN "steps=1\n\n" TRAIN "per_device_batch_size= 2.5\n", "2 different", "1: line 1"},
        {"\n" TRAIN "per_device_batch_size= 2.5\n", "line 2: the word \"2.5\"",
         "write per_device_batch_size=2.5,"},
        {TRAIN "'per_device_batch_size = 2'\n", "\"per_device_batch_size = 2\"",
         "write per_device_batch_size=2,"},
        {"model_name=llama2-7b per_device_batch_size = 2\n", "parts per_device_batch_size from",
         "without blanks"},
        {TRAIN "steps\n", "\"steps\" of the command", "key=value without blanks"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *root = expand_with(ADV_REQUEST_ESTIMATE, rows[i].text, NULL, 0);
        if (root) fail_msg("read: %s", rows[i].text);
        assert_true(refused.count > 0);
        if (!strstr(refused.findings[0].detail, rows[i].detail) ||
            !strstr(refused.findings[0].hint, rows[i].hint))
            fail_msg("%s: %s (%s)", rows[i].text, refused.findings[0].detail, refused.findings[0].hint);
    }
}

/* Which model is trained is not guessed where a file may say it that is not read. */
static void a_file_that_is_not_read_may_name_the_model(void **state)
{
    (void)state;
#define OTHER "python3 -m maxtext.trainers.pre_train.train maxtext/configs/gpu/models/llama2_70b.yml "
    static const char *const texts[] = {OTHER "per_device_batch_size=2 max_target_length=4096\n",
                                        "base_config: gpu/models/llama2_70b.yml\nsteps: 3\n"};
    static const char *const naming[] = {OTHER "model_name=llama2-70b\n",
                                         "base_config: sft.yml\nmodel_name: llama2-70b\n"};
    static const struct adv_given_member model = {"model", "llama2-70b"};
    static const enum adv_request_kind kinds[] = {ADV_REQUEST_ESTIMATE, ADV_REQUEST_ADVISE};
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 2; k++) {
            assert_null(expand_with(kinds[k], texts[i], NULL, 0));
            assert_string_equal(refused.findings[0].rule, "recipe-file");
            assert_non_null(strstr(refused.findings[0].detail, "llama2_70b.yml"));
            assert_non_null(strstr(refused.findings[0].hint, "model_name="));
        }
        json_t *root = expand_with(ADV_REQUEST_ESTIMATE, texts[i], &model, 1);
        assert_non_null(root);
        assert_member(root, "model", "\"llama2-70b\"");
        json_decref(root);
        json_decref(expand(naming[i]));
        root = expand_with(ADV_REQUEST_LINT, texts[i], NULL, 0);
        assert_non_null(root);
        json_decref(root);
    }
    json_t *root = expand(naming[0]);
    assert_member(root, "recipe_notes/0/code", "\"recipe-file\"");
    json_decref(root);
    json_t *answer = answer_to(ADV_REQUEST_ESTIMATE,
                               "{\"model\": \"llama2-70b\", \"cluster\": {\"accelerator\": \"v5p-128\"}, "
                               "\"config\": {\"base_config\": \"sft.yml\"}}");
    assert_non_null(strstr(adv_json_warning(answer, "recipe-file"), "sft.yml"));
    json_decref(answer);
#undef OTHER
}

static void loose_words_may_hold_other_equations(void **state)
{
    (void)state;
    json_decref(expand(
        "if [ $X = y ]; then echo steps == 3; fi\nsteps = [3]\n# with steps = 4\nmodel_name=llama2-7b steps=3\n"));
}

static void all_open_variables_are_named_at_once(void **state)
{
    (void)state;
    assert_null(
        expand_with(ADV_REQUEST_ESTIMATE, TRAIN "per_device_batch_size=$B max_target_length=$L\n", NULL, 0));
    assert_int_equal(refused.count, 2);
}

static void what_is_given_beside_a_recipe_counts(void **state)
{
    (void)state;
    static const char text[] = TRAIN "model_name=llama2-7b per_device_batch_size=$B steps=3\n" TRAIN
                                     "model_name=llama2-70b per_device_batch_size=$B\n";
    static const struct adv_given_member given[] = {{"command", "1"},  {"per_device_batch_size", "2"},
                                                    {"chip", "tpu7x"}, {"topology", "4x4x4"},
                                                    {"slices", "2"},   {"steps", "9"},
                                                    {"strict", "true"}};
    json_t *root = expand_with(ADV_REQUEST_ESTIMATE, text, given, 7);
    assert_non_null(root);
    assert_member(root, "config/per_device_batch_size", "2");
    assert_member(root, "config/steps", "9");
    assert_member(root, "model", "\"llama2-7b\"");
    assert_member(root, "cluster", "{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\",\"slices\":2}");
    assert_member(root, "strict", "true");
    json_decref(root);
    static const struct adv_given_member unknown = {"chp", "tpu7x"};
    assert_null(expand_with(ADV_REQUEST_ESTIMATE, text, &unknown, 1));
    assert_string_equal(refused.findings[0].hint, "did you mean chip?");
}

static void a_recipe_is_the_baseline_of_an_advice(void **state)
{
    (void)state;
    static const char text[] =
        "xpk workload create --device-type=tpu7x-4x4x4 --command=\"" TRAIN
        "model_name=llama3.1-70b per_device_batch_size=2 max_target_length=8192 mu_dtype=bfloat16 "
        "gradient_accumulation_steps=2 base_num_decoder_layers=40 override_model_config=true\"\n";
    json_t *root = expand_with(ADV_REQUEST_ADVISE, text, NULL, 0);
    assert_non_null(root);
    assert_member(root, "model", "\"llama3.1-70b\"");
    assert_member(root, "workload/seq_len", "8192");
    assert_member(root, "workload/global_batch_sequences", "512.0"); /* 2 of 128 devices, 2 steps */
    assert_member(root, "workload/mu_dtype", "\"bfloat16\"");
    assert_member(root, "pins/base_num_decoder_layers", "40");
    assert_member(root, "baseline/config/per_device_batch_size", "2");
    char *json = json_dumps(root, 0);
    json_t *answer = answer_to(ADV_REQUEST_ADVISE, json);
    assert_true(json_array_size(json_object_get(answer, "ranked")) > 0);
    assert_non_null(json_object_get(answer, "baseline"));
    free(json);
    json_decref(answer);
    json_decref(root);
}

/* MaxText YAML has no place for flags: that they are missing is said, and they can be given beside it. */
static void yaml_without_its_flags_says_so(void **state)
{
    (void)state;
    static const char yaml[] = "base_config: base.yml\nmodel_name: llama3.1-8b\nsteps: 30\n";
    static const struct adv_given_member flags = {"xla_flags", " --xla_a=true\n--xla_b=2 "};
    static const char expected[] = "[\"--xla_a=true\",\"--xla_b=2\"]";
    json_t *root = expand(yaml);
    assert_member(root, "recipe_notes/0/code", "\"recipe-flags\"");
    json_decref(root);
    root = expand_with(ADV_REQUEST_ADVISE, yaml, NULL, 0);
    assert_member(root, "recipe_notes/0/code", "\"recipe-flags\"");
    json_decref(root);
    root = expand_with(ADV_REQUEST_ESTIMATE, yaml, &flags, 1);
    assert_member(root, "xla_flags", expected);
    assert_null(json_object_get(root, "recipe_notes"));
    json_decref(root);
    root = expand_with(ADV_REQUEST_ADVISE, yaml, &flags, 1);
    assert_member(root, "baseline/xla_flags", expected);
    assert_null(json_object_get(root, "recipe_notes"));
    json_decref(root);
    root = expand(TRAIN "model_name=llama3.1-8b\n"); /* a command is read with its environment */
    assert_null(json_object_get(root, "recipe_notes"));
    json_decref(root);
    root = expand_with(ADV_REQUEST_LINT, yaml, NULL, 0);
    assert_member(root, "recipe_notes/0/code", "\"recipe-flags\"");
    json_decref(root);
}

static void hostile_scripts_end(void **state)
{
    (void)state;
    static const char *const texts[] = {
        ("A=xxxxxxxxxxxxxxxx\nA=$A$A\nA=$A$A\nA=$A$A\nA=$A$A\nA=$A$A\nA=$A$A\nA=$A$A\nA=$A$A\nA=$A$A\nA=$A$"
         "A\n"
         "A=$A$A\nA=$A$A\nA=$A$A\nA=$A$A\nA=$A$A\nA=$A$A\nA=$A$A\nA=$A$A\n" TRAIN "run_name=$A\n"),
        "A='$(echo $A $A train)'\nbash -c \"$A\"\n",
        "bash -c 'bash -c \"bash -c \\'bash -c train x\\'\"'\n",
        "${",
        "$(",
        "$((",
        "`",
        "<<",
        "<<<",
        "a=(",
        "if",
        "if then else fi fi fi",
        "case in",
        "}",
        "{ { {",
        "(((((((((((((((((((((((((((((((((((((",
        "$((((((((((((((((1))))))))))))))))",
        "${#}",
        "${!}",
        "${a[",
        "${a:-${b:-${c:-",
        "[[ a",
        "for",
        "function",
        "f() {",
        "read",
        "\x01\x02\x03\x1f=1",
        "a=$'",
        "\\",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *root = expand_with(ADV_REQUEST_LINT, texts[i], NULL, 0);
        if (!root) assert_true(refused.count > 0);
        json_decref(root);
    }
    size_t length = 900000;
    char *deep = malloc(length + 1);
    assert_non_null(deep);
    static const char *const pieces[] = {"$(", "${a:-", "if x; ", "a=(", "((", "{ ", "`", "case x in "};
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        const size_t piece = strlen(pieces[p]);
        for (size_t at = 0; at < length; at++) deep[at] = pieces[p][at % piece];
        deep[length] = '\0';
        json_decref(expand_with(ADV_REQUEST_LINT, deep, NULL, 0));
    }
    free(deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_have_the_value_they_have_in_a_shell),
        cmocka_unit_test(branches_are_taken_as_a_run_without_arguments_takes_them),
        cmocka_unit_test(a_training_under_its_old_and_new_name_is_one),
        cmocka_unit_test(launchers_name_the_machine),
        cmocka_unit_test(manifests_are_read_inside_their_containers),
        cmocka_unit_test(what_a_recipe_leaves_open_is_asked_for),
        cmocka_unit_test(a_file_that_is_not_read_may_name_the_model),
        cmocka_unit_test(loose_words_may_hold_other_equations),
        cmocka_unit_test(all_open_variables_are_named_at_once),
        cmocka_unit_test(what_is_given_beside_a_recipe_counts),
        cmocka_unit_test(a_recipe_is_the_baseline_of_an_advice),
        cmocka_unit_test(yaml_without_its_flags_says_so),
        cmocka_unit_test(hostile_scripts_end),
    };
    return run_group_with_catalog(tests);
}

#include "engine/emit/jobset.h"

#include <string.h>

#include "engine/emit/gke.h"
#include "engine/emit/script.h"

/* A literal block of YAML: every line of `block` indented. */
static void put_block(struct adv_text *text, const char *block, int indent)
{
    while (*block) {
        const size_t length = strcspn(block, "\n");
        adv_text_format(text, "%*s", indent, "");
        adv_text_append_bytes(text, block, length);
        adv_text_append(text, "\n");
        block += length + (block[length] == '\n');
    }
}

static void put_container(const struct adv_artifact_source *source, struct adv_text *text)
{
    adv_text_append(text, "                - name: maxtext\n"
                          "                  image: \"${DOCKER_IMAGE}\"\n"
                          "                  securityContext: {privileged: true}\n"
                          "                  ports: [{containerPort: 8471}, {containerPort: 8080}]\n"
                          "                  env:\n"
                          "                    - {name: RUN_NAME, value: \"${WORKLOAD}\"}\n"
                          "                    - {name: BASE_OUTPUT_DIRECTORY, value: "
                          "\"${BASE_OUTPUT_DIRECTORY}\"}\n"
                          "                    - {name: STEPS, value: \"${STEPS}\"}\n"
                          "                    - {name: DATASET_TYPE, value: \"${DATASET_TYPE}\"}\n"
                          "                    - {name: EXTRA_ARGS, value: \"${EXTRA_ARGS}\"}\n"
                          "                  volumeMounts: [{name: dshm, mountPath: /dev/shm}]\n"
                          "                  command: [bash, -c]\n"
                          "                  args:\n"
                          "                    - |\n");
    struct adv_text script;
    adv_text_init(&script, text->limit_bytes);
    adv_text_append(&script, "set -euo pipefail\n");
    adv_script_export(&script, source);
    adv_script_command(&script, source, "train", "");
    put_block(text, script.data ? script.data : "", 22);
    adv_text_free(&script);
    adv_text_format(text, "                  resources: {limits: {google.com/tpu: %d}}\n",
                    adv_gke_chips_per_host(source));
}

void adv_jobset_write(const struct adv_artifact_source *source, struct adv_text *text)
{
    const int slices = source->slices > 0 ? source->slices : 1;
    const int hosts = adv_gke_hosts_per_slice(source);
    adv_script_headline(text, source);
    adv_script_release(text);
    adv_text_append(text, "# export WORKLOAD=name DOCKER_IMAGE=image-with-MaxText "
                          "BASE_OUTPUT_DIRECTORY=gs://bucket/path # and STEPS, DATASET_TYPE, EXTRA_ARGS\n"
                          "# envsubst '$WORKLOAD $DOCKER_IMAGE $BASE_OUTPUT_DIRECTORY $STEPS $DATASET_TYPE "
                          "$EXTRA_ARGS' < jobset.yaml | kubectl apply -f -\n"
                          "apiVersion: jobset.x-k8s.io/v1alpha2\n"
                          "kind: JobSet\n"
                          "metadata:\n"
                          "  name: \"${WORKLOAD}\"\n"
                          "  annotations:\n"
                          "    alpha.jobset.sigs.k8s.io/exclusive-topology: cloud.google.com/gke-nodepool\n"
                          "spec:\n"
                          "  ttlSecondsAfterFinished: 43200\n"
                          "  failurePolicy: {maxRestarts: 0}\n"
                          "  replicatedJobs:\n"
                          "    - name: slice\n");
    adv_text_format(text,
                    "      replicas: %d\n"
                    "      template:\n"
                    "        spec:\n"
                    "          parallelism: %d\n"
                    "          completions: %d\n"
                    "          backoffLimit: 0\n",
                    slices, hosts, hosts);
    adv_text_append(text, "          template:\n"
                          "            spec:\n"
                          "              restartPolicy: Never\n"
                          "              hostNetwork: true\n"
                          "              dnsPolicy: ClusterFirstWithHostNet\n"
                          "              nodeSelector:\n"
                          "                cloud.google.com/gke-tpu-accelerator: ");
    adv_script_plain(text, source->node_label ? source->node_label : source->chip);
    adv_text_append(text, "\n                cloud.google.com/gke-tpu-topology: ");
    adv_script_plain(text, source->topology);
    adv_text_append(text, "\n              tolerations:\n"
                          "                - {key: google.com/tpu, operator: Exists, effect: NoSchedule}\n"
                          "              volumes: [{name: dshm, emptyDir: {medium: Memory}}]\n"
                          "              containers:\n");
    put_container(source, text);
}

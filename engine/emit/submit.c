#include "engine/emit/submit.h"

#include "engine/emit/gke.h"
#include "engine/emit/script.h"

static void begin(const struct adv_artifact_source *source, const char *needs, struct adv_text *text)
{
    adv_text_append(text, "#!/bin/bash\n");
    adv_script_headline(text, source);
    adv_script_release(text);
    adv_text_append(text, needs);
    adv_text_append(text, "# STEPS, DATASET_TYPE, RUN_NAME and EXTRA_ARGS, where set, reach the training.\n"
                          "set -euo pipefail\n");
}

static void put_number(struct adv_text *text, const char *flag, int number)
{
    adv_text_format(text, "%s%d", flag, number > 0 ? number : 1);
}

void adv_submit_xpk(const struct adv_artifact_source *source, struct adv_text *text)
{
    char type[ADV_GKE_NAME];
    const bool known = adv_gke_xpk_type(source, type);
    begin(source, "# Needs XPK and gcloud. PROJECT_ID and ZONE: gcloud's own without.\n", text);
    if (!known) {
        adv_text_append(text, "echo 'XPK has no type for so small a slice:' ");
        adv_script_word(text, source->chip);
        adv_text_append(text, " ");
        adv_script_word(text, source->topology);
        adv_text_append(text, " >&2\nexit 2\n");
        return;
    }
    adv_text_append(text, ": \"${CLUSTER:?name of the XPK cluster}\" \"${WORKLOAD:?name of the workload}\" "
                          "\"${DOCKER_IMAGE:?image with MaxText}\"\n"
                          ": \"${BASE_OUTPUT_DIRECTORY:?gs://bucket/path}\" \"${RUN_NAME:=${WORKLOAD}}\"\n");
    adv_script_submitted(text, source);
    adv_text_append(text, "xpk workload create --cluster \"${CLUSTER}\" --workload \"${WORKLOAD}\" "
                          "--docker-image \"${DOCKER_IMAGE}\" \\\n"
                          "  ${PROJECT_ID:+--project \"${PROJECT_ID}\"} ${ZONE:+--zone \"${ZONE}\"} \\\n"
                          "  --tpu-type=");
    adv_script_word(text, type);
    put_number(text, " --num-slices=", source->slices);
    adv_text_append(text, " \\\n  --command \"${COMMAND}\" \"$@\"\n");
}

void adv_submit_gcluster(const struct adv_artifact_source *source, struct adv_text *text)
{
    char type[ADV_GKE_NAME];
    adv_gke_compute_type(source, type);
    begin(source,
          "# Needs gcluster of Cluster Toolkit, 1.103 or later. A name of a job has up to 28 characters.\n",
          text);
    adv_text_append(text,
                    ": \"${PROJECT_ID:?Google Cloud project}\" \"${CLUSTER_NAME:?name of the GKE cluster}\" "
                    "\"${ZONE:?zone or region of the cluster}\"\n"
                    ": \"${WORKLOAD_NAME:?name of the job}\" \"${WORKLOAD_IMAGE:?image with MaxText}\"\n"
                    ": \"${BASE_OUTPUT_DIRECTORY:?gs://bucket/path}\" \"${RUN_NAME:=${WORKLOAD_NAME}}\"\n");
    adv_script_submitted(text, source);
    adv_text_append(text,
                    "gcluster job submit \\\n"
                    "  --project \"${PROJECT_ID}\" --cluster \"${CLUSTER_NAME}\" --location \"${ZONE}\" "
                    "${QUEUE:+--queue \"${QUEUE}\"} \\\n"
                    "  --name \"${WORKLOAD_NAME}\" --image \"${WORKLOAD_IMAGE}\" --priority "
                    "\"${PRIORITY:-medium}\" --restarts 0 \\\n"
                    "  --compute-type ");
    adv_script_word(text, type);
    adv_text_append(text, " --topology ");
    adv_script_word(text, source->topology);
    put_number(text, " --num-slices ", source->slices);
    if (adv_gke_splits_hosts(source)) adv_text_append(text, " --gke-disable-parallel-containers");
    adv_text_append(text, " \\\n  --command \"${COMMAND}\" \"$@\"\n");
}

#!/bin/bash
{{headline}}
{{release}}
# Needs XPK and gcloud. PROJECT_ID and ZONE: gcloud's own without.
# STEPS, DATASET_TYPE, RUN_NAME and EXTRA_ARGS, where set, reach the training.
set -euo pipefail
: "${CLUSTER:?name of the XPK cluster}" "${WORKLOAD:?name of the workload}" "${DOCKER_IMAGE:?image with MaxText}"
: "${BASE_OUTPUT_DIRECTORY:?gs://bucket/path}" "${RUN_NAME:=${WORKLOAD}}"
{{submitted}}
xpk workload create --cluster "${CLUSTER}" --workload "${WORKLOAD}" --docker-image "${DOCKER_IMAGE}" \
  ${PROJECT_ID:+--project "${PROJECT_ID}"} ${ZONE:+--zone "${ZONE}"} \
  --tpu-type={{xpk_type}} --num-slices={{slices}} \
  --command "${COMMAND}" "$@"

#!/bin/bash
{{headline}}
{{release}}{{by_itself}}
# Needs XPK and gcloud. PROJECT_ID and ZONE: gcloud's own without.
# Where set, these reach the training: {{submit_reaching}}.
set -euo pipefail
: "${CLUSTER:?name of the XPK cluster}" "${WORKLOAD:?name of the workload}" "${DOCKER_IMAGE:?image with MaxText}"
: {{output_needed}}"${RUN_NAME:=${WORKLOAD}}"
{{submitted}}
xpk workload create --cluster "${CLUSTER}" --workload "${WORKLOAD}" --docker-image "${DOCKER_IMAGE}" \
  ${PROJECT_ID:+--project "${PROJECT_ID}"} ${ZONE:+--zone "${ZONE}"} \
  --tpu-type={{xpk_type}} --num-slices={{slices}} \
  --command "${COMMAND}" "$@"

#!/bin/bash
{{headline}}
{{release}}{{by_itself}}
# Needs gcluster of Cluster Toolkit, 1.103 or later. A name of a job has up to 28 characters.
# Where set, these reach the training: {{submit_reaching}}.
set -euo pipefail
: "${PROJECT_ID:?Google Cloud project}" "${CLUSTER_NAME:?name of the GKE cluster}" "${ZONE:?zone or region of the cluster}"
: "${WORKLOAD_NAME:?name of the job}" "${WORKLOAD_IMAGE:?image with MaxText}"
: {{output_needed}}"${RUN_NAME:=${WORKLOAD_NAME}}"
{{submitted}}
gcluster job submit \
  --project "${PROJECT_ID}" --cluster "${CLUSTER_NAME}" --location "${ZONE}" ${QUEUE:+--queue "${QUEUE}"} \
  --name "${WORKLOAD_NAME}" --image "${WORKLOAD_IMAGE}" --priority "${PRIORITY:-medium}" --restarts 0 \
  --compute-type {{compute_type}} --topology {{topology_word}} --num-slices {{slices}}{{gcluster_flags}} \
  --command "${COMMAND}" "$@"

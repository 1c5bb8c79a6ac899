#!/bin/bash
{{headline}}
{{release}}
# Needs XPK and gcloud. PROJECT_ID and ZONE: gcloud's own without.
# STEPS, DATASET_TYPE, RUN_NAME and EXTRA_ARGS, where set, reach the training.
set -euo pipefail
echo 'XPK has no type for so small a slice:' {{slice_words}} >&2
exit 2

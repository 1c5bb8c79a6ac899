#!/bin/bash
{{headline}}
{{release}}
# Needs XPK and gcloud. PROJECT_ID and ZONE: gcloud's own without.
# Where set, these reach the training: {{submit_reaching}}.
set -euo pipefail
echo 'XPK has no type for so small a slice:' {{slice_words}} >&2
exit 2

#!/bin/bash
{{headline}}
{{release}}
# Run on every host of the slice, in an environment with MaxText installed.
set -euo pipefail
: "${RUN_NAME:?name of the run}" "${BASE_OUTPUT_DIRECTORY:?gs://bucket/path}"
{{export}}
{{train}}

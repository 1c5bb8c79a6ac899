#!/bin/bash
{{headline}}
{{release}}{{by_itself}}
# Run on every host of the slice, in an environment with MaxText installed.
set -euo pipefail
: {{run_needed}}{{output_needed}}# and, where set: {{reaching}}
{{export}}
{{train}}

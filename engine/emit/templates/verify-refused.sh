#!/bin/bash
{{headline}}
{{release}}
# Compiles the step ahead of time for the slice and asks XLA for its memory. Needs MaxText and libtpu, no TPU.
# Exit status: 0 fits, 1 does not fit, 2 not compiled.
set -uo pipefail
echo 'MaxText has no compile_topology name: it cannot be compiled without' {{slice_words}} >&2
exit 2

#!/bin/bash
{{headline}}
{{release}}
# Compiles the step ahead of time for the slice and asks XLA for its memory. Needs MaxText and libtpu, no TPU.
# Exit status: 0 fits, 1 does not fit, 2 not compiled.
set -uo pipefail
PREDICTED={{predicted_bytes}} LIMIT={{limit_bytes}}
RUN_NAME="${RUN_NAME:-verify}" BASE_OUTPUT_DIRECTORY="${BASE_OUTPUT_DIRECTORY:-/tmp/verify}"
LOG="${LOG:-$(mktemp)}"
FLAGS={{flags_word}}
TOPOLOGY={{accelerator_word}} SLICES={{slices}}
run() {
{{compile}}
}
run > "$LOG" 2>&1
STATUS=$?
if grep -q 'RESOURCE_EXHAUSTED' "$LOG"; then
  grep -m 1 'RESOURCE_EXHAUSTED' "$LOG" >&2
  echo "does not fit: XLA needs more than the device has; predicted $PREDICTED of $LIMIT bytes" >&2
  exit 1
fi
if [ "$STATUS" -ne 0 ]; then tail -n 20 "$LOG" >&2; echo 'the step could not be compiled' >&2; exit 2; fi
size() { sed -n "s/.*Memory analysis:.*[(, ]$1_size_in_bytes=\([0-9]*\).*/\1/p" "$LOG" | tail -n 1; }
for part in argument output alias temp generated_code; do
  bytes=$(size "$part")
  if [ -z "$bytes" ]; then echo "no ${part}_size_in_bytes in what train_compile printed: $LOG" >&2; exit 2; fi
  declare "$part=$bytes"
done
COMPILED=$((argument + output - alias + temp + generated_code))
awk -v compiled="$COMPILED" -v predicted="$PREDICTED" -v limit="$LIMIT" 'BEGIN {
  printf "fits: XLA %.2f GiB per device, predicted %.2f GiB (%+.1f %%), limit %.2f GiB\n",
    compiled / 2^30, predicted / 2^30, 100 * (predicted / compiled - 1), limit / 2^30 }'

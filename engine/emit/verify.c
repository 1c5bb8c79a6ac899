#include "engine/emit/verify.h"

#include "engine/emit/script.h"

/* What the script does with the compiler's last words. MaxText's train_compile prints
 * "Memory analysis: CompiledMemoryStats(...)", the bytes of one device; XLA refuses what does not fit with
 * RESOURCE_EXHAUSTED and the bytes it wanted. Arguments that are updated in place (alias) count once. */
static const char judge[] =
    "if grep -q 'RESOURCE_EXHAUSTED' \"$LOG\"; then\n"
    "  grep -m 1 'RESOURCE_EXHAUSTED' \"$LOG\" >&2\n"
    "  echo \"does not fit: XLA needs more than the device has; predicted $PREDICTED of $LIMIT bytes\" >&2\n"
    "  exit 1\n"
    "fi\n"
    "if [ \"$STATUS\" -ne 0 ]; then tail -n 20 \"$LOG\" >&2; echo 'the step could not be compiled' >&2; "
    "exit 2; fi\n"
    "size() { sed -n \"s/.*Memory analysis:.*[(, ]$1_size_in_bytes=\\([0-9]*\\).*/\\1/p\" \"$LOG\" | tail -n "
    "1; }\n"
    "for part in argument output alias temp generated_code; do\n"
    "  bytes=$(size \"$part\")\n"
    "  if [ -z \"$bytes\" ]; then echo \"no ${part}_size_in_bytes in what train_compile printed: $LOG\" >&2; "
    "exit 2; fi\n"
    "  declare \"$part=$bytes\"\n"
    "done\n"
    "COMPILED=$((argument + output - alias + temp + generated_code))\n"
    "awk -v compiled=\"$COMPILED\" -v predicted=\"$PREDICTED\" -v limit=\"$LIMIT\" 'BEGIN {\n"
    "  printf \"fits: XLA %.2f GiB per device, predicted %.2f GiB (%+.1f %%), limit %.2f GiB\\n\",\n"
    "    compiled / 2^30, predicted / 2^30, 100 * (predicted / compiled - 1), limit / 2^30 }'\n";

void adv_verify_write(const struct adv_artifact_source *source, struct adv_text *text)
{
    adv_text_append(text, "#!/bin/bash\n");
    adv_script_headline(text, source);
    adv_script_release(text);
    adv_text_append(text,
                    "# Compiles the step ahead of time for the slice and asks XLA for its memory. Needs "
                    "MaxText and libtpu, no TPU.\n"
                    "# Exit status: 0 fits, 1 does not fit, 2 not compiled.\n"
                    "set -uo pipefail\n");
    if (source->accelerator[0] == '\0') {
        adv_text_append(text, "echo 'MaxText has no compile_topology name: it cannot be compiled without' ");
        adv_script_word(text, source->chip);
        adv_text_append(text, " ");
        adv_script_word(text, source->topology);
        adv_text_append(text, " >&2\nexit 2\n");
        return;
    }
    adv_text_format(text, "PREDICTED=%.0f LIMIT=%.0f\n", source->row.hbm_bytes_per_device,
                    source->hbm_limit_bytes_per_device);
    adv_text_append(text, "RUN_NAME=\"${RUN_NAME:-verify}\" "
                          "BASE_OUTPUT_DIRECTORY=\"${BASE_OUTPUT_DIRECTORY:-/tmp/verify}\"\n"
                          "LOG=\"${LOG:-$(mktemp)}\"\n"
                          "FLAGS=");
    struct adv_text flags;
    adv_text_init(&flags, text->limit_bytes);
    adv_script_flags(&flags, &source->config);
    adv_script_word(text, flags.data ? flags.data : "");
    adv_text_free(&flags);
    adv_text_append(text, "\nTOPOLOGY=");
    adv_script_word(text, source->accelerator);
    adv_text_format(text, " SLICES=%d\nrun() {\n", source->slices > 0 ? source->slices : 1);
    adv_script_command(text, source, "train_compile",
                       " \"compile_topology=$TOPOLOGY\" \"compile_topology_num_slices=$SLICES\" "
                       "\"compile_xla_flags=$FLAGS\"");
    adv_text_append(text, "}\nrun > \"$LOG\" 2>&1\nSTATUS=$?\n");
    adv_text_append(text, judge);
}

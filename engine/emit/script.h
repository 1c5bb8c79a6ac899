/* script.h: what the shell scripts and manifests made from an answer have in common.
 *
 * Every function appends to `text`; a full text stays marked (text->overflow).
 */
#ifndef ADV_EMIT_SCRIPT_H
#define ADV_EMIT_SCRIPT_H

#include "engine/emit/artifact.h"

/* For comments, prose and cells: control characters become spaces. */
void adv_script_plain(struct adv_text *text, const char *string);

/* One shell word in single quotes; control characters become spaces. */
void adv_script_word(struct adv_text *text, const char *string);

/* A comment line: model, slice, predicted step time and memory. */
void adv_script_headline(struct adv_text *text, const struct adv_artifact_source *source);

/* The XLA flags, separated by spaces. */
void adv_script_flags(struct adv_text *text, const struct adv_config *config);

/* The line that exports the flags as LIBTPU_INIT_ARGS. */
void adv_script_export(struct adv_text *text, const struct adv_artifact_source *source);

/* The command of a MaxText module ("train") with `arguments` of its own, shell text ("" = none). Names and
 * paths are the reader's variables, unless the answer has them. Ends with a line break. */
void adv_script_command(struct adv_text *text, const struct adv_artifact_source *source, const char *module,
                        const char *arguments);

#endif

/* script.h: what writes the files made from an answer, and what they have in common.
 *
 * Every function appends to `text`; a full text stays marked (text->overflow).
 */
#pragma once

#include "engine/emit/artifact.h"

/* Control characters become spaces, and `mark` stands before each of the `special` ones. */
void adv_script_escape(struct adv_text *text, const char *string, const char *special, const char *mark);

/* For comments, prose and cells: nothing is special. */
void adv_script_plain(struct adv_text *text, const char *string);

/* One shell word in single quotes, which end and begin again behind each $: what carries the text to the
 * shell sees no variable in it. Kubernetes puts values of its own for $(NAME) and makes $$ one $, also in the
 * commands that XPK and gcluster give it, and envsubst puts one for $NAME and ${NAME}. Source: Expand in
 * Kubernetes' expansion/expand.go. */
void adv_script_word(struct adv_text *text, const char *string);

/* A comment line: model, slice, predicted step time and memory. */
void adv_script_headline(struct adv_text *text, const struct adv_artifact_source *source);

/* Comment lines: what the answer warns of. */
void adv_script_warnings(struct adv_text *text, const struct adv_artifact_source *source);

/* The XLA flags as one shell word, without a line break. */
void adv_script_flags_word(struct adv_text *text, const struct adv_artifact_source *source);

/* A comment line: the MaxText release that the file is written for. */
void adv_script_release(struct adv_text *text, const struct adv_artifact_source *source);

/* A comment line, with its break in front: the data, steps and checkpoints of a run that nobody tells
 * otherwise; nothing where the answer settles them all. */
void adv_script_by_itself(struct adv_text *text, const struct adv_artifact_source *source);

/* The flags as LIBTPU_INIT_ARGS in one shell word, without a line break. */
void adv_script_libtpu(struct adv_text *text, const struct adv_artifact_source *source);

/* A key and its value as one shell word, as MaxText's command line takes it: 'remat_policy=full'. */
void adv_script_argument(struct adv_text *text, const struct adv_config_entry *entry);

/* The lines that export the environment of a training: LIBTPU_INIT_ARGS and the platform. */
void adv_script_export(struct adv_text *text, const struct adv_artifact_source *source);

/* The command of a MaxText module ("train") with `arguments` of its own, shell text ("" = none). Names and
 * paths are the reader's variables, unless the answer has them; checkpoints are off unless the answer speaks
 * of them. Ends with a line break. */
void adv_script_command(struct adv_text *text, const struct adv_artifact_source *source, const char *module,
                        const char *arguments);

/* The same for a submitting script: sets COMMAND to one line, exports and training joined by &&, with the
 * values that the reader's variables have when it is submitted. One line, because XPK puts it into its
 * manifest as it is, where a second line would end the block. */
void adv_script_submitted(struct adv_text *text, const struct adv_artifact_source *source);

/* Whether the training takes this variable of the reader's, "RUN_NAME": the answer does not say what it is
 * for. */
bool adv_script_asks(const struct adv_artifact_source *source, const char *variable);

/* The names of the variables that may be set and reach the training then: "STEPS, DATASET_TYPE, EXTRA_ARGS".
 */
void adv_script_reaching(struct adv_text *text, const struct adv_artifact_source *source);

/* The settings that a file of settings needs beside the answer's: `put` for each, the value as JSON. */
void adv_script_settings(const struct adv_artifact_source *source,
                         void (*put)(struct adv_text *text, const char *key, const char *value_json),
                         struct adv_text *text);

/* Appends a text of engine/emit/templates/ with its words filled in. A word is written {{name}}; template.c
 * lists them, and one that it does not know stays as it is. A word of several lines keeps the indentation of
 * its first. */
void adv_template_write(const char *name, const struct adv_artifact_source *source, struct adv_text *text);

/* Whether XPK has a type for so small a slice. */
bool adv_template_has_xpk_type(const struct adv_artifact_source *source);

/* Appends the ledger of one step as a Chrome trace (chrome://tracing, Perfetto): an object with traceEvents,
 * times in microseconds. A row of what the step waits for, its terms end to end (their sum is the step time),
 * and the lanes of the view of a layer (explain/step_view.h) with what keeps each of them busy. The ledger
 * has no order in time: within a row terms stand in the ledger's order. */
void adv_step_trace_write(const struct adv_artifact_source *source, struct adv_text *text);

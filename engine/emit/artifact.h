/* artifact.h: files made from one answer: scripts, configuration, flags, manifest, report, trace,
 * table.
 *
 * Everything comes from the answer, nothing is computed. Texts that reached the answer from a request (names,
 * pinned values) are quoted for the shell, YAML, Markdown or CSV they end up in; control characters never do.
 */
#pragma once

#include "engine/base/err.h"
#include "engine/base/text.h"
#include "engine/maxtext/own_file.h"
#include "engine/spec/request.h"

enum { ADV_ARTIFACT_SENTENCES = 16, ADV_ARTIFACT_TERMS = 64 };

/* One plan of the answer, for the table. */
struct adv_artifact_row {
    int rank, tie_group;
    double step_time_s, step_time_low_s, step_time_high_s, tokens_per_s_per_chip, mfu_frac,
        hbm_bytes_per_device;
    const char *verdict, *mesh, *remat; /* "fits", "dcn_data=2 fsdp=64 context=2", "custom" */
    double fit_probability;
    double per_device_batch_size;
    int gradient_accumulation_steps;
};

/* One term of the step's ledger. */
struct adv_artifact_term {
    const char *name, *resource; /* "fsdp_all_gather", "ici" */
    double seconds, exposed_seconds;
};

struct adv_artifact_source {
    const char *model, *chip, *topology, *accelerator, *engine_version; /* "" where the answer has none */
    const char *maxtext;                /* the release that the answer is for */
    const char *jax, *libtpu;           /* the same where they are not the pinned ones, else "" */
    const struct adv_chip_nodes *nodes; /* NULL: nodes are called by the chip's name */
    int slices, devices, chips, hosts;  /* in all slices together */
    bool without_maxtext;               /* MaxText has no such model: nothing can be started */
    double hbm_limit_bytes_per_device;
    struct adv_config config;                          /* keys and flags of the chosen plan */
    enum adv_own_file own_file[ADV_LIMIT_CONFIG_KEYS]; /* what maxtext.yml can say of each key */
    struct adv_artifact_row row;                       /* its numbers */
    const char *over_vmem, *what_if; /* warnings of it: a kernel that does not start; hardware that may not
                                        exist; "" none */
    int warnings_count;
    const char *warnings[ADV_ARTIFACT_SENTENCES]; /* the answer's others, of the plan and of the job */
    int why_count;
    const char *why[ADV_ARTIFACT_SENTENCES];
    int terms_count;
    struct adv_artifact_term terms[ADV_ARTIFACT_TERMS];
    int rows_count; /* all ranked plans */
    struct adv_artifact_row rows[ADV_LIMIT_RANKED];
};

/* The known names, "maxtext.sh" first; NULL past the last. */
const char *adv_artifact_name(int index);
const char *adv_artifact_media_type(const char *name); /* NULL when unknown */

/* Today's name of an artifact that had another one ("maxtext.yaml"), which still works; else `name`. */
const char *adv_artifact_current_name(const char *name);

/* Appends the file to `text`. ADV_E_NOT_FOUND: no such artifact (the hint lists them); ADV_E_MEMORY: text is
 * full. */
ADV_MUST_CHECK adv_code adv_artifact_write(const char *name, const struct adv_artifact_source *source,
                                           struct adv_text *text, adv_err *err);

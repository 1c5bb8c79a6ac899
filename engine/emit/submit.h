/* submit.h: scripts that submit the training to a cluster: with XPK, with Cluster Toolkit's gcluster. */
#ifndef ADV_EMIT_SUBMIT_H
#define ADV_EMIT_SUBMIT_H

#include "engine/emit/artifact.h"

/* `xpk workload create`; a script that says so and fails where XPK has no type for the slice. */
void adv_submit_xpk(const struct adv_artifact_source *source, struct adv_text *text);

/* `gcluster job submit`, with the flags of the toolkit's reference and of the public TPU recipes. */
void adv_submit_gcluster(const struct adv_artifact_source *source, struct adv_text *text);

#endif

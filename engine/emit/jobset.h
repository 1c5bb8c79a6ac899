/* jobset.h: the training job as a Kubernetes JobSet for TPU slices of GKE: a job per slice, a pod per host.
 */
#ifndef ADV_EMIT_JOBSET_H
#define ADV_EMIT_JOBSET_H

#include "engine/emit/artifact.h"

/* Appends the manifest (jobset.x-k8s.io/v1alpha2). Its ${...} are for envsubst. */
void adv_jobset_write(const struct adv_artifact_source *source, struct adv_text *text);

#endif

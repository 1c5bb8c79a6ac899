/* gke.h: what Google Kubernetes Engine, XPK and Cluster Toolkit call a slice. */
#ifndef ADV_EMIT_GKE_H
#define ADV_EMIT_GKE_H

#include "engine/emit/artifact.h"

/* Chips on one host, hosts of one slice; both at least 1. */
int adv_gke_chips_per_host(const struct adv_artifact_source *source);
int adv_gke_hosts_per_slice(const struct adv_artifact_source *source);

enum { ADV_GKE_NAME = 160 };

/* XPK's --tpu-type: "tpu7x-4x4x4" by shape, where one number of cores has several, "v6e-256" by chips
 * elsewhere. False: XPK has no type for so small a slice. Source: xpk/core/system_characteristics.py. */
bool adv_gke_xpk_type(const struct adv_artifact_source *source, char type[ADV_GKE_NAME]);

/* Cluster Toolkit's --compute-type: the machine of one host, "ct6e-standard-4t". Source: the toolkit's
 * pkg/config (AcceleratorShorthandMap). */
void adv_gke_compute_type(const struct adv_artifact_source *source, char type[ADV_GKE_NAME]);

/* Does GKE by itself put two containers on a host of this chip, one for each half of its chips? */
bool adv_gke_splits_hosts(const struct adv_artifact_source *source);

#endif

#!/bin/bash
# scale.sh [ROWS]: scale.mjs on a cluster of its own. `make sql-scale` runs it with a million rows.
set -u
cd "$(dirname "$0")/../.." || exit 1
export PROGRAM=${PROGRAM:-build/tpu-advisor}
unset TPU_ADVISOR_DATABASE_URL TPU_ADVISOR_DATABASE_URL_FILE
scratch=$(mktemp -d /tmp/tpu-advisor-scale.XXXXXX)
chmod 755 "$scratch"
export DEV_CLUSTER_DIR=$scratch/cluster
finish() {
    sql/dev-cluster.sh destroy
    rm -rf "$scratch"
}
trap finish EXIT
CLUSTER_URL=$(sql/dev-cluster.sh start) || exit 1
export CLUSTER_URL CLUSTER_LOG=$DEV_CLUSTER_DIR/log
node tests/sql/scale.mjs "${1:-1000000}"

#!/bin/bash
# run.sh [--update]: the emitted files before the real MaxText, XPK and JobSet schema, in an environment of its own
# under build/eco (3 GB; PyPI and the Go module proxy). Prints counts and every disagreement; --update stores the
# page and what `make test` replays without a network.
# ECO_MAXTEXT, ECO_TOOLS: the python of an environment that has MaxText, or XPK, already; that of `make compile-env`
# has MaxText.
set -euo pipefail
cd "$(dirname "$0")/../.."
ROOT=$PWD
DIR=${ECO_DIR:-$ROOT/build/eco}
MAXTEXT=$(sed -n 's/^#define ADV_MAXTEXT_VERSION "\([^"]*\)".*/\1/p' engine/maxtext/run.h)
LIBTPU=0.0.50.1 # MaxText's own range brings a later one, which assigns buffers far worse
JOBSET=v0.10.1
export PYTHONDONTWRITEBYTECODE=1 ECO_OUT=$DIR/results PROGRAM=${PROGRAM:-$ROOT/build/tpu-advisor}
mkdir -p "$ECO_OUT"

find_python() { # MaxText needs 3.12
    local candidate
    for candidate in "${PYTHON:-}" python3.12 "$HOME"/.pyenv/versions/3.12*/bin/python python3; do
        [ -n "$candidate" ] && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2> /dev/null &&
            command -v "$candidate" && return
    done
    echo 'eco: MaxText needs Python 3.12 or later (PYTHON=...)' >&2
    return 1
}
if [ -z "${ECO_TOOLS:-}" ]; then
    ECO_TOOLS=$DIR/tools/bin/python
    [ -x "$ECO_TOOLS" ] || "$(find_python)" -m venv "$DIR/tools"
    "$ECO_TOOLS" -m pip install -q -r tests/eco/requirements.txt
fi
if [ -z "${ECO_MAXTEXT:-}" ]; then
    ECO_MAXTEXT=$DIR/maxtext/bin/python
    [ -x "$ECO_MAXTEXT" ] || "$(find_python)" -m venv "$DIR/maxtext"
    "$ECO_MAXTEXT" -m pip install -q "maxtext[tpu]==$MAXTEXT"
    "$ECO_MAXTEXT" -m pip install -q --no-deps "libtpu==$LIBTPU"
fi
export GOMODCACHE=$DIR/go GOFLAGS=-modcacherw
(mkdir -p "$DIR" && cd "$DIR" && go mod download "sigs.k8s.io/jobset@$JOBSET")
SCHEMA=$GOMODCACHE/sigs.k8s.io/jobset@$JOBSET/config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml

failed=0
"$ECO_TOOLS" tests/eco/clusters.py "$SCHEMA" || failed=1
"$ECO_MAXTEXT" tests/eco/hugging_face.py || failed=1
"$ECO_MAXTEXT" tests/eco/recipes.py || failed=1
"$ECO_MAXTEXT" tests/eco/validators.py ${1:+"$1"} || failed=1
"$ECO_MAXTEXT" tests/eco/meshes.py ${1:+"$1"} || failed=1
"$ECO_MAXTEXT" tests/eco/configurations.py || failed=1

version() { "$1" -c "import importlib.metadata as m; print(m.version('$2'))"; }
versions="MaxText $(version "$ECO_MAXTEXT" maxtext), XPK $(version "$ECO_TOOLS" xpk), JobSet ${JOBSET#v}"
"$ECO_TOOLS" tests/eco/report.py "$versions" > "$ECO_OUT/report.md"
if [ "${1:-}" = --update ]; then
    cp "$ECO_OUT/report.md" tests/eco/report.md
    "$ECO_TOOLS" tests/eco/record.py "$versions"
fi
exit $failed

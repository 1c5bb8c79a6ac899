#!/bin/sh
# environment.sh: prints the Python interpreter of the private environment that holds the releases of versions.json, and
# makes it first where it is missing. TPU_ADVISOR_COMPILE_ENV names another folder; --check makes nothing.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" "$here/versions.json"; }
name=maxtext-$(version maxtext)-jax-$(version jax)-libtpu-$(version libtpu)
home=${TPU_ADVISOR_COMPILE_ENV:-${XDG_CACHE_HOME:-$HOME/.cache}/tpu-advisor/$name}
wanted=$(version python)

# A candidate counts when it runs and is the wanted release: the shim of pyenv has the right name and only complains.
fitting() { [ "$("$1" -c 'import sys, venv; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$wanted" ]; }
interpreter() {
    for found in "python$wanted" python3 "$HOME"/.pyenv/versions/"$wanted".*/bin/python /opt/python*/bin/python3 /usr/local/bin/python3; do
        if fitting "$found"; then
            echo "$found"
            return
        fi
    done
    echo "environment.sh: Python $wanted with venv is needed (pyenv install $wanted, or a python:$wanted image)" >&2
    exit 3
}

if [ ! -f "$home/ready" ]; then
    [ "${1:-}" != --check ] || { echo "environment.sh: no environment in $home" >&2; exit 3; }
    python=$(interpreter)
    mkdir -p "$home"
    exec 9>"$home.lock"
    flock 9 # two at once: the second waits, and finds it ready
    if [ ! -f "$home/ready" ]; then
        echo "environment.sh: installing $name into $home" >&2
        "$python" -m venv "$home" >&2
        "$home/bin/pip" install -q "maxtext[tpu]==$(version maxtext)" "jax==$(version jax)" >&2
        # the libtpu that this JAX asks for: MaxText's loose pin brings another, which needs more memory
        "$home/bin/pip" install -q --no-deps "libtpu==$(version libtpu)" >&2
        touch "$home/ready"
    fi
fi
echo "$home/bin/python"

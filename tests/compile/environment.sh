#!/bin/sh
# environment.sh: prints the Python interpreter of the private environment that holds the releases of versions.json, and
# makes it first where it is missing. TPU_ADVISOR_COMPILE_ENV names another folder.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" "$here/versions.json"; }
name=maxtext-$(version maxtext)-jax-$(version jax)-libtpu-$(version libtpu)
home=${TPU_ADVISOR_COMPILE_ENV:-${XDG_CACHE_HOME:-$HOME/.cache}/tpu-advisor/$name}
if [ ! -f "$home/ready" ]; then
    wanted=$(version python)
    python=$(command -v "python$wanted" || true)
    [ -n "$python" ] || for found in "$HOME"/.pyenv/versions/"$wanted".*/bin/python; do [ -x "$found" ] && python=$found; done
    [ -n "$python" ] || { echo "environment.sh: Python $wanted is needed (python3 of Debian 13, pyenv, or a python:$wanted image)" >&2; exit 3; }
    echo "environment.sh: installing $name into $home" >&2
    "$python" -m venv "$home" >&2
    "$home/bin/pip" install -q "maxtext[tpu]==$(version maxtext)" "jax==$(version jax)" >&2
    # the libtpu that this JAX asks for: MaxText's loose pin brings another, which needs more memory
    "$home/bin/pip" install -q --no-deps "libtpu==$(version libtpu)" >&2
    touch "$home/ready"
fi
echo "$home/bin/python"

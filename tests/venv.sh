#!/usr/bin/env bash
# Installs what judges our files in tests, into a virtual environment of Python: for the scripts tests/NAME/install.sh.
# Several of these may run at once. Status 3: this machine cannot have it.
#
#   tests/venv.sh NAME MODULES PACKAGES...      into .cache/NAME-tools/venv; MODULES, with commas, must be found there
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

name=$1
modules=$2
shift 2
tools=$*
cache=$PWD/.cache/$name-tools
# Apart from the tools, because builds watch it.
marker=$cache/installed/tools

none() {
    echo "tests/$name/install.sh: $*" >&2
    exit 3
}

mkdir -p "$cache/installed"
exec 9>"$cache/lock"
flock 9
if [ "$(cat "$marker" 2>/dev/null)" = "$tools" ]; then
    exit 0
fi
rm -rf "$cache/venv"
python3 -m venv "$cache/venv" >&2 || none "cannot make a virtual environment: apt-get install python3-venv"
"$cache/venv/bin/pip" install --quiet "$@" >&2 || none "cannot install $tools"
"$cache/venv/bin/python" -c "import $modules" || none "$tools do not run here"
echo "$tools" >"$marker"

#!/usr/bin/env bash
# Installs xlwt, which writes the XLS files that tests read, into .cache/office-tools/venv. Several of these
# may run at once. Status 3: this machine cannot have them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

TOOLS="xlwt==1.3.0"

cache=$PWD/.cache/office-tools
# Apart from the tools, because builds watch it.
marker=$cache/installed/tools

none() {
    echo "tests/office/install.sh: $*" >&2
    exit 3
}

mkdir -p "$cache/installed"
exec 9>"$cache/lock"
flock 9
if [ "$(cat "$marker" 2>/dev/null)" = "$TOOLS" ]; then
    exit 0
fi
rm -rf "$cache/venv"
python3 -m venv "$cache/venv" >&2 || none "cannot make a virtual environment: apt-get install python3-venv"
# shellcheck disable=SC2086 # there may be several words
"$cache/venv/bin/pip" install --quiet $TOOLS >&2 || none "cannot install $TOOLS"
"$cache/venv/bin/python" -c 'import xlwt' || none "$TOOLS do not run here"
echo "$TOOLS" >"$marker"

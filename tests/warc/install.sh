#!/usr/bin/env bash
# Installs warcio and pywb, which judge archives in tests, into .cache/warc-tools/venv. Several of these
# may run at once. Status 3: this machine cannot have them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

TOOLS="warcio==1.8.0 pywb==2.10.0"

cache=$PWD/.cache/warc-tools
# Apart from the tools, because builds watch it.
marker=$cache/installed/tools

none() {
    echo "tests/warc/install.sh: $*" >&2
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
# shellcheck disable=SC2086 # several words
"$cache/venv/bin/pip" install --quiet $TOOLS >&2 || none "cannot install $TOOLS"
"$cache/venv/bin/python" -c 'import warcio, pywb.apps.frontendapp' || none "$TOOLS do not run here"
echo "$TOOLS" >"$marker"

#!/usr/bin/env bash
# Fetches axe-core, which judges in tests whether people can use the dashboard who see little, or use no mouse, into
# .cache/dashboard-tools. Several of these may run at once. Status 3: this machine cannot have it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

package=axe-core@4.11.0
cache=$PWD/.cache/dashboard-tools
# Apart from the tool, because builds watch it.
marker=$cache/installed/tools

none() {
    echo "tests/dashboard/install.sh: $*" >&2
    exit 3
}

mkdir -p "$cache/installed"
exec 9>"$cache/lock"
flock 9
if [ "$(cat "$marker" 2>/dev/null)" = "$package" ] && [ -s "$cache/axe.min.js" ]; then
    exit 0
fi
command -v npm >/dev/null || none "npm is needed: apt-get install npm"
work=$(mktemp -d "$cache/fetching.XXXXXX")
trap 'rm -rf "$work"' EXIT
(cd "$work" && npm pack --silent "$package" >/dev/null) || none "cannot fetch $package"
tar -xzf "$work"/axe-core-*.tgz -C "$work" package/axe.min.js package/LICENSE
mv "$work/package/LICENSE" "$cache/LICENSE"
mv "$work/package/axe.min.js" "$cache/axe.min.js"
# The last step: it is there whole or not at all.
echo "$package" >"$marker"

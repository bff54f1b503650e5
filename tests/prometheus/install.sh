#!/usr/bin/env bash
# Fetches prometheus and promtool, which judge figures in tests, into .cache/prometheus: Debian's package,
# unpacked and not installed, so that no service of it runs. Several of these may run at once. Status 3: this
# machine cannot have them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cache=$PWD/.cache/prometheus
# Apart from the programs, because builds watch it.
marker=$cache/installed/tools

none() {
    echo "tests/prometheus/install.sh: $*" >&2
    exit 3
}

mkdir -p "$cache/installed"
exec 9>"$cache/lock"
flock 9
if [ -f "$marker" ]; then
    exit 0
fi
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || none "Debian's package is needed, and this is no Debian"
work=$(mktemp -d "$cache/fetching.XXXXXX")
trap 'rm -rf "$work"' EXIT
# Its user for downloads may not enter every folder.
(cd "$work" && apt-get --quiet --quiet --option APT::Sandbox::User=root download prometheus >&2) ||
    none "cannot fetch the package prometheus: apt-get update"
dpkg-deb --extract "$work"/prometheus_*.deb "$work/unpacked"
for program in prometheus promtool; do
    "$work/unpacked/usr/bin/$program" --version >/dev/null 2>&1 || none "$program does not run here"
    mv "$work/unpacked/usr/bin/$program" "$cache/$program"
done
# The last step: the programs are there whole or not at all.
"$cache/promtool" --version 2>&1 | head -n 1 >"$marker"

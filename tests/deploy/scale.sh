#!/usr/bin/env bash
# Tests deploy/scale: machines that are files, and a dispatcher whose figure of due sites is a file. A real dispatcher
# serves the figure in the test `metrics::due`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# In a network of its own, whose ports are free.
[ "${1:-}" = isolated ] || exec unshare --net sh -c 'ip link set lo up && exec tests/deploy/scale.sh isolated'

work=$(mktemp -d)
server=
scale=
trap 'kill $server $scale 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir "$work"/{web,machines}
python3 -B -m http.server --bind 127.0.0.1 --directory "$work/web" 9464 >/dev/null 2>&1 &
server=$!

due() {
    printf '# TYPE webfill_sites_due gauge\nwebfill_sites_due{lane="browser"} 900\nwebfill_sites_due{lane="http"} %s\n' "$1" >"$work/new"
    mv "$work/new" "$work/web/metrics"
}
# The address that does not answer comes first, as a dispatcher that stands by.
commands=(
    deploy/scale --metrics http://127.0.0.1:9465/metrics --metrics http://127.0.0.1:9464/metrics
    --sites-each 50 --min 1 --max 5 --list "ls '$work/machines'" --start "touch '$work/machines/'{name}"
    --drain "test ! -e '$work/stuck' && echo {name} >>'$work/drained'" --stop "rm '$work/machines/'{name}"
)
machines() { ls "$work/machines" | tr '\n' ' '; }
fail() { echo "scale.sh: $*" >&2 && exit 1; }
# The exit code and the machines after one round.
expect() {
    local status=0
    "${commands[@]}" --once >"$work/output" 2>&1 || status=$?
    [ "$status: $(machines)" = "$1" ] || { cat "$work/output" >&2 && fail "after $2: $status: $(machines), expected $1"; }
}

for _ in {1..100}; do
    due 0
    ! python3 -c 'import urllib.request as r; r.urlopen("http://127.0.0.1:9464/metrics")' 2>/dev/null || break
    sleep 0.1
done
touch "$work/machines/database" # of somebody else
expect "0: database vm-0 " "no due site: the least"
due 101
expect "0: database vm-0 vm-1 vm-2 " "101 due sites"
due 10000
expect "0: database vm-0 vm-1 vm-2 vm-3 vm-4 " "10,000 due sites: the most"
rm "$work/machines/vm-1"
expect "0: database vm-0 vm-1 vm-2 vm-3 vm-4 " "the loss of a machine"
rm "$work/web/metrics"
expect "1: database vm-0 vm-1 vm-2 vm-3 vm-4 " "the loss of the figure: no change"
due 60
touch "$work/stuck"
expect "1: database vm-0 vm-1 vm-2 vm-3 vm-4 " "a failed drain: nothing is stopped"
[ ! -e "$work/drained" ] || fail "a machine was drained"
rm "$work/stuck"
expect "0: database vm-0 vm-1 " "60 due sites"
[ "$(sort "$work/drained" | tr '\n' ' ')" = "vm-2 vm-3 vm-4 " ] || fail "drained: $(cat "$work/drained")"

# Without --once, fewer machines must have sufficed for a while.
"${commands[@]}" --every 0.2 --settle 3 >"$work/output" 2>&1 &
scale=$!
due 0
sleep 1.5
[ "$(machines)" = "database vm-0 vm-1 " ] || fail "stopped too soon: $(machines)"
for _ in {1..100}; do
    [ "$(machines)" != "database vm-0 " ] || break
    sleep 0.1
done
[ "$(machines)" = "database vm-0 " ] || fail "not stopped: $(machines)"
kill "$scale"
wait "$scale" || fail "the end by SIGTERM: exit code $?"
scale=

! "${commands[@]}" --max 0 >"$work/output" 2>&1 || fail "--min above --max is accepted"
grep -q -- "--min is between 0 and --max" "$work/output" || fail "$(cat "$work/output")"
echo "machines follow the number of due sites"

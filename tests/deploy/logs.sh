#!/usr/bin/env bash
# By deploy/logs, the logs of two machines come together in one folder, also those that were written while the collector
# was away, and `webfill trace` finds a URL's history there. The recipe for Vector is not run: Debian has no Vector.
# shellcheck source=tests/deploy/machine.sh
source "$(dirname "$0")/machine.sh"

step "two machines, and a collector"
unshare --net sleep infinity &
network=$!
containers+=("$network")
has_network() {
    [ "$(readlink "/proc/$network/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}
wait_until "it has a network" has_network
nsenter --net --target "$network" ip link set lo up

# Sets `words` to a command in the files and under the name of a machine.
words_on() {
    local machine=$1
    shift
    words=(nsenter --net --target "$network" unshare --uts --mount -- sh -ec
        'hostname "$1" && root=$2 && shift 2 && mount -t proc proc "$root/proc" && exec chroot "$root" "$@"'
        on "$machine" "$work/$machine/root" "$@")
}

# on MACHINE COMMAND...: runs a command on a machine.
on() {
    words_on "$@"
    "${words[@]}"
}

# start MACHINE COMMAND...: runs it in the background, as the process $started.
start() {
    words_on "$@"
    "${words[@]}" >>"$work/$1/said" 2>&1 </dev/null &
    started=$!
    containers+=("$started")
}

# log_daemon MACHINE FILE: starts rsyslog with a file of deploy/logs.
log_daemon() {
    mkdir -p "$work/$1/root/var/spool/webfill-test"
    { echo 'global(workDirectory="/var/spool/webfill-test" maxMessageSize="1m")' && sed 's/10\.0\.0\.1/127.0.0.1/' "deploy/logs/$2"; } \
        >"$work/$1/root/root/rsyslog.conf"
    on "$1" rsyslogd -N1 -f /root/rsyslog.conf >"$work/$1/checked" 2>&1 || fail "$2: $(cat "$work/$1/checked")"
    start "$1" rsyslogd -n -f /root/rsyslog.conf -i /root/rsyslog.pid
}

for machine in dispatcher-01 vm-01 collector; do
    make_root "$machine"
    cp "${BINARY:-target/debug/webfill}" "$root/usr/bin/webfill"
done
log_daemon collector rsyslog-collector.conf
collector=$started
log_daemon dispatcher-01 rsyslog-machine.conf
log_daemon vm-01 rsyslog-machine.conf
cp tests/deploy/web.py "$work/collector/root/root/"
start collector python3 /root/web.py
settings=(env WEBFILL_POLITENESS_ALLOW_PRIVATE_NETWORKS=true WEBFILL_POLITENESS_DELAY=0.05 WEBFILL_SUPERVISOR_WORKERS=1
    WEBFILL_LOG_LEVEL=info,journey=debug)
start dispatcher-01 "${settings[@]}" WEBFILL_LOG_FOLDER=/var/log/webfill/dispatcher webfill dispatcher --state /root/state
start vm-01 "${settings[@]}" WEBFILL_LOG_FOLDER=/var/log/webfill/supervisor-vm-01 webfill supervisor --state /root/state --id vm-01
supervisor=$started

# feed PATH
feed() {
    on dispatcher-01 webfill feed "{\"url\": \"http://127.0.0.1:8000$1\", \"appid\": \"tests\", \"crawlid\": \"logs\"}" >/dev/null
}

# Whether the history of a page has the steps of all processes, with the machine of each.
has_history() {
    on collector webfill trace "http://127.0.0.1:8000$1" --logs /var/log/webfill-fleet --store sqlite:/root/none.db --json \
        >"$work/history" 2>/dev/null
    python3 - "$work/history" <<'END'
import json, sys
steps = {(step["process"], step["event"]) for step in json.load(open(sys.argv[1]))["steps"]}
wanted = {("dispatcher-01/dispatcher/dispatcher", "queued"), ("dispatcher-01/dispatcher/dispatcher", "counted"),
          ("vm-01/supervisor-vm-01/supervisor-vm-01", "given_to_worker"), ("vm-01/supervisor-vm-01/worker-000", "requested")}
sys.exit(0 if wanted <= steps else 1)
END
}

step "a history is found where no process of the fleet runs"
wait_until "the dispatcher serves" feed /plain
wait_until "the history is whole" has_history /plain

step "nothing is lost while the collector is away"
kill -KILL "$collector"
feed /document
wait_until "it is fetched" grep -q '"event":"counted".*document\|document.*"event":"counted"' "$work"/dispatcher-01/root/var/log/webfill/dispatcher/dispatcher.log
rm -f "$work/collector/root/root/rsyslog.pid"
log_daemon collector rsyslog-collector.conf
wait_until "the history is whole" has_history /document
# It would wait for its dispatcher.
kill -KILL "$supervisor"
echo "logs: passed after $SECONDS s"

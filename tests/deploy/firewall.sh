#!/usr/bin/env bash
# The firewall between two network namespaces: which ports are open to whom, which are closed, and that a flood is
# slowed down.
set -eEuo pipefail
cd "$(dirname "$0")/../.."

inside=webfill-in-$$
outside=webfill-out-$$
work=$(mktemp -d /tmp/webfill-deploy-XXXXXX)
listener=

finish() {
    local status=$?
    trap - ERR
    if [ "$status" != 0 ]; then
        echo "=== $0 has failed with status $status after $SECONDS s; load, and the rules with what they have seen:"
        cat /proc/loadavg
        ip netns exec "$inside" nft list ruleset || true
    fi >&2
    [ -z "$listener" ] || kill "$listener" 2>/dev/null || true
    ip netns delete "$inside" 2>/dev/null || true
    ip netns delete "$outside" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'echo "$0: line $LINENO: $BASH_COMMAND" >&2' ERR

fail() {
    echo "$0: $*" >&2
    exit 1
}

make_networks() {
    ip netns add "$inside"
    ip netns add "$outside"
    ip -n "$inside" link add wire type veth peer name wire netns "$outside"
    ip -n "$inside" address add 10.77.0.1/24 dev wire
    ip -n "$inside" address add fd77::1/64 dev wire nodad
    for number in 2 3 4 5; do
        ip -n "$outside" address add "10.77.0.$number/24" dev wire
        ip -n "$outside" address add "fd77::$number/64" dev wire nodad
    done
    for network in "$inside" "$outside"; do
        ip -n "$network" link set lo up
        ip -n "$network" link set wire up
    done
}

serve() {
    ip netns exec "$inside" python3 - <<'EOF' >"$work/served" &
import select, socket
sockets = []
for port in (22, 80, 5555, 5556, 5557, 5558, 8080, 27017):
    listening = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=512)
    sockets.append(listening)
print("serves", flush=True)
kept = []
while True:
    for ready in select.select(sockets, [], [])[0]:
        connection, _ = ready.accept()
        connection.sendall(b"hello")
        kept.append(connection)
EOF
    listener=$!
    until grep -q serves "$work/served"; do
        kill -0 "$listener" || fail "nobody listens"
        sleep 0.1
    done
}

load_rules() {
    mkdir "$work/nftables.d"
    cat >"$work/nftables.d/peers.nft" <<'EOF'
add element inet webfill supervisors { 10.77.0.2 }
add element inet webfill supervisors6 { fd77::2 }
add element inet webfill clients { 10.77.0.3 }
add element inet webfill operators { 10.77.0.4 }
EOF
    sed "s|/etc/nftables.d|$work/nftables.d|" deploy/machine/nftables.conf >"$work/rules"
    ip netns exec "$inside" nft --check --file "$work/rules"
    # Loaded twice, because the rules replace themselves.
    ip netns exec "$inside" nft --file "$work/rules"
    ip netns exec "$inside" nft --file "$work/rules"
}

# answering SECONDS FROM TO PORTS...: prints the ports that answer within this time. All are tried at once.
answering() {
    ip netns exec "$outside" python3 - "$@" <<'EOF'
import socket, sys, threading
seconds, source, target, *ports = sys.argv[1:]
answered = []
def connect(port):
    try:
        with socket.create_connection((target, int(port)), timeout=int(seconds), source_address=(source, 0)) as connection:
            if connection.recv(5):
                answered.append(port)
    except OSError:
        pass
threads = [threading.Thread(target=connect, args=[port]) for port in ports]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(*sorted(answered, key=int))
EOF
}

# open_to FROM TO PORTS...: checks that exactly these ports answer.
open_to() {
    local from=$1 to=$2 found
    shift 2
    found=$(answering 3 "$from" "$to" 22 80 5555 5556 5557 5558 8080 27017)
    [ "$found" = "$*" ] || fail "to $from are open: $found, and not: $*"
}

make_networks
serve
echo "--- without rules everything is open"
open_to 10.77.0.5 10.77.0.1 22 80 5555 5556 5557 5558 8080 27017
load_rules
echo "--- each peer reaches what it needs, and strangers nothing"
open_to 10.77.0.2 10.77.0.1 5555 5556
open_to fd77::2 fd77::1 5555 5556
open_to 10.77.0.3 10.77.0.1 5557 5558
open_to 10.77.0.4 10.77.0.1 22
open_to 10.77.0.5 10.77.0.1
open_to fd77::5 fd77::1
echo "--- a flood is held up, and others are not"
since=$SECONDS
# shellcheck disable=SC2046 # the same port 300 times
admitted=$(answering 3 10.77.0.4 10.77.0.1 $(printf '22 %.0s' {1..300}) | wc -w)
# The first 30 are accepted, and one for each second, of which a busy machine may take many.
most=$((30 + SECONDS - since + 5))
[ "$admitted" -ge 20 ] && [ "$admitted" -le "$most" ] || fail "$admitted of 300 connections were accepted, and not 20 to $most"
[ "$(answering 30 10.77.0.3 10.77.0.1 5557)" = 5557 ] || fail "a flood of another one keeps a client out"
[[ $(ip netns exec "$inside" nft list set inet webfill flood) == *10.77.0.4* ]] || fail "the flood is not known"
echo "--- many supervisors of one address come back at once"
# shellcheck disable=SC2046 # the same port 200 times
admitted=$(answering 30 10.77.0.2 10.77.0.1 $(printf '5555 %.0s' {1..200}) | wc -w)
[ "$admitted" = 200 ] || fail "$admitted of 200 connections of supervisors were accepted"
echo "firewall: passed after $SECONDS s"

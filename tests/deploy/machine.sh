# Machines for testing deploy/, used by the scripts in this folder. Each is a copy of .cache/deploy/root in which a real
# systemd runs. Its only networks are its own loopback and a wire to other machines of the script. `source` this file;
# the machines end with the script.
# shellcheck shell=bash

# A function that fails without a message ends the script as well: with -E, the trap reports where.
set -eEuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# The files made here are the root folders of machines, which users other than root must be able to enter.
umask 022

base=$PWD/.cache/deploy/root
packages=$PWD/.cache/deploy/packages
work=$(mktemp -d /tmp/webfill-deploy-XXXXXX)
# The current machine, on which functions act: its files, its name, and its first process as this machine sees it.
root=
name=
leader=
containers=()
switch=
# The hierarchies of control groups: version 2, alone or beside version 1, and systemd's own of version 1.
trees=(/sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd)

finish() {
    local status=$?
    trap - ERR
    [ "$status" = 0 ] || explain "$status" >&2
    if [ ${#containers[@]} != 0 ]; then
        kill "${containers[@]}" 2>/dev/null || true
        wait "${containers[@]}" 2>/dev/null || true
    fi
    [ -z "$switch" ] || ip netns delete "$switch" || true
    umount --lazy "$work"/*/root "$work" 2>/dev/null || true
    find "${trees[@]/%//webfill-$$}" -depth -type d -exec rmdir {} \; 2>/dev/null || true
    rm -rf "$work"
    exit "$status"
}

# Prints everything that may have caused a failure, because nobody can inspect the machines afterwards.
explain() {
    set +e
    echo "=== $0 has failed with status $1 after $SECONDS s; load, memory and space of this machine:"
    cat /proc/loadavg
    free --mebi
    df --human-readable "$work" /tmp
    for root in "$work"/*/root; do
        name=$(basename "$(dirname "$root")")
        [ ! -e "$work/$name/leader" ] || explain_machine
    done
}

explain_machine() {
    echo "=== $name: its console"
    tail --lines 30 "$work/$name/console"
    leader=$(cat "$work/$name/leader")
    [ -e "/proc/$leader" ] || { echo "=== $name does not run" && return 0; }
    echo "=== $name: what it has still to start, and what has failed in it"
    timeout 10 nsenter --target "$leader" --mount --pid systemctl list-jobs --no-pager
    timeout 10 nsenter --target "$leader" --mount --pid systemctl --no-pager --failed
    timeout 10 nsenter --target "$leader" --mount --pid systemctl --no-pager --lines 0 status 'webfill-*'
    tail --lines 20 "$root"/var/log/fail2ban.log 2>/dev/null
    echo "=== $name: its journal"
    timeout 10 nsenter --target "$leader" --mount --pid journalctl --no-pager --lines 60 --output cat
}

trap finish EXIT
trap 'echo "$0: line $LINENO: $BASH_COMMAND" >&2' ERR

# make_root [NAME]: makes the files of a machine, which becomes the current one. Changes to the files stay in memory.
make_root() {
    name=${1:-machine}
    root=$work/$name/root
    mountpoint --quiet "$work" || mount -t tmpfs -o mode=755 tmpfs "$work"
    mkdir -p "$work/$name/upper" "$work/$name/overlay" "$root"
    mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/$name/upper,workdir=$work/$name/overlay" "$root" \
        2>/dev/null || cp -a "$base/." "$root"
    # cloud-init would search the network for its settings, for minutes if this machine looks like one of a provider.
    touch "$root/etc/cloud/cloud-init.disabled"
}

# Makes a machine that was booted before the current one.
at() {
    name=$1
    root=$work/$name/root
    leader=$(cat "$work/$name/leader")
}

# Starts the machine without waiting for it.
start_machine() {
    (
        enter_group
        exec systemd-nspawn --quiet --directory "$root" --machine "webfill-$name-$$" --register=no --keep-unit --boot \
            --private-network --link-journal=no --console=pipe
    ) </dev/null >"$work/$name/console" 2>&1 &
    containers+=($!)
    echo $! >"$work/$name/container"
    wait_until "$name has a first process" has_leader
}

# Enters a new control group, if that is possible: two machines in the same group end each other's services.
enter_group() {
    local tree
    for tree in "${trees[@]}"; do
        [ -e "$tree/cgroup.procs" ] || continue
        mkdir -p "$tree/webfill-$$/$name" 2>/dev/null && echo "$BASHPID" >"$tree/webfill-$$/$name/cgroup.procs" || true
    done
}

boot() {
    start_machine
    wait_until "$name has booted" is_booted
}

# For a moment, the child of systemd-nspawn is a process of its own, so the first process is recognised by its name.
has_leader() {
    local container child
    container=$(cat "$work/$name/container")
    kill -0 "$container" 2>/dev/null || fail "$name has ended by itself: $(tail --lines 5 "$work/$name/console")"
    for child in $(pgrep --parent "$container" || true); do
        [ "$(cat "/proc/$child/comm" 2>/dev/null)" = systemd ] || continue
        leader=$child
        echo "$leader" >"$work/$name/leader"
        return 0
    done
    return 1
}

is_booted() {
    local state
    [ -e "/proc/$leader" ] || fail "$name has ended by itself: $(tail --lines 5 "$work/$name/console")"
    state=$(in_machine systemctl is-system-running 2>/dev/null) || true
    [[ $state == running || $state == degraded ]]
}

# wire MACHINES...: connects running machines by a network, as 10.77.0.1, 10.77.0.2, and so on. The operator, for whom
# `as_operator` runs commands, has 10.77.0.99.
wire() {
    local machine port=0 leader
    switch=webfill-$$
    ip netns add "$switch"
    ip -n "$switch" link add wire type bridge
    ip -n "$switch" address add 10.77.0.99/24 dev wire
    ip -n "$switch" link set wire up
    ip -n "$switch" link set lo up
    for machine in "$@"; do
        port=$((port + 1))
        leader=$(cat "$work/$machine/leader")
        ip -n "$switch" link add "port$port" type veth peer name wire netns "$leader"
        ip -n "$switch" link set "port$port" master wire up
        nsenter --target "$leader" --net ip address add "10.77.0.$port/24" dev wire
        nsenter --target "$leader" --net ip link set wire up
    done
}

as_operator() {
    ip netns exec "$switch" "$@"
}

# Runs a command in the current machine.
in_machine() {
    nsenter --target "$leader" --mount --pid --uts --ipc --net env --ignore-environment --chdir=/ \
        PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb "$@"
}

wait_until() {
    local what=$1 deadline=$((SECONDS + 120))
    shift
    until "$@"; do
        [ $SECONDS -lt $deadline ] || fail "waited in vain until $what: $*"
        sleep 0.1
    done
}

fail() {
    echo "$0: $*" >&2
    exit 1
}

# Prints a value of a unit, such as MainPID.
value() {
    in_machine systemctl show --property "$2" --value "$1"
}

is() {
    [ "$(value "$1" "$2")" = "$3" ]
}

# Whether a unit is active with another process than this one.
other_process() {
    [ "$(value "$1" MainPID)" != "$2" ] && is "$1" ActiveState active
}

expect() {
    is "$@" || fail "$1 has $2=$(value "$1" "$2"), not $3"
}

# Runs a command that must fail with this text in its output.
refused() {
    local why=$1 said
    shift
    said=$("$@" 2>&1) && fail "this worked: $*"
    [[ $said == *"$why"* ]] || fail "$* said, without \"$why\": $said"
}

step() {
    echo "--- $*"
}

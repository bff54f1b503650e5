# Machines to try deploy/ on, for the scripts beside this one: each is a copy of .cache/deploy/root in which a
# real systemd runs, without a network but its own loopback. `source` it; the machine ends with the script.
# shellcheck shell=bash

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

base=$PWD/.cache/deploy/root
packages=$PWD/.cache/deploy/packages
work=$(mktemp -d /tmp/webfill-deploy-XXXXXX)
root=$work/root
container=
leader=

finish() {
    local status=$?
    if [ "$status" != 0 ] && [ -n "$leader" ]; then
        in_machine journalctl --no-pager --lines 25 --output cat >&2 || true
    fi
    if [ -n "$container" ]; then
        kill "$container" 2>/dev/null || true
        wait "$container" 2>/dev/null || true
    fi
    umount --lazy "$root" "$work" 2>/dev/null || true
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT
trap 'echo "$0: line $LINENO: $BASH_COMMAND" >&2' ERR

# A root of our own: what is written stays in the memory.
make_root() {
    mount -t tmpfs -o mode=755 tmpfs "$work"
    mkdir "$work/upper" "$work/overlay" "$root"
    mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/overlay" "$root" 2>/dev/null ||
        cp -a "$base/." "$root"
}

boot() {
    systemd-nspawn --quiet --directory "$root" --machine "webfill-$$" --register=no --keep-unit --boot \
        --private-network --link-journal=no --console=pipe </dev/null >"$work/console" 2>&1 &
    container=$!
    wait_until "the machine has booted" is_booted
}

# `is-system-running` fails when a unit has failed, which is no matter here.
is_booted() {
    local state
    leader=$(pgrep --parent "$container" | head -1) && [ -n "$leader" ] || return 1
    state=$(in_machine systemctl is-system-running 2>/dev/null) || true
    [[ $state == running || $state == degraded ]]
}

# Runs a command in the machine.
in_machine() {
    nsenter --target "$leader" --mount --pid --uts --ipc --net env --ignore-environment --chdir=/ \
        PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb "$@"
}

wait_until() {
    local what=$1 deadline=$((SECONDS + 60))
    shift
    until "$@"; do
        [ $SECONDS -lt $deadline ] || fail "waited in vain until $what"
        sleep 0.1
    done
}

fail() {
    echo "$0: $*" >&2
    exit 1
}

# A value of a unit, such as MainPID.
value() {
    in_machine systemctl show --property "$2" --value "$1"
}

is() {
    [ "$(value "$1" "$2")" = "$3" ]
}

expect() {
    is "$@" || fail "$1 has $2=$(value "$1" "$2"), not $3"
}

# What is to go wrong, with this in what it says.
refused() {
    local why=$1 said
    shift
    said=$("$@" 2>&1) && fail "this worked: $*"
    [[ $said == *"$why"* ]] || fail "$* said, without \"$why\": $said"
}

step() {
    echo "--- $*"
}

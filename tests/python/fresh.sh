#!/usr/bin/env bash
# Tries the wheel on a fresh machine: the Debian 12 of tests/deploy, with Python, without a compiler and a network. The
# wheel must be installed and have run once in 30 seconds, and the example notebook must have filled its table in 60.
# Exit status 3: this machine cannot have one.
#
#   tests/python/fresh.sh WHEEL TOOLS      TOOLS: the virtual environment that has pip, pandas and nbclient
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

wheel=$(realpath "$1")
tools=$(realpath "$2")
tests/deploy/install.sh >&2
root=$PWD/.cache/deploy/root
[ -d "$tools/lib/python3.11" ] || {
    echo "LEFT OUT: the wheel on a fresh machine: this machine has another Python than Debian 12" >&2
    exit 3
}

layers=$(mktemp -d)
trap 'rmdir "$layers"' EXIT
# Everything that is written is in memory, and gone at the end. Libraries that the wheel bundles cannot be loaded from
# elsewhere.
# shellcheck disable=SC2016 # expanded by the inner shell
unshare --mount --net --pid --fork --kill-child --propagation private bash -euo pipefail -c '
    shopt -s nullglob
    layers=$1 base=$2
    shift
    ip link set lo up
    mount -t tmpfs tmpfs "$layers"
    root=$layers/root
    mkdir -p "$layers"/{upper,work,root}
    mount -t overlay overlay -o "lowerdir=$base,upperdir=$layers/upper,workdir=$layers/work" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    for folder in docs tests tools wheel; do
        shift
        mkdir -p "$root/webfill/$folder"
        mount --bind -o ro "$1" "$root/webfill/$folder"
    done
    for library in "$root"/usr/lib/x86_64-linux-gnu/lib{zmq,sodium}.so.*; do
        rm "$library"
    done
    exec chroot "$root" /usr/bin/env -i HOME=/tmp PATH=/usr/bin:/bin LANG=C.UTF-8 /usr/bin/python3 -B \
        /webfill/tests/python/fresh.py "/webfill/wheel/$2" /webfill/tools
' - "$layers" "$root" docs tests "$tools" "$(dirname "$wheel")" "$(basename "$wheel")"

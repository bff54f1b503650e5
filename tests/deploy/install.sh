#!/usr/bin/env bash
# Prepares the requirements of the tests of deploy/: programs of this machine, and .cache/deploy/root, a Debian 12 from
# which machines are made. Several instances of this script may run at once. Exit status 3: this machine cannot have
# them.
set -euo pipefail
# Users other than root must be able to enter the root of a machine, too.
umask 022
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

TOOLS=(binutils debhelper debootstrap iproute2 nftables procps python3-venv systemd-container)
# The packages that deploy/cloud-init installs are included, so that machines need no network.
PACKAGES=(apt-utils ca-certificates chromium cloud-init curl dbus fail2ban iproute2 libzmq5 nftables openssh-server
    procps python3-apt python3-systemd rsyslog rsyslog-relp sudo systemd-sysv systemd-timesyncd tini unattended-upgrades)
ANSIBLE=(ansible-core==2.16.14 ansible-lint==24.12.2)
# Helm as a library, and the schemas of all manifests.
KUBERNETES=(cloudcoil-models-keda==2.16.1.0 cloudcoil-models-prometheus-operator==0.80.1.0 helm-python-sdk==0.2.2
    kubernetes-validate==1.37.0 pymongo==4.15.5)

cache=$PWD/.cache/deploy
wanted="${PACKAGES[*]}"

none() {
    echo "tests/deploy/install.sh: $*" >&2
    exit 3
}

[ "$(id -u)" = 0 ] || none "machines can only be booted by root"
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9

missing=()
for tool in "${TOOLS[@]}"; do
    [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$tool" 2>/dev/null)" = installed ] || missing+=("$tool")
done
if [ ${#missing[@]} -gt 0 ]; then
    apt-get update --quiet=2 >&2 || true
    DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends \
        -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "${missing[@]}" >/dev/null || none "cannot install ${missing[*]}"
fi

if [ "$(cat "$cache/root.made" 2>/dev/null)" != "$wanted" ]; then
    rm -rf "$cache/root" "$cache/root.made"
    # Machines get their packages from the same sources as this machine.
    [ -n "$(compgen -G '/var/lib/apt/lists/*_Packages*')" ] || apt-get update --quiet=2 >&2 || true
    sources=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' 'Origin: Debian')
    mirror=$(awk '$3 == "bookworm" { print $2; exit }' <<<"$sources")
    [ -n "$mirror" ] || none "this is no Debian 12, or \`apt-get update\` was never run"
    debootstrap --variant=minbase bookworm "$cache/root" "$mirror" >"$cache/log" 2>&1 ||
        { tail "$cache/log" >&2 && none "cannot make a Debian 12"; }
    echo "$sources" >"$cache/root/etc/apt/sources.list"
    printf '#!/bin/sh\nexit 101\n' >"$cache/root/usr/sbin/policy-rc.d"
    chmod +x "$cache/root/usr/sbin/policy-rc.d"
    chroot "$cache/root" sh -c "apt-get update --quiet=2 && DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 \
        --yes --no-install-recommends ${PACKAGES[*]}" >"$cache/log" 2>&1 ||
        { tail "$cache/log" >&2 && none "cannot install ${PACKAGES[*]}"; }
    rm "$cache/root/usr/sbin/policy-rc.d"
    chroot "$cache/root" apt-get clean
    # Machines have no network for updates, and no disks of their own to maintain.
    chroot "$cache/root" systemctl mask --quiet apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer fstrim.timer
    echo "$wanted" >"$cache/root.made"
fi

# environment NAME PACKAGES...: makes a virtual environment of Python. If the clone was moved, one no longer finds its
# Python.
environment() {
    local name=$1
    shift
    if [ "$(cat "$cache/$name.made" 2>/dev/null)" != "$*" ] || ! "$cache/$name/bin/pip" --version >/dev/null 2>&1; then
        rm -rf "${cache:?}/$name"
        python3 -m venv "$cache/$name" >&2 || none "cannot make a virtual environment"
        "$cache/$name/bin/pip" install --quiet "$@" >&2 || none "cannot install $*"
        echo "$*" >"$cache/$name.made"
    fi
}
environment ansible "${ANSIBLE[@]}"
environment kubernetes "${KUBERNETES[@]}"

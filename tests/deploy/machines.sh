#!/usr/bin/env bash
# What cloud-init and Ansible are given is valid by their own checks.
# shellcheck source=tests/deploy/machine.sh
source "$(dirname "$0")/machine.sh"

# The users that a file lists are made as cloud-init makes them: a name that Debian has already cannot be had.
make_users() {
    chroot "$root" python3 - "$1" <<'PYTHON'
import sys, yaml
from cloudinit import distros, helpers
from cloudinit.distros import ug_util

settings = yaml.safe_load(open(sys.argv[1]))
distro = distros.fetch("debian")("debian", {}, helpers.Paths({}))
for name, user in ug_util.normalize_users_groups(settings, distro)[0].items():
    keys = user["ssh_authorized_keys"]
    distro.create_user(name, **user)
    assert keys[0] in open(f"/home/{name}/.ssh/authorized_keys").read()
PYTHON
}

make_root
for role in dispatcher supervisor; do
    cp "deploy/cloud-init/$role.yaml" "$root/root/"
    said=$(chroot "$root" cloud-init schema --config-file "/root/$role.yaml" 2>&1) || fail "$role.yaml: $said"
    [[ $said == Valid* ]] || fail "$role.yaml: $said"
    said=$(make_users "/root/$role.yaml" 2>&1) || fail "the users of $role.yaml: $said"
    sed -i "s/^disable_root: true/disable_root: [1]/" "$root/root/$role.yaml"
    refused "disable_root" chroot "$root" cloud-init schema --config-file "/root/$role.yaml"
done
ansible=$PWD/.cache/deploy/ansible/bin
(cd deploy/ansible && "$ansible/ansible-lint" --offline -q playbook.yml 2>"$work/said") || fail "$(cat "$work/said")"
echo "machines: passed after $SECONDS s"

#!/usr/bin/env bash
# The files for cloud-init and Ansible pass the checks of these programs. cloud-init.sh and ansible.sh run them.
# shellcheck source=tests/deploy/machine.sh
source "$(dirname "$0")/machine.sh"

make_root
for role in dispatcher supervisor; do
    cp "deploy/cloud-init/$role.yaml" "$root/root/"
    said=$(chroot "$root" cloud-init schema --config-file "/root/$role.yaml" 2>&1) || fail "$role.yaml: $said"
    [[ $said == Valid* ]] || fail "$role.yaml: $said"
    sed -i "s/^disable_root: true/disable_root: [1]/" "$root/root/$role.yaml"
    refused "disable_root" chroot "$root" cloud-init schema --config-file "/root/$role.yaml"
done
ansible=$PWD/.cache/deploy/ansible/bin
# The linter writes next to its input, and needs a UTF-8 locale.
cp -r deploy/ansible deploy/machine "$work/"
(cd "$work/ansible" && LC_ALL=C.UTF-8 ANSIBLE_HOME=$work/home "$ansible/ansible-lint" --offline -q playbook.yml) >"$work/said" 2>&1 ||
    fail "$(cat "$work/said")"
echo "machines: passed after $SECONDS s"

#!/usr/bin/env bash
# Builds the disk image, and boots it under qemu: by cloud-init it becomes a dispatcher that serves. It is not
# among the scripts that run by default, because it fetches packages for minutes: `make images`.
# shellcheck source=tests/deploy/machine.sh
source "$(dirname "$0")/machine.sh"

for tool in qemu-system-x86_64 mkfs.vfat mcopy; do
    command -v "$tool" >/dev/null || fail "$tool is missing: apt-get install --no-install-recommends qemu-system-x86 dosfstools mtools"
done
image=${IMAGE:-$work/webfill.qcow2}

[ -e "$image" ] || { step "the image" && deploy/disk-image "$image" "$packages"/webfill_*.deb; }

step "the settings of a machine, as its provider has them"
python3 - deploy/cloud-init/dispatcher.yaml >"$work/user-data" <<'END'
import re, sys
text = open(sys.argv[1]).read()
# The package is in the image, and there is no network. The machine has a store in a file and no keys.
text = re.sub(r"(?m)^package_.*\n|^packages: .*\n|^swap:\n(  .*\n)+", "", text)
text = re.sub(r"(?s)write_files:.*?runcmd:.*?(  - systemctl enable --quiet webfill-dispatcher)", r"runcmd:\n  - set -e\n\1", text)
text = text.replace('"ssh-ed25519 YOUR_PUBLIC_SSH_KEY"', '"ssh-ed25519 AAAA"')
print(text.rstrip())
print("  - timeout 120 sh -c 'until webfill status; do sleep 1; done' >/dev/ttyS0 2>&1")
print("  - ip -4 -brief address >/dev/ttyS0")
print("  - echo THE MACHINE IS SET UP >/dev/ttyS0")
print("power_state: {mode: poweroff}")
END
printf 'instance-id: disk\nlocal-hostname: disk-01\n' >"$work/meta-data"
truncate --size 1M "$work/seed"
mkfs.vfat -n CIDATA "$work/seed" >/dev/null
mcopy -i "$work/seed" "$work/user-data" "$work/meta-data" ::

step "a machine"
qemu-img create -q -f qcow2 -F qcow2 -b "$image" "$work/disk"
# Emulated, because a nested machine may not be able to do it in hardware. Its network leads nowhere, but has DHCP.
timeout "${PATIENCE:-900}" qemu-system-x86_64 -machine accel=tcg -m 1024 -display none -serial "file:$work/console" \
    -monitor none -nic user,restrict=on,model=virtio-net-pci \
    -drive "file=$work/disk,if=virtio" -drive "file=$work/seed,format=raw,if=virtio,readonly=on" ||
    fail "it does not end: $(tail --lines 20 "$work/console")"
grep -q "THE MACHINE IS SET UP" "$work/console" || fail "it has not set itself up: $(tail --lines 40 "$work/console")"
grep -qa "UP.* 10\.0\.2\." "$work/console" || fail "it has no address: $(grep -a UP "$work/console")"
echo "image-disk: passed after $SECONDS s"

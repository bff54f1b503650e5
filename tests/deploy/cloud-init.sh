#!/usr/bin/env bash
# At their first start, two machines become a fleet by deploy/cloud-init. Their provider is a folder (NoCloud). Here the
# packages are files, because there is no network; each machine has a store in a file, because there is no server; and
# there is no swap, because a nested machine cannot have any.
# shellcheck source=tests/deploy/machine.sh
source "$(dirname "$0")/machine.sh"
# shellcheck source=tests/deploy/fleet.sh
source tests/deploy/fleet.sh

webfill=$(realpath "${BINARY:-target/debug/webfill}")

# new_machine NAME FILE: makes a machine from a file whose words in capitals are replaced as docs/how-to/install.md
# says.
new_machine() {
    make_root "$1"
    rm "$root/etc/cloud/cloud-init.disabled"
    cp "$packages"/webfill_*.deb "$root/root/bought.deb"
    local seed=$root/var/lib/cloud/seed/nocloud keys=$work/keys sum
    sum=$(sha256sum "$root/root/bought.deb" | cut -d ' ' -f 1)
    mkdir -p "$seed"
    printf 'instance-id: %s\nlocal-hostname: %s\n' "$1" "$1" >"$seed/meta-data"
    python3 - "$2" >"$seed/user-data" "s|YOUR_PUBLIC_SSH_KEY|$(cut -d ' ' -f 2 "$work/login.pub")|" \
        "s|DISPATCHER_SECRET_KEY|$(secret "$keys/dispatcher/dispatcher.key")|" \
        "s|DISPATCHER_PUBLIC_KEY|$(cat "$keys/dispatcher/dispatcher.pub")|" \
        "s|SUPERVISOR_SECRET_KEY|$(secret "$keys/vm-01/supervisor.key")|" \
        "s|SUPERVISOR_PUBLIC_KEY|$(cat "$keys/vm-01/supervisor.pub")|" \
        "s|PACKAGE_URL|file:///root/bought.deb|" "s|PACKAGE_SHA256|$sum|" \
        "s|DISPATCHER_HOST|10.77.0.1|" "s|CONTACT_PAGE|crawler.example/|" \
        "s|mongodb://STORE_HOST/webfill|sqlite:/var/lib/webfill/store/webfill.db|" <<'END'
import re, sys
text = open(sys.argv[1]).read()
for _, placeholder, value, _ in (rule.split("|") for rule in sys.argv[2:]):
    text = text.replace(placeholder, value)
text = text.replace("10.0.0.0/24", "10.77.0.2")
text = re.sub(r"(?m)^swap:\n(  .*\n)+", "", text)
left = re.findall(r"\b[A-Z]+_[A-Z_]*[A-Z]\b", re.sub(r"WEBFILL_\w+|(?m:^ *#.*$)|DEBIAN_FRONTEND", "", text))
assert not left, left
print(text, end="")
END
    # No package lists are fetched, because there is no network.
    : >"$root/etc/apt/sources.list"
    printf "%s\n" "apt: {preserve_sources_list: true}" "network: {config: disabled}" >"$root/etc/cloud/cloud.cfg.d/99-test.cfg"
    # The requirements of this module are not in the root of these machines.
    sed --in-place "/^ - locale$/d" "$root/etc/cloud/cloud.cfg"
    # Without a network, this unit would wait in vain.
    chroot "$root" systemctl mask --quiet systemd-networkd-wait-online.service
    start_machine
}

# Prints the secret key in a file of `webfill keys`.
secret() {
    sed -n 's/^secret //p' "$1"
}

is_set_up() {
    [[ $(in_machine cloud-init status 2>/dev/null || true) =~ status:\ (done|error) ]]
}

judge_set_up() {
    local said
    wait_until "cloud-init is done with $name" is_set_up
    said=$(in_machine cloud-init status --long 2>&1) || true
    [[ $said == *"status: done"* && $said == *DataSourceNoCloud* ]] ||
        fail "$name: $said$(in_machine tail --lines 30 /var/log/cloud-init-output.log)"
    said=$(in_machine grep -E 'WARNING|ERROR|Traceback' /var/log/cloud-init.log || true)
    [ -z "$said" ] || fail "$name: $said"
}

# Checks the operator that `users` defines, who logs in by a key, may become root, and has no password.
judge_operator() {
    local said
    said=$(nsenter --target "$leader" --net ssh -i "$work/login" -o BatchMode=yes -o StrictHostKeyChecking=no \
        -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR webfill-operator@127.0.0.1 'sudo -n id -un && id -Gn')
    [[ $said == "root"$'\n'*sudo* ]] || fail "webfill-operator: $said"
    said=$(in_machine passwd --status webfill-operator)
    [[ $said == "webfill-operator L "* ]] || fail "its password is not locked: $said"
    said=$(in_machine getent shadow root)
    [[ $said == root:[*!]* ]] || fail "root has a password"
}

step "two new machines"
mount -t tmpfs -o mode=755 tmpfs "$work"
ssh-keygen -q -t ed25519 -N '' -f "$work/login"
make_keys
new_machine dispatcher deploy/cloud-init/dispatcher.yaml
new_machine vm-01 deploy/cloud-init/supervisor.yaml
wire dispatcher vm-01

step "they have set themselves up without a complaint"
for machine in dispatcher vm-01; do
    at "$machine"
    wait_until "$machine has booted" is_booted
    judge_set_up
    judge_operator
done

step "files, owners and modes are as written"
at dispatcher
said=$(modes /etc/webfill/dispatcher.env /etc/webfill/certs/{dispatcher.key,dispatcher.pub,allowed})
expected='600 root:root /etc/webfill/dispatcher.env
400 webfill-dispatcher:webfill /etc/webfill/certs/dispatcher.key
644 webfill-dispatcher:webfill /etc/webfill/certs/dispatcher.pub
644 webfill-dispatcher:webfill-dispatcher /etc/webfill/certs/allowed'
[ "$said" = "$expected" ] || fail "modes: $said"
at vm-01
said=$(modes /etc/webfill/supervisor-vm-01.env /etc/webfill/certs/{supervisor.key,supervisor.pub,dispatcher.pub})
expected='600 root:root /etc/webfill/supervisor-vm-01.env
400 webfill-supervisor:webfill /etc/webfill/certs/supervisor.key
644 webfill-supervisor:webfill /etc/webfill/certs/supervisor.pub
644 webfill-supervisor:webfill /etc/webfill/certs/dispatcher.pub'
[ "$said" = "$expected" ] || fail "modes: $said"

step "they are a fleet, behind their firewalls"
judge_fleet

step "its operator has a key"
at dispatcher
# shellcheck disable=SC2016 # it is for the shell in the machine
said=$(in_machine sh -c 'export $(cat /etc/webfill/operator.env) && webfill status' 2>&1) || fail "webfill status: $said"
[[ $said == *vm-01* ]] || fail "it has no supervisor: $said"
echo "cloud-init: passed after $SECONDS s"

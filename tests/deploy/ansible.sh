#!/usr/bin/env bash
# Over ssh, the playbook turns two bare machines into a fleet. When it is run again, it finds nothing to change.
# shellcheck source=tests/deploy/machine.sh
source "$(dirname "$0")/machine.sh"
# shellcheck source=tests/deploy/fleet.sh
source tests/deploy/fleet.sh

webfill=$(realpath "${BINARY:-target/debug/webfill}")
ansible=$PWD/.cache/deploy/ansible/bin
# Ansible needs a UTF-8 locale, and writes below its home. Pipelining halves the time.
export LC_ALL=C.UTF-8 ANSIBLE_HOME=$work/ansible ANSIBLE_NOCOLOR=1 ANSIBLE_PIPELINING=1

# A machine as a provider delivers it: a user who may become root logs in by a key.
bare_machine() {
    make_root "$1"
    echo "127.0.1.1 $(cat "$root/etc/hostname")" >>"$root/etc/hosts"
    chroot "$root" useradd --create-home --shell /bin/bash webfill-operator
    echo 'webfill-operator ALL=(ALL) NOPASSWD:ALL' >"$root/etc/sudoers.d/operator"
    install -d -m 700 -o 1000 -g 1000 "$root/home/webfill-operator/.ssh"
    install -m 600 -o 1000 -g 1000 "$work/login.pub" "$root/home/webfill-operator/.ssh/authorized_keys"
    # A nested machine has no clock to set. There the unit is skipped, and never "started".
    mkdir -p "$root/etc/systemd/system/systemd-timesyncd.service.d"
    cat >"$root/etc/systemd/system/systemd-timesyncd.service.d/test.conf" <<'END'
[Unit]
ConditionVirtualization=
ConditionCapability=
[Service]
Type=exec
User=root
AmbientCapabilities=
CapabilityBoundingSet=
WatchdogSec=0
ExecStart=
ExecStart=sleep infinity
END
    start_machine
}

# Writes the example's inventory with the addresses and files of this test, without network and without swap.
write_inventory() {
    cp "$packages"/webfill_*.deb "$work/webfill.deb"
    python3 - deploy/ansible/example.yml "$work" >"$work/inventory.yml" <<'END'
import sys, yaml
example, work = sys.argv[1:]
inventory = yaml.safe_load(open(example))
groups = inventory["all"]["children"]
inventory["all"]["vars"] |= {
    "webfill_deb": f"{work}/webfill.deb", "webfill_keys": f"{work}/keys",
    "webfill_supervisors": ["10.77.0.2"], "webfill_clients": ["10.77.0.99", "fd77::9"],
    "webfill_operators": ["10.77.0.99"],
    "webfill_packages": False, "webfill_swap": False,
    "ansible_user": "webfill-operator", "ansible_ssh_private_key_file": f"{work}/login",
    "ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null",
}
groups["dispatcher"]["hosts"] = {"dispatcher-01": {"ansible_host": "10.77.0.1"}}
groups["supervisors"]["hosts"] = {"vm-01": {"ansible_host": "10.77.0.2"}}
store = "sqlite:/var/lib/webfill/store/webfill.db"
groups["dispatcher"]["vars"]["webfill_settings"]["STORE"] = store
groups["supervisors"]["vars"]["webfill_settings"] |= {"STORE": store, "SUPERVISOR_DISPATCHER": "tcp://10.77.0.1:5555"}
yaml.safe_dump(inventory, sys.stdout)
END
}

# A run that hangs is ended, and its output shows where.
play() {
    as_operator timeout 450 "$ansible/ansible-playbook" --inventory "$work/inventory.yml" \
        deploy/ansible/playbook.yml </dev/null >"$work/said" 2>&1 || fail "$(cat "$work/said")"
    grep -A3 'PLAY RECAP' "$work/said"
}

changed() {
    [[ $(cat "$work/said") =~ $1\ +:\ ok=[0-9]+\ +changed=([0-9]+)\ +unreachable=0\ +failed=0 ]] || fail "$(cat "$work/said")"
    echo "${BASH_REMATCH[1]}"
}

step "two bare machines"
mount -t tmpfs -o mode=755 tmpfs "$work"
ssh-keygen -q -t ed25519 -N '' -f "$work/login"
make_keys
write_inventory
bare_machine dispatcher
bare_machine vm-01
for machine in dispatcher vm-01; do
    at "$machine"
    wait_until "$machine has booted" is_booted
done
wire dispatcher vm-01

step "the playbook makes a fleet of them"
play
[ "$(changed dispatcher-01)" -ge 12 ] && [ "$(changed vm-01)" -ge 10 ] || fail "nothing was to be done: $(cat "$work/said")"
judge_fleet
at dispatcher
said=$(modes /etc/webfill/dispatcher.env /etc/webfill/certs/{dispatcher.key,dispatcher.pub,allowed})
expected='600 root:root /etc/webfill/dispatcher.env
400 webfill-dispatcher:webfill /etc/webfill/certs/dispatcher.key
644 webfill-dispatcher:webfill /etc/webfill/certs/dispatcher.pub
644 webfill-dispatcher:webfill /etc/webfill/certs/allowed'
[ "$said" = "$expected" ] || fail "modes: $said"
said=$(in_machine nft list set inet webfill clients6)
[[ $said == *fd77::9* ]] || fail "a client is not let in: $said"
dispatcher=$(value webfill-dispatcher MainPID)
for port in 22 5557; do
    as_operator timeout 10 bash -c "</dev/tcp/10.77.0.1/$port" || fail "the operator does not reach port $port"
done
timeout 5 nsenter --target "$(cat "$work/vm-01/leader")" --net bash -c '</dev/tcp/10.77.0.1/22' 2>/dev/null &&
    fail "ssh is open to more than operators"
said=$(modes /etc/webfill/operator.env /etc/webfill/operator/client.key)
expected='600 root:root /etc/webfill/operator.env
400 webfill-dispatcher:webfill-dispatcher /etc/webfill/operator/client.key'
[ "$said" = "$expected" ] || fail "modes: $said"
# shellcheck disable=SC2016 # it is for the shell in the machine
has_operator() {
    said=$(in_machine sh -c 'export $(cat /etc/webfill/operator.env) && webfill status' 2>&1) || return 1
    [[ $said == *vm-01* ]]
}
wait_until "the operator's key is let in" has_operator
in_machine systemctl start webfill-prune.service
expect webfill-prune.service Result success
at vm-01
[ ! -e "$root/etc/webfill/operator/client.key" ] || fail "the supervisor's machine has an operator's key"
[ ! -e "$root/etc/webfill/certs/dispatcher.key" ] || fail "the supervisor has the secret key of the dispatcher"
said=$(modes /etc/webfill/supervisor-vm-01.env /etc/webfill/certs/supervisor.key)
expected='600 root:root /etc/webfill/supervisor-vm-01.env
400 webfill-supervisor:webfill /etc/webfill/certs/supervisor.key'
[ "$said" = "$expected" ] || fail "modes: $said"

step "run again, it changes nothing and restarts nothing"
play
[ "$(changed dispatcher-01) $(changed vm-01)" = "0 0" ] || fail "$(cat "$work/said")"
at dispatcher
expect webfill-dispatcher.service MainPID "$dispatcher"

step "run after a change, it makes that one, and the fleet goes on"
grep -q 'DISPATCHER_LISTEN: 0.0.0.0' "$work/inventory.yml"
sed -i 's/DISPATCHER_LISTEN: 0.0.0.0/DISPATCHER_LISTEN: 10.77.0.1/' "$work/inventory.yml"
play
[ "$(changed dispatcher-01) $(changed vm-01)" = "2 0" ] || fail "$(cat "$work/said")"
wait_until "the dispatcher was restarted" other_process webfill-dispatcher.service "$dispatcher"
judge_fleet
echo "ansible: passed after $SECONDS s"

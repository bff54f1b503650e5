# A fleet of two machines, a dispatcher and a supervisor, for the scripts in this folder that set one up in different
# ways. `source` it after machine.sh.
# shellcheck shell=bash

# Makes the keys of a fleet in $work/keys, with a folder for each machine, as deploy/ansible/example.yml expects them.
make_keys() {
    local keys=$work/keys
    "$webfill" keys new dispatcher --keys "$keys/dispatcher" >/dev/null
    "$webfill" keys new supervisor --keys "$keys/vm-01" >/dev/null
    "$webfill" keys add supervisor vm-01 "$keys/vm-01/supervisor.pub" --keys "$keys/dispatcher" >/dev/null
}

status_has() {
    [[ $(value "$1" StatusText) == *"$2"* ]]
}

# Checks that sshd accepts only keys, also for root, and offers nothing else.
judge_sshd() {
    local said
    expect ssh.service ActiveState active
    said=$(in_machine sshd -T)
    for setting in "passwordauthentication no" "kbdinteractiveauthentication no" "permitrootlogin without-password"; do
        [[ $said == *"$setting"* ]] || fail "sshd has not: $setting"
    done
    for user in root webfill-operator; do
        said=$(nsenter --target "$leader" --net ssh -o BatchMode=yes -o PubkeyAuthentication=no -o StrictHostKeyChecking=no \
            -o UserKnownHostsFile=/dev/null "$user@127.0.0.1" true 2>&1) && fail "$user logs in without a key"
        [[ $said == *"Permission denied (publickey)."* ]] || fail "$user is offered more than keys: $said"
    done
}

# judge_machine JAILS: checks the firewall, bans, sshd and updates of a machine.
judge_machine() {
    local said
    said=$(in_machine nft list chain inet webfill input)
    [[ $said == *"policy drop"* && $said == *"tcp dport 22 ip saddr @operators"* ]] || fail "the firewall: $said"
    is nftables.service UnitFileState enabled || fail "the firewall is gone after the next start"
    wait_until "fail2ban has its jails" has_jails "$1"
    is fail2ban.service UnitFileState enabled || fail "fail2ban is gone after the next start"
    in_machine fail2ban-client set sshd banip 10.77.0.50 >/dev/null
    wait_until "a ban is in the firewall" bans 10.77.0.50
    said=$(in_machine apt-config dump APT::Periodic::Unattended-Upgrade)
    [[ $said == *'"1"'* ]] || fail "security updates are not installed: $said"
    judge_sshd
}

bans() {
    [[ $(in_machine nft list ruleset) == *"addr-set-sshd"*"$1"* ]]
}

has_jails() {
    [[ $(in_machine fail2ban-client status 2>/dev/null || true) == *"Jail list:"*"$1" ]]
}

# Checks that both machines work together through their firewalls, with their keys.
judge_fleet() {
    at dispatcher
    judge_machine "sshd, webfill"
    expect webfill-dispatcher.service UnitFileState enabled
    wait_until "the dispatcher serves" is webfill-dispatcher.service ActiveState active
    at vm-01
    judge_machine "sshd"
    expect webfill-supervisor@vm-01.service UnitFileState enabled
    wait_until "the supervisor serves" is webfill-supervisor@vm-01.service ActiveState active
    at dispatcher
    wait_until "the dispatcher knows it" status_has webfill-dispatcher.service "supervisors: 1"
}

# modes FILES...: prints the mode, owner, group and name of each file.
modes() {
    in_machine stat --format '%a %U:%G %n' "$@"
}

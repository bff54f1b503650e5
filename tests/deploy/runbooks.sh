#!/usr/bin/env bash
# Types the commands of the runbooks exactly as written, on a machine with the package and with keys: an operator's own
# key, status, drain, audit, backups by the timer and by hand, the start from a backup, prune, and the lines that turn
# timers off.
# shellcheck source=tests/deploy/machine.sh
source "$(dirname "$0")/machine.sh"

make_root
boot
dispatcher=webfill-dispatcher.service
supervisor=webfill-supervisor@vm-01.service
said=

# typed LINE [WORD REPLACEMENT]...: runs a line of the documents in a root shell, which has been prepared as they say.
typed() {
    local line=$1 words
    grep -qF -- "$line" docs/how-to/install.md docs/how-to/operate.md || fail "no document says: $line"
    shift
    while [ $# != 0 ]; do
        words=$2
        line=${line//"$1"/"$words"} # quoted: an `&` in a key would stand for what is replaced
        shift 2
    done
    # shellcheck disable=SC2016 # it is for the shell in the machine
    said=$(in_machine bash -c 'set -e
        [ ! -e /etc/webfill/operator.env ] || export $(cat /etc/webfill/operator.env)
        eval "$1"' typed "$line" 2>&1) || fail "$line: $said"
}

says() {
    [[ $said == *"$1"* ]] || fail "this says nothing of \"$1\": $said"
}

has_status() {
    typed "webfill status"
    [[ $said == *"$1"* ]]
}

backups() {
    in_machine find /var/lib/webfill/backups -mindepth 1 -maxdepth 1 -name '2*' -printf '%f\n' | sort
}

owners() {
    in_machine find /var/lib/webfill/dispatcher -mindepth 1 ! -user webfill-dispatcher
}

cp "$packages"/webfill_*.deb tests/deploy/web.py "$root/root/"
installed=$(in_machine sh -c "dpkg --install /root/webfill_*.deb" 2>&1) || fail "the package is not installed: $installed"
in_machine systemd-run --quiet --unit=web python3 /root/web.py

step "a fleet with keys is started as the documents say"
typed "runuser -u webfill-dispatcher -- webfill keys new dispatcher --keys /etc/webfill/certs"
typed "printf '%s\n' WEBFILL_KEYS=/etc/webfill/certs WEBFILL_DISPATCHER_LISTEN=0.0.0.0 >/etc/webfill/dispatcher.env"
# The web is on this machine. The longest request is short, so that a restored dispatcher waits only for moments.
cat >"$work/env" <<'EOF'
WEBFILL_POLITENESS_ALLOW_PRIVATE_NETWORKS=true
WEBFILL_POLITENESS_DELAY=0.05
WEBFILL_SUPERVISOR_WORKERS=1
WEBFILL_DISPATCHER_LEASE=2
WEBFILL_FETCH_CONNECT_TIMEOUT=1
WEBFILL_FETCH_HEAD_TIMEOUT=2
WEBFILL_FETCH_BODY_TIMEOUT=2
WEBFILL_FETCH_TOTAL_TIMEOUT=3
EOF
in_machine tee -a /etc/webfill/dispatcher.env <"$work/env" >/dev/null
typed "systemctl enable --now webfill-dispatcher"
typed "runuser -u webfill-supervisor -- webfill keys new supervisor --keys /etc/webfill/certs"
key=$(in_machine cat /etc/webfill/certs/supervisor.pub)
typed "printf '%s\n' WEBFILL_KEYS=/etc/webfill/certs WEBFILL_SUPERVISOR_DISPATCHER=tcp://10.0.0.1:5555 >/etc/webfill/supervisor-vm-01.env" \
    10.0.0.1 127.0.0.1
in_machine tee -a /etc/webfill/supervisor-vm-01.env <"$work/env" >/dev/null
typed "runuser -u webfill-dispatcher -- webfill keys add supervisor vm-01 'KEY' --keys /etc/webfill/certs" KEY "$key"
typed "systemctl enable --now --no-block webfill-supervisor@vm-01"
wait_until "the supervisor serves" is "$supervisor" ActiveState active

step "without a key nobody is answered, and with the operator's all commands are"
in_machine timeout 15 webfill status >/dev/null 2>&1 && fail "it answers who has no key"
typed "runuser -u webfill-dispatcher -- webfill keys new client --keys /etc/webfill/operator --dispatcher-key /etc/webfill/certs/dispatcher.pub"
typed "runuser -u webfill-dispatcher -- webfill keys add client operator /etc/webfill/operator/client.pub --keys /etc/webfill/certs"
typed "printf '%s\n' WEBFILL_KEYS=/etc/webfill/operator WEBFILL_LOG_FOLDER=/var/log/webfill/dispatcher >/etc/webfill/operator.env"
wait_until "status has the supervisor" has_status vm-01
typed "webfill sites --backing-off"
in_machine sh -c 'export $(cat /etc/webfill/operator.env)
    webfill feed "{\"url\": \"http://127.0.0.1:8000/plain\", \"appid\": \"tests\", \"crawlid\": \"plain\"}"' >/dev/null
is_done() {
    in_machine sh -c 'export $(cat /etc/webfill/operator.env); webfill info tests plain' | grep -q 'outcomes *ok 1'
}
wait_until "a page is fetched" is_done
typed "webfill audit --since 1d --keys /etc/webfill/certs"
says "feed"
says "operator"

step "backups are made by the timer's unit, rotated, and belong to the dispatcher"
is webfill-backup.timer ActiveState active || fail "the timer does not run"
is webfill-prune.timer ActiveState active || fail "the timer of prune does not run"
[[ $(value webfill-backup.timer TimersCalendar) == *"*:00/10"* ]] || fail "not every ten minutes"
for _ in 1 2 3 4 5 6 7 8; do
    typed "systemctl start webfill-backup"
done
typed "ls /var/lib/webfill/backups"
# The last six backups, and the first of the day.
[ "$(backups | wc -l)" = 7 ] || fail "backups: $(backups)"
[ -z "$(owners)" ] || fail "not the dispatcher's: $(owners)"
in_machine systemctl is-failed --quiet webfill-backup.service && fail "a backup has failed"
# Run by root as well: the dispatcher must be able to start afterwards.
typed "webfill backup --config webfill.toml --keep 6 --keep-days 7 /backups" webfill.toml /etc/webfill/webfill.toml
[ -z "$(owners)" ] || fail "not the dispatcher's: $(owners)"
in_machine systemctl restart "$dispatcher"

step "a fleet goes on from a backup"
last=$(backups | tail -n 1)
typed "systemctl stop webfill-dispatcher"
expect webfill-backup.timer ActiveState inactive
typed "mkdir -m 700 /var/lib/webfill/aside"
typed "mv /var/lib/webfill/dispatcher/dispatcher.db* /var/lib/webfill/aside"
typed "install -o webfill-dispatcher -g webfill -m 600 /var/lib/webfill/backups/TIME/dispatcher.db /var/lib/webfill/dispatcher/dispatcher.db" \
    TIME "$last"
refused "failed" in_machine systemctl start "$dispatcher"
expect "$dispatcher" ExecMainStatus 2
typed "systemctl set-environment WEBFILL_DISPATCHER_RESTORED=true"
typed "systemctl start webfill-dispatcher"
typed "systemctl unset-environment WEBFILL_DISPATCHER_RESTORED"
wait_until "the supervisor is let in again" has_status vm-01
wait_until "the crawl of the backup is known" is_done

step "old crawls are dropped by the unit with the operator's key"
in_machine systemctl start webfill-prune.service
expect webfill-prune.service Result success
in_machine journalctl --unit webfill-prune --output cat | grep -q 'tests: 0 crawls' || fail "it has pruned nothing and not said so"

step "a supervisor is taken away"
typed "systemctl disable webfill-supervisor@NAME" NAME vm-01
typed "webfill drain --supervisor NAME" NAME vm-01
says "drained: vm-01"
wait_until "it has left" is "$supervisor" ActiveState inactive
typed "runuser -u webfill-dispatcher -- webfill keys revoke NAME --keys /etc/webfill/certs" NAME vm-01

step "each timer is off by one line, also after a restart"
for timer in webfill-backup.timer webfill-prune.timer; do
    typed "systemctl disable --now $timer"
    in_machine systemctl restart "$dispatcher"
    expect "$timer" ActiveState inactive
    in_machine systemctl enable --quiet "$timer"
done
in_machine systemctl restart "$dispatcher"
expect webfill-backup.timer ActiveState active
echo "runbooks: passed after $SECONDS s"

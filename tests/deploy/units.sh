#!/usr/bin/env bash
# The units, run by systemd: they serve, crawl within their confinement, survive the end of each other, are restarted
# when they die or hang, and are not restarted when their settings are wrong.
# shellcheck source=tests/deploy/machine.sh
source "$(dirname "$0")/machine.sh"

make_root
boot
dispatcher=webfill-dispatcher.service
supervisor=webfill-supervisor@vm-01.service
browser=webfill-browser@vm-02.service

webfill() {
    in_machine webfill "$@"
}

# Prints how many tasks of a crawl have this outcome.
outcomes() {
    webfill info tests "$1" --json | python3 -c \
        'import json, sys; print(json.load(sys.stdin)["outcomes"].get(sys.argv[1], 0))' "$2"
}

has_outcomes() {
    [ "$(outcomes "$1" ok)" = "$2" ]
}

feed() {
    webfill feed "$1" >/dev/null
}

web_serves() {
    in_machine curl --silent --fail --output /dev/null http://127.0.0.1:8000/plain
}

restarted() {
    [ "$(value "$1" NRestarts)" -gt "$2" ] && is "$1" ActiveState active
}

heard_since() {
    [ "$(value "$1" WatchdogTimestampMonotonic)" != "$2" ]
}

status_has() {
    [[ $(value "$1" StatusText) == *"$2"* ]]
}

renders() {
    in_machine pgrep --full --uid webfill-browser 'type=renderer' >/dev/null
}

install_package() {
    local said
    cp "$packages"/webfill_*.deb tests/deploy/web.py "$root/root/"
    said=$(in_machine sh -c "dpkg --install /root/webfill_*.deb" 2>&1) || fail "the package is not installed: $said"
    # The web is on this machine, and a test has no time for the default delay.
    cat >"$work/env" <<'EOF'
WEBFILL_POLITENESS_ALLOW_PRIVATE_NETWORKS=true
WEBFILL_POLITENESS_DELAY=0.05
WEBFILL_SUPERVISOR_WORKERS=1
WEBFILL_DOCUMENTS_READ=true
EOF
    for unit in dispatcher supervisor-vm-01 browser-vm-02; do
        in_machine tee "/etc/webfill/$unit.env" <"$work/env" >/dev/null
    done
    in_machine systemd-run --quiet --unit=web python3 /root/web.py
    wait_until "the web serves" web_serves
}

judge_offline() {
    local said unit
    said=$(in_machine sh -c 'systemd-analyze verify --man=no /lib/systemd/system/webfill-*.service /lib/systemd/system/webfill-*.timer' 2>&1) ||
        fail "systemd-analyze verify: $said"
    [ -z "$said" ] || fail "systemd-analyze verify says: $said"
    for unit in "webfill-dispatcher 15" "webfill-supervisor@ 15" "webfill-browser@ 20" "webfill-backup 15" "webfill-prune 15"; do
        # shellcheck disable=SC2086 # the unit and its threshold
        set -- $unit
        said=$(in_machine systemd-analyze security --offline=true --no-pager --threshold="$2" \
            "/lib/systemd/system/$1.service" 2>&1) ||
            fail "$1 is more exposed than $2: $said"
    done
}

drop_in() {
    in_machine mkdir -p "/run/systemd/system/$1.d"
    in_machine tee "/run/systemd/system/$1.d/test.conf" >/dev/null
    in_machine systemctl daemon-reload
}

step "the units are in order, and confined"
install_package
judge_offline

step "nothing is started by the installation"
expect "$dispatcher" ActiveState inactive
expect "$dispatcher" UnitFileState disabled

step "a supervisor starts until a dispatcher is there"
in_machine systemctl start --no-block "$supervisor"
wait_until "it waits" status_has "$supervisor" "waits: the dispatcher at tcp://127.0.0.1:5555"
expect "$supervisor" ActiveState activating
in_machine systemctl start "$dispatcher"
expect "$dispatcher" ActiveState active
wait_until "the supervisor serves" is "$supervisor" ActiveState active
wait_until "it says so" status_has "$supervisor" "workers: 1"
wait_until "the dispatcher knows it" status_has "$dispatcher" "supervisors: 1"

step "pages and documents are read within the confinement"
feed '{"url": "http://127.0.0.1:8000/plain", "appid": "tests", "crawlid": "plain"}'
feed '{"url": "http://127.0.0.1:8000/document", "appid": "tests", "crawlid": "document"}'
wait_until "the page is read" has_outcomes plain 1
wait_until "the document is read" has_outcomes document 1
text=$(in_machine runuser -u webfill-dispatcher -- webfill export pages --store sqlite:/var/lib/webfill/store/webfill.db)
[[ $text == *application/pdf* ]] || fail "the document is not in the store: $text"

step "Chromium renders pages within its confinement, with its own sandbox"
in_machine systemctl start "$browser"
expect "$browser" ActiveState active
feed '{"url": "http://127.0.0.1:8000/scripted", "appid": "tests", "crawlid": "scripted", "spiderid": "browser", "maxdepth": 1}'
# Checked while the browser is at work, because its renderers end when they have nothing to do.
wait_until "there is a renderer" renders
in_machine pgrep --full --uid webfill-browser -- '--no-sandbox' && fail "its sandbox is off"
wait_until "the link that a script has made is followed" has_outcomes scripted 2

step "a supervisor outlives its dispatcher, and goes on with the next"
before=$(value "$supervisor" MainPID)
in_machine systemctl stop "$dispatcher"
expect "$dispatcher" Result success
wait_until "it is missed" status_has "$supervisor" "waits: the dispatcher is silent"
in_machine systemctl start "$dispatcher"
wait_until "it is back" status_has "$supervisor" "workers: 1"
expect "$supervisor" MainPID "$before"

step "what is killed is restarted"
for unit in "$supervisor" "$dispatcher"; do
    count=$(value "$unit" NRestarts)
    in_machine systemctl kill --kill-who=main --signal=KILL "$unit"
    wait_until "$unit is back" restarted "$unit" "$count"
done

step "a process that stands still is restarted"
for unit in "$supervisor" "$dispatcher"; do
    drop_in "$unit" <<<$'[Service]\nWatchdogSec=15\nRestartSec=0'
    in_machine systemctl restart "$unit"
    wait_until "$unit serves" is "$unit" ActiveState active
    for _ in 1 2; do
        heard=$(value "$unit" WatchdogTimestampMonotonic)
        wait_until "$unit is heard" heard_since "$unit" "$heard"
    done
    expect "$unit" NRestarts 0
    in_machine systemctl kill --kill-who=main --signal=STOP "$unit"
    wait_until "$unit is restarted" restarted "$unit" 0
    in_machine rm "/run/systemd/system/$unit.d/test.conf"
    in_machine systemctl daemon-reload
done

step "a reload is reported, and one that is refused changes nothing"
in_machine systemctl reload "$dispatcher"
wait_until "it serves again" is "$dispatcher" ActiveState active
echo '{' | in_machine tee /etc/webfill/mappings/broken.json >/dev/null
in_machine systemctl reload "$dispatcher"
wait_until "the fault is reported" status_has "$dispatcher" "broken.json"
expect "$dispatcher" ActiveState active
in_machine rm /etc/webfill/mappings/broken.json

step "wrong settings are not tried again and again"
in_machine systemctl stop "$dispatcher"
echo 'WEBFILL_DISPATCHER_PORT=many' | in_machine tee -a /etc/webfill/dispatcher.env >/dev/null
refused "failed" in_machine systemctl start "$dispatcher"
expect "$dispatcher" ExecMainStatus 2
expect "$dispatcher" ActiveState failed
in_machine tee /etc/webfill/dispatcher.env <"$work/env" >/dev/null
in_machine systemctl start "$dispatcher"

step "each exit code has its rule"
ended_with() {
    [ "$(value "$dispatcher" ExecMainStatus)" = "$1" ] && ! is "$dispatcher" ActiveState active
}
in_machine systemctl stop "$dispatcher"
# 0 is intended, and a restart does not cure 2. After the others, a restart may help: an error, a resumable end, a
# limit, a full disk.
for code in 0 2 1 11 12 17; do
    drop_in "$dispatcher" <<END
[Service]
Type=exec
RestartSec=100ms
ExecStart=
ExecStart=/bin/sh -c "sleep 0.3; exit $code"
END
    in_machine systemctl start "$dispatcher"
    case $code in
    0 | 2)
        wait_until "it has ended with $code" ended_with "$code"
        # A measured wait: a restart would come after 100 ms.
        sleep 1
        expect "$dispatcher" NRestarts 0
        ;;
    *) wait_until "it is started again after $code" restarted "$dispatcher" 0 ;;
    esac
    in_machine systemctl stop "$dispatcher"
done
in_machine rm "/run/systemd/system/$dispatcher.d/test.conf"
in_machine systemctl daemon-reload
in_machine systemctl reset-failed "$dispatcher"
in_machine systemctl start "$dispatcher"

step "a drained supervisor stays away"
drain() {
    webfill drain --supervisor vm-01 >/dev/null 2>&1
}
# The dispatcher was restarted just before.
wait_until "it is connected, and drained" drain
wait_until "it has left" is "$supervisor" ActiveState inactive
expect "$supervisor" Result success

step "keys belong to the user of their role"
as() {
    in_machine runuser -u "webfill-$1" -- webfill keys "${@:2}" --keys /etc/webfill/certs
}
as dispatcher new dispatcher >/dev/null
as supervisor new supervisor >/dev/null
as dispatcher add supervisor vm-01 /etc/webfill/certs/supervisor.pub >/dev/null
modes=$(in_machine stat --format '%U %a %n' /etc/webfill/certs/dispatcher.key /etc/webfill/certs/supervisor.key)
[[ $modes == "webfill-dispatcher 400 "*$'\n'"webfill-supervisor 400 "* ]] || fail "$modes"
refused "denied" in_machine runuser -u webfill-supervisor -- cat /etc/webfill/certs/dispatcher.key
refused "not permitted" in_machine runuser -u webfill-supervisor -- rm -f /etc/webfill/certs/allowed
cat >"$work/fleet.env" <<'EOF'
WEBFILL_KEYS=/etc/webfill/certs
WEBFILL_DISPATCHER_LISTEN=0.0.0.0
EOF
for unit in dispatcher supervisor-vm-01; do
    cat "$work/env" "$work/fleet.env" | in_machine tee "/etc/webfill/$unit.env" >/dev/null
done
in_machine systemctl restart "$dispatcher"
in_machine systemctl start "$supervisor"
wait_until "it is let in by its key" is "$supervisor" ActiveState active

step "logs are where they are looked for"
in_machine sh -c 'grep -q supervisor_joined /var/log/webfill/dispatcher/dispatcher.log'
in_machine sh -c 'test -s /var/log/webfill/supervisor-vm-01/supervisor-vm-01.log'
echo "units: passed after $SECONDS s"

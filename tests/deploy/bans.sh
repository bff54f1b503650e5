#!/usr/bin/env bash
# fail2ban's filter finds the addresses in refusals that a real dispatcher has logged, and in no other lines.
# shellcheck source=tests/deploy/machine.sh
source "$(dirname "$0")/machine.sh"

webfill=$(realpath "${BINARY:-target/debug/webfill}")
host=127.77.$((RANDOM % 250)).$((RANDOM % 250 + 1))
make_root
mkdir "$work/fleet"
log=$work/fleet/dispatcher/logs/dispatcher.log
started=()

end_processes() {
    [ ${#started[@]} = 0 ] || kill "${started[@]}" 2>/dev/null || true
    wait "${started[@]}" 2>/dev/null || true
    started=()
}
trap 'end_processes; finish' EXIT

has_refused() {
    grep -q 'its key is not on the list' "$log" 2>/dev/null && grep -q '"address":"127.*it has no keys' "$log"
}

cd "$work/fleet"
"$webfill" keys new dispatcher --keys own >/dev/null
"$webfill" keys new supervisor --keys other --dispatcher-key own/dispatcher.pub >/dev/null
WEBFILL_DISPATCHER_HTTP=off "$webfill" dispatcher --listen "$host" --keys own --state dispatcher 2>dispatcher.said &
started+=($!)
"$webfill" supervisor --dispatcher "tcp://$host:5555" --keys other --state supervisor --id one --workers 1 2>one.said &
started+=($!)
"$webfill" supervisor --dispatcher "tcp://$host:5555" --state keyless --id two --workers 1 2>two.said &
started+=($!)
wait_until "both were refused" has_refused
# The dispatcher has ended, so it logs nothing more.
end_processes
mkdir -p "$root/var/log/webfill/dispatcher"
cp "$log" "$root/root/log"
cp "$log" "$root/var/log/webfill/dispatcher/dispatcher.log"
cp "$OLDPWD/deploy/machine/fail2ban-filter.conf" "$root/etc/fail2ban/filter.d/webfill.conf"
cp "$OLDPWD/deploy/machine/fail2ban-jail.conf" "$root/etc/fail2ban/jail.d/webfill.conf"
# If a peer is gone too soon, its address is not known.
refusals=$(grep -c '"event":"peer_refused","address":"127' "$log")
said=$(chroot "$root" fail2ban-regex /root/log /etc/fail2ban/filter.d/webfill.conf 2>&1)
[[ $said == *"$refusals matched"* ]] || fail "not $refusals matched: $said
$(head -5 "$log")"
found=$(chroot "$root" fail2ban-regex --out ip /root/log /etc/fail2ban/filter.d/webfill.conf | sort -u)
[ "$found" = 127.0.0.1 ] || fail "found $found, not 127.0.0.1"
chroot "$root" fail2ban-client --test >/dev/null || fail "fail2ban does not take the jail"
echo "bans: passed after $SECONDS s"

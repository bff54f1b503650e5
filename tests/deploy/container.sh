#!/usr/bin/env bash
# The parts of deploy/container that need no daemon. Runs the Dockerfile's commands in a root of Debian 12, and in it
# the compose file's script for keys as the image's user. Then checks who has which secret key.
# shellcheck source=tests/deploy/machine.sh
source "$(dirname "$0")/machine.sh"
# shellcheck source=tests/deploy/image.sh
source tests/deploy/image.sh

# Prints parts of the compose file.
of_compose() {
    python3 - "$@" <<'END'
import sys, yaml
services = yaml.safe_load(open("deploy/container/compose.yaml"))["services"]
if sys.argv[1] == "health":
    print(*services[sys.argv[2]]["healthcheck"]["test"][1:], sep="\0", end="\0")
elif sys.argv[1] == "variables":
    print(*(f"{key}={value}" for key, value in services[sys.argv[2]]["environment"].items()), sep="\n")
elif sys.argv[1] == "script":
    # Compose reads two dollars as one.
    print(services["keys"]["command"][0].replace("$$", "$"))
else:
    volumes = (volume.split(":") for volume in services[sys.argv[2]]["volumes"])
    print(*(volume[0] for volume in volumes if volume[1].startswith("/keys")))
END
}

in_image() {
    chroot --userspec=webfill:webfill "$root" /usr/bin/env --ignore-environment PATH=/usr/bin:/bin HOME=/data WEBFILL_KEYS=/keys "$@"
}

step "the commands of the Dockerfile"
make_image
in_image webfill --version

step "keys are made once, and each role has its own"
of_compose script >"$root/tmp/script"
in_image sh -e /tmp/script >/dev/null 2>&1 || fail "$(in_image sh -ex /tmp/script 2>&1)"
before=$(cd "$root/keys" && sha256sum ./*/*)
in_image sh -e /tmp/script >/dev/null
[ "$(cd "$root/keys" && sha256sum ./*/*)" = "$before" ] || fail "a second start changes keys"
[ "$(of_compose volumes dispatcher)" = dispatcher-keys ] || fail "the dispatcher has other keys"
for service in supervisor-1 supervisor-2; do
    [ "$(of_compose volumes "$service")" = swarm-keys ] || fail "$service has other keys"
done
secret=$(cd "$root/keys" && find . -name '*.key' | sort | tr '\n' ' ')
[ "$secret" = "./dispatcher/client.key ./dispatcher/dispatcher.key ./swarm/supervisor.key " ] || fail "secret keys: $secret"
listed=$(grep -c '^supervisor swarm \|^client local ' "$root/keys/dispatcher/allowed")
[ "$listed" = 2 ] || fail "$(cat "$root/keys/dispatcher/allowed")"
cmp "$root/keys/dispatcher/dispatcher.pub" "$root/keys/swarm/dispatcher.pub"

step "health checks are negative before the roles work, and then positive"
# is_healthy SERVICE: runs the check of a service in its container.
is_healthy() {
    of_compose health "$1" | in_network xargs --null chroot --userspec=webfill:webfill "$root" /usr/bin/env PATH=/usr/bin:/bin 2>/dev/null
}
in_network() {
    nsenter --net --target "$network" "$@"
}
# role SERVICE KEYS [VARIABLE...]: starts a role with the variables of the compose file and these. There is no server for
# a store.
role() {
    local service=$1 keys=$2 variables
    shift 2
    mapfile -t variables < <(of_compose variables "$service")
    nsenter --net --target "$network" chroot --userspec=webfill:webfill "$root" \
        /usr/bin/env --ignore-environment PATH=/usr/bin:/bin HOME=/data \
        "${variables[@]}" WEBFILL_STORE=sqlite:/data/webfill.db "WEBFILL_KEYS=/keys/$keys" \
        WEBFILL_POLITENESS_CONTACT=https://crawler.example/ "$@" >"$work/$service.said" 2>&1 &
    containers+=($!)
}
unshare --net sleep infinity &
network=$!
containers+=("$network")
has_network() {
    [ "$(readlink "/proc/$network/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}
wait_until "it has a network" has_network
in_network ip link set lo up
mount -t proc proc "$root/proc"
refused "" is_healthy dispatcher
role dispatcher dispatcher webfill dispatcher --state /data/dispatcher
wait_until "the dispatcher is healthy" is_healthy dispatcher
refused "" is_healthy supervisor-1
role supervisor-1 swarm WEBFILL_SUPERVISOR_DISPATCHER=tcp://127.0.0.1:5555 webfill supervisor --state /data/supervisor
wait_until "the supervisor is healthy" is_healthy supervisor-1
echo "container: passed after $SECONDS s"

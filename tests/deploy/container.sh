#!/usr/bin/env bash
# The parts of deploy/container that need no daemon. Runs the Dockerfile's commands in a root of Debian 12, and in it
# the compose file's script for keys as the image's user. Then checks who has which secret key.
# shellcheck source=tests/deploy/machine.sh
source "$(dirname "$0")/machine.sh"

# Runs the commands of the Dockerfile without fetching: the packages are there, except for tini, which only the image
# needs.
image_commands() {
    sed -n '/^RUN /,/[^\\]$/p' deploy/container/Dockerfile | sed 's/^RUN //; s/\\$//' | tr -d '\n' |
        sed 's/apt-get update//; s/ tini tzdata//; s/^ *&&//; s|/tmp/webfill_\*.deb *&& rm .*/tmp/webfill_\*.deb|/tmp/webfill_*.deb|'
}

# Prints parts of the compose file.
of_compose() {
    python3 - "$@" <<'END'
import sys, yaml
services = yaml.safe_load(open("deploy/container/compose.yaml"))["services"]
if sys.argv[1] == "script":
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

make_root
cp "$packages"/webfill_*.deb "$root/tmp/"
step "the commands of the Dockerfile"
commands=$(image_commands)
[[ $commands == *useradd* && $commands == *mkdir* && $commands == *install* ]] || fail "not understood: $commands"
said=$(chroot "$root" sh -ec "$commands" 2>&1) || fail "$commands: $said"
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
echo "container: passed after $SECONDS s"

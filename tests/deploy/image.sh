# The files of the container image, for the scripts in this folder that run containers. `source` it after machine.sh.
# shellcheck shell=bash

# Prints the commands of the Dockerfile without those that fetch: the packages are in the root of machines.
image_commands() {
    sed -n '/^RUN /,/[^\\]$/p' deploy/container/Dockerfile | sed 's/^RUN //; s/\\$//' | tr -d '\n' |
        sed 's/apt-get update//; s/ tini tzdata//; s/^ *&&//; s|/tmp/webfill_\*.deb *&& rm .*/tmp/webfill_\*.deb|/tmp/webfill_*.deb|'
}

# Makes the files of an image, which become the current root.
make_image() {
    local commands said
    make_root
    cp "$packages"/webfill_*.deb "$root/tmp/"
    commands=$(image_commands)
    [[ $commands == *useradd* && $commands == *mkdir* && $commands == *install* ]] || fail "not understood: $commands"
    said=$(chroot "$root" sh -ec "$commands" 2>&1) || fail "$commands: $said"
}

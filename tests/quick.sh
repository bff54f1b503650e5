#!/usr/bin/env bash
# Runs the tests of what changed: of each crate with a changed file all tests that do not start a
# fleet, and of the package `tests` the changed modules alone. Called by `make quick`.
#
#     tests/quick.sh [REV]      changes since REV; by default since the upstream branch, or those
#                               that are not committed
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

base=${1:-$(git rev-parse --verify --quiet '@{upstream}' || echo HEAD)}
mapfile -t changed < <(
    { git diff --name-only --diff-filter=d "$base" -- && git ls-files --others --exclude-standard; } | sort -u
)

# A set in nextest's filter language, and the packages to build.
filters=()
packages=()
add() {
    packages+=(--package "$1")
    filters+=("$2")
}

for file in "${changed[@]}"; do
    case $file in
        # A test of whole crawls: the module itself.
        tests/chaos/*.rs | tests/crawls/*.rs | tests/dashboard/*.rs | tests/demand/*.rs | tests/fill/*.rs)
            binary=$(cut -d / -f 2 <<<"$file")
            module=$(cut -d / -f 3 <<<"$file")
            add webfill-tests "(binary(=$binary) & test(/^${module%.rs}::/))"
            ;;
        tests/src/*) add webfill-tests 'binary(=webfill-tests)' ;;
        tests/fleet/*) ;; # minutes: `make fleet`
        *.md) add webfill 'package(=webfill)' ;;
        */*)
            folder=$(dirname "$file")
            while [ "$folder" != . ] && ! [ -f "$folder/Cargo.toml" ]; do folder=$(dirname "$folder"); done
            # The folder `tests` has shared tools beside its modules.
            [ "$folder" != . ] && [ "$folder" != tests ] || continue
            package=$(sed -n 's/^name = "\(.*\)"/\1/p' "$folder/Cargo.toml" | head -n 1)
            add "$package" "package(=$package)"
            ;;
    esac
done

if [ ${#packages[@]} = 0 ]; then
    echo "quick: nothing changed since $base that has tests"
    exit 0
fi
mapfile -t filters < <(printf '%s\n' "${filters[@]}" | sort -u)
mapfile -t packages < <(printf '%s\n' "${packages[@]}" | grep -v '^--package$' | sort -u | sed 's/^/--package=/')
filter=$(printf ' | %s' "${filters[@]}")
echo "quick: ${packages[*]/--package=/}"
# The tests of whole crawls drive the binary.
case " ${packages[*]} " in *" --package=webfill-tests "*) packages+=(--package=webfill) ;; esac
exec cargo nextest run --locked "${packages[@]}" --filterset "${filter# | }" --no-tests pass

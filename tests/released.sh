#!/usr/bin/env bash
# Builds the webfill that was released last, for the tests that run it beside the one of this tree:
# `.cache/released/webfill`. It shares the target folder, so that dependencies are compiled once; a
# version of its own keeps its crates apart from this tree's. Ends with 3 as long as there is no release, and
# where the clone is too shallow to have its commit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The released commit; empty as long as there is none.
COMMIT=723daccb650aacbb19f39c289511e3dc8c693ac5

folder=.cache/released
if [ -z "$COMMIT" ]; then
    echo "tests/released.sh: there is no release yet to compare with" >&2
    exit 3
fi
if [ "$(cat "$folder/commit" 2>/dev/null)" = "$COMMIT" ] && [ -x "$folder/webfill" ]; then
    exit 0
fi
if ! git cat-file -e "$COMMIT^{commit}" 2>/dev/null; then
    echo "tests/released.sh: this clone does not have the released commit $COMMIT: fetch it with \`git fetch --unshallow\`" >&2
    exit 3
fi
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
rm -rf "$folder/source"
mkdir -p "$folder/source"
# Tests may be running this tree's own program, which has the same name.
own=$target/debug/webfill-of-this-tree
rm -f "$own"
[ ! -e "$target/debug/webfill" ] || ln "$target/debug/webfill" "$own"
git archive "$COMMIT" | tar -x -C "$folder/source"
sed -i -e '0,/^version = .*/s//version = "0.0.0-released"/' -e 's/\(path = "[^"]*"\), version = "[^"]*"/\1/' "$folder/source/Cargo.toml"
# Dependencies are compiled with the profiles of this tree, so that both programs share them. Its own crates are tried,
# not measured: they are compiled as quickly as can be.
sed -i '/^\[profile/,$d' "$folder/source/Cargo.toml"
sed -n '/^\[profile/,$p' Cargo.toml >>"$folder/source/Cargo.toml"
quickly=()
for crate in $(sed -n 's/^name = "\(webfill[a-z-]*\)"$/\1/p' "$folder"/source/{,crates/}*/Cargo.toml); do
    quickly+=(--config "profile.dev.package.$crate.opt-level=0")
done
# With an example, dependencies get the features that tests need, as in the build of this tree.
(cd "$folder/source" && unset RUSTC_WORKSPACE_WRAPPER && CARGO_PROFILE_DEV_DEBUG=false \
    cargo build --workspace --bin webfill --example save_rate --target-dir "$target" "${quickly[@]}")
mv "$target/debug/webfill" "$folder/webfill"
[ ! -e "$own" ] || mv "$own" "$target/debug/webfill"
rm -rf "$folder/source"
echo "$COMMIT" >"$folder/commit"

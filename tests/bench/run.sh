#!/bin/sh
# All benchmarks, each figure beside its limit and beside what it is measured against, in one run.
# Fetches what they need into .cache/ (Scrapy, spider-rs, real pages): python3-venv, pip and npm must be there.
#
#     tests/bench/run.sh tools        fetches them and ends
#     tests/bench/run.sh [instructions | extraction | blocks | changes | learning | truth | unseen | fill | redesign | frontier | dispatch | journal | revisit | restart | browse | rows | hostile | small | real | pace | memory | mongodb | demand | dead | durability | journey | dashboard | names | scripts | python]...
#
# Ends with status 1 if a limit is missed. WEBFILL=FILE measures this program, and builds none. BENCH_SIZE=small takes
# the debug build and a tenth of the work, and lets limits be missed by a factor: to see that nothing is broken, not for
# figures.
set -eu

cd "$(dirname "$0")/../.."
# Benches that are tests with limits of their own run in `make test`, and `tests/python/run` tries the package; a small
# run does not repeat them.
tests="changes truth scripts python"
[ "${BENCH_SIZE:-full}" = full ] || tests=
wanted=${*:-instructions extraction blocks learning unseen fill redesign frontier dispatch journal revisit restart browse rows hostile small real pace memory mongodb demand dead durability journey dashboard names $tests}
cache=.cache
missed=0

wants() {
    case " $wanted " in *" $1 "*) true ;; *) false ;; esac
}

conditions() {
    printf '%s, %s cores, Linux %s, %s\n' \
        "$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)" \
        "$(nproc)" "$(uname -r)" "$(rustc --version)"
    printf 'load before the run: %s\n' "$(cut -d ' ' -f 1-3 /proc/loadavg)"
}

# Scrapy, and with it lxml; html5lib judges extraction beside lxml.
get_peers() {
    if ! "$cache/scrapy/bin/python" -c 'import scrapy, html5lib' 2>/dev/null; then
        python3 -m venv "$cache/scrapy"
        "$cache/scrapy/bin/pip" install -q 'scrapy>=2.13' html5lib
    fi
}

# spider-rs, beside an optimised webfill only. Nothing else depends on it, so the benchmarks do without where crates
# cannot be fetched.
get_spider_rs() {
    if [ "${BENCH_SIZE:-full}" != full ] || [ -n "${SPIDER_RS:-}" ]; then
        return
    fi
    cargo build --release --locked -q --target-dir "$cache/spider-rs" \
        --manifest-path tests/bench/crawl/spider-rs/Cargo.toml ||
        echo "spider-rs: left out, it cannot be fetched or built here"
}

run() {
    echo
    "$@" || missed=1
}

# In a system of its own, whose name server may be replaced.
isolated() {
    if [ "$(id -u)" = 0 ]; then
        unshare --net --mount "$@"
    else
        unshare --net --mount --map-root-user "$@"
    fi
}

names() {
    echo "nameserver 127.0.0.1" >"$cache/resolv.conf"
    # shellcheck disable=SC2016 # expanded by the inner shell
    isolated sh -c 'ip link set lo up && mount --bind "$0" /etc/resolv.conf && exec "$@"' \
        "$cache/resolv.conf" "$programs/crawl" names
}

# Of made pages; the test has the limits.
changes() {
    cargo test --locked -q -p webfill-changes --test made_pages -- --nocapture
}

# Of made tables; the tests have the limits.
truth() {
    cargo test --locked -q -p webfill-truth --test made_tables --test fusion -- --nocapture
}

# Of made sites; the test has the limits.
scripts() {
    cargo test --locked -q -p webfill-tests --test crawls -- of_twenty_sites --nocapture
}

# Of the package as it is installed, beside the command that it starts.
python_package() {
    tests/python/install.sh --tests >/dev/null
    # A debug build is larger than a wheel may be.
    most_mb=1000
    [ "$programs" = target/debug ] || most_mb=25
    python/build.sh "${WEBFILL:-$programs/webfill}" "$cache/python-bench" "$most_mb"
    rm -rf "$cache/python-bench/installed"
    "$cache/python-tools/system/bin/pip" install -q --no-index --target "$cache/python-bench/installed" "$cache"/python-bench/*.whl
    PYTHONPATH=$cache/python-bench/installed "$cache/python-tools/system/bin/python" -B tests/bench/python.py
}

conditions
mkdir -p "$cache"
# The Python package is measured beside the command alone.
if [ "$wanted" != python ]; then
    tests/bench/extraction/fetch-pages "$cache/pages"
    get_peers
fi
if [ "$wanted" = tools ]; then exit 0; fi
case ${BENCH_SIZE:-full} in
    full)
        programs=target/measure
        [ -n "${WEBFILL:-}" ] || cargo build --release --locked -q -p webfill
        [ "$wanted" = python ] || cargo build --profile measure --locked -q -p webfill-bench
        export WEBFILL="${WEBFILL:-$PWD/target/release/webfill}"
        ;;
    # With the features and targets of `make test`, so that its build is used.
    small)
        programs=target/debug
        cargo build --workspace --all-targets --locked -q
        ;;
    *)
        echo "tests/bench/run.sh: BENCH_SIZE is $BENCH_SIZE, expected full or small" >&2
        exit 2
        ;;
esac

if wants small || wants real; then get_spider_rs; fi

# Each fetch in flight is a descriptor here, and each connection kept open another.
ulimit -n 16384 2>/dev/null || ulimit -n "$(ulimit -Hn)"

compare_results() {
    "$programs/extraction" "$cache/pages" --results |
        "$cache/scrapy/bin/python" tests/bench/extraction/compare.py "$cache/pages"
}

# What reads pages, learns and fills: instructions, CPU time and accuracy, one after the other.
read_and_learn() {
    if wants instructions; then
        if command -v valgrind >/dev/null; then
            run "$programs/instructions"
        else
            echo "instructions: left out, the package valgrind is not installed"
        fi
    fi
    if wants extraction; then
        run "$programs/extraction" "$cache/pages"
        run compare_results
    fi
    if wants blocks; then
        manuals=
        for manual in python3-doc/html postgresql-doc-15/html sqlite3; do
            if [ -d "/usr/share/doc/$manual" ]; then manuals="$manuals /usr/share/doc/$manual"; fi
        done
        # shellcheck disable=SC2086 # one argument for each folder
        run "$programs/blocks" "$cache/pages" $manuals
    fi
    if wants changes; then run changes; fi
    if wants scripts; then
        if command -v chromium >/dev/null; then
            run scripts
        else
            echo "scripts: left out, the package chromium is not installed"
        fi
    fi
    if wants truth; then run truth; fi
    for name in learning unseen fill redesign; do
        if wants "$name"; then run "$programs/$name"; fi
    done
}

# What schedules, stores and crawls, one after the other.
schedule_and_crawl() {
    for name in frontier dispatch journal revisit restart browse rows hostile; do
        if wants "$name"; then run "$programs/$name"; fi
    done
    crawl small real memory dead durability journey
    if wants python; then run python_package; fi
}

# What mostly waits for the delays between the requests to a site.
keep_pace() {
    crawl pace mongodb demand
    if wants dashboard; then
        if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then
            crawl dashboard
        else
            echo "dashboard: left out, the packages chromium and chromium-driver are not installed"
        fi
    fi
}

# By itself: a window of thirty seconds leaves no room for the syncs of other rows.
keep_pace_beside_dead_names() {
    if wants names; then
        if isolated true 2>/dev/null; then run names; else echo "names: left out, this system forbids namespaces"; fi
    fi
}

# Those of the crawl benches named here that are wanted, in one process.
crawl() {
    crawls=
    for name in "$@"; do
        if wants "$name"; then crawls="$crawls $name"; fi
    done
    # shellcheck disable=SC2086 # one argument for each name
    if [ -n "$crawls" ]; then run "$programs/crawl" $crawls; fi
}

if [ "$programs" = target/measure ]; then
    read_and_learn
    schedule_and_crawl
    keep_pace
    keep_pace_beside_dead_names
    exit $missed
fi
# The limits of a small run leave room for what runs beside: two that compute, on two cores, and one that waits.
trap 'trap - INT TERM; kill 0' INT TERM
outputs=$(mktemp -d)
(schedule_and_crawl; exit $missed) >"$outputs/crawl" 2>&1 &
crawling=$!
(keep_pace; exit $missed) >"$outputs/pace" 2>&1 &
pacing=$!
read_and_learn
wait $crawling || missed=1
wait $pacing || missed=1
cat "$outputs/crawl" "$outputs/pace"
rm -r "$outputs"
keep_pace_beside_dead_names
exit $missed

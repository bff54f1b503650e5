#!/usr/bin/env bash
# Feeds every target hostile input, each for a while, under limits on time and memory:
#
#   make fuzz                               TIME=120 seconds for each target
#   make fuzz TIME=600 TARGETS="urls pages"
#
# New harmless inputs are kept in target/fuzzing/, so the next run continues from there. An input
# that panics, takes too long or too much memory ends the run with its path and how to replay it.
set -euo pipefail
cd "$(dirname "$0")/../.."

TIME=${TIME:-120}
TARGETS=${TARGETS:-wire control robots urls mappings pages headers}
# Seconds for one input: extraction gives up after two of its own, in a build that checks everything.
readonly INPUT_SECONDS=10
# Memory of a whole run: growth from one input to the next counts too.
readonly MEMORY_MIB=1024
readonly LONGEST_INPUT=16384

# libFuzzer's instrumentation; these flags need no nightly compiler. With a target triple they do
# not reach build scripts, and the artifacts are apart from everybody else's.
readonly TRIPLE=x86_64-unknown-linux-gnu
instrument="-Cpasses=sancov-module"
for option in level=4 inline-8bit-counters pc-table trace-compares; do
    instrument+=" -Cllvm-args=-sanitizer-coverage-$option"
done
RUSTFLAGS=$instrument cargo build --locked --quiet --package webfill-fuzz --features engine \
    --profile fuzz --target "$TRIPLE"
readonly ENGINE=target/$TRIPLE/fuzz/webfill-fuzz

# Every process of webfill promises to do with this stack, in KiB.
ulimit -s 2048

for target in $TARGETS; do
    work=target/fuzzing/$target
    mkdir -p "$work/reached"
    log=$work/log
    command=(env "FUZZ_TARGET=$target" "$ENGINE" -timeout="$INPUT_SECONDS"
        -rss_limit_mb="$MEMORY_MIB" -malloc_limit_mb="$MEMORY_MIB")
    if ! "${command[@]}" -max_total_time="$TIME" -max_len="$LONGEST_INPUT" -print_final_stats=1 \
        -artifact_prefix="$work/" "$work/reached" "tests/fuzz/corpus/$target" >"$log" 2>&1; then
        found=$(grep -oP 'Test unit written to \K.*' "$log" | tail -n 1 || true)
        {
            grep -v '^#' "$log" | tail -n 40
            echo "fuzz: $target failed on ${found:-no input of its own, see $log}"
            [ -z "$found" ] || echo "fuzz: to replay it: ${command[*]} $found"
            [ -z "$found" ] || echo "fuzz: once it is mended: cp $found tests/fuzz/corpus/$target/"
        } >&2
        exit 1
    fi
    awk -v target="$target" '
        /^stat::number_of_executed_units/ { inputs = $2 }
        /^stat::slowest_unit_time_sec/ { slowest = $2 }
        /^stat::peak_rss_mb/ { peak = $2 }
        END { printf "fuzz: %-9s %9d inputs, the slowest under %d s, at most %d MiB\n", target, inputs, slowest + 1, peak }
    ' "$log"
done

#!/bin/sh
# unit start|stop|kill NAME, unit replace NAME PROGRAM: does for one process the work of a service manager and a package
# manager. Each process has a folder beside this file: `run` starts it, and `webfill` is the program that it runs.
set -eu
folder=$(dirname "$0")/$2

# If nobody has reaped the dead process, it is still there, but has no command line.
lives() {
    pid=$(cat "$folder/pid" 2>/dev/null) && [ -n "$( (tr -d '\0' <"/proc/$pid/cmdline") 2>/dev/null)" ]
}

end() {
    ! lives || kill "-$1" "$pid" 2>/dev/null || true
    turns=0
    while lives; do
        turns=$((turns + 1))
        [ "$turns" -lt 1200 ] || exit 1
        sleep 0.05
    done
}

case $1 in
start)
    ! lives || exit 0
    setsid "$folder/run" >>"$folder/said" 2>&1 </dev/null &
    echo "$!" >"$folder/pid"
    ;;
stop) end TERM ;;
kill) end KILL ;;
replace) ln -sfn "$3" "$folder/webfill" ;;
esac

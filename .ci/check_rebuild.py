#!/usr/bin/env python3
"""Builds what `make test` has built a second time: nothing may be compiled again.

A build script that watches a file which is not there is run at every build, and everything above it
is compiled again. On the machine that runs this check all optional packages may be installed, so the
files that the workspace's build scripts watch are looked at as well: each must belong to the
checkout, where it is on every machine.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ["cargo", "build", "--workspace", "--all-targets", "--locked", "--message-format", "json"]


def watched(output):
    """The files that a build script asked cargo to watch.

    >>> list(watched("cargo::rerun-if-changed=a.txt\\ncargo:rerun-if-changed=b\\ncargo::rustc-cfg=c"))
    ['a.txt', 'b']
    """
    for line in output.splitlines():
        for prefix in ("cargo::rerun-if-changed=", "cargo:rerun-if-changed="):
            if line.startswith(prefix):
                yield line.removeprefix(prefix)


def faults_of_script(message):
    """What is wrong with the files that one package's build script watches."""
    # path+file:///folder of the package#...
    package = Path(message["package_id"].split("file://")[1].split("#")[0])
    output = Path(message["out_dir"]).parent / "output"
    for name in watched(output.read_text()):
        path = (package / name).resolve()
        if not path.is_relative_to(ROOT) or not path.exists():
            yield f"{package.relative_to(ROOT)}/build.rs watches {name}, which is not in the checkout"


def main():
    built = subprocess.run(BUILD, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE)
    faults = []
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and not message["fresh"]:
            faults.append(f"compiled again: {message['target']['name']} of {message['package_id']}")
        if message["reason"] == "build-script-executed" and message["package_id"].startswith("path+"):
            faults.extend(faults_of_script(message))
    for fault in faults:
        print(f"check_rebuild: {fault}")
    if not faults:
        print("a second build compiles nothing")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

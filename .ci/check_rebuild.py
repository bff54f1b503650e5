#!/usr/bin/env python3
"""Builds what `make test` has built a second time: nothing may be compiled again.

A build script that watches a file which is not there is run at every build, and everything above it
is compiled again. On the machine that runs this check all optional packages may be installed, so the
files that build scripts of the shipped crates watch are checked as well: each must belong to the
checkout, where it is on every machine.
"""

import json
import re
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


def folder_of(package_id):
    """The folder of a package that belongs to the workspace.

    >>> folder_of("path+file:///home/me/webfill/urls#webfill-urls@0.1.0").name
    'urls'
    """
    return Path(package_id.split("file://")[1].split("#")[0])


def faults_of_script(message):
    """What is wrong with the files that one package's build script watches."""
    package = folder_of(message["package_id"])
    output = Path(message["out_dir"]).parent / "output"
    for name in watched(output.read_text()):
        path = (package / name).resolve()
        if not path.is_relative_to(ROOT) or not path.exists():
            yield f"{package.relative_to(ROOT)}/build.rs watches {name}, which is not in the checkout"


def shipped():
    """The folders of the workspace's crates that the binary is made of."""
    tree = ["cargo", "tree", "--package", "webfill", "--edges", "normal,build", "--locked",
            "--prefix", "none", "--format", "{p}"]
    lines = subprocess.run(tree, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout
    return {Path(folder) for folder in re.findall(r"\((/.*?)\)", lines)}


def main():
    folders = shipped()
    built = subprocess.run(BUILD, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE)
    faults = []
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and not message["fresh"]:
            faults.append(f"compiled again: {message['target']['name']} of {message['package_id']}")
        is_script = message["reason"] == "build-script-executed"
        if is_script and message["package_id"].startswith("path+") and folder_of(message["package_id"]) in folders:
            faults.extend(faults_of_script(message))
    for fault in faults:
        print(f"check_rebuild: {fault}")
    if not faults:
        print("a second build compiles nothing")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

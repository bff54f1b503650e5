#!/usr/bin/env python3
"""Checks that the program gets no feature of a dependency from its tests.

Cargo compiles a dependency once, with the features that anything in the build wants. If only a test wanted one that the
program uses as well, the program alone, as users build it, would not compile.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# What tests add. The program has no use for any of it, and would not compile alone (`make check`, `make demo`).
ADDED = {
    "bitflags": {"std"},  # errors as std::error::Error
    "rusqlite": {"trace"},  # the statements that are run
    "tokio": {"test-util"},  # time that stands still
    "webfill-document": {"compare"},  # html5ever's tokenizer beside ours
    "webfill-scheduler": {"former-faults"},  # for the simulation
}


def features(tree):
    """The features of each package in lines of `name vVERSION|FEATURE,FEATURE`; what came before has a mark.

    >>> features("a v1.0.0|x,y\\na v1.0.0|x,y (*)\\nb v2.0.0 (proc-macro)|\\n") == {
    ...     ("a", "v1.0.0"): {"x", "y"}, ("b", "v2.0.0"): set()}
    True
    """
    found = {}
    for line in filter(None, tree.splitlines()):
        package, _, names = line.removesuffix(" (*)").rpartition("|")
        name, version = package.split()[:2]
        found.setdefault((name, version), set()).update(filter(None, names.split(",")))
    return found


def added(alone, together):
    """The features that packages have only together with tests, by name.

    >>> added({("a", "v1"): {"x"}, ("b", "v1"): set()}, {("a", "v1"): {"x", "y"}, ("b", "v1"): set(), ("c", "v1"): {"z"}})
    {'a': {'y'}}
    """
    return {name: together[name, version] - own for (name, version), own in alone.items() if together[name, version] - own}


def tree(*arguments):
    # Build scripts and macros are compiled apart, with features of their own.
    command = ["cargo", "tree", "--locked", "--prefix", "none", "--format", "{p}|{f}", *arguments]
    return features(subprocess.run(command, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout)


def main():
    found = added(tree("--package", "webfill", "--edges", "normal"), tree("--workspace", "--edges", "normal,dev"))
    for name in sorted(found.keys() | ADDED.keys()):
        if found.get(name, set()) != ADDED.get(name, set()):
            sys.exit(f"check_features: only tests add to {name} the features {sorted(found.get(name, []))}, not "
                     f"{sorted(ADDED.get(name, []))}. Does the program compile alone, by `cargo check --package webfill`? "
                     "Then correct the list in .ci/check_features.py; else its crate must name the feature itself.")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Judges whether the crates could be published: their metadata, and the files of their packages. Needs no network.

    .ci/check_metadata.py              as `make check` does
    .ci/check_metadata.py --release    also what is only known at a release: the address of the repository
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The limits of crates.io.
MOST_WORDS = 5
KEYWORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+-]{0,19}")
INCLUDED = re.compile(r'include(?:_str|_bytes)?!\(\s*"([^"]+)"')


def faults_of(package, version, is_release):
    """What a manifest lacks, a line each.

    >>> package = {"description": "x", "license": "MIT", "readme": "README.md", "repository": None, "publish": None,
    ...     "keywords": ["crawler"], "categories": ["web-programming"], "dependencies": [
    ...     {"name": "a", "path": "/a", "req": "^0.1.0", "kind": None}, {"name": "t", "path": "/t", "req": "*", "kind": "dev"}]}
    >>> list(faults_of(package, "0.1.0", False))
    []
    >>> list(faults_of(package, "0.2.0", True))
    ['no repository', 'a is wanted in version ^0.1.0, not ^0.2.0']
    >>> list(faults_of({**package, "description": None, "keywords": ["two words"], "publish": []}, "0.1.0", True))
    ['no description', 'no repository', 'the keyword `two words` is none', 'publish = false']
    """
    wanted = ["description", "license", "keywords", "categories", "readme"] + ["repository"] * is_release
    yield from (f"no {key}" for key in wanted if not package[key])
    for key in ("keywords", "categories"):
        if len(package[key]) > MOST_WORDS:
            yield f"more than {MOST_WORDS} {key}"
    yield from (f"the keyword `{word}` is none" for word in package["keywords"] if not KEYWORD.fullmatch(word))
    if is_release and package["publish"] is not None:
        yield "publish = false"
    for dependency in package["dependencies"]:
        # Dependencies of tests need no version, because packages leave them out then.
        is_left_out = dependency["kind"] == "dev" and dependency["req"] == "*"
        if dependency.get("path") and not is_left_out and dependency["req"] != f"^{version}":
            yield f"{dependency['name']} is wanted in version {dependency['req']}, not ^{version}"


def included(text):
    """The files that a source includes, but for its tests.

    >>> included('include_str!("../a.txt"), include!("b.rs"), include_bytes!(\\n    "c")')
    ['../a.txt', 'b.rs', 'c']
    >>> included('#[cfg(test)]\\nmod tests {\\n    include_str!("../a.txt")')
    []
    """
    return INCLUDED.findall(text.split("#[cfg(test)]\nmod tests {")[0])


def faults_of_files(folder):
    """Files that a package would lack: what its sources include has to lie in its folder."""
    listed = subprocess.run(
        ["cargo", "package", "--list", "--allow-dirty", "--manifest-path", folder / "Cargo.toml"],
        cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    if listed.returncode != 0:
        yield f"cannot be packed: {listed.stderr.strip()}"
        return
    files = set(listed.stdout.splitlines())
    for name in sorted(files & {"README.md", "Cargo.toml"} ^ {"README.md", "Cargo.toml"}):
        yield f"the package has no {name}"
    for source in sorted(name for name in files if name.endswith(".rs")):
        path = folder / source
        for other in included(path.read_text()):
            # The path is not resolved: a link in the folder is packed as the file that it leads to.
            place = Path(*normal((path.parent / other).relative_to("/").parts))
            inside = folder.relative_to("/")
            if not place.is_relative_to(inside) or str(place.relative_to(inside)) not in files:
                yield f"{source} includes {other}, which the package does not have"


def normal(parts):
    """A path without `..`, whose folders may be links.

    >>> normal(["a", "b", "..", "c"])
    ['a', 'c']
    """
    kept = []
    for part in parts:
        if part == "..":
            kept.pop()
        else:
            kept.append(part)
    return kept


def main():
    is_release = "--release" in sys.argv[1:]
    metadata = ["cargo", "metadata", "--no-deps", "--locked", "--format-version", "1"]
    found = json.loads(subprocess.run(metadata, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    packages = [one for one in found["packages"] if Path(one["manifest_path"]).parent.relative_to(ROOT).parts[0] != "tests"]
    faults = 0
    for package in packages:
        folder = Path(package["manifest_path"]).parent
        for fault in [*faults_of(package, package["version"], is_release), *faults_of_files(folder)]:
            print(f"{folder.relative_to(ROOT)}/Cargo.toml: {fault}", file=sys.stderr)
            faults += 1
    print(f"metadata: {len(packages)} crates, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

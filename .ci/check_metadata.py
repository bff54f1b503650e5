#!/usr/bin/env python3
"""Judges whether the crates could be published: their metadata, and the files of their packages. Needs no network.

The address of the repository and the permission to publish are decided at a release (`.ci/release.py`): here, all crates
must have the same.
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


def faults_of(package, version):
    """What a manifest lacks, a line each.

    >>> package = {"description": "x", "license": "MIT", "readme": "README.md", "keywords": ["crawler"],
    ...     "categories": ["web-programming"], "dependencies": [{"name": "a", "path": "/a", "req": "^0.1.0", "kind": None},
    ...     {"name": "t", "path": "/t", "req": "*", "kind": "dev"}]}
    >>> list(faults_of(package, "0.1.0"))
    []
    >>> list(faults_of(package, "0.2.0"))
    ['a is wanted in version ^0.1.0, not ^0.2.0']
    >>> list(faults_of({**package, "description": None, "keywords": ["two words"]}, "0.1.0"))
    ['no description', 'the keyword `two words` is none']
    """
    yield from (f"no {key}" for key in ("description", "license", "keywords", "categories", "readme") if not package[key])
    for key in ("keywords", "categories"):
        if len(package[key]) > MOST_WORDS:
            yield f"more than {MOST_WORDS} {key}"
    yield from (f"the keyword `{word}` is none" for word in package["keywords"] if not KEYWORD.fullmatch(word))
    for dependency in package["dependencies"]:
        # Dependencies of tests need no version, because packages leave them out then.
        is_left_out = dependency["kind"] == "dev" and dependency["req"] == "*"
        if dependency.get("path") and not is_left_out and dependency["req"] != f"^{version}":
            yield f"{dependency['name']} is wanted in version {dependency['req']}, not ^{version}"


def faults_of_differences(packages):
    """Crates that differ where all must agree.

    >>> one = {"name": "a", "repository": "https://x.example", "publish": None}
    >>> list(faults_of_differences([one, {**one, "name": "b"}]))
    []
    >>> list(faults_of_differences([one, {**one, "name": "b", "repository": None, "publish": []}]))
    ['a and b differ in `repository`', 'a and b differ in `publish`']
    """
    first = packages[0]
    for key in ("repository", "publish"):
        other = next((one for one in packages if one[key] != first[key]), None)
        if other:
            yield f"{first['name']} and {other['name']} differ in `{key}`"


def faults_of_tests(packages):
    """Crates of tests, which `cargo publish --workspace` must leave out.

    >>> list(faults_of_tests([{"name": "a", "publish": []}, {"name": "b", "publish": None}]))
    ['b belongs to the tests: `publish = false` is missing']
    """
    for one in packages:
        if one["publish"] != []:
            yield f"{one['name']} belongs to the tests: `publish = false` is missing"


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
    metadata = ["cargo", "metadata", "--no-deps", "--locked", "--format-version", "1"]
    found = json.loads(subprocess.run(metadata, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    is_of_tests = lambda one: Path(one["manifest_path"]).relative_to(ROOT).parts[0] == "tests"
    packages = [one for one in found["packages"] if not is_of_tests(one)]
    faults = 0
    of_tests = faults_of_tests([one for one in found["packages"] if is_of_tests(one)])
    for fault in [*faults_of_differences(packages), *of_tests]:
        print(fault, file=sys.stderr)
        faults += 1
    for package in packages:
        folder = Path(package["manifest_path"]).parent
        for fault in [*faults_of(package, package["version"]), *faults_of_files(folder)]:
            print(f"{folder.relative_to(ROOT)}/Cargo.toml: {fault}", file=sys.stderr)
            faults += 1
    print(f"metadata: {len(packages)} crates, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

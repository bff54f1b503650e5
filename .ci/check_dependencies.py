#!/usr/bin/env python3
"""Judges webfill's dependencies by deny.toml, without a network: licences, sources, doubled
versions, yanked versions, advisories.

What cannot be known offline is said, never passed over: versions yanked since cargo last asked the
registry, and advisories if there is no copy of the RustSec database. A copy is looked for in
$ADVISORY_DB (a clone of https://github.com/RustSec/advisory-db), then where cargo-audit and
cargo-deny keep theirs.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CARGO_HOME = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
# The source in Cargo.lock of packages from a registry. Packages from git or a path have another one.
REGISTRY = "registry+"


class Package(NamedTuple):
    name: str
    version: str
    licence: str


def packages_built(targets):
    """Every package that is compiled for the workspace, tests and build scripts included."""
    found = set()
    for target in targets:
        tree = ["cargo", "tree", "--workspace", "--locked", "--target", target, "--prefix", "none",
                "--format", "{p}\t{l}"]
        lines = subprocess.run(tree, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout
        for line in filter(None, lines.splitlines()):
            name_version, _, licence = line.removesuffix(" (*)").partition("\t")
            name, version = name_version.split()[:2]
            found.add(Package(name, version.removeprefix("v"), licence.strip()))
    return sorted(found)


def choices(expression):
    """The sets of licences that satisfy an SPDX expression; the old `A/B` means `A OR B`.

    >>> sorted(map(sorted, choices("MIT/Apache-2.0")))
    [['Apache-2.0'], ['MIT']]
    >>> sorted(map(sorted, choices("(MIT OR Apache-2.0) AND Unicode-3.0")))
    [['Apache-2.0', 'Unicode-3.0'], ['MIT', 'Unicode-3.0']]
    >>> choices("Apache-2.0 WITH LLVM-exception")
    [{'Apache-2.0 WITH LLVM-exception'}]
    """
    words = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))

    def either():
        found = both()
        while words and words[0] == "OR":
            words.pop(0)
            found = found + both()
        return found

    def both():
        found = one()
        while words and words[0] == "AND":
            words.pop(0)
            right = one()
            found = [a | b for a in found for b in right]
        return found

    def one():
        word = words.pop(0)
        if word == "(":
            found = either()
            words.pop(0)
            return found
        if words and words[0] == "WITH":
            words.pop(0)
            word = f"{word} WITH {words.pop(0)}"
        return [{word}]

    return either()


def check_licences(packages, rules):
    allowed = set(rules["allow"])
    used = set()
    for package in packages:
        if not package.licence:
            yield f"{package.name} {package.version} names no licence"
            continue
        acceptable = [choice for choice in choices(package.licence) if choice <= allowed]
        used.update(*acceptable)
        if not acceptable:
            yield f"{package.name} {package.version} is under {package.licence}"
    for licence in sorted(allowed - used):
        yield f"deny.toml allows the licence {licence}, which no dependency needs"


def check_sources(locked):
    for package in locked:
        source = package.get("source")
        if source is not None and not source.startswith(REGISTRY):
            yield f"{package['name']} {package['version']} comes from {source}"
        if source and "checksum" not in package:
            yield f"{package['name']} {package['version']} has no checksum in Cargo.lock"


def check_duplicates(packages, rules):
    versions = {}
    for package in packages:
        versions.setdefault(package.name, []).append(package.version)
    needed = set()
    for name, found in sorted(versions.items()):
        skips = [skip["crate"] for skip in rules["skip"] if skip["crate"].split("@")[0] == name]
        kept = [version for version in found if not any(is_skipped(version, skip) for skip in skips)]
        if len(found) > 1:
            needed.update(skip for skip in skips if any(is_skipped(v, skip) for v in found))
        if len(kept) > 1:
            yield f"{name} is there in the versions {', '.join(kept)}: deny.toml may give a reason"
    for skip in rules["skip"]:
        if skip["crate"] not in needed:
            yield f"deny.toml excuses two versions of {skip['crate']}, but there is one"
        if not skip.get("reason"):
            yield f"deny.toml excuses {skip['crate']} without a reason"


def is_skipped(version, skip):
    """
    >>> is_skipped("0.2.17", "bstr@0.2"), is_skipped("0.22.0", "bstr@0.2")
    (True, False)
    """
    return (version + ".").startswith(skip.split("@")[1] + ".")


def check_yanked(packages):
    """Asks cargo's own copy of the registry's index, as fresh as the last update or download."""
    for package in packages:
        for line in index_lines(package.name):
            if line["vers"] == package.version and line.get("yanked"):
                yield f"{package.name} {package.version} was yanked"


def index_lines(name):
    folders = {1: "1", 2: "2", 3: f"3/{name[:1]}"}
    folder = folders.get(len(name), f"{name[:2]}/{name[2:4]}")
    for path in (CARGO_HOME / "registry/index").glob(f"*/.cache/{folder}/{name}"):
        for chunk in path.read_bytes().split(b"\0"):
            if chunk.startswith(b"{"):
                yield json.loads(chunk)


def advisory_database():
    given = os.environ.get("ADVISORY_DB")
    places = [Path(given)] if given else [
        CARGO_HOME / "advisory-db", *sorted(CARGO_HOME.glob("advisory-dbs/*"))]
    for place in places:
        if (place / "crates").is_dir():
            return place
    if given:
        sys.exit(f"check_dependencies: ADVISORY_DB={given} holds no folder `crates`")
    return None


def check_advisories(packages, database, rules):
    ignored = {entry["id"] for entry in rules["ignore"]}
    met = set()
    for package in packages:
        for path in sorted((database / "crates" / package.name).glob("*.md")):
            text = path.read_text(encoding="utf-8")
            front = tomllib.loads(text.removeprefix("```toml\n").split("\n```", 1)[0])
            advisory, versions = front["advisory"], front.get("versions", {})
            unharmed = versions.get("patched", []) + versions.get("unaffected", [])
            if "withdrawn" in advisory or any(satisfies(package.version, r) for r in unharmed):
                continue
            met.add(advisory["id"])
            if advisory["id"] not in ignored:
                kind = advisory.get("informational", "vulnerability")
                title = next((line[2:] for line in text.splitlines() if line.startswith("# ")), "")
                yield f"{package.name} {package.version}: {advisory['id']} ({kind}): {title}"
    for unmet in sorted(ignored - met):
        yield f"deny.toml ignores {unmet}, which does not concern any dependency"


def satisfies(version, requirement):
    """
    >>> satisfies("0.103.16", ">= 0.103.13, < 0.104.0-alpha.1")
    True
    >>> satisfies("1.0.0-rc.1", ">= 1.0.0"), satisfies("0.2.9", "^0.2.3"), satisfies("0.3.0", "^0.2.3")
    (False, True, False)
    >>> satisfies("1.2.3", "~1.2"), satisfies("1.3.0", "~1.2"), satisfies("1.2.3", "= 1.2.3")
    (True, False, True)
    """
    return all(satisfies_one(order(version), part.strip()) for part in requirement.split(","))


def satisfies_one(version, comparison):
    operator, text = re.match(r"(>=|<=|>|<|=|\^|~)?\s*(.+)", comparison).groups()
    bound = order(text)
    if operator in (None, "^", "~"):
        given = text.split("-")[0].split(".")
        numbers = bound[0]
        fixed = min(1, len(given) - 1) if operator == "~" else next(
            (i for i in range(len(given)) if numbers[i]), len(given) - 1)
        ceiling = numbers[:fixed] + (numbers[fixed] + 1,) + (0,) * (2 - fixed)
        return bound <= version and version[0] < ceiling
    return {">=": version >= bound, "<=": version <= bound, ">": version > bound,
            "<": version < bound, "=": version == bound}[operator]


def order(version):
    """A key that sorts versions as semver does: pre-releases come before their release.

    >>> order("1.0.0-alpha.2") < order("1.0.0-alpha.10") < order("1.0.0-beta") < order("1.0.0")
    True
    """
    core, _, pre = version.split("+")[0].partition("-")
    numbers = tuple(int(part) for part in core.split("."))
    identifiers = [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in pre.split(".")]
    return numbers + (0,) * (3 - len(numbers)), (0, identifiers) if pre else (1, [])


def main():
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    packages = packages_built(rules["graph"]["targets"])
    third_party = {p["name"] for p in locked if "source" in p}
    packages = [package for package in packages if package.name in third_party]
    checks = {
        "licences": check_licences(packages, rules["licenses"]),
        "sources": check_sources(locked),
        "doubled versions": check_duplicates(packages, rules["bans"]),
        "yanked versions": check_yanked(packages),
    }
    database = advisory_database()
    if database:
        checks["advisories"] = check_advisories(packages, database, rules["advisories"])
    faults = 0
    for name, found in checks.items():
        found = list(found)
        faults += len(found)
        print(f"dependencies: {name}: {f'{len(found)} faults' if found else 'ok'}")
        for fault in found:
            print(f"  {fault}")
    unknown = sum(1 for package in packages if not any(index_lines(package.name)))
    if unknown:
        print(f"dependencies: of {unknown} packages cargo's index copy says nothing about yanking")
    if not database:
        print("dependencies: advisories: NOT CHECKED, there is no copy of the RustSec database; "
              "ADVISORY_DB may name one")
    print(f"dependencies: {len(packages)} packages, {faults} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

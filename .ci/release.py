#!/usr/bin/env python3
"""Walks through all that a release needs, and publishes nothing: `make release`.

    .ci/release.py              builds the program, the wheel and the packages, and judges their sizes
    .ci/release.py PROGRAM      a rehearsal: packs this program, such as target/debug/webfill, and judges no sizes

Every item is tried, even if another one has failed. The list at the end has them all, then what is left to a person.
Exit status: 0 if nothing is left but to publish, 1 if an item has failed, 3 if a person has to decide something first,
or if it was a rehearsal.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MB = 1_000_000
MOST_MB = {"program": 45, "wheel": 25, "package": 25, "archive": 25}
FAILED, UNDECIDED = 1, 3

BY_HAND = [
    ".ci/run in a fresh clone of this commit",
    "make chaos, make power and make fleet",
    "the tag v{version}, on this commit",
    "upload: target/wheels to PyPI, target/packages to where they are offered, the crates with `cargo publish --workspace`",
    "the commit in tests/released.sh, and what CONTRIBUTING.md says about formats from then on",
]


def version_in(manifest):
    """The version of the workspace.

    >>> version_in('[workspace.package]\\nversion = "0.1.0"\\n')
    '0.1.0'
    """
    return re.search(r'(?m)^version = "([^"]+)"', manifest).group(1)


def undecided_in_changelog(changelog, version):
    """Why a changelog is not that of this version.

    >>> undecided_in_changelog("# Changelog\\n\\n## [Unreleased]\\n\\n## [0.1.0] - 2026-12-01\\n\\n- First\\n", "0.1.0")
    >>> undecided_in_changelog("## [Unreleased]\\n\\n- More\\n\\n## [0.1.0] - 2026-12-01\\n\\n- First\\n", "0.1.0")
    'CHANGELOG.md: move the entries of [Unreleased] to 0.1.0, or raise the version'
    >>> undecided_in_changelog("## [Unreleased]\\n\\n- First\\n", "0.1.0")
    'CHANGELOG.md: name the day of the release: `## [0.1.0] - DATE` above the entries of [Unreleased]'
    """
    sections = re.split(r"(?m)^## ", changelog)[1:]
    if not any(re.match(rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n", one) for one in sections):
        return f"CHANGELOG.md: name the day of the release: `## [{version}] - DATE` above the entries of [Unreleased]"
    unreleased = [one for one in sections if one.startswith("[Unreleased]")]
    if any(one.removeprefix("[Unreleased]").strip() for one in unreleased):
        return f"CHANGELOG.md: move the entries of [Unreleased] to {version}, or raise the version"
    return None


def undecided_in_manifest(manifest):
    """What nobody but the owner of the project can write into Cargo.toml.

    >>> list(undecided_in_manifest('[workspace.package]\\nrepository = "https://x.example/webfill"\\n'))
    []
    >>> [one[:45] for one in undecided_in_manifest("[workspace.package]\\npublish = false\\n")]
    ['Cargo.toml: name the address of the repositor', 'Cargo.toml: set `publish = true` in [workspac']
    """
    if not re.search(r'(?m)^repository = "https://', manifest):
        yield "Cargo.toml: name the address of the repository: `repository` in [workspace.package], `repository.workspace = true` in each crate"
    if re.search(r"(?m)^publish = false", manifest):
        yield "Cargo.toml: set `publish = true` in [workspace.package], once the project shall be public"


def undecided_in_project(project):
    """The same for python/pyproject.toml.

    >>> list(undecided_in_project('[project.urls]\\nRepository = "https://x.example/webfill"\\n'))
    []
    >>> list(undecided_in_project("[project]\\n"))
    ['python/pyproject.toml: name the address of the repository: `Repository` in [project.urls]']
    """
    if not re.search(r'(?m)^\[project\.urls\]\n(?:.+\n)*Repository = "https://', project):
        yield "python/pyproject.toml: name the address of the repository: `Repository` in [project.urls]"


def undecided(version):
    """What only a person can decide, a sentence each."""
    changelog = undecided_in_changelog((ROOT / "CHANGELOG.md").read_text(), version)
    yield from [changelog] if changelog else []
    yield from undecided_in_manifest((ROOT / "Cargo.toml").read_text())
    yield from undecided_in_project((ROOT / "python/pyproject.toml").read_text())


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def ran(*command):
    """Why a command has failed."""
    ended = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL)
    return None if ended.returncode == 0 else f"`{' '.join(command)}` has ended with {ended.returncode}"


def newest(pattern):
    """The newest file of this pattern."""
    files = sorted(ROOT.glob(pattern), key=os.path.getmtime)
    if not files:
        raise ValueError(f"there is no {pattern}")
    return files[-1]


def fault_of_size(kind, pattern):
    """The newest file of a kind must be small enough."""
    file = newest(pattern)
    size = file.stat().st_size / MB
    print(f"{file.relative_to(ROOT)}: {size:.1f} MB")
    return None if size <= MOST_MB[kind] else f"{file.name} has {size:.1f} MB, {MOST_MB[kind]} allowed"


def packed(program):
    """What packs the program: the wheel and the packages, and the folders that they are written to."""
    if program is None:
        return ["make", "wheel"], "target/wheels", ["deploy/package.sh"]
    folder = "target/rehearsal"
    return ["python/build.sh", program, folder], folder, ["deploy/package.sh", program, folder]


def items(version, program):
    """What is tried, in this order."""
    wheel, wheels, packages = packed(program)
    yield "the tree is clean", lambda: git("status", "--porcelain") or None
    yield "the version is new", lambda: f"there is a tag v{version}" if git("tag", "--list", f"v{version}") else None
    yield "metadata and files of the crates", lambda: ran(".ci/check_metadata.py")
    yield "checks", lambda: ran("make", "check")
    yield "documentation", lambda: ran("make", "docs")
    yield "wheel, with the program", lambda: ran(*wheel)
    yield "the wheel as installed", lambda: ran("tests/python/run", str(newest(f"{wheels}/*.whl")))
    yield "packages and archive", lambda: ran(*packages)
    sizes = [
        ("program", "target/release/webfill"),
        ("wheel", f"target/wheels/webfill-{version}-*.whl"),
        ("package", f"target/packages/webfill_{version}*.deb"),
        ("archive", f"target/packages/webfill-{version}-*.tar.*"),
    ]
    for kind, pattern in sizes if program is None else []:
        yield f"size of the {kind}", lambda kind=kind, pattern=pattern: fault_of_size(kind, pattern)
    yield "nothing was written into the tree", lambda: git("status", "--porcelain") or None


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else None
    version = version_in((ROOT / "Cargo.toml").read_text())
    lines, faults = [], 0
    for name, judge in items(version, program):
        print(f"=== {name}", flush=True)
        began = time.monotonic()
        try:
            fault = judge()
        except (OSError, subprocess.CalledProcessError, ValueError) as error:
            fault = str(error)
        faults += fault is not None
        lines.append(f"[{'x' if fault is None else ' '}] {name} ({time.monotonic() - began:.0f} s){f': {fault}' if fault else ''}")
    left = list(undecided(version))
    rehearsal = ["make release, with the optimised program and the sizes: this was a rehearsal"] if program else []
    print(f"\nwebfill {version} at {git('rev-parse', '--short', 'HEAD')}\n" + "\n".join(lines))
    print("\nLeft to a person:")
    print("\n".join(f"[ ] {one.format(version=version)}" for one in [*left, *rehearsal, *BY_HAND]))
    return FAILED if faults else UNDECIDED if left or rehearsal else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Walks through all that a release needs, and publishes nothing: `make release`.

Every item is tried, even if another one has failed; the list at the end has them all, with what is to be done by hand.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MIB = 1 << 20
MOST_MIB = {"program": 45, "wheel": 25, "package": 25, "archive": 25}

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


def fault_of_changelog(changelog, version):
    """Why a changelog is not that of this version.

    >>> fault_of_changelog("# Changelog\\n\\n## [Unreleased]\\n\\n## [0.1.0] - 2026-12-01\\n\\n- First\\n", "0.1.0")
    >>> fault_of_changelog("## [Unreleased]\\n\\n- More\\n\\n## [0.1.0] - 2026-12-01\\n\\n- First\\n", "0.1.0")
    'CHANGELOG.md has unreleased entries: they belong to 0.1.0, or to a later version'
    >>> fault_of_changelog("## [Unreleased]\\n\\n- First\\n", "0.1.0")
    'CHANGELOG.md has no section `## [0.1.0] - DATE`'
    """
    sections = re.split(r"(?m)^## ", changelog)[1:]
    if not any(re.match(rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n", one) for one in sections):
        return f"CHANGELOG.md has no section `## [{version}] - DATE`"
    unreleased = [one for one in sections if one.startswith("[Unreleased]")]
    if any(one.removeprefix("[Unreleased]").strip() for one in unreleased):
        return f"CHANGELOG.md has unreleased entries: they belong to {version}, or to a later version"
    return None


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def ran(*command):
    """Why a command has failed."""
    ended = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL)
    return None if ended.returncode == 0 else f"`{' '.join(command)}` has ended with {ended.returncode}"


def fault_of_size(kind, pattern):
    """The newest file of a kind must be small enough."""
    files = sorted(ROOT.glob(pattern), key=os.path.getmtime)
    if not files:
        return f"there is no {pattern}"
    size = files[-1].stat().st_size / MIB
    print(f"{files[-1].relative_to(ROOT)}: {size:.1f} MiB")
    return None if size <= MOST_MIB[kind] else f"{files[-1].name} has {size:.1f} MiB, {MOST_MIB[kind]} allowed"


def items(version):
    """What is tried, in this order."""
    yield "the tree is clean", lambda: git("status", "--porcelain") or None
    yield "the changelog has the version", lambda: fault_of_changelog((ROOT / "CHANGELOG.md").read_text(), version)
    yield "the version is new", lambda: f"there is a tag v{version}" if git("tag", "--list", f"v{version}") else None
    yield "metadata of the crates", lambda: ran(".ci/check_metadata.py", "--release")
    yield "checks", lambda: ran("make", "check")
    yield "documentation", lambda: ran("make", "docs")
    yield "wheel, with the program", lambda: ran("make", "wheel")
    yield "the wheel as installed", lambda: ran("tests/python/run", str(max(ROOT.glob("target/wheels/*.whl"), key=os.path.getmtime)))
    yield "packages and archive", lambda: ran("deploy/package.sh")
    for kind, pattern in [
        ("program", "target/release/webfill"),
        ("wheel", f"target/wheels/webfill-{version}-*.whl"),
        ("package", f"target/packages/webfill_{version}*.deb"),
        ("archive", f"target/packages/webfill-{version}-*.tar.*"),
    ]:
        yield f"size of the {kind}", lambda kind=kind, pattern=pattern: fault_of_size(kind, pattern)
    yield "nothing was written into the tree", lambda: git("status", "--porcelain") or None


def main():
    version = version_in((ROOT / "Cargo.toml").read_text())
    lines, faults = [], 0
    for name, judge in items(version):
        print(f"=== {name}", flush=True)
        began = time.monotonic()
        try:
            fault = judge()
        except (OSError, subprocess.CalledProcessError, ValueError) as error:
            fault = str(error)
        faults += fault is not None
        lines.append(f"[{'x' if fault is None else ' '}] {name} ({time.monotonic() - began:.0f} s){f': {fault}' if fault else ''}")
    print(f"\nwebfill {version} at {git('rev-parse', '--short', 'HEAD')}\n" + "\n".join(lines))
    print("\nBy hand:\n" + "\n".join(f"[ ] {one.format(version=version)}" for one in BY_HAND))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Compares readers of PDFs on real files: how many they read, how well, how fast, in how much memory.

    tests/bench/documents/compare.py WEBFILL [--readers PROGRAM] [--only NAME ...] [--worst] [--sound DIR] [--damaged DIR]

WEBFILL is the binary, whose reader is confined; PDFium is what deploy/install-pdfium.sh fetches. PROGRAM is what
tests/bench/documents builds, with the crates that were not chosen. The files are those of tests/bench/documents/install.sh (.cache/pdfs) and what
tests/bench/documents/damage.py makes of some of them (.cache/pdfs-damaged). pdftotext (Debian's poppler-utils) is the
reference, of a damaged file on the sound one that it was made of: the agreement of a reader with it is the F1 of their
words, counted as often as they occur. Each file is read by a process of its own, with 1 GiB of address space and 20 s.
"""

import argparse
import collections
import json
import pathlib
import re
import statistics
import subprocess
import sys

MEMORY = 1 << 30
SECONDS = 20
# As good as the same: readers differ in ligatures and hyphens.
AGREES = 0.95
HERE = pathlib.Path(__file__).resolve().parent


# Runs a command, and says on standard error how it ended, after how many seconds, and with how many KiB at most. Apart
# from the comparison, because a process counts the memory of who started it as its own.
MEASURE = f"""
import os, resource, subprocess, sys, time
began = time.monotonic()
def limit(): resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
process = subprocess.Popen(sys.argv[1:], stderr=subprocess.DEVNULL, preexec_fn=limit)
_, status, usage = os.wait4(process.pid, 0)
print(status, time.monotonic() - began, usage.ru_maxrss, file=sys.stderr)
"""


def read(command, file):
    """Text or None, how it ended, seconds, MiB."""
    with open(file, "rb") as stdin:
        ended = subprocess.run([sys.executable, "-S", "-c", MEASURE, *command], stdin=stdin, capture_output=True)
    status, seconds, kib = ended.stderr.split()
    status, seconds, mib = int(status), float(seconds), int(kib) / 1024
    if status & 0x7F or status >> 8 in (101, 128 + 9):
        return None, "slow" if seconds >= SECONDS else "crashed", seconds, mib
    if status:
        return None, "failed", seconds, mib
    text = ended.stdout.decode(errors="replace")
    return text, "read" if text.strip() else "empty", seconds, mib


def read_confined(program, file):
    """The same of `webfill read-document`: the text is behind a line of JSON, which says how it ended."""
    limits = [f"--memory-bytes={256 << 20}", f"--cpu-seconds={SECONDS}", f"--text-bytes={10 << 20}"]
    command = [program, "read-document", *limits, f"--input-bytes={file.stat().st_size}"]
    text, end, seconds, mib = read(command, file)
    if text is None:
        return text, end, seconds, mib
    head, _, text = text.partition("\n")
    head = json.loads(head)
    status = head["status"] if head["kind"] else "broken"
    end = {"text": "read", "no_text": "empty", "too_large": "slow"}.get(status, "failed")
    return (text if end in ("read", "empty") else None), end, seconds, mib


def readers(options):
    limited = ["timeout", "--signal=KILL", str(SECONDS)]
    found = {
        "pdftotext": lambda file: read([*limited, "pdftotext", "-q", file, "-"], file),
        "webfill": lambda file: read_confined(options.webfill, file),
        "pdfium": lambda file: read([*limited, str(HERE / "pdfium_text.py"), options.pdfium], file),
    }
    for crate in ["lopdf", "pdf-extract", "pdf_oxide"] if options.readers else []:
        found[crate] = lambda file, crate=crate: read([*limited, options.readers, crate, file], file)
    return {name: reader for name, reader in found.items() if not options.only or name in options.only}


def words(text):
    return collections.Counter(re.findall(r"\w+", text or ""))


def agreement(ours, theirs):
    ours, theirs = words(ours), words(theirs)
    common = sum((ours & theirs).values())
    total = sum(ours.values()) + sum(theirs.values())
    return 2 * common / total if total else 1.0


def compare(title, files, reference, options):
    texts = [file for file in files if (reference[file] or "").strip()]
    print(f"\n{title}: {len(files)} files, {len(texts)} of them with text\n")
    print("| reader | read | empty | failed | crashed | slow | agree | F1 mean | F1 p10 | ms p50 | ms p95 | MiB p50 | MiB most |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for name, reader in readers(options).items():
        results = {file: reader(file) for file in files}
        ends = collections.Counter(end for _, end, _, _ in results.values())
        score = {file: agreement(results[file][0], reference[file]) for file in texts}
        f1 = sorted(score.values())
        ms = sorted(1000 * seconds for _, _, seconds, _ in results.values())
        mib = sorted(mib for _, _, _, mib in results.values())
        agree = 100 * sum(one >= AGREES for one in f1) / len(f1)
        counts = " | ".join(str(ends[end]) for end in ("read", "empty", "failed", "crashed", "slow"))
        print(
            f"| {name} | {counts} | {agree:.0f} % | {statistics.mean(f1):.3f} | {f1[len(f1) // 10]:.2f}"
            f" | {ms[len(ms) // 2]:.0f} | {ms[len(ms) * 95 // 100]:.0f} | {mib[len(mib) // 2]:.0f} | {mib[-1]:.0f} |",
            flush=True,
        )
        for file in sorted(texts, key=score.get)[: 25 if options.worst else 0]:
            print(f"    {score[file]:.2f} {results[file][1]:7} {file}", file=sys.stderr)


def main():
    root = HERE.parents[1]
    parser = argparse.ArgumentParser()
    parser.add_argument("webfill")
    parser.add_argument("--readers")
    parser.add_argument("--pdfium", default=str(root / ".cache/pdfium/libpdfium.so"))
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--worst", action="store_true")
    parser.add_argument("--sound", type=pathlib.Path, default=root / ".cache/pdfs")
    parser.add_argument("--damaged", type=pathlib.Path, default=root / ".cache/pdfs-damaged")
    options = parser.parse_args()
    by_poppler = readers(argparse.Namespace(**{**vars(options), "only": ["pdftotext"]}))["pdftotext"]
    sound = sorted(options.sound.rglob("*.pdf"))
    reference = {file: by_poppler(file)[0] for file in sound}
    compare("Sound", sound, reference, options)
    sources = json.loads((options.damaged / "sources.json").read_text())
    damaged = {options.damaged / name: by_poppler(pathlib.Path(source))[0] for name, source in sources.items()}
    compare("Damaged", list(damaged), damaged, options)


main()

#!/usr/bin/env python3
"""Compares readers of PDFs on real files: how many they read, how well, how fast, in how much memory.

    bench/documents/compare.py READERS WEBFILL [FOLDER]

READERS is the program that bench/documents builds, WEBFILL the binary, whose reader is confined; FOLDER has
the PDFs, by default .cache/pdfs, which bench/documents/install.sh fills. pdftotext (Debian's poppler-utils) is the reference: the agreement of a
reader with it is the F1 of their words, counted as often as they occur. Each file is read by a process of
its own, with 1 GiB of address space and 20 seconds.
"""

import collections
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import time

MEMORY = 1 << 30
SECONDS = 20


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def read(command, stdin=subprocess.DEVNULL):
    """Text or None, how it ended, seconds, KiB."""
    began = time.monotonic()
    process = subprocess.Popen(
        command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=limit
    )
    try:
        text, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None, "slow", SECONDS, 0
    seconds = time.monotonic() - began
    if process.returncode < 0 or process.returncode == 101:
        return None, "crashed", seconds, 0
    if process.returncode != 0:
        return None, "failed", seconds, 0
    text = text.decode(errors="replace")
    return text, "read" if text.strip() else "empty", seconds, 0


def read_confined(program, file):
    """The same of `webfill read-document`: the text is behind a line of JSON, which tells how it ended."""
    limits = [f"--memory-bytes={256 << 20}", "--cpu-seconds=20", f"--text-bytes={10 << 20}"]
    command = [program, "read-document", *limits, f"--input-bytes={file.stat().st_size}"]
    with open(file, "rb") as stdin:
        text, end, seconds, memory = read(command, stdin)
    if text is None:
        return text, end, seconds, memory
    head, _, text = text.partition("\n")
    head = json.loads(head)
    status = head["status"] if head["kind"] else "broken"
    end = {"text": "read", "no_text": "empty", "too_large": "slow"}.get(status, "failed")
    return (text if end in ("read", "empty") else None), end, seconds, memory


def words(text):
    return collections.Counter(re.findall(r"\w+", text))


def agreement(ours, theirs):
    ours, theirs = words(ours), words(theirs)
    common = sum((ours & theirs).values())
    total = sum(ours.values()) + sum(theirs.values())
    return 2 * common / total if total else 1.0


def peak(command):
    """The most memory of a process, in MiB."""
    script = (
        "import resource,subprocess,sys\n"
        "subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL,stderr=subprocess.DEVNULL,timeout=20)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    ended = subprocess.run([sys.executable, "-c", script, *command], capture_output=True, text=True)
    return int(ended.stdout) / 1024 if ended.returncode == 0 else 0.0


def main():
    program, webfill = sys.argv[1:3]
    root = pathlib.Path(__file__).resolve().parents[2]
    folder = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else root / ".cache/pdfs"
    files = sorted(folder.rglob("*.pdf"))
    reference = {file: read(["pdftotext", "-q", file, "-"]) for file in files}
    texts = [file for file in files if reference[file][1] == "read"]
    print(f"{len(files)} files, {len(texts)} of them with text for pdftotext")
    print(f"{'reader':12} read empty failed crashed slow | F1 mean  p10 | ms p50  p95 | MiB p50 most")
    for name in os.environ.get("ONLY", "").split() or ["pdftotext", "lopdf", "pdf-extract", "pdf_oxide", "webfill"]:
        of = lambda file: ["pdftotext", "-q", file, "-"] if name == "pdftotext" else [program, name, file]
        if name == "pdftotext":
            results = reference
        elif name == "webfill":
            results = {file: read_confined(webfill, file) for file in files}
        else:
            results = {file: read(of(file)) for file in files}
        ends = collections.Counter(end for _, end, _, _ in results.values())
        f1 = sorted(agreement(results[file][0] or "", reference[file][0]) for file in texts)
        ms = sorted(1000 * seconds for _, _, seconds, _ in results.values())
        # That of webfill is bounded, and its child would have to be seen before it ends.
        sample = [] if name == "webfill" else files[:: max(1, len(files) // 60)]
        memory = sorted(peak(of(file)) for file in sample) or [0]
        print(
            f"{name:12} {ends['read']:4} {ends['empty']:5} {ends['failed']:6} {ends['crashed']:7} {ends['slow']:4}"
            f" | {statistics.mean(f1):7.3f} {f1[len(f1) // 10]:4.2f}"
            f" | {ms[len(ms) // 2]:6.0f} {ms[len(ms) * 95 // 100]:4.0f}"
            f" | {memory[len(memory) // 2]:7.0f} {memory[-1]:4.0f}",
            flush=True,
        )
        if os.environ.get("WORST"):
            for file in sorted(texts, key=lambda file: agreement(results[file][0] or "", reference[file][0]))[:8]:
                print("    ", round(agreement(results[file][0] or "", reference[file][0]), 2), results[file][1], file)


main()

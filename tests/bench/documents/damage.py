#!/usr/bin/env python3
"""Makes damaged PDFs out of sound ones, as they arrive from printers, mail gateways, FTP in text mode and full disks.

    tests/bench/documents/damage.py [FOLDER] [OUT]

FOLDER has sound PDFs, by default .cache/pdfs, which tests/bench/documents/install.sh fills; three of them are damaged in each
of 20 ways into OUT, by default .cache/pdfs-damaged. OUT/sources.json says which is made of which. The same files come
out each time.
"""

import json
import pathlib
import random
import re
import sys

SOURCES_OF_EACH = 3
LEAST, MOST = 2_000, 2_000_000


def cut(share):
    return lambda data, _: data[: int(len(data) * share)]


def without(word):
    return lambda data, _: data.replace(word, b"")


def replaced(pattern, by):
    return lambda data, _: re.sub(pattern, by, data)


def flipped_in(kind):
    """Bytes in the middle of the last stream of a kind are others."""

    def flip(data, chance):
        found = [m.end() for m in re.finditer(rb"/Type\s*/" + kind + rb"\b[^\0]{0,400}?stream\r?\n", data)]
        if not found:
            return data
        end = data.find(b"endstream", found[-1])
        middle = (found[-1] + end) // 2
        noise = bytes(chance.randrange(256) for _ in range(8))
        return data[:middle] + noise + data[middle + 8 :]

    return flip


def zeros_within(data, chance):
    at = chance.randrange(len(data) // 4, len(data) // 2)
    return data[:at] + bytes(512) + data[at + 512 :]


WAYS = {
    "cut-at-60": cut(0.6),
    "cut-at-95": cut(0.95),
    "no-end": lambda data, _: data[: data.rfind(b"startxref")],
    "junk-before": lambda data, _: b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n" + data,
    "junk-behind": lambda data, _: data + b"\0" * 5000,
    "comment-within": lambda data, _: data.replace(b"\n", b"\n%made\n", 1),
    "wrong-startxref": replaced(rb"startxref\s+\d+", b"startxref\n77"),
    "no-table": replaced(rb"\bxref\s+0[\s\S]{20}", b"x"),
    "no-trailer": without(b"trailer"),
    "crlf": lambda data, _: re.sub(rb"\r?\n", b"\r\n", data),
    "lf-for-crlf": lambda data, _: data.replace(b"\r\n", b"\n").replace(b" \n", b"\n"),
    "no-endstream": without(b"endstream"),
    "no-endobj": without(b"endobj"),
    "wrong-length": replaced(rb"/Length (\d+)(?! \d+ R)", rb"/Length 1\1"),
    "no-length": replaced(rb"/Length \d+(?! \d+ R)", b""),
    "no-font-files": replaced(rb"/FontFile[23]?\b", b"/FontFail"),
    "object-stream": flipped_in(b"ObjStm"),
    "table-stream": flipped_in(b"XRef"),
    "zeros-within": zeros_within,
    "no-root": replaced(rb"/Root\b", b"/Boot"),
}


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / ".cache/pdfs"
    out = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else root / ".cache/pdfs-damaged"
    out.mkdir(parents=True, exist_ok=True)
    sound = sorted(path for path in folder.rglob("*.pdf") if LEAST < path.stat().st_size < MOST)
    sound = [path for path in sound if b"/Encrypt" not in path.read_bytes()]
    chance = random.Random(20)
    sources = {}
    for way, damage in WAYS.items():
        candidates = sound[:]
        chance.shuffle(candidates)
        made = 0
        for source in candidates:
            data = source.read_bytes()
            damaged = damage(data, chance)
            # A file without such a part cannot be damaged this way.
            if made == SOURCES_OF_EACH or damaged == data or not has_text(source):
                continue
            made += 1
            name = f"{way}-{made}.pdf"
            (out / name).write_bytes(damaged)
            sources[name] = str(source)
    (out / "sources.json").write_text(json.dumps(sources, indent=1))
    print(f"{len(sources)} files in {out}")


def has_text(path):
    import subprocess

    read = subprocess.run(["pdftotext", "-q", path, "-"], capture_output=True, timeout=60)
    return len(read.stdout.split()) >= 20


main()

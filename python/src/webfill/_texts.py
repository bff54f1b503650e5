"""Tables in text files: CSV in every dialect that the program reads, and JSON, in their encodings."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Optional

from ._engines import Row

_DELIMITERS = ",;\t|"
_DELIMITED = {".csv", ".tsv", ".txt"}
_LINES = {".jsonl", ".ndjson"}
_PACKED = {".gz": "gzip", ".zst": "zstd"}


class TextTable:
    """A table in a text file.

    ``form`` says how the file is written, as the program has found: guessing again could differ. Without it, the file
    has a name and contents that leave no doubt.
    """

    def __init__(self, path: Path, form: Optional[Mapping[str, Any]] = None) -> None:
        self._path = path
        self._form = form or {}
        self._delimited: Optional[Mapping[str, Any]] = self._form.get("delimited")

    @property
    def is_known(self) -> bool:
        """Whether this reads such files."""
        return bool(self._form) or _ending_of(self._path) in {*_DELIMITED, *_LINES, ".json"}

    def rows(self) -> list[Row]:
        """Return the rows."""
        if self._is_delimited():
            names, rows = self._cells()
            # A row may have fewer cells than there are columns, and one with more has cells of no column.
            return [dict(zip(names, [*cells, *[None] * (len(names) - len(cells))])) for cells in rows]
        text = self._text()
        if _ending_of(self._path) in _LINES or not text.lstrip().startswith("["):
            return [json.loads(line) for line in text.split("\n") if line.strip()]
        rows_of_json: list[Row] = json.loads(text)
        return rows_of_json

    def names(self) -> Optional[list[str]]:
        """Return the names of the columns that the file itself has, also without rows."""
        return self._cells()[0] if self._is_delimited() else None

    def _is_delimited(self) -> bool:
        return self._delimited is not None if self._form else _ending_of(self._path) in _DELIMITED

    def _cells(self) -> tuple[list[str], Iterator[list[str]]]:
        """Return the names of the columns, and the cells of the rows."""
        text = self._text()
        found = self._delimited
        # The line names the delimiter to spreadsheets.
        named = re.match(r"sep=(.)(\r\n|\r|\n)", text)
        text = text[named.end() :] if named else text
        if found is None:
            delimiter = named[1] if named else max(_DELIMITERS, key=text.partition("\n")[0].count)
            rows = _split(text, delimiter=delimiter)
            return next(rows, []), rows
        rows = _split(
            text,
            delimiter=found["delimiter"],
            quotechar=found["quote"],
            quoting=csv.QUOTE_MINIMAL if found["quote"] else csv.QUOTE_NONE,
            doublequote=found["escape"] is None,
            escapechar=found["escape"],
            skipinitialspace=found["skips_blanks"],
        )
        for _ in range(found["rows_above"] + found["has_header"]):
            next(rows, None)
        return list(found["columns"]), rows

    def _text(self) -> str:
        data = _unpacked(self._path, self._form.get("compression") or _PACKED.get(self._path.suffix.lower()))
        if self._form:
            text = data.decode(self._form["encoding"], errors="replace")
            return text[1:] if text.startswith("\ufeff") else text
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            return data.decode("utf-16")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return data.decode("cp1252", errors="replace")


def _ending_of(path: Path) -> str:
    return Path(path.stem if path.suffix.lower() in _PACKED else path.name).suffix.lower()


def _split(text: str, **dialect: Any) -> Iterator[list[str]]:
    """Split a text into rows without those that are blank."""
    # The module's own limit of 128 KiB for a cell would be an error.
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    return (cells for cells in csv.reader(io.StringIO(text, newline=""), **dialect) if cells)


def _unpacked(path: Path, compression: Optional[str]) -> bytes:
    data = path.read_bytes()
    if compression == "gzip":
        return gzip.decompress(data)
    if compression != "zstd":
        return data
    # Python has it from 3.14 on.
    if find_spec("compression") is not None:
        unpacked: bytes = import_module("compression.zstd").decompress(data)
        return unpacked
    if find_spec("pyarrow") is None:
        raise ImportError("reading a table that is compressed with zstd needs this: pip install pyarrow")
    with import_module("pyarrow").CompressedInputStream(io.BytesIO(data), "zstd") as stream:
        unpacked = stream.read()
    return unpacked

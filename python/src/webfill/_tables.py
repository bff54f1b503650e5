"""Tables in files, which everything that speaks Arrow takes."""

from __future__ import annotations

import csv
import gzip
import html
import io
import json
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Optional

from ._engines import DuckdbStream, Engine, Polars, Pyarrow, Row, engine_for

if TYPE_CHECKING:
    import pandas
    import polars

_DELIMITERS = ",;\t|"
_DELIMITED = {".csv", ".tsv", ".txt"}
_SHOWN_ROWS = 20
_SHOWN_CHARS = 80


class Table:
    """A table in a file: Parquet, JSON lines or CSV.

    Whatever takes an Arrow stream takes it: ``polars.DataFrame(table)``, ``pyarrow.table(table)``,
    ``duckdb.sql("SELECT * FROM table")``. The values of CSV files are texts; Parquet has all types.

    Attributes
    ----------
    path : pathlib.Path
        The file.
    """

    path: Path

    def __init__(
        self,
        path: Path,
        *,
        lines: Optional[Path] = None,
        engine: Optional[Engine] = None,
        is_ours: bool = False,
        require_current: Callable[[], None] = lambda: None,
    ) -> None:
        self.path = path
        # Raises an error once the file has the contents of another table.
        self._require_current = require_current
        self._is_ours = is_ours
        self._lines = lines if lines is not None or _ending_of(path) not in {".jsonl", ".ndjson"} else path
        self._engine = engine
        # The source of a DuckDB stream, which must live as long as the stream. Other streams own their sources.
        self._sources: list[Any] = []

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """Return the rows as an Arrow stream (the Arrow PyCapsule interface).

        Parameters
        ----------
        requested_schema : PyCapsule, optional
            Schema that the stream should be cast to, where its library can.

        Returns
        -------
        PyCapsule
            A stream of record batches: a row for each row of the file, a column for each column.

        Raises
        ------
        ImportError
            If there is none of pyarrow, polars and DuckDB.
        """
        source = self._arrow()
        if isinstance(source, DuckdbStream):
            self._sources.append(source)
        stream: object = source.__arrow_c_stream__(requested_schema)
        return stream

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a DataFrame of pandas.

        Returns
        -------
        pandas.DataFrame
            A row for each row of the file, a column for each column.

        Raises
        ------
        ImportError
            If pandas or pyarrow is not installed.
        """
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Return the rows as a DataFrame of polars.

        Returns
        -------
        polars.DataFrame
            A row for each row of the file, a column for each column.

        Raises
        ------
        ImportError
            If polars is not installed.
        """
        engine = self._engine if isinstance(self._engine, Polars) else Polars()
        frame: polars.DataFrame
        self._require_current()
        if self._is_parquet():
            frame = engine.read(self.path, self._is_ours)
        else:
            frame = engine.stream_of_rows(*self._rows_and_names())
        return frame

    def to_arrow(self) -> Any:
        """Return the rows as a table of pyarrow.

        Returns
        -------
        pyarrow.Table
            A row for each row of the file, a column for each column.

        Raises
        ------
        ImportError
            If pyarrow is not installed.
        """
        engine = self._engine if isinstance(self._engine, Pyarrow) else Pyarrow()
        self._require_current()
        if self._is_parquet():
            return engine.read(self.path)
        return engine.stream_of_rows(*self._rows_and_names())

    def to_dicts(self) -> list[Row]:
        """Return the rows as dicts, by the names of the columns.

        Returns
        -------
        list of dict
            One for each row of the file, in its order.

        Raises
        ------
        ImportError
            If the file is Parquet, and there is none of pyarrow, polars and DuckDB.
        TypeError
            If the file is in a format that only other libraries read, such as XLSX.
        """
        self._require_current()
        if self._lines is not None:
            return [json.loads(line) for line in _text_of(self._lines).split("\n") if line.strip()]
        if self._is_parquet():
            return self._reader().rows(self.path, self._is_ours)
        if _ending_of(self.path) == ".json":
            rows: list[Row] = json.loads(_text_of(self.path))
            return rows
        if _ending_of(self.path) in _DELIMITED:
            return list(_csv_rows(self.path))
        raise TypeError(f"{self.path} is read by other libraries only")

    def _arrow(self) -> Any:
        self._require_current()
        if self._is_parquet():
            return self._reader().stream(self.path, self._is_ours)
        return self._reader().stream_of_rows(*self._rows_and_names())

    def _rows_and_names(self) -> tuple[list[Row], list[str]]:
        """The columns are those of all rows; a file of CSV without rows has them, too."""
        rows = self.to_dicts()
        if not rows and _ending_of(self.path) in _DELIMITED:
            return rows, list(_csv_rows(self.path).fieldnames or ())
        return rows, list(dict.fromkeys(name for row in rows for name in row))

    def _is_parquet(self) -> bool:
        return self.path.suffix.lower() == ".parquet"

    def _reader(self) -> Engine:
        return self._engine or engine_for()

    def _repr_html_(self) -> str:
        rows = self.to_dicts()
        names = list(rows[0]) if rows else []
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{_shown(row.get(name))}</td>" for name in names) + "</tr>"
            for row in rows[:_SHOWN_ROWS]
        )
        more = f"<p>{len(rows)} rows in {html.escape(str(self.path))}</p>"
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def __repr__(self) -> str:
        return f"<webfill.{type(self).__name__} {self.path}>"


def _shown(value: object) -> str:
    text = "" if value is None else str(value)
    return html.escape(text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…")


def _ending_of(path: Path) -> str:
    return Path(path.stem if path.suffix.lower() in {".gz", ".zst"} else path.name).suffix.lower()


def _text_of(path: Path) -> str:
    """The program writes a table in the encoding in which it was given."""
    data = path.read_bytes()
    if path.suffix.lower() == ".gz":
        data = gzip.decompress(data)
    elif path.suffix.lower() == ".zst":
        data = _zstd_decompressed(data)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def _zstd_decompressed(data: bytes) -> bytes:
    # Python has it from 3.14 on.
    if find_spec("compression") is not None:
        found: bytes = import_module("compression.zstd").decompress(data)
        return found
    if find_spec("pyarrow") is None:
        raise ImportError("reading a table that is compressed with zstd needs this: pip install pyarrow")
    with import_module("pyarrow").CompressedInputStream(io.BytesIO(data), "zstd") as stream:
        found = stream.read()
    return found


def _csv_rows(path: Path) -> csv.DictReader[str]:
    text = _text_of(path)
    # The line names the delimiter to spreadsheets.
    named = re.match(r"sep=(.)\r?\n", text)
    text = text[named.end() :] if named else text
    delimiter = named[1] if named else max(_DELIMITERS, key=text.partition("\n")[0].count)
    return csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)

"""Tables in files, which everything that speaks Arrow takes."""

from __future__ import annotations

import csv
import html
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from ._engines import Engine, Polars, Row, engine_for

if TYPE_CHECKING:
    import pandas
    import polars

_DELIMITERS = ",;\t|"
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
    ) -> None:
        self.path = path
        self._is_ours = is_ours
        self._lines = lines if lines is not None or path.suffix != ".jsonl" else path
        self._engine = engine
        # What streams are read from, which must not end before them.
        self._sources: list[Any] = []

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """Return the rows as an Arrow stream (the Arrow PyCapsule interface)."""
        source = self._arrow()
        self._sources.append(source)
        stream: object = source.__arrow_c_stream__(requested_schema)
        return stream

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a DataFrame of pandas, with the index and dtypes that a pandas table had."""
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Return the rows as a DataFrame of polars."""
        engine = Polars()
        frame: polars.DataFrame
        if self.path.suffix == ".parquet":
            frame = engine.read(self.path, self._is_ours)
        else:
            frame = engine.stream_of_rows(self.to_dicts())
        return frame

    def to_arrow(self) -> Any:
        """Return the rows as a ``pyarrow.Table``."""
        if self.path.suffix == ".parquet":
            return import_module("pyarrow.parquet").read_table(self.path)
        return import_module("pyarrow").Table.from_pylist(self.to_dicts())

    def to_dicts(self) -> list[Row]:
        """Return the rows as dicts, by the names of the columns."""
        if self._lines is not None:
            with self._lines.open(encoding="utf-8") as lines:
                return [json.loads(line) for line in lines if line.strip()]
        if self.path.suffix == ".parquet":
            return self._reader().rows(self.path, self._is_ours)
        if self.path.suffix == ".json":
            rows: list[Row] = json.loads(self.path.read_text(encoding="utf-8"))
            return rows
        if self.path.suffix in {".csv", ".tsv", ".txt"}:
            return list(_csv_rows(self.path))
        raise TypeError(f"{self.path} is read by other libraries only")

    def _arrow(self) -> Any:
        if self.path.suffix == ".parquet":
            return self._reader().stream(self.path, self._is_ours)
        return self._reader().stream_of_rows(self.to_dicts())

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


def _csv_rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        head = file.readline()
        file.seek(0)
        delimiter = max(_DELIMITERS, key=head.count)
        yield from csv.DictReader(file, delimiter=delimiter)

"""Tables in files, which everything that speaks Arrow takes."""

from __future__ import annotations

import html
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Optional

from ._engines import DuckdbStream, Engine, Polars, Pyarrow, Row, engine_for
from ._texts import TextTable

if TYPE_CHECKING:
    import pandas
    import polars

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
        form: Optional[Mapping[str, Any]] = None,
        require_current: Optional[Callable[[], None]] = None,
    ) -> None:
        self.path = path
        # Raises an error once the file has the contents of another table.
        self._given_check = require_current
        self._is_ours = is_ours
        # `lines` has the same rows as lines of JSON, which are read where no library is needed.
        self._text = TextTable(lines or path, form)
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
        if self._text.is_known:
            return self._text.rows()
        if self._is_parquet():
            return self._reader().rows(self.path, self._is_ours)
        raise TypeError(f"{self.path} is read by other libraries only")

    def _arrow(self) -> Any:
        self._require_current()
        if self._is_parquet():
            return self._reader().stream(self.path, self._is_ours)
        return self._reader().stream_of_rows(*self._rows_and_names())

    def _rows_and_names(self) -> tuple[list[Row], list[str]]:
        """The columns are those of all rows; a file of CSV without rows has them, too."""
        rows = self.to_dicts()
        names = self._text.names() if self._text.is_known and not rows else None
        return rows, list(dict.fromkeys(names or (name for row in rows for name in row)))

    def _is_parquet(self) -> bool:
        return self.path.suffix.lower() == ".parquet"

    def _require_current(self) -> None:
        if self._given_check is not None:
            self._given_check()

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

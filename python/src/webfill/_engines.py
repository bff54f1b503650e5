"""The libraries that read and write tables: whichever is there, the one that a table comes from first."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Optional, Protocol

Row = dict[str, Any]


class Engine(Protocol):
    """Reads and writes Parquet."""

    def write(self, table: Any, path: Path) -> None:
        """Write a table with all its types."""
        ...

    def stream(self, path: Path, is_ours: bool) -> Any:
        """Return something with ``__arrow_c_stream__``. Files of ours have no bytes, but texts and JSON."""
        ...

    def names(self, path: Path) -> list[str]:
        """Return the names of the columns."""
        ...

    def stream_of_rows(self, rows: Sequence[Row], names: Sequence[str]) -> Any:
        """The same for rows in memory, and the names of their columns."""
        ...

    def rows(self, path: Path, is_ours: bool) -> list[Row]:
        """Return a list of dicts."""
        ...


class Pyarrow:
    def __init__(self) -> None:
        self.pa: Any = import_module("pyarrow")
        self.parquet: Any = import_module("pyarrow.parquet")
        # The entries of lists keep the name of their field.
        self.options: Any = {"compression": "zstd", "use_compliant_nested_type": False}

    def write(self, table: Any, path: Path) -> None:
        if _library(table) == "pandas":
            # A pandas table is read with its index and dtypes, which no Arrow stream has.
            table = self.pa.Table.from_pandas(table)
        elif not hasattr(table, "__arrow_c_stream__"):
            table = self.pa.record_batch(table)
        if isinstance(table, self.pa.RecordBatch):
            table = self.pa.Table.from_batches([table])
        if isinstance(table, self.pa.Table):
            self.parquet.write_table(table, path, **self.options)
            return
        with self.pa.RecordBatchReader.from_stream(table) as reader:
            with self.parquet.ParquetWriter(path, reader.schema, **self.options) as writer:
                for batch in reader:
                    writer.write_batch(batch)

    def stream(self, path: Path, is_ours: bool) -> Any:
        # Read group by group, so that only one group is in memory.
        file = self.parquet.ParquetFile(path)
        return self.pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches())

    def stream_of_rows(self, rows: Sequence[Row], names: Sequence[str]) -> Any:
        if not rows:
            return self.pa.table({name: self.pa.array([], self.pa.string()) for name in names})
        # pyarrow would take only the columns of the first row, but other rows may have more.
        return self.pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows])

    def names(self, path: Path) -> list[str]:
        return list(self.parquet.read_schema(path).names)

    def rows(self, path: Path, is_ours: bool) -> list[Row]:
        rows: list[Row] = self.parquet.read_table(path).to_pylist()
        return rows


class Polars:
    def __init__(self) -> None:
        self.pl: Any = import_module("polars")

    def write(self, table: Any, path: Path) -> None:
        if not isinstance(table, self.pl.DataFrame):
            table = self.pl.DataFrame(table)
        table.write_parquet(path, compression="zstd")

    def stream(self, path: Path, is_ours: bool) -> Any:
        return self.read(path, is_ours)

    def read(self, path: Path, is_ours: bool) -> Any:
        """Return a DataFrame. JSON, which polars reads as bytes, is text."""
        frame = self.pl.read_parquet(path)
        return frame.cast({self.pl.Binary: self.pl.String}) if is_ours else frame

    def stream_of_rows(self, rows: Sequence[Row], names: Sequence[str]) -> Any:
        if not rows:
            return self.pl.DataFrame(schema=dict.fromkeys(names, self.pl.String))
        return self.pl.DataFrame(list(rows), infer_schema_length=None)

    def names(self, path: Path) -> list[str]:
        return list(self.pl.read_parquet_schema(path))

    def rows(self, path: Path, is_ours: bool) -> list[Row]:
        rows: list[Row] = self.read(path, is_ours).to_dicts()
        return rows


class _Duckdb:
    def __init__(self) -> None:
        self.duckdb: Any = import_module("duckdb")

    def write(self, table: Any, path: Path) -> None:
        if _library(table) != "duckdb":
            raise TypeError(f"DuckDB cannot write a {type(table).__name__}: pip install pyarrow or polars")
        table.write_parquet(str(path), compression="zstd")

    def stream(self, path: Path, is_ours: bool) -> Any:
        return DuckdbStream(self.duckdb.connect(), path)

    def stream_of_rows(self, rows: Sequence[Row], names: Sequence[str]) -> Any:
        raise TypeError("DuckDB cannot read a list of dicts: pip install pyarrow or polars")

    def names(self, path: Path) -> list[str]:
        return list(self.stream(path, False).relation.columns)

    def rows(self, path: Path, is_ours: bool) -> list[Row]:
        source = self.stream(path, is_ours)
        return [dict(zip(source.relation.columns, row)) for row in source.relation.fetchall()]


class DuckdbStream:
    """A relation with its connection, which ends what is read from it when it is closed."""

    def __init__(self, connection: Any, path: Path) -> None:
        self.connection = connection
        self.relation = connection.read_parquet(str(path))

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        stream: object = self.relation.__arrow_c_stream__(requested_schema)
        return stream


_ENGINES: dict[str, Any] = {"pyarrow": Pyarrow, "polars": Polars, "duckdb": _Duckdb}


def engine_for(table: Any = None) -> Engine:
    """Return the engine of the library that a table comes from, or the first that is there.

    Raises
    ------
    ImportError
        If none is installed.
    """
    library = _library(table)
    wanted: Optional[str] = {"pandas": "pyarrow"}.get(library, library)
    names = [wanted] if wanted in _ENGINES else list(_ENGINES)
    for name in names:
        if find_spec(name) is not None:
            engine: Engine = _ENGINES[name]()
            return engine
    raise ImportError(f"reading and writing tables needs one of these: pip install {' or '.join(names)}")


def _library(table: Any) -> str:
    return type(table).__module__.split(".")[0].lstrip("_")

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
        import_module("pyarrow.parquet")
        # The entries of lists keep the name of their field.
        self.options: Any = {"compression": "zstd", "use_compliant_nested_type": False}
        # Of the table that was written: Parquet lacks some types, such as times in whole seconds.
        self.schema: Any = None

    # Properties, because results, which are passed between processes, cannot take modules along.
    @property
    def pa(self) -> Any:
        return import_module("pyarrow")

    @property
    def parquet(self) -> Any:
        return import_module("pyarrow.parquet")

    def write(self, table: Any, path: Path) -> None:
        if not hasattr(table, "__arrow_c_stream__"):
            table = self.pa.record_batch(table)
        if isinstance(table, self.pa.RecordBatch):
            table = self.pa.Table.from_batches([table])
        if isinstance(table, self.pa.Table):
            self.schema = table.schema
            self.parquet.write_table(table, path, **self.options)
            return
        with self.pa.RecordBatchReader.from_stream(table) as reader:
            self.schema = reader.schema
            with self.parquet.ParquetWriter(path, reader.schema, **self.options) as writer:
                for batch in reader:
                    writer.write_batch(batch)

    def stream(self, path: Path, is_ours: bool) -> Any:
        # Read group by group, so that only one group is in memory.
        file = self.parquet.ParquetFile(path)
        schema = self._given_types(file.schema_arrow)
        batches = (self.pa.record_batch(_cast(batch.columns, schema), schema=schema) for batch in file.iter_batches())
        return self.pa.RecordBatchReader.from_batches(schema, batches)

    def read(self, path: Path) -> Any:
        """Return a table."""
        table = self.parquet.read_table(path)
        schema = self._given_types(table.schema)
        if schema.equals(table.schema):
            return table
        return self.pa.table(_cast(table.columns, schema), schema=schema)

    def _given_types(self, stored: Any) -> Any:
        """Return the stored schema with the types that the same columns had when they were given."""
        if self.schema is None or self.schema.names != stored.names:
            return stored
        schema = stored
        for position, (now, given) in enumerate(zip(stored, self.schema)):
            if not now.type.equals(given.type) and self._can_cast(now.type, given.type):
                schema = schema.set(position, now.with_type(given.type))
        return schema

    def _can_cast(self, stored: Any, given: Any) -> bool:
        try:
            self.pa.nulls(0, stored).cast(given)
        except self.pa.ArrowException:
            return False
        return True

    def stream_of_rows(self, rows: Sequence[Row], names: Sequence[str]) -> Any:
        if not rows:
            return self.pa.table({name: self.pa.array([], self.pa.string()) for name in names})
        # pyarrow would take only the columns of the first row, but other rows may have more.
        return self.pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows])

    def names(self, path: Path) -> list[str]:
        return list(self.parquet.read_schema(path).names)

    def rows(self, path: Path, is_ours: bool) -> list[Row]:
        rows: list[Row] = self.read(path).to_pylist()
        return rows


class Polars:
    def __init__(self) -> None:
        import_module("polars")
        # Of the table that was written: an Enum that is read from a file has nulls for values that it lacks.
        self.schema: Any = {}

    @property
    def pl(self) -> Any:
        return import_module("polars")

    def write(self, table: Any, path: Path) -> None:
        if not isinstance(table, self.pl.DataFrame):
            table = self.pl.DataFrame(table)
        self.schema = table.schema
        texts = {name: self._without_enums(dtype) for name, dtype in table.schema.items()}
        table.cast(texts).write_parquet(path, compression="zstd")

    def stream(self, path: Path, is_ours: bool) -> Any:
        return self.read(path, is_ours)

    def read(self, path: Path, is_ours: bool) -> Any:
        """Return a DataFrame. JSON, which polars reads as bytes, is text."""
        frame = self.pl.read_parquet(path)
        if is_ours:
            return frame.cast({self.pl.Binary: self.pl.String})
        if frame.columns == list(self.schema):
            given = [self._as_given(frame[name], dtype) for name, dtype in self.schema.items()]
            frame = self.pl.DataFrame(given)
        return frame

    def _without_enums(self, dtype: Any) -> Any:
        """Return a type with texts in place of every Enum."""
        pl = self.pl
        if isinstance(dtype, pl.Enum):
            return pl.String
        if isinstance(dtype, pl.List):
            return pl.List(self._without_enums(dtype.inner))
        if isinstance(dtype, pl.Array):
            return pl.Array(self._without_enums(dtype.inner), dtype.size)
        if isinstance(dtype, pl.Struct):
            return pl.Struct({field.name: self._without_enums(field.dtype) for field in dtype.fields})
        return dtype

    def _as_given(self, column: Any, dtype: Any) -> Any:
        """Return a column in the type that it had. An Enum also gets the values that gaps were filled with."""
        if column.dtype == dtype or column.dtype != self._without_enums(dtype):
            return column
        try:
            return column.cast(dtype)
        except self.pl.exceptions.PolarsError:
            return column.cast(self._with_values_of(column, dtype))

    def _with_values_of(self, column: Any, dtype: Any) -> Any:
        """Return a type whose Enums, also those in lists and structs, have all values of a column of texts."""
        pl = self.pl
        if isinstance(dtype, pl.Enum):
            known = dtype.categories.to_list()
            new = [text for text in column.drop_nulls().unique(maintain_order=True) if text not in known]
            return pl.Enum([*known, *new])
        if isinstance(dtype, pl.List):
            return pl.List(self._with_values_of(column.explode(), dtype.inner))
        if isinstance(dtype, pl.Array):
            return pl.Array(self._with_values_of(column.explode(), dtype.inner), dtype.size)
        if isinstance(dtype, pl.Struct):
            fields = {one.name: self._with_values_of(column.struct.field(one.name), one.dtype) for one in dtype.fields}
            return pl.Struct(fields)
        return dtype

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
        import_module("duckdb")
        # Of the table that was written: Parquet lacks some types, such as HUGEINT and ENUM.
        self.types: dict[str, str] = {}

    @property
    def duckdb(self) -> Any:
        return import_module("duckdb")

    def write(self, table: Any, path: Path) -> None:
        if library_of(table) != "duckdb":
            raise TypeError(f"DuckDB cannot write a {type(table).__name__}: pip install pyarrow or polars")
        types = dict(zip(unique(table.columns), map(str, table.types)))
        # DuckDB would store them as floating-point numbers, and lose digits.
        whole = [
            f"CAST({_quoted(name)} AS DECIMAL(38, 0)) AS {_quoted(name)}"
            for name, kind in types.items()
            if kind in {"HUGEINT", "UHUGEINT"}
        ]
        stored = table.project(f"* REPLACE ({', '.join(whole)})") if whole else table
        stored.write_parquet(str(path), compression="zstd")
        self.types = types
        for name, kind in self._lost_types(path).items():
            if not self._can_cast(path, name, kind):
                raise TypeError(f"Parquet cannot hold the type {kind} of the column {name}: cast it")

    def stream(self, path: Path, is_ours: bool) -> Any:
        source = DuckdbStream(self.duckdb.connect(), path)
        # A filled value may be none of the values of an ENUM, for example.
        casts = [
            f"CAST({_quoted(name)} AS {kind}) AS {_quoted(name)}"
            for name, kind in self._lost_types(path).items()
            if self._can_cast(path, name, kind)
        ]
        if casts:
            source.relation = source.relation.project(f"* REPLACE ({', '.join(casts)})")
        return source

    def _lost_types(self, path: Path) -> dict[str, str]:
        """Return the given types of the columns that Parquet holds in another type."""
        relation = DuckdbStream(self.duckdb.connect(), path).relation
        if list(relation.columns) != list(self.types):
            return {}
        stored = dict(zip(relation.columns, map(str, relation.types)))
        return {name: kind for name, kind in self.types.items() if kind != stored[name]}

    def _can_cast(self, path: Path, name: str, kind: str) -> bool:
        """Whether all values of a column can be cast to a type."""
        source, column = DuckdbStream(self.duckdb.connect(), path), _quoted(name)
        try:
            same = source.relation.aggregate(f"count({column}) = count(TRY_CAST({column} AS {kind}))")
            return bool(same.fetchall()[0][0])
        except self.duckdb.Error:
            return False

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
    library = library_of(table)
    wanted: Optional[str] = {"pandas": "pyarrow"}.get(library, library)
    names = [wanted] if wanted in _ENGINES else list(_ENGINES)
    for name in names:
        if find_spec(name) is not None:
            engine: Engine = _ENGINES[name]()
            return engine
    raise ImportError(f"reading and writing tables needs one of these: pip install {' or '.join(names)}")


def library_of(table: Any) -> str:
    """Return the name of the library that a table comes from, also if its class is derived from one of the library."""
    modules = [kind.__module__.split(".")[0].lstrip("_") for kind in type(table).__mro__]
    return next((module for module in modules if module in {"pandas", *_ENGINES}), modules[0])


def unique(names: Sequence[str]) -> list[str]:
    """Return the names of columns.

    Raises
    ------
    TypeError
        If two columns have the same name.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise TypeError(f"two columns are named {name!r}")
        seen.add(name)
    return list(names)


def _cast(columns: Sequence[Any], schema: Any) -> list[Any]:
    """Return columns in the types of a schema. What a filled value has beyond whole seconds, for example, is dropped."""
    return [
        column if column.type.equals(field.type) else column.cast(field.type, safe=False)
        for column, field in zip(columns, schema)
    ]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

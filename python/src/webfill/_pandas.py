"""Tables of pandas: what Parquet cannot hold is kept here, and put back into the filled table."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Callable, Optional
from uuid import UUID

from ._engines import Pyarrow, unique
from ._rows import is_missing

if TYPE_CHECKING:
    import pandas


class PandasTable:
    """The index, names, dtypes and objects of a table."""

    def __init__(self, frame: Any) -> None:
        self.index: Any = frame.index
        self.columns: Any = frame.columns
        self.dtypes: list[Any] = list(frame.dtypes)
        self.names: list[str] = unique([str(name) for name in frame.columns])
        # By position. Cells that are not filled stay the same objects, such as tuples, sets and NaN beside None.
        self.objects: dict[int, list[Any]] = {
            position: list(frame.iloc[:, position]) for position, dtype in enumerate(self.dtypes) if dtype == object
        }
        # Columns whose objects Arrow has no type for, such as texts beside numbers: they are stored as texts.
        self.texts: set[int] = set()

    def storable(self, frame: Any) -> Any:
        """Return the table as a pyarrow table."""
        pyarrow = Pyarrow().pa
        stored = frame.copy(deep=False)
        stored.columns = self.names
        for position, dtype in enumerate(self.dtypes):
            if type(dtype).__name__ == "SparseDtype":
                stored[self.names[position]] = stored.iloc[:, position].astype(dtype.subtype)
        try:
            return self._with_wide_decimals(pyarrow.Table.from_pandas(stored))
        except (TypeError, ValueError, ArithmeticError, NotImplementedError):
            self.texts = {position for position, cells in self.objects.items() if not _has_arrow_type(pyarrow, cells)}
            if not self.texts:
                raise
        for position in self.texts:
            stored[self.names[position]] = [_text(cell) for cell in self.objects[position]]
        return self._with_wide_decimals(pyarrow.Table.from_pandas(stored))

    def _with_wide_decimals(self, table: Any) -> Any:
        """Return the table with room for larger numbers in columns of ``Decimal``, which have the digits of no type."""
        pyarrow = Pyarrow().pa
        for position in self.objects:
            field = table.schema.field(position)
            if pyarrow.types.is_decimal128(field.type):
                wide = pyarrow.decimal128(38, field.type.scale)
                table = table.set_column(position, field.with_type(wide), table.column(position).cast(wide))
        return table

    def restored(self, table: Any) -> pandas.DataFrame:
        """Return a filled table as the given one was, with its gaps filled."""
        columns = [self._column(position, table.column(name)) for position, name in enumerate(self.names)]
        library: Any = import_module("pandas")
        frame: pandas.DataFrame = library.DataFrame(dict(enumerate(columns)), index=range(len(self.index)))
        frame.index = self.index
        frame.columns = self.columns
        return frame

    def _column(self, position: int, column: Any) -> Any:
        """Return a column in its dtype."""
        library: Any = import_module("pandas")
        dtype: Any = self.dtypes[position]
        if position in self.objects:
            cells = self._cells(position, column)
            array: Any = import_module("numpy").empty(len(cells), dtype=object)
            # Assigned singly, because NumPy would turn lists of one length into further dimensions.
            for row, cell in enumerate(cells):
                array[row] = cell
            return library.Series(array, dtype=object)
        if isinstance(dtype, library.ArrowDtype):
            return library.Series(library.arrays.ArrowExtensionArray(column.cast(dtype.pyarrow_dtype)))
        # Integers stay integers beside gaps.
        series: Any = column.to_pandas(integer_object_nulls=True)
        if dtype.name == "category":
            dtype = _with_categories(dtype, series)
        return series if series.dtype == dtype else series.astype(dtype)

    def _cells(self, position: int, column: Any) -> list[Any]:
        """Return the objects of a column: those that were given, but for what was filled."""
        given = self.objects[position]
        if position in self.texts:
            stored: Sequence[Any] = [_text(cell) for cell in given]
            read = _reader_of(given)
        else:
            stored = Pyarrow().pa.array(given, type=column.type, from_pandas=True).to_pylist()
            read = None
        filled = column.to_pylist()
        return [
            old if before == now else now if read is None else read(now)
            for old, before, now in zip(given, stored, filled)
        ]


def _has_arrow_type(pyarrow: Any, cells: Sequence[Any]) -> bool:
    try:
        pyarrow.array(cells, from_pandas=True)
    except (TypeError, ValueError, ArithmeticError, NotImplementedError):
        return False
    return True


def _text(cell: Any) -> Optional[str]:
    return None if is_missing(cell) else str(cell)


def _reader_of(cells: Sequence[Any]) -> Optional[Callable[[str], Any]]:
    """Return what reads a text as an object of a column, if all its objects are of one such type."""
    kinds = {type(cell) for cell in cells if not is_missing(cell)}
    kind: Any = kinds.pop() if len(kinds) == 1 else None
    if kind not in (int, UUID):
        return None

    def read(text: str) -> Any:
        try:
            return kind(text)
        except ValueError:
            return text

    return read


def _with_categories(dtype: Any, column: Any) -> Any:
    """Return a categorical dtype that also has the values that gaps were filled with."""
    new = [value for value in column.dropna().unique() if value not in dtype.categories]
    return type(dtype)([*dtype.categories, *new], ordered=dtype.ordered) if new else dtype

"""Lists of dicts: written as JSON lines for the program, and returned with the types that they had."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from math import isfinite
from pathlib import Path
from typing import Any, Callable, Optional
from uuid import UUID

from ._engines import Row


# Types of JSON of which every value is one.
_PLAIN = frozenset({str, int, bool, type(None)})
# Kept, because `json.dumps` would make one for each row.
_as_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def encoded(row: Mapping[str, Any]) -> Row:
    """Return a row in the types of JSON.

    >>> encoded({"price": Decimal("1.50"), "on": date(2026, 1, 2), "tags": ["a"], "note": None})
    {'price': '1.50', 'on': '2026-01-02', 'tags': ['a'], 'note': None}
    """
    return {str(name): value if type(value) in _PLAIN else _cell(name, value) for name, value in row.items()}


def _cell(name: object, value: Any) -> Any:
    try:
        return _encoded(value)
    except TypeError as error:
        raise TypeError(f"the column {name!r}: {error}") from error


def _encoded(value: Any) -> Any:
    if is_missing(value):
        return None
    if isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [_encoded(one) for one in value]
    if isinstance(value, Mapping):
        return encoded(value)
    if isinstance(value, Decimal):
        return _decimal_text(value)
    if isinstance(value, (UUID, timedelta)):
        return str(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    if type(value).__name__ == "datetime64" and isinstance(value.tolist(), int):
        # Drops the nanoseconds, which Python does not support.
        return _encoded(value.astype("datetime64[us]").tolist())
    if hasattr(value, "tolist"):  # a value of NumPy
        return _encoded(value.tolist())
    raise TypeError(f"a value of the type {type(value).__name__} cannot be in a list of dicts")


def _decimal_text(value: Decimal) -> str:
    """Return the digits, without zeros behind the second one after the point: 1.250 could be 1250 in a text.

    >>> [_decimal_text(Decimal(text)) for text in ("1.50", "1.250", "1.125", "2.000", "3E+2")]
    ['1.50', '1.25', '1.125', '2.00', '300']
    """
    whole, point, fraction = f"{value:f}".partition(".")
    return f"{whole}{point}{fraction[:2]}{fraction[2:].rstrip('0')}"


class FilledRows:
    """The rows with gaps filled: what was there is the same object, what was not has the type of its column."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], path: Path) -> None:
        self._rows = rows
        self._path = path

    def read(self) -> list[Row]:
        """Return the rows."""
        readers: dict[str, Optional[Callable[[str], Any]]] = {}
        # Names that are no texts are texts in the file.
        names = {str(name): name for row in self._rows for name in row}
        filled: list[Row] = []
        # Line by line, because as many rows again may not fit into memory.
        with self._path.open(encoding="utf-8", newline="\n") as lines:
            for given, line in zip(self._rows, lines):
                row = dict(given)
                for name, value in json.loads(line).items():
                    own = names.get(name, name)
                    if own in row and _is_same(own, row[own], value):
                        continue
                    if name not in readers:
                        readers[name] = self._reader_of(own)
                    row[own] = _read(readers[name], value)
                filled.append(row)
        return filled

    def _reader_of(self, name: Any) -> Optional[Callable[[str], Any]]:
        """Return what reads the values of a column, if all its values are of one such type."""
        kinds = {type(row[name]) for row in self._rows if not _is_gap(row.get(name))}
        return _reader_of(kinds.pop()) if len(kinds) == 1 else None


def _is_same(name: object, given: Any, now: Any) -> bool:
    """Whether a value of the file is one that was given."""
    if type(given) in _PLAIN:
        return bool(given == now)
    return bool(_cell(name, given) == now)


def _read(reader: Optional[Callable[[str], Any]], value: Any) -> Any:
    """Return a value in the type of its column; a text that cannot be read so stays as it is."""
    if reader is None or not isinstance(value, str):
        return value
    try:
        return reader(value)
    except (ValueError, InvalidOperation):
        return value


def is_missing(value: Any) -> bool:
    """Whether JSON has no such value: None, NaN, and what pandas has for them."""
    if isinstance(value, float):
        return not isfinite(value)
    if isinstance(value, Decimal):
        return not value.is_finite()
    return value is None or type(value).__name__ in {"NaTType", "NAType"}


def _is_gap(value: Any) -> bool:
    return is_missing(value) or (isinstance(value, str) and not value)


def _reader_of(kind: Any) -> Optional[Callable[[str], Any]]:
    """Return what reads a text as a value of a type.

    >>> _reader_of(datetime)("2026-01-02T03:04:05Z")
    datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    >>> _reader_of(Decimal)("1.50")
    Decimal('1.50')
    >>> _reader_of(int) is None
    True
    """
    if issubclass(kind, (Decimal, UUID)):
        return lambda text: kind(text)
    if kind.__module__.partition(".")[0] == "pandas":
        # In Python 3.9, passing the class itself would drop the zone.
        return lambda text: kind(text)
    if issubclass(kind, (date, time)):
        # Python 3.9 and 3.10 cannot parse the Z.
        return lambda text: kind.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    return None


def write(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write rows as JSON lines."""
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            try:
                file.write(_as_json(encoded(row)) + "\n")
            except UnicodeEncodeError:
                [name, *_] = [name for name in row if _has_half_a_character({name: row[name]})]
                raise TypeError(f"the column {name!r}: a text has half of a surrogate pair, which UTF-8 lacks") from None


def _has_half_a_character(row: Mapping[str, Any]) -> bool:
    text = json.dumps(encoded(row), ensure_ascii=False)
    return any("\ud800" <= character <= "\udfff" for character in text)

"""Check, test, learn and repair mappings."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional, Union

from ._command import run
from ._errors import error_of, flag, operand
from ._rows import encoded
from ._uri import environment_of, uri_of

__all__ = ["Fault", "Learned", "Tested", "check", "learn", "repair", "test"]

_PathLike = Union[str, os.PathLike[str]]

# What follows the name of the file.
_FAULT = re.compile(r"(?::(?P<line>\d+))?: (?:(?P<path>[\w$][\w.$\[\]-]*): )?(?P<message>.+)$")
# How many warnings a file or a folder has.
_COUNTED = re.compile(r"(?P<file>\S.*): \d+ mappings?, (?:all good|(?P<warnings>\d+) warnings?)$")
# A file in a folder.
_FILE = re.compile(r".+?\.json(?=:(?:\d+:)? )")


class Fault(NamedTuple):
    """A fault of a mapping file.

    Attributes
    ----------
    file : str
        The file.
    line : int or None
        The line, counted from 1.
    path : str or None
        The JSON path, as ``fields.price[1]``.
    message : str
        The program's sentence.
    is_warning : bool
        Whether the mapping can be used all the same.
    """

    file: str
    line: Optional[int]
    path: Optional[str]
    message: str
    is_warning: bool


class Tested(NamedTuple):
    """What mappings extract from pages.

    Attributes
    ----------
    pages : list of dict
        For each page its ``fields``, ``links`` and ``rows``, as ``webfill mapping test --format json`` prints them.
    summary : dict or None
        Of several pages: the share of filled pages by mapping and field.
    failures : list of str
        A sentence for each page that could not be read.
    """

    pages: list[dict[str, Any]]
    summary: Optional[dict[str, Any]]
    failures: list[str]


class Learned(NamedTuple):
    """A mapping that was learned or repaired.

    Attributes
    ----------
    mapping : dict or list of dict or None
        The mapping, or several of them; None if nothing was learned.
    report : dict
        Confidence, agreement and chains by field.
    complete : bool
        Whether all that was wanted was learned or repaired.
    """

    mapping: Any
    report: dict[str, Any]
    complete: bool


def check(*paths: _PathLike) -> list[Fault]:
    """Check mapping files.

    Parameters
    ----------
    *paths : path
        Files with any names, or folders, whose files ``*.json`` are checked. Without one, the folder ``etl-mappings``.

    Returns
    -------
    list of Fault
        Every warning, and every fault, also of files that cannot be read; empty if there is none.

    Raises
    ------
    WebfillError
        If the program fails for another reason than a fault of a file.

    Examples
    --------
    >>> import pathlib, tempfile, webfill
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "bad.json"
    >>> _ = file.write_text('{"name": "a", "fieldz": {}}')
    >>> [(fault.line, fault.path, fault.message) for fault in webfill.mapping.check(file)][0]
    (1, 'fieldz', 'unknown key `fieldz`, did you mean `fields`?')
    """
    given = {operand(path): os.fspath(path) for path in paths or ["etl-mappings"]}
    ended = run(["mapping", "check", *given])
    faults: list[Fault] = []
    for text in ended.stderr.splitlines():
        fault = _fault(text[len("webfill: ") :] if text.startswith("webfill: ") else text, given, is_warning=False)
        if fault is not None:
            faults.append(fault)
        elif faults and text.strip():
            faults[-1] = faults[-1]._replace(message=f"{faults[-1].message}\n{text}")
    if ended.code != 0 and not faults:
        raise error_of(ended.code, ended.stderr)
    return _warnings(ended.stdout, given) + faults


def _warnings(printed: str, given: Mapping[str, str]) -> list[Fault]:
    """Return the warnings, which follow the count of a file, indented; what is indented further belongs to them."""
    warnings: list[Fault] = []
    file, left = "", 0
    for text in printed.splitlines():
        counted = _COUNTED.match(text)
        if counted:
            file, left = counted["file"], int(counted["warnings"] or 0)
        elif text.startswith("    ") and warnings:
            warnings[-1] = warnings[-1]._replace(message=f"{warnings[-1].message}\n{text[4:]}")
        elif text.startswith("  ") and left > 0:
            left -= 1
            found = _fault(text[2:], given, is_warning=True)
            warnings.append(found or Fault(given.get(file, file), None, None, text[2:], True))
    return warnings


def _fault(text: str, given: Mapping[str, str], is_warning: bool) -> Optional[Fault]:
    """Return the fault that a line names. It begins with a file that was given, by any name, or with one of a folder."""
    in_folder = _FILE.match(text)
    files = [*given, *([in_folder[0]] if in_folder else [])]
    for file in sorted(files, key=len, reverse=True):
        found = _FAULT.match(text, len(file)) if text.startswith(file) else None
        if found:
            line = found["line"]
            return Fault(
                given.get(file, file), int(line) if line else None, found["path"], found["message"], is_warning
            )
    return None


def test(
    mapping: _PathLike,
    *pages: _PathLike,
    name: Optional[str] = None,
    fields: Sequence[str] = (),
    url: Optional[str] = None,
    contact: Optional[str] = None,
    allow_private_networks: bool = False,
    config: Optional[_PathLike] = None,
) -> Tested:
    """Run mappings on pages.

    Parameters
    ----------
    mapping : path
        Mapping file, or a folder of them.
    *pages : path or URL
        Saved pages, folders of them, or URLs, which are fetched once and kept.
    name : str, optional
        Use the mapping of this name for any URL.
    fields : list of str
        Only these fields.
    url : str, optional
        URL of the page.
    contact, allow_private_networks, config : optional
        As of ``webfill.crawl``.

    Returns
    -------
    Tested
        The extracted values.

    Raises
    ------
    UsageError
        If a mapping has a fault, or the only page cannot be read or has no mapping.
    """
    arguments = [
        "mapping",
        "test",
        operand(mapping),
        *map(operand, pages),
        "--format=json",
        *flag("mapping", name),
        *(f"--field={field}" for field in ([fields] if isinstance(fields, str) else fields)),
        *flag("url", url),
        *flag("contact", contact),
        *flag("allow-private-networks", allow_private_networks),
        *flag("config", config),
    ]
    ended = run(arguments)
    if ended.code not in (0, 1) or not ended.stdout.startswith("{"):
        raise error_of(ended.code, ended.stderr)
    try:
        found: list[dict[str, Any]] = [ended.json()]
    except ValueError:
        found = ended.json_lines()
    summary = found.pop() if "mappings" in found[-1] else None
    failures = [line[len("webfill: ") :] for line in ended.stderr.splitlines() if line.startswith("webfill: ")]
    return Tested(found, summary, failures)


def learn(
    records: Union[_PathLike, Iterable[Mapping[str, Any]], None] = None,
    *,
    pages: Optional[_PathLike] = None,
    warc: Optional[_PathLike] = None,
    crawl: Optional[str] = None,
    store: Optional[_PathLike] = None,
    fetch: Optional[int] = None,
    fields: Sequence[str] = (),
    name: Optional[str] = None,
    rows: bool = False,
    output: Optional[_PathLike] = None,
    contact: Optional[str] = None,
    allow_private_networks: bool = False,
    flags: Sequence[str] = (),
) -> Learned:
    """Learn a mapping from pages and the records that link to them.

    Parameters
    ----------
    records : path or iterable of dict
        Records with known values: a file as for ``webfill crawl --seeds``, or dicts with ``id``, ``urls`` and
        ``fields``.
    pages : path, optional
        Folder of pages with their URLs in its ``pages.jsonl``, or of golden cases.
    warc, crawl, store, fetch : optional
        Other sources of pages: a WARC file; a crawl with kept bodies and its store; the number of pages to fetch.
    fields : list of str
        Fields to learn; by default all that the records have values of.
    name : str, optional
        Name of the mapping.
    rows : bool
        Learn rows for pages that list several records.
    output : path, optional
        Write the mapping to this file, which must not exist.
    contact, allow_private_networks : optional
        As of ``webfill.crawl``, for ``fetch``.
    flags : list of str
        Further arguments of ``webfill mapping learn``, such as ``["--force"]``.

    Returns
    -------
    Learned
        The mapping and how sure it is.

    Raises
    ------
    UsageError
        If records or pages cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="webfill-") as folder:
        arguments = [
            "mapping",
            "learn",
            *flag("records", _file_of(records, Path(folder))),
            *flag("pages", pages),
            *flag("warc", warc),
            *flag("crawl", crawl),
            *flag("fetch", fetch),
            *flag("fields", fields if isinstance(fields, str) else ",".join(fields) or None),
            *flag("name", name),
            *flag("rows", rows),
            *flag("contact", contact),
            *flag("allow-private-networks", allow_private_networks),
            *([flags] if isinstance(flags, str) else flags),
        ]
        return _learned(arguments, output, Path(folder), environment_of(store))


def repair(
    mapping: _PathLike,
    *,
    name: Optional[str] = None,
    crawl: Optional[str] = None,
    pages: Optional[_PathLike] = None,
    store: Optional[_PathLike] = None,
    records: Union[_PathLike, Iterable[Mapping[str, Any]], None] = None,
    apply: bool = False,
    output: Optional[_PathLike] = None,
    flags: Sequence[str] = (),
) -> Learned:
    """Relearn the fields of a mapping that a changed layout has broken, from their earlier values.

    Parameters
    ----------
    mapping : path
        Mapping file.
    name : str, optional
        Name of the mapping, if the file has several.
    crawl, pages, store, records : optional
        Sources of current pages and known values, as for ``learn``.
    apply : bool
        Replace the file; the old one is kept beside it.
    output : path, optional
        Write the repaired mapping to this file, which must not exist.
    flags : list of str
        Further arguments of ``webfill mapping repair``.

    Returns
    -------
    Learned
        The repaired mapping, and what was done to each field.

    Raises
    ------
    UsageError
        If the mapping, records or pages cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="webfill-") as folder:
        arguments = [
            "mapping",
            "repair",
            operand(mapping),
            *flag("mapping", name),
            *flag("crawl", crawl),
            *flag("pages", pages),
            # If pages are given, a store counts only as an argument.
            *flag("store", uri_of(store) if store is not None and pages is not None else None),
            *flag("records", _file_of(records, Path(folder))),
            *([flags] if isinstance(flags, str) else flags),
        ]
        if apply:
            return _learned([*arguments, "--apply"], mapping, Path(folder), environment_of(store), names_output=False)
        return _learned(arguments, output, Path(folder), environment_of(store))


def _file_of(records: Union[_PathLike, Iterable[Mapping[str, Any]], None], folder: Path) -> Optional[str]:
    if records is None or isinstance(records, (str, os.PathLike)):
        return None if records is None else os.fspath(records)
    file = folder / "records.jsonl"
    lines = (json.dumps(encoded(record), ensure_ascii=False) + "\n" for record in records)
    file.write_text("".join(lines), encoding="utf-8")
    return str(file)


def _learned(
    arguments: list[str],
    output: Optional[_PathLike],
    folder: Path,
    environment: Mapping[str, str],
    *,
    names_output: bool = True,
) -> Learned:
    """Run a command that writes a mapping to a file; its report is on standard output then."""
    file = Path(output) if output is not None else folder / "mapping.json"
    outputs = ["--format=json", *([f"--output={file}"] if names_output else [])]
    ended = run([*arguments, *outputs], environment=environment)
    if ended.code not in (0, 1) or not ended.stdout.startswith("{"):
        raise error_of(ended.code, ended.stderr)
    mapping = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
    return Learned(mapping, ended.json(), ended.code == 0)

"""``webfill.fill``: a table with gaps goes in and comes out filled."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import filecmp
import hashlib
import html
import json
import os
import threading
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Callable, Optional, Union

from . import _rows
from ._command import run
from ._engines import Row, engine_for, library_of, unique
from ._errors import FatalError, UsageError, WebfillError, columns, flag, operand
from ._pandas import PandasTable
from ._progress import Progress
from ._tables import Table
from ._uri import environment_of

if TYPE_CHECKING:
    import pandas

Names = Union[str, int, Sequence[Hashable], None]

_DONE, _LIMIT = 0, 12


class Filled(Table):
    """A table whose gaps are filled, with the evidence for each value.

    Attributes
    ----------
    path : pathlib.Path
        The filled table; absolute, as all paths here.
    evidence : Table
        For each value the page, its chain, an excerpt, the time, the mapping, the confidence and the state.
    doubts : Table
        Known values that their pages contradict. Write ``accept`` or ``reject`` into the column ``answer`` of the file
        and give it to ``fill`` as ``doubts``.
    summary : dict
        Counts: ``rows``, ``gaps``, ``pages``, ``doubts``; ``all``: gaps, filled, expected precision; the same by column in
        ``fields`` and by site in ``sites``; ``reasons``: why gaps are left.
    report : pathlib.Path
        A page with pictures for people.
    complete : bool
        False if a limit was reached or this machine is offline; the same call resumes.
    text : str
        The output of the program: the plan, and its summary in sentences.
    """

    evidence: Table
    doubts: Table
    summary: dict[str, Any]
    report: Path
    complete: bool
    text: str

    def __init__(self, given: _Given, *, complete: bool, text: str) -> None:
        current = given.require_current
        overview = given.beside(".webfill") / "overview.json"
        self.summary = json.loads(overview.read_text(encoding="utf-8"))
        form = self.summary.get("form")
        path = given.beside(f".filled{given.endings}")
        super().__init__(path, engine=given.engine, form=form, require_current=current)
        self._given = given
        lines = given.beside(".evidence.jsonl")
        evidence = given.beside(".evidence.parquet")
        self.evidence = Table(evidence, lines=lines, engine=given.engine, is_ours=True, require_current=current)
        self.doubts = Table(given.beside(".doubts.csv"), engine=given.engine, require_current=current)
        self.report = given.beside(".html")
        self.complete = complete
        self.text = text

    def to_dicts(self) -> list[Row]:
        """Return the rows as dicts.

        Returns
        -------
        list of dict
            One for each row, in the order of the table. Those of a list of dicts have the types that they had, and cells
            that were not filled are the same objects.

        Raises
        ------
        ImportError
            If the file is Parquet, and there is none of pyarrow, polars and DuckDB.
        TypeError
            If the file is in a format that only other libraries read, such as XLSX.
        WebfillError
            If a later call has filled another table under the same name.
        """
        if self._given.rows is not None:
            self._given.require_current()
            return _rows.FilledRows(self._given.rows, self.path).read()
        return super().to_dicts()

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a DataFrame of pandas.

        Returns
        -------
        pandas.DataFrame
            As many rows and columns as the table has. A table of pandas keeps its index, names and dtypes; in columns of
            objects, cells that were not filled are the same objects. A categorical column gets the categories that its
            gaps were filled with.

        Raises
        ------
        ImportError
            If pandas or pyarrow is not installed.
        WebfillError
            If a later call has filled another table under the same name.
        """
        if self._given.pandas is None:
            return super().to_pandas()
        return self._given.pandas.restored(self.to_arrow())

    def __repr__(self) -> str:
        return (
            f"<webfill.Filled {self.path}: {self._all()['filled']} of {self.summary['gaps']} gaps filled, "
            f"{self.summary['doubts']} doubts>"
        )

    def _all(self) -> Mapping[str, Any]:
        # Its gaps are those of rows with links, and the summary has all.
        return self.summary.get("all") or {"filled": 0, "expected": None}

    def _repr_html_(self) -> str:
        summary = self.summary
        every = self._all()
        bars = "".join(_bar(one["name"], one) for one in summary.get("fields", []))
        reasons = "".join(
            f"<li>{one['count']} {html.escape(one['state'])}</li>" for one in summary.get("reasons", [])
        )
        left = f"<p>Left as gaps:</p><ul>{reasons}</ul>" if reasons else ""
        cut = "" if self.complete else "<p>Not complete: run the same cell again.</p>"
        return (
            f"<div><p><b>{every['filled']} of {summary['gaps']} gaps filled</b>{_expected(every)}; "
            f"{summary['doubts']} doubts; {summary['pages']['stored']} pages</p>{cut}"
            f"<table><tbody>{bars}</tbody></table>{left}"
            f"<p>{html.escape(str(self.path))}, {html.escape(str(self.report))}</p></div>"
        )


def _bar(name: str, counts: Mapping[str, Any]) -> str:
    share = counts["filled"] / counts["gaps"] if counts["gaps"] else 1.0
    width = round(200 * share)
    picture = (
        '<svg width="200" height="12" role="img" '
        f'aria-label="{share:.0%}"><rect width="200" height="12" fill="#ddd"/>'
        f'<rect width="{width}" height="12" fill="#2a7"/></svg>'
    )
    count = f"{counts['filled']} of {counts['gaps']}{_expected(counts)}"
    return f"<tr><th>{html.escape(name)}</th><td>{picture}</td><td>{count}</td></tr>"


def _expected(counts: Mapping[str, Any]) -> str:
    expected = counts.get("expected")
    return "" if expected is None else f", expected precision {expected:.3f}"


class _Given:
    """The table as the program reads it, and what restores its types."""

    path: Path
    # The path as it was given, which the program repeats in what it prints.
    operand: str

    @property
    def endings(self) -> str:
        """The endings of the name, as the program counts them: ``.csv.gz`` is one."""
        packed = self.path.suffix if self.path.suffix.lower() in {".gz", ".zst"} else ""
        return Path(self.path.name[: len(self.path.name) - len(packed)]).suffix + packed

    def beside(self, ending: str) -> Path:
        """The path of an output."""
        name = self.path.name
        return self.path.with_name(name[: len(name) - len(self.endings)] + ending)

    def __init__(self, table: Any, folder: Union[str, os.PathLike[str]], name: Optional[str]) -> None:
        self.rows: Optional[list[Mapping[str, Any]]] = None
        self.engine: Any = None
        self.pandas: Optional[PandasTable] = None
        self._stored: Optional[_Stored] = None
        if isinstance(table, (str, os.PathLike)):
            self._use(Path(table))
            return
        if isinstance(table, Sequence) and not isinstance(table, bytes):
            rows = list(table)
            if not all(isinstance(row, Mapping) for row in rows):
                raise TypeError("a list of something else than dicts is no table")
            names = unique([str(key) for key in dict.fromkeys(key for row in rows for key in row)])
            self._keep(_Stored(folder, name, ".jsonl", lambda path: _rows.write(rows, path), lambda _: names))
            self.rows = rows
            return
        if not any(hasattr(table, way) for way in ("__arrow_c_stream__", "__arrow_c_array__", "write_parquet")):
            way = "its collect()" if hasattr(table, "collect") else "something with __arrow_c_stream__, such as a DataFrame"
            raise TypeError(
                f"a {type(table).__name__} is no table: give {way}, a list of dicts, or the path of a file"
            )
        self.engine = engine_for(table)
        if library_of(table) == "pandas":
            if not hasattr(table, "columns"):
                raise TypeError(f"a {type(table).__name__} of pandas is no table: give a DataFrame")
            self.pandas = PandasTable(table)
        self._keep(_Stored(folder, name, ".parquet", lambda path: self._write(table, path), self.engine.names))

    def _keep(self, stored: _Stored) -> None:
        self._stored = stored
        self._use(stored.path)

    def _use(self, path: Path) -> None:
        if not path.name:
            raise UsageError(f"cannot read {path}: it is a folder", exit_code=2)
        # Results are read from where they are, also if the working folder is another one by then.
        self.operand = operand(path)
        self.path = path.absolute()

    def require_current(self) -> None:
        """Raise an error if a later call has stored another table under the same name, so that the outputs are its own."""
        if self._stored is not None:
            self._stored.require_current()

    def close(self) -> None:
        """Let other calls fill a table of this name."""
        if self._stored is not None:
            self._stored.close()

    def _write(self, table: Any, path: Path) -> None:
        try:
            self.engine.write(table if self.pandas is None else self.pandas.storable(table), path)
        except (OSError, ImportError, MemoryError):
            raise
        except Exception as error:  # of the library, which has its own
            raise TypeError(f"the table cannot be stored as Parquet: {error}") from error


def _name_of(names: Sequence[str]) -> str:
    """Return the name of a table by its columns: what is learned for one does not fit another."""
    return "table-" + hashlib.sha256("\0".join(names).encode()).hexdigest()[:8]


class _Stored:
    """The file of a table in the folder. As long as it is locked, no other call replaces it."""

    path: Path

    def __init__(
        self,
        folder: Union[str, os.PathLike[str]],
        name: Optional[str],
        suffix: str,
        write: Callable[[Path], object],
        names: Callable[[Path], Sequence[str]],
    ) -> None:
        if name is not None and not isinstance(name, str):
            raise TypeError(f"the name of a table is a text, not {name!r}")
        if name is not None and (not name or name.startswith(".") or "/" in name or "\0" in name):
            raise ValueError(f"the name {name!r} is no name of a file")
        new = Path(folder) / f".new-{os.getpid()}-{threading.get_ident()}{suffix}"
        self._lock: Optional[IO[bytes]] = None
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            try:
                write(new)
                name = name or _name_of([suffix, *unique(names(new))])
                self.path = Path(folder) / f"{name}{suffix}"
                self._lock = _locked(Path(folder) / f".{name}.lock", self.path)
                # A file that is the same stays, so that a run that uses it continues.
                if not (self.path.exists() and filecmp.cmp(new, self.path, shallow=False)):
                    new.replace(self.path)
            finally:
                new.unlink(missing_ok=True)
        except OSError as error:
            self.close()
            if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                raise FatalError(f"cannot write {folder}: {error.strerror}", exit_code=17) from error
            sentence = f"cannot write the table into {folder}: {error.strerror or error}: choose another `folder`"
            raise UsageError(sentence, exit_code=2) from error
        self._version = self._version_now()

    def require_current(self) -> None:
        now = self._version_now()
        if now is not None and now != self._version:
            raise WebfillError(
                f"{self.path} is another table now, which a later call of fill has stored there: fill each table under a "
                "`name` of its own"
            )

    def _version_now(self) -> Optional[tuple[int, int, int]]:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def close(self) -> None:
        """Unlock the file."""
        if self._lock is not None:
            # Closing is not enough if a process that was forked meanwhile has the file, too.
            with contextlib.suppress(OSError):
                fcntl.flock(self._lock, fcntl.LOCK_UN)
            self._lock.close()
            self._lock = None


def _locked(lock: Path, table: Path) -> IO[bytes]:
    """Return the file that is locked until it is closed."""
    file = lock.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise WebfillError(
            f"{table} is in use by another call of fill: wait for it, or give this table a `name` of its own"
        ) from None
    except OSError:
        # This file system has no locks. That of the program remains.
        pass
    return file


def fill(
    table: object,
    *,
    contact: Optional[str] = None,
    folder: Union[str, os.PathLike[str]] = "webfill-tables",
    name: Optional[str] = None,
    id: Optional[Hashable] = None,
    url: Names = None,
    fields: Names = None,
    keep: Names = None,
    sample: Optional[int] = None,
    precision: Optional[float] = None,
    check: Optional[str] = None,
    doubts: Union[str, os.PathLike[str], None] = None,
    delay: Optional[float] = None,
    lane: Optional[str] = None,
    workers: Optional[int] = None,
    ignore_robots: bool = False,
    allow_private_networks: bool = False,
    proxy: Optional[str] = None,
    resolve: Union[str, Sequence[str]] = (),
    ca_file: Union[str, os.PathLike[str], None] = None,
    patience: Optional[str] = None,
    refresh_after: Optional[str] = None,
    dispatcher: Optional[str] = None,
    keys: Union[str, os.PathLike[str], None] = None,
    store: Optional[str] = None,
    app: Optional[str] = None,
    config: Union[str, os.PathLike[str], None] = None,
    progress: Progress = None,
) -> Filled:
    """Complete a table from the pages that its rows link to.

    The table itself is not changed. Ctrl-C lets fetches in flight finish; the same call resumes and requests no page
    twice, as does the same call after any other end.

    Parameters
    ----------
    table : DataFrame, Arrow table, DuckDB relation, list of dict, or path
        Rows with gaps (null, empty) and at least one column of links. Anything with ``__arrow_c_stream__`` or
        ``__arrow_c_array__`` is accepted.
    contact : str, optional
        URL of a page that explains the crawl, sent in the user agent; required for public addresses.
    folder : path, default "webfill-tables"
        Where the outputs and all that is needed to resume are kept; the outputs for a path are beside it.
    name : str, optional
        Name of the table in the folder. By default it is made from the names of the columns.
    id, url, fields, keep : str or list of str, optional
        Columns: the id; links; those to fill; those to leave as they are. By default they are recognised. Names of
        pandas that are no texts, such as ``7``, are given as they are; a tuple must be in a list.
    sample : int, default 30
        Pages of each site and kind of URL to learn from: 2 to 400.
    precision : float, default 0.95
        Fill only values that are right with at least this probability, from 0.5 to below 1.
    check : {"none", "sample", "all"}, default "sample"
        Rows whose known values are compared with their pages, beside those with gaps.
    doubts : path, optional
        Doubts that were edited: known values whose row says ``accept`` are replaced.
    delay : float, default 15
        Seconds between two requests to a site without a ``Crawl-delay`` in its robots.txt.
    lane : {"http", "browser"}, default "http"
        How pages are fetched.
    workers : int, optional
        Worker processes; by default one per core.
    ignore_robots, allow_private_networks : bool
        For loopback and private addresses.
    proxy, resolve, ca_file, config : optional
        As the options of the command ``webfill fill``.
    patience, refresh_after : str, optional
        Durations such as ``"90s"``, ``"15m"``, ``"2h"``: how long to wait for dead sites; the age of pages that are
        fetched again.
    dispatcher, keys, store, app : optional
        Have a running fleet fetch the pages.
    progress : bool or callable, optional
        True or None shows a bar, or plain lines where there is no terminal; False shows nothing. A callable is called
        with each event, at most 10 times a second.

    Returns
    -------
    Filled
        The filled table, with as many rows and the same columns and types.

    Raises
    ------
    UsageError
        If the table, the folder or an argument cannot be used; nothing was requested.
    WebfillError
        If the run failed, and its message is the program's sentence; or if another call fills a table of this name.
    TypeError
        If ``table`` is no table, or Parquet cannot hold one of its types, or two columns have the same name.
    ValueError
        If ``name`` is no name of a file.
    ImportError
        If no installed library can write the table as Parquet.
    KeyboardInterrupt
        After Ctrl-C, once fetches in flight have finished.

    Examples
    --------
    >>> import tempfile, webfill
    >>> webfill.fill([{"name": "Ada", "born": None}], folder=tempfile.mkdtemp())
    Traceback (most recent call last):
        ...
    webfill.UsageError: the table has no column of links: name it with --url
    """
    with contextlib.closing(_Given(table, folder, name)) as given:
        hosts = [resolve] if isinstance(resolve, str) else list(resolve)
        arguments = [
            "fill",
            given.operand,
            f"--report={Path(given.operand).with_name(given.beside('.html').name)}",
            *flag("contact", contact),
            *flag("id", id),
            *columns("url", url),
            *columns("fields", fields),
            *columns("keep", keep),
            *flag("sample", sample),
            *flag("precision", precision),
            *flag("check", check),
            *flag("doubts", doubts),
            *flag("delay", delay),
            *flag("lane", lane),
            *flag("workers", workers),
            *flag("ignore-robots", ignore_robots),
            *flag("allow-private-networks", allow_private_networks),
            *flag("proxy", proxy),
            *(argument for host in hosts for argument in flag("resolve", host)),
            *flag("ca-file", ca_file),
            *flag("patience", patience),
            *flag("refresh-after", refresh_after),
            *flag("dispatcher", dispatcher),
            *flag("keys", keys),
            # With a fleet, the store is not an argument, because an address may hold a password.
            *flag("store", store if dispatcher is None else None),
            *flag("app", app),
            *flag("config", config),
            *flag("progress", "none" if progress is False else "json"),
        ]
        environment = environment_of(store if dispatcher is not None else None)
        ended = run(arguments, progress=progress, environment=environment).expect(_DONE, _LIMIT)
        return Filled(given, complete=ended.code == _DONE, text=ended.stdout)

"""``webfill.Store``: records, pages and changes as Arrow streams."""

from __future__ import annotations

import os
import tempfile
import weakref
from pathlib import Path
from shutil import rmtree
from typing import Optional, Union

from ._command import Ended, run
from ._uri import uri_of
from ._engines import Row
from ._errors import flag
from ._tables import Table


class Export(Table):
    """What was read from a store when this was made: a Parquet file among the temporary ones, gone with this object.

    Attributes
    ----------
    path : pathlib.Path
        The file.
    """

    def __init__(self, what: str, uri: str, arguments: list[str], working_folder: str) -> None:
        folder = tempfile.mkdtemp(prefix="webfill-")
        super().__init__(Path(folder) / f"{what}.parquet", is_ours=True)
        self._end = weakref.finalize(self, rmtree, folder, ignore_errors=True)
        self._command = ["export", what, *arguments]
        self._environment = {"WEBFILL_STORE": uri}
        self._working_folder = working_folder
        self._export([*self._command, "--format=parquet", f"--output={self.path}"])

    def _export(self, command: list[str]) -> Ended:
        return run(command, environment=self._environment, folder=self._working_folder).expect(0)

    def to_dicts(self) -> list[Row]:
        """Read the store again.

        Returns
        -------
        list of dict
            One for each row, with the members of an export as JSON lines: objects are dicts.

        Raises
        ------
        WebfillError
            If the store cannot be read.
        """
        # JSON lines always have the sources, and their option is refused.
        command = [argument for argument in self._command if argument != "--sources"]
        return self._export([*command, "--format=jsonl"]).json_lines()


class Store:
    """A store of records, pages and changes, which only has to be readable.

    Parameters
    ----------
    uri : str or path, default "sqlite:webfill.db"
        ``sqlite:FILE``, ``mongodb://...``, or the path of a SQLite store. It is not shown in the list of processes.

    Attributes
    ----------
    uri : str
        The address.

    Examples
    --------
    >>> import webfill
    >>> webfill.Store("none.db").records()
    Traceback (most recent call last):
        ...
    webfill.WebfillError: sqlite:none.db: there is no such file
    """

    uri: str

    def __init__(self, uri: Union[str, os.PathLike[str]] = "sqlite:webfill.db") -> None:
        self.uri = uri_of(uri)
        # The path of a SQLite store keeps its meaning if the working folder is another one later.
        self._working_folder = os.getcwd()

    def records(
        self,
        *,
        app: Optional[str] = None,
        crawl: Optional[str] = None,
        dataset: Optional[str] = None,
        sources: bool = False,
        with_gone: bool = False,
    ) -> Export:
        """Read records.

        Parameters
        ----------
        app, crawl, dataset : str, optional
            Only those of this application, crawl or dataset.
        sources : bool
            Add the columns ``urls`` and ``source.FIELD``, the page of each value.
        with_gone : bool
            Include rows that are gone from their lists.

        Returns
        -------
        Export
            A row for each record, with a column for each field, in the type of its values.

        Raises
        ------
        WebfillError
            If there is no such store, or it cannot be read.
        """
        arguments = [*_of(app, crawl), *flag("dataset", dataset), *flag("sources", sources)]
        return self._read("records", [*arguments, *flag("with-gone", with_gone)])

    def pages(self, *, app: Optional[str] = None, crawl: Optional[str] = None) -> Export:
        """Read pages.

        Parameters
        ----------
        app, crawl : str, optional
            Only those of this application or crawl.

        Returns
        -------
        Export
            A row for each URL, with its outcome, its fields, times (UTC) and sizes (bytes).

        Raises
        ------
        WebfillError
            If there is no such store, or it cannot be read.
        """
        return self._read("pages", _of(app, crawl))

    def changes(self, *, app: Optional[str] = None, crawl: Optional[str] = None) -> Export:
        """Read changes.

        Parameters
        ----------
        app, crawl : str, optional
            Only those of this application or crawl.

        Returns
        -------
        Export
            A row for each page that was new, changed, removed or has returned, with the time (UTC).

        Raises
        ------
        WebfillError
            If there is no such store, or it cannot be read.
        """
        return self._read("changes", _of(app, crawl))

    def _read(self, what: str, arguments: list[str]) -> Export:
        return Export(what, self.uri, arguments, self._working_folder)

    def __repr__(self) -> str:
        # Only the scheme is shown, because an address may hold a password.
        return f"<webfill.Store {self.uri.split(':')[0]}>"


def _of(app: Optional[str], crawl: Optional[str]) -> list[str]:
    return [*flag("app", app), *flag("crawl", crawl)]

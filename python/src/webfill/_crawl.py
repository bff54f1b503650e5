"""``webfill.crawl``: a crawl on this machine, with all processes included."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Optional, Union

from ._command import run
from ._errors import UsageError, error_of, flag
from ._progress import Progress
from ._store import Store
from ._uri import uri_of

_DONE, _LIMIT = 0, 12


class Crawled:
    """A crawl that has ended.

    Attributes
    ----------
    summary : dict
        The counts of the whole crawl: ``crawl_id``, ``pages``, ``outcomes``, ``records``, ``found`` and others, as
        ``webfill crawl --summary json`` prints them.
    store : Store
        Its results.
    crawl : str
        The id of the crawl; give it again to resume.
    complete : bool
        False if a limit was reached or this machine is offline.
    """

    summary: dict[str, Any]
    store: Store
    crawl: str
    complete: bool

    def __init__(self, summary: dict[str, Any], store: Store, complete: bool) -> None:
        self.summary = summary
        self.store = store
        self.crawl = summary["crawl_id"]
        self.complete = complete

    def __repr__(self) -> str:
        return f"<webfill.Crawled {self.crawl}: {self.summary['pages']} pages>"


def crawl(
    urls: Union[str, Sequence[str]] = (),
    *,
    seeds: Union[str, os.PathLike[str], None] = None,
    dataset: Optional[str] = None,
    mappings: Union[str, os.PathLike[str], None] = None,
    store: Union[str, os.PathLike[str]] = "sqlite:webfill.db",
    state: Union[str, os.PathLike[str]] = ".webfill",
    crawl: Optional[str] = None,
    app: Optional[str] = None,
    contact: Optional[str] = None,
    depth: Optional[int] = None,
    delay: Optional[float] = None,
    follow: Optional[str] = None,
    lane: Optional[str] = None,
    workers: Optional[int] = None,
    max_pages: Optional[int] = None,
    max_time: Optional[str] = None,
    patience: Optional[str] = None,
    allow_private_networks: bool = False,
    keep_bodies: bool = False,
    changes: bool = False,
    config: Union[str, os.PathLike[str], None] = None,
    flags: Sequence[str] = (),
    progress: Progress = None,
) -> Crawled:
    """Crawl on this machine.

    Ctrl-C lets fetches in flight finish; the same call with the same ``state`` and ``crawl`` resumes.

    Parameters
    ----------
    urls : str or list of str, optional
        URLs to start from.
    seeds : path, optional
        Seeds and records: one URL per line, JSON lines, or CSV with a header.
    dataset : str, optional
        Dataset of the records; by default the name of the seeds file.
    mappings : path, default "etl-mappings"
        Folder of mapping files.
    store : str or path, default "sqlite:webfill.db"
        Store of records, pages and crawls.
    state : path, default ".webfill"
        Folder of what is needed to resume.
    crawl : str, optional
        Id of the crawl; an existing one resumes that crawl.
    contact : str, optional
        URL of a page that explains the crawl; required for public addresses.
    depth : int, default 1
        Most links from a seed to a page.
    delay : float, default 15
        Seconds between two requests to a site without a ``Crawl-delay`` in its robots.txt.
    follow : {"mapped", "all", "none"}, default "mapped"
        Links to follow.
    max_pages : int, optional
        Most pages; then the crawl ends gracefully and is not ``complete``.
    max_time : str, optional
        Longest time, such as ``"90s"`` or ``"2h"``; the same.
    patience : str, optional
        How long to wait for sites that do not answer, as ``max_time``.
    app, lane, workers, allow_private_networks, keep_bodies, changes : optional
        As the options of the command ``webfill crawl``.
    config : path, optional
        Settings file. Its ``store`` does not count: give ``store`` here.
    flags : list of str
        Further arguments of the command, such as ``["--sitemaps"]``.
    progress : bool or callable, optional
        As of ``webfill.fill``.

    Returns
    -------
    Crawled
        Counts and results.

    Raises
    ------
    UsageError
        If an argument or a mapping cannot be used; nothing was requested.
    WebfillError
        If the crawl failed, such as when no URL could be fetched; its message is the program's sentence.
    KeyboardInterrupt
        After Ctrl-C, once fetches in flight have finished.
    """
    uri = uri_of(store)
    urls = [urls] if isinstance(urls, str) else urls
    for url in urls:
        if url.startswith("-"):
            raise UsageError(f'invalid URL "{url}": it does not start with http:// or https://', exit_code=2)
    arguments = [
        "crawl",
        *urls,
        "--summary=json",
        *flag("seeds", seeds),
        *flag("dataset", dataset),
        *flag("mappings", mappings),
        *flag("state", os.fspath(state)),
        *flag("crawl", crawl),
        *flag("app", app),
        *flag("contact", contact),
        *flag("depth", depth),
        *flag("delay", delay),
        *flag("follow", follow),
        *flag("lane", lane),
        *flag("workers", workers),
        *flag("max-pages", max_pages),
        *flag("max-time", max_time),
        *flag("patience", patience),
        *flag("allow-private-networks", allow_private_networks),
        *flag("keep-bodies", keep_bodies),
        *flag("changes", changes),
        *flag("config", config),
        *flag("progress", "none" if progress is False else "json"),
        *([flags] if isinstance(flags, str) else flags),
    ]
    # Passed by the environment, because an address may hold a password.
    ended = run(arguments, progress=progress, environment={"WEBFILL_STORE": uri})
    if ended.code not in (_DONE, _LIMIT) or not ended.stdout.startswith("{"):
        raise error_of(ended.code, ended.stderr)
    return Crawled(ended.json(), Store(uri), ended.code == _DONE)

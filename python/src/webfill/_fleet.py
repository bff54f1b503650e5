"""``webfill.Fleet`` and ``webfill.AsyncFleet``: applications of a running dispatcher."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import IO, Any, NamedTuple, Optional, Union

from ._command import Ended, Interrupts, arguments_of, is_main_thread, run
from ._errors import RequestsRefusedError, error_of, flag, path_in

Requests = Union[Mapping[str, Any], Iterable[Mapping[str, Any]]]
_PathLike = Union[str, os.PathLike[str]]

_REFUSED = re.compile(r"^webfill: line (\d+): (.*)$")


class Fed(NamedTuple):
    """Requests that were accepted: durable, and to be crawled.

    Attributes
    ----------
    accepted : int
        How many.
    skipped : dict of str to int
        How many of their URLs will not be crawled, by reason: seen before, out of scope.
    """

    accepted: int
    skipped: dict[str, int]


class _Commands:
    """The arguments of the commands, and the reading of their answers."""

    address: str

    def __init__(
        self, address: str = "tcp://127.0.0.1:5555", keys: Optional[_PathLike] = None, config: Optional[_PathLike] = None
    ) -> None:
        self.address = address
        self._connection = [*flag("dispatcher", address), *flag("keys", keys), *flag("config", config)]

    def _action(self, *words: Union[str, None]) -> list[str]:
        return [*(word for word in words if word is not None), "--json", *self._connection]

    def _retry(
        self, app: str, crawl: str, outcomes: Sequence[str], statuses: Sequence[int], site: Optional[str]
    ) -> list[str]:
        some = [f"--outcome={outcome}" for outcome in outcomes] + [f"--status={status}" for status in statuses]
        return [*self._action("retry", app, crawl), *some, *flag("site", site)]

    def _dump(self, app: Optional[str]) -> list[str]:
        return ["dump", *flag("app", app), *self._connection]

    def __repr__(self) -> str:
        return f"<webfill.{type(self).__name__} {self.address}>"


def _write_requests(requests: Requests, file: IO[str]) -> None:
    some = [requests] if isinstance(requests, Mapping) else requests
    for request in some:
        if not isinstance(request, Mapping):
            raise TypeError(f"a request is a dict, not {request!r}")
        file.write(json.dumps(dict(request), ensure_ascii=False) + "\n")
    file.flush()


def _fed(ended: Ended) -> Fed:
    if not ended.stdout.startswith("{"):
        raise error_of(ended.code, ended.stderr)
    answer = ended.json()
    found = [match for line in ended.stderr.splitlines() if (match := _REFUSED.match(line))]
    refused = [(int(match[1]) - 1, path_in(match[2]), match[2]) for match in found]
    accepted, skipped = int(answer.get("accepted", 0)), dict(answer.get("skipped", {}))
    if ended.code != 0:
        # The program names only the first thousand refusals.
        count = max(int(answer.get("refused", 0)), len(refused))
        raise RequestsRefusedError(accepted, skipped, refused, ended.stderr, count)
    return Fed(accepted, skipped)


def _answer(ended: Ended) -> dict[str, Any]:
    answer: dict[str, Any] = ended.expect(0).json()
    return answer


class Fleet(_Commands):
    """The dispatcher of a running fleet.

    Parameters
    ----------
    address : str, default "tcp://127.0.0.1:5555"
        Address of the dispatcher's tasks socket, or several separated by commas, of which one serves.
    keys : path, optional
        Folder of keys; needed beyond this machine.
    config : path, optional
        Settings file, of which only the address and the keys are used.

    Attributes
    ----------
    address : str
        Address of the dispatcher.
    """

    def feed(self, requests: Requests) -> Fed:
        """Send crawl requests. Once this returns, they are durable.

        Parameters
        ----------
        requests : dict or iterable of dict
            Crawl requests, such as ``{"url": ..., "appid": ..., "crawlid": ...}``. An iterable is read once.

        Returns
        -------
        Fed
            How many were accepted.

        Raises
        ------
        RequestsRefusedError
            If some were refused; the others were accepted.
        WebfillError
            If the dispatcher cannot be reached, or refuses the key.
        """
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
            _write_requests(requests, file)
            return _fed(run([*self._action("feed", file.name), "--progress=none"]))

    def info(self, app: str, crawl: Optional[str] = None) -> dict[str, Any]:
        """Return what is pending of an application, or of one crawl.

        Parameters
        ----------
        app : str
            Application.
        crawl : str, optional
            Id of one crawl; without it, all crawls of the application.

        Returns
        -------
        dict
            For a crawl its ``state``, ``done``, ``total_pending``, ``outcomes`` and why it waits; for an application its
            crawls that have something pending. Points in time are seconds since 1970.

        Raises
        ------
        WebfillError
            If the dispatcher cannot be reached, or refuses; its message is the program's sentence.
        """
        return _answer(run(self._action("info", app, crawl)))

    def status(self) -> dict[str, Any]:
        """Return the state of the fleet.

        Returns
        -------
        dict
            Supervisors, stored pages, unfinished crawls. Keys that end with ``_s`` and ``_ms`` have that unit.

        Raises
        ------
        WebfillError
            If the dispatcher cannot be reached, or refuses; its message is the program's sentence.
        """
        return _answer(run(self._action("status")))

    def stop(self, app: str, crawl: str) -> dict[str, Any]:
        """Stop a crawl permanently: drop its pending tasks and accept no more.

        Parameters
        ----------
        app : str
            Application.
        crawl : str
            Id of the crawl.

        Returns
        -------
        dict
            The dispatcher's answer, with ``total_purged``: how many pending tasks were dropped.

        Raises
        ------
        WebfillError
            If the dispatcher cannot be reached, or refuses; its message is the program's sentence.
        """
        return _answer(run(self._action("stop", app, crawl)))

    def pause(self, app: str, crawl: str) -> dict[str, Any]:
        """Pause a crawl until it is resumed. No fetch starts after the answer.

        Parameters
        ----------
        app : str
            Application.
        crawl : str
            Id of the crawl.

        Returns
        -------
        dict
            The dispatcher's answer, with ``action``, ``appid`` and ``crawlid``.

        Raises
        ------
        WebfillError
            If the dispatcher cannot be reached, or refuses; its message is the program's sentence.
        """
        return _answer(run(self._action("pause", app, crawl)))

    def resume(self, app: str, crawl: str) -> dict[str, Any]:
        """Resume a paused crawl.

        Parameters
        ----------
        app : str
            Application.
        crawl : str
            Id of the crawl.

        Returns
        -------
        dict
            The dispatcher's answer, with ``action``, ``appid`` and ``crawlid``.

        Raises
        ------
        WebfillError
            If the dispatcher cannot be reached, or refuses; its message is the program's sentence.
        """
        return _answer(run(self._action("resume", app, crawl)))

    def retry(
        self,
        app: str,
        crawl: str,
        outcomes: Sequence[str],
        *,
        statuses: Sequence[int] = (),
        site: Optional[str] = None,
    ) -> dict[str, Any]:
        """Queue finished tasks with some outcomes again.

        Parameters
        ----------
        app : str
            Application.
        crawl : str
            Id of the crawl.
        outcomes : list of str
            Outcomes of the tasks, such as ``["timeout", "http_error"]``.
        statuses : list of int, optional
            Only those with one of these HTTP statuses.
        site : str, optional
            Only those of this site, such as ``"shop.example"``.

        Returns
        -------
        dict
            The dispatcher's answer, with ``total_requeued``: how many tasks are queued again.

        Raises
        ------
        WebfillError
            If the dispatcher cannot be reached, or refuses; its message is the program's sentence.
        """
        return _answer(run(self._retry(app, crawl, outcomes, statuses, site)))

    def follow(self, app: Optional[str] = None) -> Follower:
        """Iterate over results and notifications as they come, each a dict, until the loop is left.

        A subscriber that is slow or not there misses messages; the store misses none.

        Parameters
        ----------
        app : str, optional
            Only messages of this application.

        Returns
        -------
        Follower
            An iterator; leave it by ``with``, ``close()`` or Ctrl-C.

        Raises
        ------
        WebfillError
            From the iterator, if the dispatcher cannot be reached or refuses.

        Examples
        --------
        ``with fleet.follow("prices") as messages: print(next(messages))``
        """
        return Follower(self._dump(app))


class Follower(Iterator[dict[str, Any]]):
    """Messages of a fleet, each a dict. Leave it by ``with``, ``close()`` or Ctrl-C."""

    def __init__(self, arguments: list[str]) -> None:
        self._stderr = tempfile.TemporaryFile()
        try:
            with Interrupts():
                self._process = subprocess.Popen(
                    arguments_of(arguments),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=self._stderr,
                    start_new_session=is_main_thread(),
                )
        except BaseException:
            self.__del__()
            raise

    def __iter__(self) -> Follower:
        return self

    def __next__(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        try:
            line = b"" if self._process.stdout.closed else self._process.stdout.readline()
        except BaseException:
            # After Ctrl-C a traceback keeps this object alive, and part of a line is lost.
            self.close()
            raise
        if line:
            message: dict[str, Any] = json.loads(line)
            return message
        code = self._process.wait()
        if not self._stderr.closed:
            self._stderr.seek(0)
            said = self._stderr.read().decode(errors="replace")
            self.close()
            if code != 0:
                raise error_of(code, said)
        raise StopIteration

    def close(self) -> None:
        """End the subscription."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process.wait()
        self._stderr.close()

    def __enter__(self) -> Follower:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_process"):
            self.close()


class AsyncFleet(_Commands):
    """The same as :class:`Fleet` for asyncio.

    Parameters
    ----------
    address : str, default "tcp://127.0.0.1:5555"
        Address of the dispatcher's tasks socket, or several separated by commas, of which one serves.
    keys : path, optional
        Folder of keys; needed beyond this machine.
    config : path, optional
        Settings file, of which only the address and the keys are used.

    Attributes
    ----------
    address : str
        Address of the dispatcher.
    """

    async def feed(self, requests: Requests) -> Fed:
        """Send crawl requests, as :meth:`Fleet.feed`.

        Parameters
        ----------
        requests : dict or iterable of dict
            Crawl requests, such as ``{"url": ..., "appid": ..., "crawlid": ...}``. An iterable is read once.

        Returns
        -------
        Fed
            How many were accepted.

        Raises
        ------
        RequestsRefusedError
            If some were refused; the others were accepted.
        WebfillError
            If the dispatcher cannot be reached, or refuses the key.
        """
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
            _write_requests(requests, file)
            return _fed(await _run([*self._action("feed", file.name), "--progress=none"]))

    async def info(self, app: str, crawl: Optional[str] = None) -> dict[str, Any]:
        """Return what is pending of an application, or of one crawl.

        Parameters
        ----------
        app : str
            Application.
        crawl : str, optional
            Id of one crawl; without it, all crawls of the application.

        Returns
        -------
        dict
            For a crawl its ``state``, ``done``, ``total_pending``, ``outcomes`` and why it waits; for an application its
            crawls that have something pending. Points in time are seconds since 1970.

        Raises
        ------
        WebfillError
            If the dispatcher cannot be reached, or refuses; its message is the program's sentence.
        """
        return _answer(await _run(self._action("info", app, crawl)))

    async def status(self) -> dict[str, Any]:
        """Return the state of the fleet.

        Returns
        -------
        dict
            Supervisors, stored pages, unfinished crawls. Keys that end with ``_s`` and ``_ms`` have that unit.

        Raises
        ------
        WebfillError
            If the dispatcher cannot be reached, or refuses; its message is the program's sentence.
        """
        return _answer(await _run(self._action("status")))

    async def stop(self, app: str, crawl: str) -> dict[str, Any]:
        """Stop a crawl permanently: drop its pending tasks and accept no more.

        Parameters
        ----------
        app : str
            Application.
        crawl : str
            Id of the crawl.

        Returns
        -------
        dict
            The dispatcher's answer, with ``total_purged``: how many pending tasks were dropped.

        Raises
        ------
        WebfillError
            If the dispatcher cannot be reached, or refuses; its message is the program's sentence.
        """
        return _answer(await _run(self._action("stop", app, crawl)))

    async def pause(self, app: str, crawl: str) -> dict[str, Any]:
        """Pause a crawl until it is resumed. No fetch starts after the answer.

        Parameters
        ----------
        app : str
            Application.
        crawl : str
            Id of the crawl.

        Returns
        -------
        dict
            The dispatcher's answer, with ``action``, ``appid`` and ``crawlid``.

        Raises
        ------
        WebfillError
            If the dispatcher cannot be reached, or refuses; its message is the program's sentence.
        """
        return _answer(await _run(self._action("pause", app, crawl)))

    async def resume(self, app: str, crawl: str) -> dict[str, Any]:
        """Resume a paused crawl.

        Parameters
        ----------
        app : str
            Application.
        crawl : str
            Id of the crawl.

        Returns
        -------
        dict
            The dispatcher's answer, with ``action``, ``appid`` and ``crawlid``.

        Raises
        ------
        WebfillError
            If the dispatcher cannot be reached, or refuses; its message is the program's sentence.
        """
        return _answer(await _run(self._action("resume", app, crawl)))

    async def retry(
        self,
        app: str,
        crawl: str,
        outcomes: Sequence[str],
        *,
        statuses: Sequence[int] = (),
        site: Optional[str] = None,
    ) -> dict[str, Any]:
        """Queue finished tasks with some outcomes again.

        Parameters
        ----------
        app : str
            Application.
        crawl : str
            Id of the crawl.
        outcomes : list of str
            Outcomes of the tasks, such as ``["timeout", "http_error"]``.
        statuses : list of int, optional
            Only those with one of these HTTP statuses.
        site : str, optional
            Only those of this site, such as ``"shop.example"``.

        Returns
        -------
        dict
            The dispatcher's answer, with ``total_requeued``: how many tasks are queued again.

        Raises
        ------
        WebfillError
            If the dispatcher cannot be reached, or refuses; its message is the program's sentence.
        """
        return _answer(await _run(self._retry(app, crawl, outcomes, statuses, site)))

    async def follow(self, app: Optional[str] = None) -> AsyncIterator[dict[str, Any]]:
        """Iterate over results and notifications as they come: ``async for message in fleet.follow("prices")``.

        Parameters
        ----------
        app : str, optional
            Only messages of this application.

        Returns
        -------
        AsyncIterator of dict
            The messages; ``aclose()`` ends the subscription.

        Raises
        ------
        WebfillError
            If the dispatcher cannot be reached or refuses.
        """
        process = await _start(self._dump(app))
        assert process.stdout is not None and process.stderr is not None
        try:
            async for line in process.stdout:
                yield json.loads(line)
            said = (await process.stderr.read()).decode(errors="replace")
            code = await process.wait()
            if code != 0:
                raise error_of(code, said)
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
                await process.wait()


# The most bytes of a line. A result may have large fields.
_MOST_BYTES_OF_A_LINE = 256 * 1024 * 1024


async def _start(arguments: list[str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *arguments_of(arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        limit=_MOST_BYTES_OF_A_LINE,
    )


async def _run(arguments: list[str]) -> Ended:
    process = await _start(arguments)
    try:
        stdout, stderr = await process.communicate()
    finally:
        if process.returncode is None:  # cancelled
            process.send_signal(signal.SIGINT)
            await process.wait()
    return Ended(process.returncode or 0, stdout.decode(errors="replace"), stderr.decode(errors="replace"))

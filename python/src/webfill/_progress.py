"""What is shown while a command runs: a bar of tqdm, a plain line, or the calls of a callback."""

from __future__ import annotations

import sys
import time
import warnings
from importlib import import_module
from inspect import iscoroutinefunction
from typing import Any, Callable, Optional, Protocol, Union

Event = dict[str, Any]
"""A line of ``--progress json``, by ``docs/reference/progress.schema.json``: ``kind`` and its members."""

Progress = Union[bool, Callable[[Event], object], None]
"""True or None: a bar or a plain line; False: nothing; a callable is called with each event, at most 10 a second."""

# The intervals of the program without a terminal.
_PLAIN_FIRST_S = 5.0
_PLAIN_EVERY_S = 60.0


class Display(Protocol):
    """Shows events."""

    def show(self, event: Event) -> None: ...

    def close(self) -> None: ...


def display(progress: Progress) -> Optional[Display]:
    """Return what shows the events; None if nothing does."""
    if callable(progress):
        if iscoroutinefunction(progress):
            raise TypeError("progress must not be a coroutine function, because nothing awaits it: give a plain one")
        return _Called(progress)
    if progress not in (True, False, None):
        raise TypeError(f"progress is True, False, None or a callable, not {progress!r}")
    if progress is False:
        return None
    # A service or a window may have no standard error, or an object that is only written to.
    if sys.stderr is None:
        return None
    if _is_notebook() or getattr(sys.stderr, "isatty", bool)():
        try:
            with warnings.catch_warnings():
                # Without ipywidgets, the bar is text, which is good enough.
                warnings.simplefilter("ignore")
                return _Bar(import_module("tqdm.auto").tqdm)
        except ImportError:
            pass
    return _Plain()


def _is_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


class _Called:
    def __init__(self, callback: Callable[[Event], object]) -> None:
        self._callback = callback

    def show(self, event: Event) -> None:
        self._callback(event)

    def close(self) -> None:
        pass


class _Bar:
    def __init__(self, tqdm: Any) -> None:
        self._tqdm = tqdm
        self._bar = tqdm(unit="page", dynamic_ncols=True)

    def show(self, event: Event) -> None:
        bar, kind = self._bar, event.get("kind")
        if kind == "message":
            self._tqdm.write(event["text"], file=sys.stderr)
        elif kind == "fill":
            bar.set_description_str(event["step"])
        elif kind == "crawl":
            bar.total = event["total"]
            bar.n = event["done"]
            bar.set_postfix_str(_counts(event), refresh=False)
            bar.refresh()
        elif kind == "fleet":
            bar.set_postfix_str(f"{event['left']} left at the fleet", refresh=True)

    def close(self) -> None:
        self._bar.close()


class _Plain:
    def __init__(self) -> None:
        self._next = time.monotonic() + _PLAIN_FIRST_S
        self._step = ""

    def show(self, event: Event) -> None:
        kind = event.get("kind")
        if kind == "message":
            print(f"webfill: {event['text']}", file=sys.stderr)
        elif kind == "fill":
            self._step = f"{event['step']}: "
        elif time.monotonic() >= self._next:
            text = _counts(event) if kind == "crawl" else f"{event.get('left', 0)} pages left"
            print(f"webfill: {self._step}{text}", file=sys.stderr)
            self._next = time.monotonic() + _PLAIN_EVERY_S

    def close(self) -> None:
        pass


def _counts(event: Event) -> str:
    text = f"{event['done']} of {event['total']} URLs, {event['errors']} errors"
    return f"{text}, {event['waiting']}" if event.get("waiting") else text

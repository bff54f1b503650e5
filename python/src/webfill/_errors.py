"""Errors: the program's own sentence, the JSON path of the fault, and the exit code."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from typing import Any, Optional, Union

_PREFIX = "webfill: "
# A path such as `$.priority: ...` in a request, or `fields.price[1]: ...` in a file.
_PATH = re.compile(r"(?:^|: )(\$(?:\.[\w-]+|\[\d+\])*|[A-Za-z_][\w-]*(?:\.[\w-]+|\[\d+\])+): ")

# What looks like a path, but is the name of a file.
_FILE = re.compile(r"\.(?:csv|db|html|json|jsonl|parquet|toml)$")


class WebfillError(Exception):
    """A command that failed.

    Attributes
    ----------
    message : str
        The sentence of the program.
    path : str or None
        The JSON path of the fault, as ``$.priority`` or ``fields.price[1]``, if the sentence names one.
    exit_code : int
        How the program ended; negative if a signal ended it.
    stderr : str
        Everything that the program printed for people.
    """

    message: str
    path: Optional[str]
    exit_code: int
    stderr: str

    def __init__(self, message: str, *, path: Optional[str] = None, exit_code: int = 1, stderr: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.exit_code = exit_code
        self.stderr = stderr


class UsageError(WebfillError):
    """Exit code 2: bad arguments, settings or files, found before anything was done."""


class InterruptedCommandError(WebfillError):
    """Exit code 11: the program was asked to end; the same call resumes. Ctrl-C raises ``KeyboardInterrupt``."""


class LimitError(WebfillError):
    """Exit code 12: a limit was reached, or this machine is offline; the same call resumes."""


class FatalError(WebfillError):
    """Exit code 17: a fatal fault such as a full disk; what was stored is intact."""


class RequestsRefusedError(WebfillError):
    """Some crawl requests were refused; the others were accepted and are durable.

    Attributes
    ----------
    accepted : int
        How many were accepted.
    skipped : dict of str to int
        Accepted URLs that will not be crawled, by reason.
    refused : list of tuple
        Of the first thousand refused requests the position from 0, the JSON path of the fault or None, and the
        sentence.
    count : int
        How many were refused.
    """

    accepted: int
    skipped: dict[str, int]
    refused: list[tuple[int, Optional[str], str]]
    count: int

    def __init__(
        self,
        accepted: int,
        skipped: dict[str, int],
        refused: list[tuple[int, Optional[str], str]],
        stderr: str,
        count: int,
    ) -> None:
        first = refused[0] if refused else (0, None, "refused")
        sentence = f"{count} of {count + accepted} requests refused; the first, [{first[0]}]: {first[2]}"
        super().__init__(sentence, path=first[1], exit_code=1, stderr=stderr)
        self.count = count
        self.accepted = accepted
        self.skipped = skipped
        self.refused = refused


_BY_CODE: dict[int, type[WebfillError]] = {2: UsageError, 11: InterruptedCommandError, 12: LimitError, 17: FatalError}


def path_in(sentence: str) -> Optional[str]:
    """Return the JSON path that a sentence names.

    >>> path_in("$.priority: expected a whole number from 1 to 100")
    '$.priority'
    >>> path_in("shop.json:3: fields.price[1]: invalid XPath")
    'fields.price[1]'
    >>> path_in("cannot read books.csv: No such file or directory") is None
    True
    >>> path_in("shop.json: cannot be read") is None
    True
    """
    for found in _PATH.finditer(sentence):
        if not _FILE.search(found.group(1)):
            return found.group(1)
    return None


def error_of(exit_code: int, stderr: str, stdout: str = "") -> WebfillError:
    """Return the error for the end of a command."""
    lines = [line for line in stderr.splitlines() if line.strip() and not line.startswith("{")]
    starts = [number for number, line in enumerate(lines) if line.startswith(_PREFIX)]
    # A sentence may extend over several lines.
    sentence = "\n".join(lines[starts[-1] :])[len(_PREFIX) :] if starts else "\n".join(lines[-3:])
    path = path_in(sentence)
    refusal = _refusal(stdout)
    if refusal is not None:
        path, sentence = refusal
    if exit_code < 0:
        sentence = sentence or f"the program was ended by signal {-exit_code}"
    kind = _BY_CODE.get(exit_code, WebfillError)
    return kind(sentence or f"the program ended with {exit_code}", path=path, exit_code=exit_code, stderr=stderr)


def _refusal(stdout: str) -> Optional[tuple[Optional[str], str]]:
    """``{"error": {"path", "message"}}``, as the dispatcher answers."""
    if not stdout.startswith('{"error"'):
        return None
    try:
        answer: Any = json.loads(stdout)
    except ValueError:
        return None
    error = answer.get("error")
    return (error.get("path"), str(error.get("message"))) if isinstance(error, dict) else None


def flag(name: str, value: object) -> list[str]:
    """Return the arguments for an option: nothing for None and False, the name alone for True.

    >>> flag("delay", 0.5), flag("dry-run", True), flag("lane", None)
    (['--delay=0.5'], ['--dry-run'], [])
    """
    if value is None or value is False:
        return []
    return [f"--{name}"] if value is True else [f"--{name}={value}"]


def operand(path: Union[str, os.PathLike[str]]) -> str:
    """Return the argument for a file, which must not look like an option.

    >>> operand("books.csv"), operand("-books.csv")
    ('books.csv', './-books.csv')
    """
    text = os.fspath(path)
    return f"./{text}" if text.startswith("-") else text


def columns(name: str, value: object) -> list[str]:
    """Return the arguments for an option that takes names of columns, which may be of any type in pandas.

    >>> columns("keep", ["note", 7, ("a", "b")]), columns("keep", "note")
    (['--keep=note', '--keep=7', "--keep=('a', 'b')"], ['--keep=note'])
    """
    if value is None:
        return []
    # A tuple can be a name of pandas or a list of names, so it is one name only in a list.
    names: Iterable[object] = [value] if isinstance(value, str) or not isinstance(value, Iterable) else value
    return [f"--{name}={one}" for one in names]

"""Commands: processes of the program, which end with the interpreter and drain at Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from types import FrameType, TracebackType
from typing import IO, Any, Callable, NamedTuple, Optional

from ._errors import error_of
from ._program import find_bin
from ._progress import Display, Progress, display


class Ended(NamedTuple):
    """A command that has ended."""

    code: int
    stdout: str
    stderr: str

    def expect(self, *codes: int) -> Ended:
        """Raise the error of the command unless it has ended with one of these codes."""
        if self.code not in codes:
            raise error_of(self.code, self.stderr, self.stdout)
        return self

    def json(self) -> Any:
        """Return standard output, read as JSON."""
        return json.loads(self.stdout)

    def json_lines(self) -> list[Any]:
        """Return the lines of standard output, each read as JSON, in which U+2028 and others may stand as they are."""
        return [json.loads(line) for line in self.stdout.split("\n") if line.strip()]


def arguments_of(arguments: Sequence[str]) -> list[str]:
    """Return what is started: the program notices when this process has died, and drains."""
    return [find_bin(), *arguments, f"--parent-process={os.getpid()}"]


class Interrupts:
    """Ctrl-C while a command starts and runs: it is passed on to the command, and raised here once the command has ended.

    Raised in between, it could leave a process that nothing ends as long as the interpreter lives. Other threads than
    the main one get no Ctrl-C from Python.
    """

    def __init__(self) -> None:
        self.process: Optional[subprocess.Popen[bytes]] = None
        # Where the user's code runs, Ctrl-C ends it at once.
        self.is_in_callback = False
        self._is_pending = False
        self._before: Optional[Callable[[int, Optional[FrameType]], object]] = None

    def __enter__(self) -> Interrupts:
        before = signal.getsignal(signal.SIGINT)
        if is_main_thread() and callable(before):
            self._before = before
            signal.signal(signal.SIGINT, self._pass_on)
        return self

    def started(self, process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        """Set the process that interrupts are passed on to, also one that came before it was there."""
        self.process = process
        if self._is_pending:
            process.send_signal(signal.SIGINT)
        return process

    def _pass_on(self, number: int, frame: Optional[FrameType]) -> None:
        if self.is_in_callback and self._before is not None:
            self._before(number, frame)
        self._is_pending = True
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if self._before is None:
            return
        signal.signal(signal.SIGINT, self._before)
        if self._is_pending and not isinstance(error, KeyboardInterrupt):
            self._before(signal.SIGINT, None)


def is_main_thread() -> bool:
    """Whether this is the thread that Python passes signals to."""
    return threading.current_thread() is threading.main_thread()


def run(
    arguments: Sequence[str],
    *,
    progress: Progress = False,
    environment: Optional[Mapping[str, str]] = None,
    folder: Optional[str] = None,
) -> Ended:
    """Run a command to its end, in a working folder or in the current one.

    In the main thread it has a session of its own, so that Ctrl-C comes to it from here only: the first lets it drain,
    the second stops it at once. Only then is ``KeyboardInterrupt`` raised. In another thread, which Python does not
    interrupt, the command gets the terminal's Ctrl-C by itself.
    """
    shown = display(progress)
    try:
        with tempfile.TemporaryFile() as stdout, Interrupts() as interrupts:
            process = interrupts.started(
                subprocess.Popen(
                    arguments_of(arguments),
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=subprocess.PIPE,
                    start_new_session=is_main_thread(),
                    env={**os.environ, **environment} if environment else None,
                    cwd=folder,
                )
            )
            assert process.stderr is not None
            with process.stderr as stderr:
                said = _attend(process, stderr, shown, interrupts)
            stdout.seek(0)
            return Ended(process.returncode, stdout.read().decode(errors="replace"), said)
    finally:
        if shown is not None:
            shown.close()


def _attend(
    process: subprocess.Popen[bytes], stderr: IO[bytes], shown: Optional[Display], interrupts: Interrupts
) -> str:
    """Read what the command says until it has ended; what was raised meanwhile is raised then."""
    said: list[str] = []
    raised: Optional[BaseException] = None
    while True:
        try:
            for raw in stderr:
                line = raw.decode(errors="replace")
                if not line.startswith("{"):
                    said.append(line)
                elif shown is not None and raised is None:
                    interrupts.is_in_callback = True
                    shown.show(json.loads(line))
                    interrupts.is_in_callback = False
            process.wait()
            break
        except BaseException as error:  # of a callback, or of the handler of another signal
            interrupts.is_in_callback = False
            raised = raised or error
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
    if raised is not None:
        raise raised
    return "".join(said)

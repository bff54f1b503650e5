"""Commands: processes of the program, which end with the interpreter and drain at Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, Any, NamedTuple, Optional

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


def run(
    arguments: Sequence[str], *, progress: Progress = False, environment: Optional[Mapping[str, str]] = None
) -> Ended:
    """Run a command to its end.

    It has a session of its own, so that Ctrl-C comes to it from here only: the first lets it drain, the second stops
    it at once. Only then is ``KeyboardInterrupt`` raised.
    """
    shown = display(progress)
    try:
        with tempfile.TemporaryFile() as stdout:
            process = subprocess.Popen(
                arguments_of(arguments),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env={**os.environ, **environment} if environment else None,
            )
            assert process.stderr is not None
            with process.stderr as stderr:
                said = _attend(process, stderr, shown)
            stdout.seek(0)
            return Ended(process.returncode, stdout.read().decode(errors="replace"), said)
    finally:
        if shown is not None:
            shown.close()


def _attend(process: subprocess.Popen[bytes], stderr: IO[bytes], shown: Optional[Display]) -> str:
    """Read what the command says until it has ended; what was raised meanwhile is raised then."""
    said: list[str] = []
    raised: Optional[BaseException] = None
    while True:
        try:
            for raw in stderr:
                line = raw.decode(errors="replace")
                if line.startswith("{"):
                    if shown is not None and raised is None:
                        shown.show(json.loads(line))
                else:
                    said.append(line)
            process.wait()
            break
        except BaseException as error:  # also raised by a callback
            raised = raised or error
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
    if raised is not None:
        raise raised
    return "".join(said)

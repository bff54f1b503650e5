"""Where the program is."""

from __future__ import annotations

import os
from pathlib import Path


def find_bin() -> str:
    """Return the path of the program ``webfill`` that this package brings along.

    Returns
    -------
    str
        An absolute path. The program takes the same arguments as the command ``webfill``.

    Raises
    ------
    FileNotFoundError
        If the package was installed from its sources, without the program.

    Examples
    --------
    >>> import subprocess, webfill
    >>> subprocess.run([webfill.find_bin(), "--version"], capture_output=True, text=True).stdout.split()[0]
    'webfill'
    """
    program = Path(__file__).parent / "bin" / "webfill"
    if not os.access(program, os.X_OK):
        raise FileNotFoundError(f"{program} is missing: install a wheel of webfill")
    return str(program)

"""``python -m webfill`` and the command ``webfill`` are the whole program."""

from __future__ import annotations

import os
import sys

from ._program import find_bin


def main() -> None:
    """Replace this process by the program, with the same arguments."""
    os.execv(find_bin(), ["webfill", *sys.argv[1:]])


if __name__ == "__main__":
    main()
